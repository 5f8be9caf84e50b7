"""The whole state of a running fit, copied and put back.

Random generators are not part of it, since each epoch seeds them by the fit's seed and its number.
"""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np
import torch
from skorch.callbacks import Callback
from skorch.history import History
from torch import Tensor, nn

from .._network._inference import map_leaves, tensors_in
from .._storage._custom_objects import own_name
from ._net import ContrastiveNet

_PLAIN = (type(None), bool, int, float, str, np.generic)
_MODULE = frozenset(vars(nn.Module()))


def capture(net: ContrastiveNet) -> dict[str, Any]:
    """Return a copy, on the CPU, of all that training changes, except the history.

    Parameters
    ----------
    net : ContrastiveNet
        At the end of an epoch. The labels of its samples may have been completed.
    """
    spreads = net.spreader.has_some_labels
    # Copies: the net trains on while this waits to be written, or to be returned to.
    return {
        "n_epochs": len(net.history),
        "module": _module_state(net.module_),
        "session": _module_state(net.criterion_),
        "optimizer": _copied(net.optimizer_.state_dict()),
        "groups": _groups(net),
        "base_lr": list(net.base_lr_),
        "auto": net.auto.state_dict(),
        "labels": _copied(net.sampler_.metadata["labels"]) if spreads else None,
        "callbacks": {
            name: {"class": own_name(type(callback)), "state": _callback_state(callback)}
            for name, callback in net.callbacks_
        },
    }


def restore(net: ContrastiveNet, state: dict[str, Any]) -> None:
    """Bring a net to a state that `capture` has returned; the state is not changed.

    Parameters
    ----------
    net : ContrastiveNet
        The same one, or one that was built in the same way, with the same samples.
    state : dict
        May have the rows of the history as "history"; otherwise later rows are removed.

    Raises
    ------
    KeyError, TypeError, ValueError, RuntimeError
        If the state does not belong to such a net.
    """
    _load_module(net.module_, state["module"], "module")
    _load_module(net.criterion_, state["session"], "session")
    _match_groups(net, state)
    # The groups first: the state of an optimizer counts parameters in their order.
    net.optimizer_.load_state_dict(_copied(state["optimizer"]))
    if not all(isinstance(lr, (int, float, Tensor)) for lr in state["base_lr"]):
        raise ValueError("its learning rates are not numbers")
    net.base_lr_ = list(state["base_lr"])
    net.auto.load_state_dict(state["auto"])
    if state["labels"] is not None:
        net.sampler_.metadata["labels"] = state["labels"].to(net.sampler_.device)
    # A callback of another class under the same name starts afresh.
    for name, callback in net.callbacks_:
        known = state["callbacks"].get(name)
        if known is not None and known["class"] == own_name(type(callback)):
            _load_callback(callback, known["state"], net.settings.device)
    # A file has the history; a state within the process is cut to the epochs it had.
    if "history" in state:
        net.history_ = History({**row, "batches": []} for row in state["history"])
    else:
        del net.history_[state["n_epochs"] :]


def attributes_not_saved(net: ContrastiveNet) -> list[str]:
    """Return the attributes of the user's callbacks that `capture` leaves out."""
    return [
        f"{type(callback).__name__}.{name}"
        for _, callback in net.callbacks_
        if not type(callback).__module__.startswith(("skorch.", "skcontrast."))
        for name, value in _learned(callback).items()
        if not (_is_plain(value) or _keeps_its_state(value))
    ]


def _copied(value: Any, device: torch.device | str = "cpu") -> Any:
    """Return a copy of nested values, with tensors on a device."""

    def copied(leaf: Any) -> Any:
        is_tensor = isinstance(leaf, Tensor)
        return leaf.detach().to(device, copy=True) if is_tensor else copy.deepcopy(leaf)

    return map_leaves(copied, value)


def _is_plain(value: Any) -> bool:
    """Return whether a value consists of numbers, text, arrays and containers of these."""
    if type(value) in (dict, OrderedDict):
        value = [*value.keys(), *value.values()]
    if type(value) in (list, tuple):
        return all(map(_is_plain, value))
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "biufc"
    return isinstance(value, (*_PLAIN, Tensor))


