"""Recognises the kind of X, and knows the kinds by name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from .._data._array_like import as_array_like
from .._parameters import belongs_to_package, check_component
from ._base import Kind
from ._graphs import Graphs
from ._images import Images
from ._tables import Tables
from ._vectors import Vectors

# In the order in which they are asked whether X is theirs; vectors take what is left.
KINDS: dict[str, Any] = {
    "graphs": Graphs,
    "tables": Tables,
    "images": Images,
    "vectors": Vectors,
}


def recognised(X: Any, hint: Kind | None = None) -> tuple[Any, Any]:
    """Return the kind of X, and X as that kind reads it.

    Parameters
    ----------
    X : object
        What the user passed.
    hint : Kind, default=None
        A kind of the package that decides where X is ambiguous.

    Raises
    ------
    ValueError, TypeError
        If X is neither an array nor a table nor graphs, or its kind is ambiguous.
    """
    is_array = isinstance(X, (np.ndarray, torch.Tensor)) and X.ndim > 1
    for known in KINDS.values():
        kind = hint if isinstance(hint, known) else known()
        if is_array and not kind.holds_arrays and kind is not hint:
            continue
        X = as_array_like(X) if kind.holds_arrays else X
        if (found := kind.recognise(X, is_declared=kind is hint)) is not None:
            return kind, found
    raise TypeError(f"X must be an array, a table or a list of graphs, got {type(X).__name__}.")


def named_kind(kind: str | Kind, *, owner: str, parameter: str = "kind") -> Kind:
    """Return the kind that a name or an object declares.

    Parameters
    ----------
    kind : {"vectors", "images", "graphs", "tables"} or Kind
        What was declared.
    owner : str
        The class that declared it, for messages.
    parameter : str, default="kind"
        Its parameter.
    """
    if isinstance(kind, str) and kind in KINDS:
        return KINDS[kind]()
    if isinstance(kind, str):
        raise ValueError(
            f"The {parameter!r} parameter of {owner} must be one of {sorted(KINDS)} or an object "
            f"of skcontrast.kinds, got {kind!r}."
        )
    return check_component(kind, Kind, owner=owner, parameter=parameter)


def named_kinds(declared: Any, *, owner: str) -> list[Kind]:
    """Return the kinds that an augmentation or an encoder declares; [] for none."""
    if declared is None:
        return []
    every = declared if isinstance(declared, (tuple, list)) else [declared]
    return [named_kind(kind, owner=owner) for kind in every]


def declared_kind(*pieces: Any) -> Kind | None:
    """Return the kind that augmentations or encoders are for, if any of them is for one only.

    Parameters
    ----------
    *pieces : Augmentation, Encoder or any other object
        An object without an attribute `kind` declares none. A custom kind takes precedence over
        a kind of the package, which can be recognised.
    """
    named = (named_kinds(getattr(p, "kind", None), owner=type(p).__name__) for p in pieces)
    single = [kinds[0] for kinds in named if len(kinds) == 1]
    return max(single, key=is_custom, default=None)


def is_custom(kind: Kind) -> bool:
    """Return whether a kind is the user's own."""
    return not belongs_to_package(type(kind))


def kind_of_shape(sample_shape: Sequence[int | None]) -> Kind:
    """Return the kind of the package whose samples have such a shape."""
    return next(kind() for kind in KINDS.values() if kind().describes(tuple(sample_shape)))


@contextmanager
def naming_kind(kind: Kind) -> Iterator[None]:
    """Say in torch's error about a batch of a custom kind that it is X that does not fit."""
    try:
        yield
    except RuntimeError as error:
        if not is_custom(kind) or isinstance(error, torch.OutOfMemoryError):
            raise
        owner = type(kind).__name__
        raise ValueError(
            f"X holds {kind.name} that the network cannot take: {error}. {owner}.to_tensor must "
            "return rows that fit the encoder, whatever samples it gets. If X differs in size "
            f"from that of fit, return the sizes that must agree from {owner}.sample_shape, and X "
            "is refused by them."
        ) from error
