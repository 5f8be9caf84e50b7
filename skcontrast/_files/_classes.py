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

from .._layers._kernels import KernelLayer
from .._layers._patches import Octaves, PatchLayer
from .._layers._pooling import Reduced
from .._layers._pretrained import Pixels, PretrainedNetwork
from .._layers._wide import FirstColumns, RunningScale, Scale, SideFeatures, WideNetwork
from .._network._build import Network, Widths
from ..embedder import ContrastiveEmbedder
from ..encoders._graph import GINELayer, GINLayer, MessagePassing
from ..encoders._mlp import WithExtra
from ..encoders._resnet import _BasicBlock, _Bottleneck, _ResNet
from ..encoders._series_net import _SeriesBlock, _SeriesNetwork
from ..features._images import GradientLayer
from ..frameworks._parts import GivenParts, Lab, ParallelNetworks, Split, SplitColumns
from ..graphs._counts import ColourCounts, Components, Profile
from ..graphs._features import EdgeFeatures, NodeFeatures
from ..graphs._networks import ForeignNetwork, GraphNetwork
from ..kinds._base import Schema, Unscaled
from ..kinds._images import ImageScaler
from ..kinds._recognise import PartsScaler
from ..kinds._scaling import Standardize
from ..kinds._series import SeriesScaler
from ..kinds._table_input import TableInput
from ..kinds._tables import Column, TableScaler
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
# Everything else that a fitted embedder consists of, under the names of the classes.
_PARTS: tuple[type, ...] = (
    ColourCounts, Column, Components, ContrastiveEmbedder, EdgeFeatures, FirstColumns,
    ForeignNetwork, GINELayer, GINLayer, GivenParts, GradientLayer, GraphNetwork, ImageScaler,
    KernelLayer, Lab, MessagePassing, Network, NodeFeatures, NonDynamicallyQuantizableLinear,
    Octaves, ParallelNetworks, PartsScaler, PatchLayer, Pixels, PretrainedNetwork, Profile,
    Reduced, RunningScale, Scale, Schema, SeriesScaler, SideFeatures, Split, SplitColumns,
    StandardScaler, Standardize, TableInput, TableScaler, Unscaled, VectorScaler, WideNetwork,
    Widths, WithExtra,
    _BasicBlock, _Bottleneck, _ResNet, _SeriesBlock, _SeriesNetwork, *LINEAR,
)  # fmt: skip


@cache
def classes() -> dict[str, type]:
    """Return every class that a file may name, by its name there."""
    found = {cls.__name__: cls for cls in _PARTS}
    for short in _PUBLIC:
        module = import_module(f"skcontrast.{short}")
        members = ((name, getattr(module, name)) for name in module.__all__)
        found |= {f"{short}.{name}": cls for name, cls in members if inspect.isclass(cls)}
    for package, base in ((nn, nn.Module), (torch.optim, torch.optim.Optimizer)):
        found |= {
            f"{package.__name__}.{name}": cls
            for name, cls in inspect.getmembers(package, inspect.isclass)
            if issubclass(cls, base)
            and not issubclass(cls, _UNSAFE)
            and cls.__module__.startswith(("torch.nn.modules.", "torch.optim."))
        }
    return found
