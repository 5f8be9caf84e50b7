"""The only place that imports skorch, and without PyTorch Geometric."""

from __future__ import annotations

import sys
import threading
from typing import Any

_OPTIONAL = "torch_geometric"


class _Hidden:
    """Keeps the thread that enters it from importing PyTorch Geometric; others find it."""

    def __enter__(self) -> None:
        self.thread = threading.get_ident()
        sys.meta_path.insert(0, self)

    def __exit__(self, *error: object) -> None:
        sys.meta_path.remove(self)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """Raise ModuleNotFoundError for the one name, leave all others to the next finder."""
        if name == _OPTIONAL and threading.get_ident() == self.thread:
            raise ModuleNotFoundError(f"{name} is not imported for skorch alone", name=name)


class _IfImported:
    """True once the program has imported PyTorch Geometric: before, there is none of its data."""

    def __bool__(self) -> bool:
        return _OPTIONAL in sys.modules


# skorch imports PyTorch Geometric where it is installed, only to recognise its data. It would take
# as long as importing torch and scikit-learn, also in programs without graphs.
with _Hidden():
    import skorch.utils
    from skorch import NeuralNet
    from skorch.callbacks import (
        Callback,
        EpochTimer,
        LRScheduler,
        PassthroughScoring,
        PrintLog,
        ProgressBar,
    )
    from skorch.callbacks.scoring import ScoringBase
    from skorch.callbacks.training import ParamMapper
    from skorch.history import History

skorch.utils.TORCH_GEOMETRIC_INSTALLED = _IfImported()

__all__ = [
    "Callback", "EpochTimer", "History", "LRScheduler", "NeuralNet", "ParamMapper",
    "PassthroughScoring", "PrintLog", "ProgressBar", "ScoringBase",
]  # fmt: skip