# The network and the framework's session
def _module_state(module: nn.Module) -> dict[str, Any]:
    """Return all parameters and buffers of a module, and its state that is not in tensors."""
    parts = list(module.named_modules())
    return {
        "tensors": {name: _copied(tensor) for name, tensor in _tensors(module)},
        "frozen": [name for name, p in module.named_parameters() if not p.requires_grad],
        "extra": {
            name: _copied(part.get_extra_state())
            for name, part in parts
            if type(part).get_extra_state is not nn.Module.get_extra_state
        },
        "numbers": {name: found for name, part in parts if (found := _numbers(part))},
    }


def _tensors(module: nn.Module) -> Iterator[tuple[str, Tensor]]:
    yield from module.named_parameters()
    yield from module.named_buffers()


def _numbers(part: nn.Module) -> dict[str, Any]:
    """Return the attributes of a module that are numbers, such as a counter of steps."""
    if type(part).__module__.startswith("torch."):
        return {}
    own = vars(part).items()
    return {k: v for k, v in own if k not in _MODULE and isinstance(v, (bool, int, float))}


@torch.no_grad()
def _load_module(module: nn.Module, state: dict[str, Any], place: str) -> None:
    parts = dict(module.named_modules())
    for name, parameter in module.named_parameters():
        parameter.requires_grad_(name not in state["frozen"])
    for name, extra in state["extra"].items():
        parts[name].set_extra_state(copy.deepcopy(extra))
    # Buffers may follow from the extra state, but not to the last bit.
    mine, kept = dict(_tensors(module)), state["tensors"]
    device = next((tensor.device for tensor in mine.values()), None)
    for name in sorted(mine.keys() | kept.keys()):
        owner, _, leaf = name.rpartition(".")
        _load_tensor(parts[owner], leaf, mine.get(name), kept.get(name), f"{place}.{name}", device)
    for name, numbers in state["numbers"].items():
        parts[name].__dict__.update({k: v for k, v in numbers.items() if k not in _MODULE})


def _load_tensor(
    owner: nn.Module, leaf: str, mine: Any, kept: Any, name: str, device: Any
) -> None:
    """Copy a tensor into a module; buffers of the user's may have other shapes or be missing."""
    is_ours = type(owner).__module__.startswith(("torch.", "skcontrast."))
    if is_ours or leaf not in owner._buffers:
        _check_alike(name, mine, kept)
    if mine is not None and _looks(mine) == _looks(kept):
        mine.copy_(kept)
    else:
        owner._buffers[leaf] = None if kept is None else kept.to(device, copy=True)


# The optimizer
def _match_groups(net: ContrastiveNet, state: dict[str, Any]) -> None:
    """Give the optimizer the groups of a state, which callbacks may have added to."""
    optimizer, learned = net.optimizer_, net.learned_parameters()
    del optimizer.param_groups[len(state["groups"]) :]
    for places in state["groups"][len(optimizer.param_groups) :]:
        optimizer.add_param_group({"params": [learned[place] for place in places]})


def check_optimizer(net: ContrastiveNet, state: dict[str, Any]) -> None:
    """Compare the optimizer's state in a file with the one after a step without gradients.

    Torch trusts the shapes in the state of an optimizer: with others, its fused kernels write
    beyond the memory of the tensors. What the step changes is then restored from the file.

    Raises
    ------
    KeyError, TypeError, ValueError, RuntimeError
        If names, shapes or dtypes differ; the message names the first entry.
    """
    optimizer = net.optimizer_
    _match_groups(net, state)
    groups = [dict(group) for group in state["optimizer"]["param_groups"]]
    optimizer.load_state_dict({"state": {}, "param_groups": groups})
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    # A step with a gradient of zero makes every entry that this optimizer has, in its shape.
    for parameter in parameters:
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step(lambda: 0.0)
    optimizer.zero_grad()
    mine = optimizer.state_dict()["state"]
    for index, kept in state["optimizer"]["state"].items():
        if index not in mine:
            raise ValueError(f"its optimizer.state.{index} is of no parameter")
        for name, value in mine[index].items():
            _check_alike(f"optimizer.state.{index}.{name}", value, kept.get(name))


def _looks(value: Any) -> str:
    """Return dtype and shape of a tensor, the class of anything else."""
    if not isinstance(value, Tensor):
        return type(value).__name__
    return f"{value.dtype} of shape {tuple(value.shape)}"


