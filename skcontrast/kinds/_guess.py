"""The kind of X where it is not declared, and kinds by name."""

from __future__ import annotations

from typing import Any

from .._data._array_like import as_array_like, check_dimensions
from .._data._columns import is_mixed
from .._parameters import check_component
from ..graphs._convert import is_graphs
from ._base import Kind
from ._graphs import Graphs
from ._images import Images
from ._tables import Tables
from ._vectors import Vectors

KINDS = {"vectors": Vectors, "images": Images, "graphs": Graphs, "tables": Tables}


def named_kind(kind: str | Kind, *, owner: str, parameter: str = "kind") -> Kind:
    """Return the kind that a name or an object stands for.

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
    several = declared if isinstance(declared, (tuple, list)) else [declared]
    return [named_kind(kind, owner=owner) for kind in several]


def guess_kind(X: Any, declared: Kind | None = None) -> tuple[Kind, Any]:
    """Return the kind of X, and X, converted if it is a tensor, a list of images or a Dataset.

    Parts are not known here: `guess_kind_or_parts`.

    Parameters
    ----------
    X : object
        What the user passed.
    declared : Kind, default=None
        The kind that an augmentation or an encoder is for. A kind of the user's own is returned
        as it is; a kind of the package only decides what an ambiguous shape means.

    Raises
    ------
    ValueError, TypeError
        If X is neither an array nor a table nor graphs, or its kind is ambiguous.
    """
    if declared is not None and is_own(declared):
        return declared, X
    if is_graphs(X):
        return Graphs(), X
    if isinstance(declared, Tables):
        return declared, X
    if is_mixed(X):
        return Tables(), X
    X = as_array_like(X)
    check_dimensions(X)
    if getattr(X, "ndim", 2) < 3:
        return Vectors(), X
    if not isinstance(declared, Images):
        Images.refuse_ambiguous(X)
    return Images(), X


def is_own(kind: Kind) -> bool:
    """Return whether a kind is the user's own."""
    return type(kind) not in KINDS.values()


def declared_kind(*pieces: Any) -> Kind | None:
    """Return the kind that augmentations or encoders are for, if any of them is for one only.

    Parameters
    ----------
    *pieces : Augmentation, Encoder or any other object
        An object without an attribute `kind` declares none. A kind of the user's own takes
        precedence over a kind of the package, which can be guessed.
    """
    named = [
        named_kinds(getattr(piece, "kind", None), owner=type(piece).__name__) for piece in pieces
    ]
    single = [kinds[0] for kinds in named if len(kinds) == 1]
    return next(iter([kind for kind in single if is_own(kind)] or single), None)


def kind_of_shape(sample_shape: tuple) -> Kind:
    """Return the kind of the package whose samples have such a shape."""
    return next(kind() for kind in KINDS.values() if kind()._describes(sample_shape))
