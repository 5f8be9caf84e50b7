"""What a fit is of: its parameters and data, to tell whether a checkpoint belongs to it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from skorch.callbacks import EpochTimer, PrintLog, ProgressBar
from skorch.callbacks.training import ParamMapper
from torch import Tensor

from .._comparison._checksum import checksum
from .._comparison._contents import WEIGHTS, describe_contents
from .._comparison._description import flattened
from .._data._parts import Parts
from .._data._sources import LazySamples
from .._network._network import Network
from ..augmentation import Augmentation
from ..callbacks import Evaluation
from ..kinds._base import Kind
from ._choices import Choices

# Parameters that do not change what is fitted.
_INDIFFERENT = {
    "checkpoint", "device", "memory_budget", "n_workers",
    "output", "verbose", "warm_start",
}  # fmt: skip
# Callbacks that only show the training.
_SHOWING = {EpochTimer, PrintLog, ProgressBar}
_ADVICE_ON_WEIGHTS = (
    " (a module with random weights must be built after torch.manual_seed, or passed as a "
    "function that builds it or as an encoder of skcontrast.encoders)"
)
_ROWS_READ_TWICE = 4


@dataclass(frozen=True)
class Identity:
    """What distinguishes a fit from others.

    Attributes
    ----------
    parameters : dict of str to str
        Descriptions of the parameters, at any depth.
    data : dict of str to str
        Checksums of X and of what is known about the samples, by the name in `fit`.
    start : str
        Checksum of the network from which the fit continues, empty for a new one.
    """

    parameters: dict[str, str]
    data: dict[str, str]
    start: str

    @property
    def code(self) -> str:
        """A short name for fits with these parameters and data."""
        text = json.dumps([self.parameters, self.data], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def difference(self, before: dict[str, Any]) -> str | None:
        """Return how the identity of an earlier fit differs, or None if it does not.

        Parameters
        ----------
        before : dict
            The attributes of the earlier identity.
        """
        names = sorted(self.parameters.keys() | before["parameters"].keys())
        for name in names:
            old, new = (found.get(name) for found in (before["parameters"], self.parameters))
            if name == "random_state" and None in (old, new):
                continue  # a fit without a seed takes that of the checkpoint
            if old != new:
                advice = _ADVICE_ON_WEIGHTS if _are_weights(old) and _are_weights(new) else ""
                old, new = ("not there" if text is None else text for text in (old, new))
                return f"its parameter {name!r} was {old} and is {new} now{advice}"
        for name in sorted(self.data.keys() | before["data"].keys()):
            if self.data.get(name) != before["data"].get(name):
                return f"it was passed a different {name}"
        if self.start != before["start"]:
            return "it continued from a different embedder"
        return None


def as_arguments(known: dict[str, Tensor]) -> dict[str, np.ndarray]:
    """Return what is known about the samples by the names that `fit` has for it."""
    names = {"labels": "y", "weights": "sample_weight"}
    return {names.get(name, name): tensor.numpy() for name, tensor in known.items()}


def identity_of(
    choices: Choices,
    chain: list[Augmentation] | None,
    kind: Kind,
    X: Any,
    known: dict[str, Tensor],
    start: Network | None,
) -> Identity:
    """Return what a fit is of.

    Parameters
    ----------
    choices : Choices
        The user's parameters, checked.
    chain : list of Augmentation or None
        What draws the views, if the user has chosen it.
    kind : Kind
        The kind of X.
    X : array-like of length n_samples
        As its kind returns it.
    known : dict of str to Tensor
        What is known about the samples.
    start : Network or None
        The network from which the fit continues.
    """
    settings = {**choices.settings, "augmentation": chain}
    settings["callbacks"] = _described_callbacks(settings["callbacks"])
    if settings.pop("random_state") is not None:
        settings["random_state"] = _given_seed(choices)
    parameters = {
        path: text
        for name, value in settings.items()
        if name not in _INDIFFERENT
        for path, text in flattened(name, _described(name, value))
    }
    data = {"X": samples_checksum(kind, X)}
    data |= {name: checksum([array]) for name, array in as_arguments(known).items()}
    tensors = [] if start is None else [t.numpy(force=True) for t in _numbers(start)]
    return Identity(parameters, data, checksum(tensors) if tensors else "")


def _described(name: str, value: Any) -> Any:
    return value if name == "callbacks" else describe_contents(value)


def _are_weights(text: str | None) -> bool:
    return text is not None and text.startswith(WEIGHTS)


def _given_seed(choices: Choices) -> Any:
    """Return the seed that the user has passed, or that a generator of the user has drawn."""
    given = choices.settings["random_state"]
    return int(given) if isinstance(given, Integral) else choices.seed


def _described_callbacks(callbacks: Any) -> list[Any]:
    """Return the class and the public attributes of each callback that may change the fit."""
    plain = [item[1] if isinstance(item, tuple) else item for item in callbacks or ()]
    return [
        (describe_contents(type(callback)), describe_contents(_attributes(callback)))
        for callback in plain
        if type(callback) not in _SHOWING
    ]


def _attributes(callback: Any) -> dict[str, Any]:
    """Return the public attributes of a callback, as they are before it is used."""
    found = {k: v for k, v in sorted(vars(callback).items()) if k[0] != "_" and k[-1] != "_"}
    if isinstance(callback, Evaluation):
        del found["X"], found["y"]
    if isinstance(callback, ParamMapper):
        return {**found, **_as_passed(found)}
    return found


def _as_passed(found: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes of a ParamMapper that it replaces when it is used."""
    patterns, at, schedule = found["patterns"], found["at"], found["schedule"]
    if getattr(getattr(at, "func", None), "__name__", "") == "_epoch_at":
        at = at.keywords["epoch"]
    is_default = getattr(schedule, "__name__", "") == "_default_schedule"
    return {
        "patterns": list(patterns) if isinstance(patterns, (list, tuple)) else [patterns],
        "at": at,
        "schedule": None if is_default else schedule,
    }


def _numbers(network: Network) -> Iterator[Tensor]:
    yield from network.parameters()
    yield from network.buffers()


def samples_checksum(kind: Kind, X: Any) -> str:
    """Return the checksum of X; of a Dataset that draws its samples only the shape counts."""
    return checksum(kind.arrays(X), contents=not _is_random(X))


def _is_random(X: Any) -> bool:
    """Return whether X is a Dataset that returns other samples when it is read again."""
    if isinstance(X, Parts):
        return any(map(_is_random, X.parts))
    if not isinstance(X, LazySamples):
        return False
    rows = X[:_ROWS_READ_TWICE], X[:_ROWS_READ_TWICE]
    return rows[0].tobytes() != rows[1].tobytes()
