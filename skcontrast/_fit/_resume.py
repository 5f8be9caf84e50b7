"""Resuming from an earlier fit: with the same network, and what optimizer and framework keep."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any

import torch
from torch import nn

from .._skorch import History
from ..encoders import Encoder
from ..frameworks import Framework, Session
from ..kinds._base import Kind
from ._identity import described
from ._net import ContrastiveNet
from ._settings import Settings

# How messages call a structure of None.
_STRUCTURELESS = {"framework": "one with one encoder", "similarity": "one without concentrations"}


def network_parameters(settings: Settings) -> dict[str, Any]:
    """Return, by name, the parameters that the network depends on, except the kind."""
    return {
        "encoder": _named(settings.encoder),
        "n_components": settings.n_components,
        "projection_dim": settings.projection_dim,
        "framework": settings.framework.network_signature,
        "similarity": settings.similarity.network_signature,
    }


def _named(encoder: Any) -> str | None:
    """Return what an encoder is built from, None for the default; of a list, one after another."""
    if isinstance(encoder, (list, tuple)):
        return ", ".join(str(_named(own)) for own in encoder)
    if encoder is None:
        return None
    return repr(encoder) if isinstance(encoder, Encoder) else type(encoder).__name__


def same_kind(kind: Kind | None, other: Kind | None) -> bool:
    """Return whether two kinds are of one class and have the same parameters."""
    return described("kind", kind) == described("kind", other)


def check_same_network(settings: Settings, past: Any) -> None:
    """Raise ValueError if the parameters ask for a different network than that of a fit."""
    now: dict[str, Any] = network_parameters(settings)
    before = dict(past.built_from)
    if settings.kind is not None and not same_kind(settings.kind, past.schema.kind):
        now["kind"], before["kind"] = settings.kind, past.schema.kind
    for name, value in now.items():
        if value != before[name]:
            old, new = (
                _STRUCTURELESS.get(name) if v is None else v for v in (before[name], value)
            )
            raise ValueError(
                f"The {name!r} parameter of {settings.owner} has changed from {old} to {new} "
                "since the network was built; warm_start and partial_fit continue with the same "
                "network. Call fit with warm_start=False."
            )


def framework_state(framework: Framework, session: Session, data: Any) -> dict[str, Any] | None:
    """Return the state that a session resumes from, None if it has no state.

    Parameters
    ----------
    framework : Framework
        Whose session it is.
    session : Session
        At the end of a fit.
    data : TrainingData
        The samples of the fit.
    """
    state = session.state_dict()
    if not state:
        return None
    return {"kind": type(framework).__name__, "state": dict(state), "samples": data.fingerprint}


def resume(net: ContrastiveNet, past: Any, data: Any) -> None:
    """Bring a new net to the state in which an earlier fit has left its own.

    Parameters
    ----------
    net : ContrastiveNet
        Initialised, with a copy of the earlier network.
    past : Fitted
        The earlier fit. The state of a different optimizer or framework is left out.
    data : TrainingData
        The samples of this fit.
    """
    net.history_ = History(map(dict, past.history))
    load_optimizer(net.optimizer_, net.learned_parameters(), past.optimizer_state)
    state = past.framework_state
    if state is not None and state["kind"] == type(net.plan.framework).__name__:
        net.criterion_.resume(state["state"], state["samples"] == data.fingerprint)


def optimizer_state(
    optimizer: torch.optim.Optimizer, parameters: Iterable[nn.Parameter]
) -> dict[str, Any]:
    """Return what `load_optimizer` needs to continue.

    Parameters
    ----------
    optimizer : torch.optim.Optimizer
        At the end of a fit.
    parameters : iterable of torch.nn.Parameter
        All that is trained, in an order that does not depend on the optimizer's groups.
    """
    places = _places(optimizer, parameters)
    state = optimizer.state_dict()["state"]
    return {
        "kind": type(optimizer).__name__,
        "n_parameters": len(places),
        "state": {places[index]: values for index, values in state.items() if index in places},
    }


def load_optimizer(
    optimizer: torch.optim.Optimizer,
    parameters: Iterable[nn.Parameter],
    state: dict[str, Any] | None,
) -> None:
    """Continue from the state of an optimizer of the same class; keep the present groups.

    Parameters
    ----------
    optimizer : torch.optim.Optimizer
        New.
    parameters : iterable of torch.nn.Parameter
        As in `optimizer_state`. If there are more or fewer than there were, because the framework
        has changed, the optimizer starts from nothing.
    state : dict or None
        Returned by `optimizer_state`.
    """
    places = _places(optimizer, parameters)
    expected = type(optimizer).__name__, len(places)
    if state is None or (state["kind"], state["n_parameters"]) != expected:
        return
    present = optimizer.state_dict()
    known = state["state"]
    moved = {index: known[place] for index, place in places.items() if place in known}
    optimizer.load_state_dict({**present, "state": moved})


def parameter_places(
    optimizer: torch.optim.Optimizer, parameters: Iterable[nn.Parameter]
) -> list[list[int]]:
    """Return the places in `parameters` of each group of an optimizer, -1 for other parameters."""
    place = {id(parameter): k for k, parameter in enumerate(parameters)}
    return [[place.get(id(p), -1) for p in group["params"]] for group in optimizer.param_groups]


def _places(
    optimizer: torch.optim.Optimizer, parameters: Iterable[nn.Parameter]
) -> dict[int, int]:
    """Return for each index of a parameter in an optimizer's state its place in `parameters`."""
    members = chain.from_iterable(parameter_places(optimizer, parameters))
    return {index: place for index, place in enumerate(members) if place >= 0}
