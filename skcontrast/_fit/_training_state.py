"""The whole state of a running fit, copied and put back.

Random generators are not part of it, since each epoch seeds them by the fit's seed and its number.
"""

from __future__ import annotations

import copy
from itertools import chain
from typing import Any

import numpy as np
from skorch.callbacks import Callback
from skorch.history import History
from torch import Tensor

from .._network._inference import map_leaves
from ._net import ContrastiveNet

# What is kept of the attributes of a callback.
_PLAIN = (type(None), bool, int, float, str, np.generic, Tensor, list, tuple, dict)


def capture(net: ContrastiveNet) -> dict[str, Any]:
    """Return a copy, on the CPU, of all that training changes, except the history.

    Parameters
    ----------
    net : ContrastiveNet
        At the end of an epoch. The labels of its samples may have been completed.
    """
    named, spreads = net.module_.named_parameters(), net.spreader.has_some_labels
    # Copies: the net trains on while this waits to be returned to.
    return copied(
        {
            "n_epochs": len(net.history),
            "is_stopped": net.is_stopped_,
            "module": net.module_.state_dict(),
            "frozen": [name for name, parameter in named if not parameter.requires_grad],
            "session": net.criterion_.state_dict(),
            "groups": _groups(net),
            "optimizer": net.optimizer_.state_dict(),
            "base_lr": net.base_lr_,
            "auto": net.auto.state_dict(),
            "labels": net.sampler_.metadata["labels"] if spreads else None,
            "callbacks": {name: _learned(callback) for name, callback in net.callbacks_},
        }
    )


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
    state = copied(state)
    net.module_.load_state_dict(state["module"])
    for name, parameter in net.module_.named_parameters():
        parameter.requires_grad_(name not in state["frozen"])
    net.criterion_.load_state_dict(state["session"])
    _match_groups(net, state["groups"])
    net.optimizer_.load_state_dict(state["optimizer"])
    net.is_stopped_, net.base_lr_ = state["is_stopped"], state["base_lr"]
    net.auto.load_state_dict(state["auto"])
    if state["labels"] is not None:
        net.sampler_.metadata["labels"] = state["labels"].to(net.sampler_.device)
    for name, callback in net.callbacks_:
        _load(callback, state["callbacks"].get(name, {}))
    # A file has the history; a state within the process is cut to the epochs it had.
    if "history" in state:
        net.history_ = History({**row, "batches": []} for row in state["history"])
    else:
        del net.history_[state["n_epochs"] :]


def copied(value: Any) -> Any:
    """Return a copy of nested values, tensors on the CPU, numbers of numpy as plain ones."""

    def copy_of(leaf: Any) -> Any:
        if isinstance(leaf, Tensor):
            return leaf.detach().to("cpu", copy=True)
        return leaf.item() if isinstance(leaf, np.generic) else copy.deepcopy(leaf)

    return map_leaves(copy_of, value)


def _match_groups(net: ContrastiveNet, groups: list[list[int]]) -> None:
    """Give the optimizer the groups of a state, which callbacks may have added to."""
    optimizer, learned = net.optimizer_, net.learned_parameters()
    del optimizer.param_groups[len(groups) :]
    for places in groups[len(optimizer.param_groups) :]:
        optimizer.add_param_group({"params": [learned[place] for place in places]})


def _learned(callback: Callback) -> dict[str, Any]:
    """Return the state of a callback: its own, or its attributes whose names end in "_"."""
    if hasattr(callback, "state_dict"):
        return callback.state_dict()
    own = {k: v for k, v in vars(callback).items() if k.endswith("_") and not k.startswith("_")}
    # Not of classes, such as the `policy_` of skorch's LRScheduler.
    keepers = {k for k, v in own.items() if hasattr(v, "state_dict") and not isinstance(v, type)}
    own |= {name: own[name].state_dict() for name in keepers}
    return {name: value for name, value in own.items() if isinstance(value, _PLAIN)}


def _load(callback: Callback, state: dict[str, Any]) -> None:
    """Give a callback a state that `_learned` has returned."""
    if hasattr(callback, "load_state_dict"):
        callback.load_state_dict(state)
        return
    for name, value in state.items():
        held: Any = getattr(callback, name, None)
        if hasattr(held, "load_state_dict"):
            held.load_state_dict(value)
        else:
            setattr(callback, name, value)


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
