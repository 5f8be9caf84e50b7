"""The one place where X is read."""

from __future__ import annotations

from typing import Any

from .._data._parts import Parts
from ._base import Kind, Schema
from ._parts import PartsKind
from ._recognise import is_custom, named_kinds, recognised


def read_samples(
    X: Any, kind: Kind | None = None, *, hint: Kind | None = None, owner: Any, min_samples: int = 1
) -> tuple[Any, Schema]:
    """Return X, checked by its kind, and what it is.

    Parameters
    ----------
    X : object
        What the user passed.
    kind : Kind, default=None
        The kind that reads X; None recognises it.
    hint : Kind, default=None
        The kind that an augmentation or an encoder is for. A custom kind reads X; a kind of the
        package decides where X is ambiguous.
    owner : estimator
        Named in messages; never changed.
    min_samples : int, default=1
        The least number of samples.

    Raises
    ------
    ValueError, TypeError
        If X is neither an array nor a table nor graphs, its kind is ambiguous, or its values are
        not as its kind needs them.
    """
    if kind is None and hint is not None and (is_custom(hint) or isinstance(hint, PartsKind)):
        kind = hint
    if isinstance(X, Parts) and not isinstance(kind, PartsKind):
        kind = PartsKind(kind)
    if kind is None:
        kind, X = recognised(X, hint)
    return kind.read(X, owner=owner, min_samples=min_samples)


def declared_kind(*pieces: Any) -> Kind | None:
    """Return the kind that augmentations or encoders are for, if any of them is for one only.

    Parameters
    ----------
    *pieces : Augmentation, Encoder or any other object
        An object without an attribute `kind` declares none. A custom kind takes precedence over
        a kind of the package, which can be recognised.
    """
    named = [
        named_kinds(getattr(piece, "kind", None), owner=type(piece).__name__) for piece in pieces
    ]
    single = [kinds[0] for kinds in named if len(kinds) == 1]
    return next(iter([kind for kind in single if is_custom(kind)] or single), None)
