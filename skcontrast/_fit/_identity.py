"""Descriptions of parameters and data, by which fits of several calls are compared."""

from __future__ import annotations

import inspect
import re
import zlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from .._data._arrays import LazySamples, fingerprint
from .._data._parts import Parts
from ..encoders import Encoder
from ..kinds._base import Kind
from ._settings import Settings

if TYPE_CHECKING:
    from ._samples import TrainingData

# Parameters that may differ between the calls of one fit.
_MAY_DIFFER = {
    "callbacks", "checkpoint", "device", "max_epochs", "memory_budget", "n_workers", "output",
    "random_state", "verbose", "warm_start",
}  # fmt: skip
# What `fit` calls metadata.
_ARGUMENTS = {"labels": "y", "weights": "sample_weight"}
_ADDRESS = " at 0x[0-9a-fA-F]+"
# What messages say where such a parameter has no structure of its own, None, to name.
_UNNAMED = {"framework": "one with one encoder", "similarity": "one without concentrations"}


def identity_of(settings: Settings, data: TrainingData, past: Any) -> dict[str, str]:
    """Return a text for each parameter and argument of a fit, by name.

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
    texts = {name: described(value) for name, value in given.items() if name not in _MAY_DIFFER}
    parts = data.X.parts if isinstance(data.X, Parts) else [data.X]
    # A Dataset may draw its samples: then only their number is compared.
    arrays = [] if any(map(_is_random, parts)) else data.schema.kind._arrays(data.X)
    texts["X"] = f"{len(data.X)} samples with checksum {fingerprint(arrays):08x}"
    for name, tensor in data.metadata.items():
        texts[_ARGUMENTS.get(name, name)] = f"an array with checksum {_checksum([tensor]):08x}"
    texts["the start"] = "new" if past is None else described(past.setup.network)
    return texts


def _is_random(X: Any) -> bool:
    """Return whether X is a Dataset that returns other samples when it is read again."""
    rows = slice(4)
    return isinstance(X, LazySamples) and X[rows].tobytes() != X[rows].tobytes()


def described(value: Any) -> str:
    """Return a text that differs, in every process, for other parameters of an object.

    Functions, and objects without parameters, count by their names.
    """
    name = type(value).__name__
    if isinstance(value, nn.Module):
        structure = zlib.crc32(re.sub(_ADDRESS, "", repr(value)).encode())
        weights = _checksum(value.state_dict().values())
        return f"{name} with checksum {structure:08x} and weights {weights:08x}"
    if hasattr(value, "get_params") and not inspect.isclass(value):
        parameters = value.get_params(deep=False).items()
        return f"{name}({', '.join(f'{key}={described(item)}' for key, item in parameters)})"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key!r}: {described(item)}' for key, item in value.items())}}}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(described, value))}]"
    if isinstance(value, (np.ndarray, Tensor)):
        return f"an array with checksum {_checksum([value]):08x}"
    return re.sub(_ADDRESS, "", repr(value))


def _checksum(values: Iterable[Any]) -> int:
    """Return a checksum of arrays and tensors; others, such as extra state, do not count."""
    tensors = [torch.as_tensor(v) for v in values if isinstance(v, (np.ndarray, Tensor))]
    known = [tensor for tensor in tensors if not nn.parameter.is_lazy(tensor)]
    return fingerprint(tensor.detach().cpu().double().numpy() for tensor in known)


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
    return type(kind) is type(other) and described(kind) == described(other)


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
