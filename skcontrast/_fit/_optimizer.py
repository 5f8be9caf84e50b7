"""The optimizer and the schedule of its learning rate: chosen, checked, and gone on with."""

from __future__ import annotations

import inspect
import math

import torch

from .._parameters import Schedule, validate_parameters
from ..schedules import CosineDecay

OPTIMIZERS = {
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "sgd": torch.optim.SGD,
}
_OWNER = "ContrastiveEmbedder"


def resolve_optimizer(optimizer):
    """Return the optimizer class."""
    if isinstance(optimizer, str):
        return OPTIMIZERS[optimizer]
    if not issubclass(optimizer, torch.optim.Optimizer):
        raise TypeError(
            f"The 'optimizer' parameter of {_OWNER} must be one of {sorted(OPTIMIZERS)} or a "
            f"subclass of torch.optim.Optimizer, got {optimizer!r}."
        )
    return optimizer


def resolve_lr_schedule(lr_schedule):
    """Return a schedule of factors on the learning rate, or None for a constant one."""
    if lr_schedule == "cosine":
        return CosineDecay()
    return None if lr_schedule == "constant" else lr_schedule


def check_lr_schedule(schedule, n_epochs):
    """Raise ValueError for a schedule of ours that leaves its range in any epoch."""
    if not isinstance(schedule, Schedule):
        return
    validate_parameters(schedule)
    for epoch in range(n_epochs + 1):
        factor = schedule(epoch / n_epochs)
        if not (math.isfinite(factor) and factor >= 0):
            raise ValueError(
                f"The 'lr_schedule' parameter of {_OWNER} must give finite factors of at least "
                f"0, got {factor} in epoch {epoch}."
            )


def optimizer_options(optimizer, weight_decay):
    """Return what an optimizer class is built with, by the names of skorch."""
    accepted = inspect.signature(optimizer).parameters
    options = {"weight_decay": weight_decay}
    if optimizer is torch.optim.SGD:
        options["momentum"] = 0.9
    if "fused" in accepted:
        options["fused"] = True
    return {f"optimizer__{name}": value for name, value in options.items() if name in accepted}


def load_optimizer(optimizer, state):
    """Go on from a state if it is of the same kind of optimizer; keep today's lr and so on."""
    if state is None or state["kind"] != type(optimizer).__name__:
        return
    n_before = sum(len(group["params"]) for group in state["state"]["param_groups"])
    if n_before != sum(len(group["params"]) for group in optimizer.param_groups):
        return  # another framework, with parameters of its own
    options = [
        {name: value for name, value in group.items() if name != "params"}
        for group in optimizer.param_groups
    ]
    optimizer.load_state_dict(state["state"])
    for group, today in zip(optimizer.param_groups, options, strict=True):
        group.update(today)


def optimizer_state(optimizer):
    """Return what `load_optimizer` needs to go on."""
    return {"kind": type(optimizer).__name__, "state": optimizer.state_dict()}
