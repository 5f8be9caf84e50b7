"""The identity of a fit: descriptions of its parameters, the same in every process, and data."""

from __future__ import annotations

import copy
import functools
import hashlib
import json
import re
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.base import BaseEstimator
from skorch.callbacks import Callback, EpochTimer, PrintLog, ProgressBar
from skorch.callbacks.training import ParamMapper
from torch import Tensor, nn

from .._data._arrays import LazySamples
from .._data._checksum import checksum
from .._data._parts import Parts
from .._storage._custom_objects import own_name
from ..encoders import Encoder
from ..kinds._base import Kind
from ._settings import Settings, plain_callbacks

if TYPE_CHECKING:
    from ._samples import TrainingData

# Parameters that do not change what is fitted.
_INDIFFERENT = {
    "checkpoint", "device", "memory_budget", "n_workers",
    "output", "verbose", "warm_start",
}  # fmt: skip
# What `fit` calls metadata.
_ARGUMENTS = {"labels": "y", "weights": "sample_weight"}
# Callbacks that only show the training.
_SHOWING = {EpochTimer, PrintLog, ProgressBar}
_ADVICE_ON_WEIGHTS = (
    " (a module with random weights must be built after torch.manual_seed, or passed as a "
    "function that builds it or as an encoder of skcontrast.encoders)"
)
# Rows of a Dataset that are read twice, to see whether it returns the same.
_ROWS_READ_TWICE = 4
_PLAIN = (str, bytes, int, float, complex, np.generic, torch.dtype, type(None))
_ADDRESS = " at 0x[0-9a-fA-F]+"
_LONGEST_TEXT = 100
# What messages say where such a parameter has no structure of its own, None, to name.
_UNNAMED = {"framework": "one with one encoder", "similarity": "one without concentrations"}


@dataclass(frozen=True)
class Identity:
    """Parameters and data, which distinguish a fit from others.

    Attributes
    ----------
    parameters : dict of str to str
        Descriptions of the parameters, at any depth.
    data : dict of str to str
        Checksums of X, y and the metadata, by their names in `fit`.
    start : str
        Checksum of the network from which the fit continues, empty for a new one.
    """

    parameters: dict[str, str]
    data: dict[str, str]
    start: str

    @property
    def code(self) -> str:
        """A short name for fits with these parameters and data."""
        return _digest(json.dumps([self.parameters, self.data], sort_keys=True))

    def difference(self, before: dict[str, Any]) -> str | None:
        """Return how the identity of an earlier fit differs, or None if it does not.

        Parameters
        ----------
        before : dict
            The attributes of the earlier identity.
        """
        if names := _different(self.parameters, before["parameters"]):
            name = names[0]
            old, new = (
                of.get(name, "not there") for of in (before["parameters"], self.parameters)
            )
            advice = _ADVICE_ON_WEIGHTS if name.endswith("__weights") else ""
            return f"its parameter {name!r} was {old} and is {new} now{advice}"
        if names := _different(self.data, before["data"]):
            return f"it was passed {'' if names[0].endswith('s') else 'a '}different {names[0]}"
        if self.start != before["start"]:
            return "it continued from a different embedder"
        return None


def _different(now: dict[str, str], before: dict[str, str]) -> list[str]:
    """Return the names under which texts differ; without a seed, a fit takes any."""
    names = (now.keys() | before.keys()) - ({"random_state"} - (now.keys() & before.keys()))
    return sorted(name for name in names if now.get(name) != before.get(name))


def identity_of(settings: Settings, data: TrainingData, past: Any) -> Identity:
    """Return the identity of a fit.

    Parameters
    ----------
    settings : Settings
        The user's parameters, checked.
    data : TrainingData
        The samples and their metadata.
    past : Fitted or None
        The fit from which it continues.
    """
    given = {**settings.given, "augmentation": data.chain}
    if (seed := given.pop("random_state")) is not None:
        # A generator of the user has drawn the seed of the fit.
        given["random_state"] = int(seed) if isinstance(seed, Integral) else settings.seed
    callbacks = plain_callbacks(given["callbacks"])
    given["callbacks"] = [one for one in callbacks if type(one) not in _SHOWING]
    parameters = _all_described({k: v for k, v in given.items() if k not in _INDIFFERENT})
    checksums = {"X": samples_checksum(data.schema.kind, data.X)}
    for name, tensor in data.metadata.items():
        checksums[_ARGUMENTS.get(name, name)] = checksum([tensor.numpy()])
    return Identity(parameters, checksums, "" if past is None else _checksum(past.setup.network))


def samples_checksum(kind: Kind, X: Any) -> str:
    """Return the checksum of X; of a Dataset that draws its samples only the shape counts."""
    parts = X.parts if isinstance(X, Parts) else [X]
    return checksum(kind._arrays(X), contents=not any(map(_is_random, parts)))


def _is_random(X: Any) -> bool:
    """Return whether X is a Dataset that returns other samples when it is read again."""
    rows = slice(_ROWS_READ_TWICE)
    return isinstance(X, LazySamples) and X[rows].tobytes() != X[rows].tobytes()


