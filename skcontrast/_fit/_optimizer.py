"""The optimizer and the schedule of its learning rate: chosen, checked, resumed."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch
from sklearn.base import clone
from torch import nn

from .._parameters import validate_parameters
from ..optimizers import Algorithm, Optimizer, as_optimizer
from ..schedules import CosineDecay, Schedule


def resolve_optimizer(optimizer: Algorithm | Optimizer) -> Optimizer:
    """Return a validated clone of the optimizer, or a new one for a name or a class."""
    resolved = clone(as_optimizer(optimizer))
    validate_parameters(resolved)
    return resolved


def resolve_lr_schedule(lr_schedule: str | Schedule) -> Schedule | None:
    """Return a schedule of factors on the learning rate, or None for a constant one."""
    if isinstance(lr_schedule, str):
        return CosineDecay() if lr_schedule == "cosine" else None
    return lr_schedule


def check_lr_schedule(schedule: str | Schedule, n_epochs: int, owner: str) -> None:
    """Raise ValueError if a schedule gives a factor that is negative or not finite."""
    if not isinstance(schedule, Schedule):
        return
    validate_parameters(schedule)
    for epoch in range(n_epochs + 1):
        factor = schedule(epoch / n_epochs)
        if not (math.isfinite(factor) and factor >= 0):
            raise ValueError(
                f"The 'lr_schedule' parameter of {owner} must give finite factors of at least "
                f"0, got {factor} in epoch {epoch}."
            )


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
        "state": {places[index]: values for index, values in state.items()},
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
        What `optimizer_state` has returned.
    """
    places = _places(optimizer, parameters)
    if state is None or state["kind"] != type(optimizer).__name__:
        return
    if state["n_parameters"] != len(places):
        return
    present = optimizer.state_dict()
    known = state["state"]
    moved = {index: known[place] for index, place in places.items() if place in known}
    optimizer.load_state_dict({**present, "state": moved})


def _places(
    optimizer: torch.optim.Optimizer, parameters: Iterable[nn.Parameter]
) -> dict[int, int]:
    """Return for each index of a parameter in an optimizer's state its place in `parameters`."""
    place = {id(parameter): k for k, parameter in enumerate(parameters)}
    members = [p for group in optimizer.param_groups for p in group["params"]]
    return {index: place[id(parameter)] for index, parameter in enumerate(members)}
