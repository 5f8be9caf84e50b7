"""The optimizer and the schedule of its learning rate: chosen, checked, resumed."""

from __future__ import annotations

import inspect
import math
from typing import Any

import torch

from .._parameters import Schedule, validate_parameters
from ..schedules import CosineDecay

OPTIMIZERS = {
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "sgd": torch.optim.SGD,
}


def resolve_optimizer(
    optimizer: str | type[torch.optim.Optimizer], owner: str
) -> type[torch.optim.Optimizer]:
    """Return the optimizer class."""
    if isinstance(optimizer, str):
        return OPTIMIZERS[optimizer]
    if not issubclass(optimizer, torch.optim.Optimizer):
        raise TypeError(
            f"The 'optimizer' parameter of {owner} must be one of {sorted(OPTIMIZERS)} or a "
            f"subclass of torch.optim.Optimizer, got {optimizer!r}."
        )
    return optimizer


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


def optimizer_options(
    optimizer: type[torch.optim.Optimizer], weight_decay: float
) -> dict[str, Any]:
    """Return the arguments that an optimizer class takes, under their names in skorch."""
    accepted = inspect.signature(optimizer).parameters
    options = {"weight_decay": weight_decay}
    if optimizer is torch.optim.SGD:
        options["momentum"] = 0.9
    if "fused" in accepted:
        options["fused"] = True
    return {f"optimizer__{name}": value for name, value in options.items() if name in accepted}


def load_optimizer(optimizer: torch.optim.Optimizer, state: dict[str, Any] | None) -> None:
    """Continue from the state of an optimizer of the same class; keep its present options."""
    if state is None or state["kind"] != type(optimizer).__name__:
        return
    n_before = sum(len(group["params"]) for group in state["state"]["param_groups"])
    if n_before != sum(len(group["params"]) for group in optimizer.param_groups):
        return  # the framework has changed, and with it the parameters that are trained
    options = [
        {name: value for name, value in group.items() if name != "params"}
        for group in optimizer.param_groups
    ]
    optimizer.load_state_dict(state["state"])
    for group, current in zip(optimizer.param_groups, options, strict=True):
        group.update(current)


def optimizer_state(optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """Return what `load_optimizer` needs to continue."""
    return {"kind": type(optimizer).__name__, "state": optimizer.state_dict()}