# Networks
def network_parameters(settings: Settings) -> dict[str, Any]:
    """Return, by name, the parameters that the network depends on, except the kind."""
    return {
        "encoder": _named(settings.encoder),
        "n_components": settings.n_components,
        "projection_dim": settings.projection_dim,
        "framework": settings.framework.network_signature,
        "similarity": type(settings.similarity).__name__ if settings.similarity.n_extra else None,
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
    before = dict(past.setup.built_from)
    if settings.kind is not None and not same_kind(settings.kind, past.setup.schema.kind):
        now["kind"], before["kind"] = settings.kind, past.setup.schema.kind
    for name, value in now.items():
        if value != before[name]:
            old, new = (_UNNAMED.get(name) if v is None else v for v in (before[name], value))
            raise ValueError(
                f"The {name!r} parameter of {settings.owner} has changed from {old} to {new} "
                "since the network was built; warm_start and partial_fit continue with the same "
                "network. Call fit with warm_start=False."
            )


# Descriptions
def described(name: str, value: Any) -> dict[str, str]:
    """Return a text for each parameter in a value, at any depth, by its name.

    Parameters
    ----------
    name : str
        Of the value. Parameters of an object have names such as ``loss__tau_plus``, items of a
        list ``encoder__layers[2]`` and items of a dictionary ``encoder_params['width']``.
    value : object
        A parameter. Functions count by name, other objects by class and attributes.
    """
    items: dict[str, Any] = {}
    if isinstance(value, functools.partial):
        value = [value.func, *value.args, value.keywords]
    # What has parts with names is described part by part, all else by one text.
    if isinstance(value, (BaseEstimator, Callback)):
        text, items = own_name(value), {f"{name}__{k}": v for k, v in _parameters(value).items()}
    elif isinstance(value, nn.Module):
        return _described_module(name, value)
    elif isinstance(value, dict):
        text = f"a dictionary of {len(value)}"
        items = {f"{name}[{str(key)!r}]": item for key, item in value.items()}
    elif isinstance(value, (list, tuple)) and not all(isinstance(item, _PLAIN) for item in value):
        text = f"a list of {len(value)}"
        items = {f"{name}[{k}]": item for k, item in enumerate(value)}
    elif hasattr(value, "__dict__") and not hasattr(value, "__qualname__"):
        held = {f"{name}.{key}": _text(item) for key, item in vars(value).items()}
        return {name: _text(value), **held}
    else:
        text = _text(value)
    return {name: text, **_all_described(items)}


def _all_described(values: dict[str, Any]) -> dict[str, str]:
    """Return the descriptions of several values in one dict."""
    return {key: text for item in values.items() for key, text in described(*item).items()}


def _parameters(value: Any) -> dict[str, Any]:
    """Return the parameters of an object, or the public attributes of a callback.

    What it has learned ends in an underscore; X and y are what an `Evaluation` judges on.
    """
    if isinstance(value, BaseEstimator):
        return value.get_params(deep=False)
    if isinstance(value, ParamMapper):  # which replaces its parameters when it is used
        value = copy.copy(value).initialize()
    left_out = {name for name in vars(value) if "_" in (name[0], name[-1])} | {"X", "y"}
    return {name: item for name, item in vars(value).items() if name not in left_out}


def _described_module(name: str, module: nn.Module) -> dict[str, str]:
    """Return the shapes and layers of a module, and the checksum of its tensors."""
    found = {name: own_name(module)}
    for key, tensor in [*module.named_parameters(), *module.named_buffers()]:
        found[f"{name}__{key}"] = str(_array(tensor).shape)
    for k, layer in enumerate(module.modules()):
        text = f"{own_name(layer)}({re.sub(_ADDRESS, '', layer.extra_repr())})"
        found[f"{name}__layers[{k}]"] = _shortened(text)
    return {**found, f"{name}__weights": f"tensors with checksum {_checksum(module)}"}


def _text(value: Any) -> str:
    """Return a text for what has no parts with names; functions and objects count by name."""
    if isinstance(value, (list, tuple)):
        return _shortened(f"[{', '.join(map(_text, value))}]")
    if isinstance(value, (set, frozenset)):
        return _text(sorted(map(_text, value)))
    if isinstance(value, _PLAIN):
        return _shortened(repr(value.item() if isinstance(value, np.generic) else value))
    if isinstance(value, (np.ndarray, Tensor, nn.Module)):
        return f"{own_name(value)} with contents {_checksum(value)}"
    if hasattr(value, "__qualname__"):  # also functions that are no routines, as NumPy's
        return f"{value.__module__}.{value.__qualname__}"
    return own_name(value) if hasattr(value, "__dict__") else re.sub(_ADDRESS, "", repr(value))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _shortened(text: str) -> str:
    """Return a text, of which a long one ends in a checksum of the whole."""
    if len(text) <= _LONGEST_TEXT:
        return text
    return f"{text[:_LONGEST_TEXT]}... (checksum {_digest(text)})"


def _checksum(value: Any) -> str:
    """Return the checksum of an array or a tensor, or of the tensors of a module."""
    is_module = isinstance(value, nn.Module)
    tensors = [*value.parameters(), *value.buffers()] if is_module else [value]
    return checksum(map(_array, tensors))


def _array(value: Tensor | np.ndarray) -> np.ndarray:
    """Return the numbers of a tensor, of any device."""
    if isinstance(value, np.ndarray):
        return value if value.dtype != object else np.array(value.shape)
    if nn.parameter.is_lazy(value) or value.is_meta:
        return np.array(str(value.dtype))
    is_bf16 = value.dtype == torch.bfloat16
    return (value.view(torch.int16) if is_bf16 else value).numpy(force=True)
