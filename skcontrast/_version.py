"""The version of the package, and those of the packages it builds on."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version

import torch

__version__ = "0.1.0"


def versions(packages: Iterable[str]) -> dict[str, str]:
    """Return the versions of packages by name; that of skcontrast is the one that runs.

    An editable installation keeps the metadata of the day it was made.
    """
    return {name: __version__ if name == "skcontrast" else version(name) for name in packages}


_SHOWN = (
    "skcontrast", "torch", "scikit-learn", "skorch", "numpy", "scipy", "safetensors", "joblib",
    "pandas", "pillow", "networkx", "torch_geometric", "matplotlib", "onnx",
)  # fmt: skip


def show_versions() -> None:
    """Print the versions of Python, of the packages that matter here, and the machine.

    Paste it into a report of a bug.

    See Also
    --------
    sklearn.show_versions : The same for scikit-learn.

    Examples
    --------
    >>> import skcontrast
    >>> skcontrast.show_versions()  # doctest: +ELLIPSIS
    python: 3...
    """
    facts = {"python": platform.python_version(), "platform": platform.platform()}
    for package in _SHOWN:
        try:
            facts |= versions([package])
        except PackageNotFoundError:
            facts[package] = "not installed"
    gpus = [torch.cuda.get_device_name(k) for k in range(torch.cuda.device_count())]
    facts["GPUs"] = ", ".join(gpus) or "none"
    facts["CUDA of torch"] = torch.version.cuda or "none"
    facts["CPUs"] = f"{os.cpu_count()}, of which torch uses {torch.get_num_threads()}"
    facts["executable"] = sys.executable
    print("\n".join(f"{name}: {value}" for name, value in facts.items()))
