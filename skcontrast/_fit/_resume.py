"""Resuming: the state that a fit continues from, and what must not have changed in between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from skorch.history import History

from .._comparison._description import describe
from ..encoders import Encoder
from ..frameworks import Framework, Session
from ..kinds._base import Kind
from ._choices import Choices
from ._net import ContrastiveNet
from ._optimizer import load_optimizer

# What a structure of None means, in messages.
_STRUCTURELESS = {"framework": "one with one encoder", "similarity": "one without concentrations"}


def network_parameters(choices: Choices) -> dict[str, Any]:
    """Return, by name, the parameters that the network depends on, except the kind."""
    return {
        "encoder": _named(choices.encoder),
        "n_components": choices.n_components,
        "projection_dim": choices.projection_dim,
        "framework": choices.framework.structure,
        "similarity": choices.similarity.network_signature,
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
    return type(kind) is type(other) and describe(kind) == describe(other)


def check_same_network(choices: Choices, past: Any) -> None:
    """Raise ValueError if the parameters ask for a different network than that of a fit."""
    now: dict[str, Any] = network_parameters(choices)
    before = dict(past.built_from)
    if choices.kind is not None and not same_kind(choices.kind, past.schema.kind):
        now["kind"], before["kind"] = choices.kind, past.schema.kind
    for name, value in now.items():
        if value != before[name]:
            old, new = (
                _STRUCTURELESS.get(name) if v is None else v for v in (before[name], value)
            )
            raise ValueError(
                f"The {name!r} parameter of {choices.owner} has changed from {old} to {new} "
                "since the network was built; warm_start and partial_fit continue with the same "
                "network. Call fit with warm_start=False."
            )


def framework_state(
    framework: Framework, session: Session, fingerprint: Callable[[], int]
) -> dict[str, Any] | None:
    """Return the state that a session resumes from, None if it has no state.

    Parameters
    ----------
    framework : Framework
        Whose session it is.
    session : Session
        At the end of a fit.
    fingerprint : callable
        Returns the fingerprint of the samples of the fit.
    """
    state = session.state_dict()
    if not state:
        return None
    return {"kind": type(framework).__name__, "state": dict(state), "samples": fingerprint()}


def resume(
    net: ContrastiveNet,
    history: History,
    optimizer: dict[str, Any] | None,
    framework: dict[str, Any] | None,
    fingerprint: Callable[[], int],
) -> None:
    """Bring a new net to the state in which an earlier fit has left its own.

    Parameters
    ----------
    net : ContrastiveNet
        Initialised, with a copy of the earlier network.
    history : History
        Of the earlier fit; copied.
    optimizer, framework : dict or None
        The states of the optimizer and of the framework's session; left out where the new net
        has a different optimizer or framework.
    fingerprint : callable
        Returns the fingerprint of the samples of this fit.
    """
    net.history_ = History(map(dict, history))
    load_optimizer(net.optimizer_, net.learned_parameters(), optimizer)
    if framework is not None and framework["kind"] == type(net.plan.framework).__name__:
        net.criterion_.resume(framework["state"], framework["samples"] == fingerprint())
