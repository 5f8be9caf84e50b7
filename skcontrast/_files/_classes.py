"""The classes whose objects a file may hold, under names that do not depend on modules."""

from __future__ import annotations

import inspect
from functools import cache
from importlib import import_module

import torch
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from torch import nn
from torch.nn.modules.linear import NonDynamicallyQuantizableLinear

from .._network._build import Widths
from ..embedder import ContrastiveEmbedder
from ..graphs._features import EdgeFeatures, NodeFeatures
from ..kinds._base import Schema, Unscaled
from ..kinds._images import ImageScaler
from ..kinds._recognise import PartsScaler
from ..kinds._series import SeriesScaler
from ..kinds._vectors import VectorScaler

# Layers that crash on odd attributes instead of raising an error.
_UNSAFE = (nn.RNNBase, nn.RNNCellBase)
# The public modules whose classes a file may name, as "losses.DCL".
_PUBLIC = (
    "augmentation", "encoders", "features", "frameworks", "kinds", "losses", "optimizers",
    "schedules", "similarity",
)  # fmt: skip
# Linear classifiers of scikit-learn: fitted, they are a few arrays.
LINEAR = (LinearSVC, LogisticRegression)
# The private modules whose layers a file may name, as "GINLayer".
_PRIVATE = (
    "_layers._images", "_layers._kernels", "_layers._pretrained", "_layers._wide",
    "_network._build", "encoders._graph", "encoders._mlp", "encoders._resnet",
    "encoders._series_net", "features._graphs", "features._signals", "frameworks._parts",
    "graphs._features", "graphs._networks", "kinds._scaling",
)  # fmt: skip
# Everything else that a fitted embedder consists of, under the names of the classes.
_PARTS: tuple[type, ...] = (
    ContrastiveEmbedder, EdgeFeatures, ImageScaler, NodeFeatures,
    NonDynamicallyQuantizableLinear, PartsScaler, Schema, SeriesScaler, StandardScaler,
    Unscaled, VectorScaler, Widths, *LINEAR,
)  # fmt: skip


@cache
def classes() -> dict[str, type]:
    """Return every class that a file may name, by its name there."""
    found = {cls.__name__: cls for cls in _PARTS}
    for short in _PUBLIC:
        module = import_module(f"skcontrast.{short}")
        members = ((name, getattr(module, name)) for name in module.__all__)
        found |= {f"{short}.{name}": cls for name, cls in members if inspect.isclass(cls)}
    for short in _PRIVATE:
        module = import_module(f"skcontrast.{short}")
        for name, cls in inspect.getmembers(module, inspect.isclass):
            if issubclass(cls, nn.Module) and cls.__module__ == module.__name__:
                found[name] = cls
    # Of torch, layers and optimizers alone.
    for package, base in ((nn, nn.Module), (torch.optim, torch.optim.Optimizer)):
        found |= {
            f"{package.__name__}.{name}": cls
            for name, cls in inspect.getmembers(package, inspect.isclass)
            if issubclass(cls, base)
            and not issubclass(cls, _UNSAFE)
            and cls.__module__.startswith(("torch.nn.modules.", "torch.optim."))
        }
    return found