def _check_alike(name: str, mine: Any, kept: Any) -> None:
    """Raise ValueError unless an entry is a tensor, or another value, like in a fresh net."""
    if kept is None and mine is not None:
        raise ValueError(f"it lacks {name}, {_looks(mine)}")
    if _looks(mine) != _looks(kept):
        raise ValueError(f"its {name} is {_looks(kept)} instead of {_looks(mine)}")


# Callbacks
def _keeps_its_state(value: Any) -> bool:
    names = ("state_dict", "load_state_dict")
    return not isinstance(value, type) and all(hasattr(value, name) for name in names)


def _learned(callback: Callback) -> dict[str, Any]:
    """Return what a callback has learned, by attribute; itself, as "", if it says its state."""
    if _keeps_its_state(callback):
        return {"": callback}
    return {k: v for k, v in vars(callback).items() if k.endswith("_") and not k.startswith("_")}


def _callback_state(callback: Callback) -> dict[str, Any]:
    """Return the plain attributes of a callback, and the states of those that keep one."""
    learned = _learned(callback)
    plain = {name: value for name, value in learned.items() if _is_plain(value)}
    kept = {name: value.state_dict() for name, value in learned.items() if _keeps_its_state(value)}
    return {
        "attributes": _copied(plain),
        # The names of those with tensors on an accelerator.
        "devices": [k for k, v in plain.items() if any(not t.is_cpu for t in tensors_in(v))],
        "states": {
            name: {key: _copied(item) for key, item in state.items() if _is_plain(item)}
            for name, state in kept.items()
        },
    }


def _load_callback(callback: Callback, state: dict[str, Any], device: torch.device) -> None:
    for name, value in state["attributes"].items():
        if name.endswith("_") and not name.startswith("_"):
            vars(callback)[name] = _copied(value, device if name in state["devices"] else "cpu")
    learned = _learned(callback)
    for name, kept in state["states"].items():
        if _keeps_its_state(learned.get(name)):
            learned[name].load_state_dict(_copied(kept))


# Between fits
def states_to_resume(net: ContrastiveNet, data: Any) -> dict[str, Any]:
    """Return the states of the optimizer and of the session, if it has any, as `Fitted` has them.

    Parameters
    ----------
    net : ContrastiveNet
        At the end of a fit.
    data : TrainingData
        The samples of the fit.
    """
    places, state = _places(net), net.optimizer_.state_dict()["state"]
    optimizer = {
        "kind": type(net.optimizer_).__name__,
        "n_parameters": len(places),
        "state": {places[index]: values for index, values in state.items() if index in places},
    }
    kind, session = type(net.settings.framework).__name__, dict(net.criterion_.state_dict())
    framework = {"kind": kind, "state": session, "samples": data.fingerprint} if session else None
    return {"optimizer_state": optimizer, "framework_state": framework}


def resume(net: ContrastiveNet, past: Any, data: Any) -> None:
    """Bring a new net to the state in which an earlier fit has left its own.

    Parameters
    ----------
    net : ContrastiveNet
        Initialised, with a copy of the earlier network.
    past : Fitted
        The earlier fit. The state of a different optimizer or framework is left out, and that of
        an optimizer of more or fewer parameters, because the framework has changed.
    data : TrainingData
        The samples of this fit.
    """
    net.history_ = History(map(dict, past.history))
    places, state = _places(net), past.optimizer_state
    expected = type(net.optimizer_).__name__, len(places)
    if state is not None and (state["kind"], state["n_parameters"]) == expected:
        known = state["state"]
        moved = {index: known[place] for index, place in places.items() if place in known}
        net.optimizer_.load_state_dict({**net.optimizer_.state_dict(), "state": moved})
    state = past.framework_state
    if state is not None and state["kind"] == type(net.settings.framework).__name__:
        net.criterion_.resume(state["state"], state["samples"] == data.fingerprint)


def _groups(net: ContrastiveNet) -> list[list[int]]:
    """Return which of all learned parameters each group of the optimizer has, -1 for others.

    The order of the learned parameters does not depend on the groups.
    """
    place = {id(parameter): k for k, parameter in enumerate(net.learned_parameters())}
    groups = net.optimizer_.param_groups
    return [[place.get(id(p), -1) for p in group["params"]] for group in groups]


def _places(net: ContrastiveNet) -> dict[int, int]:
    """Return, for each index in the optimizer's state, which of the learned parameters it is."""
    members = chain.from_iterable(_groups(net))
    return {index: place for index, place in enumerate(members) if place >= 0}
