"""Pickles of version 0.1.0: the names of its private classes, and what was laid out differently.

A pickle names a class by its module. `register` gives the modules that are gone a stand-in, in
which each name leads to the present class.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from .._network._build import Widths
from .._network._network import Network
from ..encoders import Encoder
from ..encoders._message_passing import MessagePassing
from ..encoders._projection import WithExtra
from ..frameworks._lab import Lab
from ..frameworks._parts import SideBySide, Slices, Split
from ..graphs import GraphBatch
from ..graphs._features import NodeFeatures
from ..graphs._networks import ForeignNetwork, GraphNetwork
from ..kinds import Images
from ..kinds._base import Schema
from ..kinds._pickles_0_1 import schema_of_0_1
from ..kinds._scaling import Standardize
from ..kinds.images import ImageScaler
from ..kinds.vectors import VectorScaler
from ._fit import Fitted


class InputScaler:
    """The scaler of vectors and images; only an embedder knows which of both it was."""


class MarkedStandardize(Standardize):
    """`Standardize` with a memory format where it has a flag now, which it becomes."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        state["channels_last"] = state.pop("memory_format") == torch.channels_last
        self.__class__ = Standardize  # type: ignore[assignment]
        self.__setstate__(state)


class TwoParts(Split):
    """`Split` with two parts of other names, which it becomes."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        nn.Module.__setstate__(self, state)
        for place, name in enumerate(("first", "second")):
            self._buffers[f"columns_{place}"] = self._buffers.pop(name)
        self.cut = None  # is only asked for before the training
        self.__class__ = Split  # type: ignore[assignment]


class Halves(Slices):
    """`Slices` with the width of the first of two parts, which it becomes.

    The second has no end.
    """

    def __setstate__(self, state: dict[str, Any]) -> None:
        nn.Module.__setstate__(self, state)
        self.ends = [self.__dict__.pop("width"), None]
        self.__class__ = Slices  # type: ignore[assignment]


class NormalizedReadout(MessagePassing):
    """Layers whose outputs are normalised both where they are read out and for the next layer."""

    def forward(self, graphs: GraphBatch) -> Tensor:
        """Return the representations of the nodes of a GraphBatch, shape (n_nodes, width)."""
        h: Any = None
        states = []
        for layer, norm in zip(self.layers, self.norms, strict=True):
            h = norm(layer(h, graphs))
            states.append(h)
        return self.last(torch.cat(states, 1) if self.jumping_knowledge else h)


# The classes by the modules that they were in.
_NAMES: dict[str, dict[str, type]] = {
    "skcontrast._network": {"Standardize": MarkedStandardize},
    "skcontrast._scaling": {"InputScaler": InputScaler},
    "skcontrast.encoders._message_passing": {
        "ForeignNetwork": ForeignNetwork,
        "GraphNetwork": GraphNetwork,
    },
    "skcontrast.encoders.projection": {"WithExtra": WithExtra},
    "skcontrast.frameworks._split": {
        "Halves": Halves,
        "Lab": Lab,
        "Parts": SideBySide,
        "Split": TwoParts,
    },
}


def register() -> None:
    """Make the names of 0.1.0 known to pickle."""
    for module, classes in _NAMES.items():
        place = sys.modules.setdefault(module, ModuleType(module, __doc__))
        vars(place).update(classes)


def converted(state: dict[str, Any]) -> dict[str, Any]:
    """Return the state of a fitted embedder of 0.1.0 as that of an embedder of today."""
    state = dict(state)
    described = schema_of_0_1(state, state["framework_"].takes_parts)
    network = Network(state["encoder_"], state["projector_"]).eval()
    for module in network.modules():
        if type(module) is MessagePassing:
            module.__class__ = NormalizedReadout  # type: ignore[assignment]
    built_from = state.pop("_built_from")
    if isinstance(state["encoder"], Encoder):
        built_from = {**built_from, "encoder": repr(state["encoder"])}
    state["_fitted"] = Fitted(
        loss=state["loss_"],
        framework=state["framework_"],
        similarity=state["similarity_"],
        schema=described,
        scaler=_scaler(state.pop("_scaler"), described),
        network=network,
        widths=Widths(state.pop("_width"), state.pop("_projection_width"), state.pop("_n_parts")),
        augmentation=state["augmentation_"],
        built_from=built_from,
        history=state["history_"],
        estimates=state["estimates_"],
        optimizer_state=_optimizer(state.pop("_optimizer_state")),
        framework_state=state.pop("_framework_state"),
        interrupted=False,
    )
    del state["_contrasts_channels"]
    return state


def _scaler(old: Any, described: Schema) -> VectorScaler | ImageScaler | NodeFeatures:
    """Return the scaler of today."""
    if isinstance(old, NodeFeatures):
        # Degrees were one-hot codes.
        old.ordinal_ = False
        return old
    scaler = (ImageScaler if isinstance(described.kind, Images) else VectorScaler)()
    vars(scaler).update(vars(old))
    return scaler


def _optimizer(old: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return the state of an optimizer without its groups, of which there was one."""
    if old is None:
        return None
    members = [place for group in old["state"]["param_groups"] for place in group["params"]]
    return {"kind": old["kind"], "n_parameters": len(members), "state": old["state"]["state"]}
