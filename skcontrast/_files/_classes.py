"""The classes that a file may name, under names that do not depend on modules."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

import torch
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from torch import nn

from ..embedder import ContrastiveEmbedder

# Linear classifiers of scikit-learn: fitted, they are a few arrays.
LINEAR = (LinearSVC, LogisticRegression)
# Their classes are all that a fitted embedder consists of.
_PACKAGES = (
    "_layers", "_network", "augmentation", "encoders", "features", "frameworks", "graphs", "kinds",
    "losses", "optimizers", "schedules", "similarity",
)  # fmt: skip
# The packages of torch and the base of their classes; the last has a part of attention.
_OF_TORCH = (
    (nn.modules, nn.Module), (torch.optim, torch.optim.Optimizer), (nn.modules.linear, nn.Linear),
)  # fmt: skip
# They hold weak references to their weights, which no file can have.
_RECURRENT = (nn.RNNBase, nn.RNNCellBase)


@cache
def classes() -> dict[str, type]:
    """Return every class that a file may name, by its name there."""
    ours = [cls for module in _modules() for cls in _defined_in(module)]
    of_torch = [
        cls
        for package, base in _OF_TORCH
        for _, cls in inspect.getmembers(package, inspect.isclass)
        if issubclass(cls, base) and not issubclass(cls, _RECURRENT)
    ]
    named = {cls.__name__: cls for cls in (ContrastiveEmbedder, StandardScaler, *LINEAR, *ours)}
    return named | {f"torch.{cls.__name__}": cls for cls in of_torch}


def _modules() -> Iterator[ModuleType]:
    """Yield the packages and their modules."""
    for name in _PACKAGES:
        package = import_module(f"skcontrast.{name}")
        yield package
        for module in iter_modules(getattr(package, "__path__", ()), f"skcontrast.{name}."):
            yield import_module(module.name)


def _defined_in(module: ModuleType) -> list[type]:
    members = inspect.getmembers(module, inspect.isclass)
    return [cls for _, cls in members if cls.__module__ == module.__name__]
