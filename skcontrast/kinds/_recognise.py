"""Recognises the kind of X, which may consist of several parts, and reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from sklearn.base import clone

from .._checks import (
    StrOptions,
    belongs_to_package,
    check_argument,
    learned,
    parameter,
    validate_parameters,
)
from .._data._array_like import as_array_like
from .._data._modalities import Modalities, MultimodalBatch, OneModality, naming_part
from ..graphs._convert import is_graphs
from ._base import Kind, Request, Schema, as_given
from ._graphs import Graphs
from ._images import Images
from ._series import Series
from ._vectors import Vectors

KindName: TypeAlias = Literal["vectors", "series", "images", "graphs"]
# In the order in which they are asked whether X is theirs; vectors take what is left.
KINDS: dict[str, Any] = {kind.name: kind for kind in (Graphs, Series, Images, Vectors)}


def read_samples(
    X: Any, kind: Kind | None = None, *, hint: Kind | None = None, owner: Any, min_samples: int = 1
) -> tuple[Any, Schema]:
    """Return X, checked by its kind, and what it is.

    Parameters
    ----------
    X : object
        The argument of the user.
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
        If X is neither an array nor a table nor a list of series or graphs, its kind is
        ambiguous, or its values are not as its kind needs them.
    """
    if kind is None and hint is not None and (is_custom(hint) or isinstance(hint, MultimodalKind)):
        kind = hint
    if isinstance(X, Modalities) and not isinstance(kind, MultimodalKind):
        kind = MultimodalKind(kind)
    if kind is None:
        kind, X = recognised(X, hint)
    return kind._read(X, Request(owner, min_samples=min_samples))


def recognised(X: Any, hint: Kind | None = None) -> tuple[Any, Any]:
    """Return the kind of X, and X as an array, or a list of graphs or of arrays of other shapes.

    Parameters
    ----------
    X : object
        The argument of the user.
    hint : Kind, default=None
        A kind of the package that decides where X is ambiguous.

    Raises
    ------
    ValueError, TypeError
        If X is neither an array nor a table nor a list of series or graphs, or its kind is
        ambiguous.
    """
    if is_graphs(X):
        return hint if isinstance(hint, Graphs) else Graphs(), X
    X = as_array_like(X, one_shape=False, size=getattr(hint, "size", None))
    # Of the kinds of arrays, the declared one is asked first.
    for known in sorted((Series, Images, Vectors), key=lambda k: not isinstance(hint, k)):
        kind: Kind = hint if hint is not None and isinstance(hint, known) else known()
        if kind._recognise(X, is_declared=kind is hint):
            return kind, X
    raise TypeError(
        f"X must be an array, a table or a list of series or graphs, got {type(X).__name__}."
    )


def named_kind(kind: str | Kind, *, owner: str, parameter: str = "kind") -> Kind:
    """Return the kind that a name or an object declares.

    Parameters
    ----------
    kind : {"vectors", "series", "images", "graphs"} or Kind
        The declared kind.
    owner : str
        The class that declared it, for messages.
    parameter : str, default="kind"
        Its parameter.
    """
    check_argument(owner, parameter, kind, [StrOptions(set(KINDS)), Kind])
    return KINDS[kind]() if isinstance(kind, str) else kind


def named_kinds(declared: Any, *, owner: str) -> list[Kind]:
    """Return the kinds that an augmentation or an encoder declares; [] for none."""
    if declared is None:
        return []
    every = declared if isinstance(declared, (tuple, list)) else [declared]
    return [named_kind(kind, owner=owner) for kind in every]


def check_fits(piece: Any, declared: Any, fits: Callable[[Kind], bool], got: str) -> None:
    """Raise ValueError, with what was got, if a piece declares kinds of which none fits."""
    owner = type(piece).__name__
    every = named_kinds(declared, owner=owner)
    if every and not any(map(fits, every)):
        expected = " or ".join(kind._expected or kind.name for kind in every)
        raise ValueError(f"{owner} expects {expected}, {got}.")


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
    return next(kind() for kind in KINDS.values() if kind()._describes(tuple(sample_shape)))


@contextmanager
def naming_kind(kind: Kind) -> Iterator[None]:
    """Say in torch's error about a batch of a custom kind or of series that X does not fit."""
    try:
        yield
    except RuntimeError as error:
        if isinstance(error, torch.OutOfMemoryError):
            raise
        if type(kind) is not Series and not is_custom(kind):
            raise
        longest = getattr(kind, "n_times_", None)
        known = "" if longest is None else f" In fit, the longest had {longest} steps."
        raise ValueError(
            f"X holds {kind.name} that the network cannot take: {error}.{known} The encoder must "
            "take samples of any length, as SeriesNet() does of series, or all must have one."
        ) from error


class MultimodalKind(Kind):
    """Samples of several modalities, for a framework with an encoder for each.

    X is :class:`~skcontrast.datasets.Modalities` or a tuple of arrays that hold the same samples.
    Each part has its own batch, scale and augmentation. Channels or features that should share
    these belong in one array, which :class:`~skcontrast.frameworks.CMC` splits.

    Parameters
    ----------
    of : Kind, str or list of them, default=None
        The kind of all parts, or a list of the kinds of each; None recognises them.

    Attributes
    ----------
    kinds_ : list of Kind
        The kind of each part; only on the copy in a fitted embedder.

    See Also
    --------
    skcontrast.datasets.Modalities : The parts as one X that scikit-learn can split.
    skcontrast.frameworks.CMC : Has an encoder for each part, and reads X as parts by itself.
    skcontrast.augmentation.PerModality : Augmentations of each part.
    Kind : The base class.

    Examples
    --------
    Two vectors, of which the first, counts, is not standardised:

    >>> import numpy as np
    >>> from skcontrast import ContrastiveEmbedder
    >>> from skcontrast.datasets import Modalities
    >>> from skcontrast.frameworks import CMC
    >>> from skcontrast.kinds import MultimodalKind, Vectors
    >>> rng = np.random.default_rng(0)
    >>> X = Modalities(rng.integers(5, size=(50, 2)), rng.normal(size=(50, 6)))
    >>> embedder = ContrastiveEmbedder(
    ...     framework=CMC(),
    ...     kind=MultimodalKind([Vectors(standardize=False), Vectors()]),
    ...     max_epochs=1,
    ...     random_state=0,
    ... )
    >>> embedder.fit_transform(X).shape
    (50, 256)
    """

    name = "samples of several parts"
    _expected = "several parts, X as skcontrast.datasets.Modalities"

    of: Kind | str | Sequence[Kind | str] | None = parameter(default=None)

    kinds_: list[Kind] = learned()

    def _read(self, X: Any, request: Request) -> tuple[Any, Schema]:
        validate_parameters(self)
        X, seen = Modalities(*X) if isinstance(X, tuple) else X, request.seen
        if not isinstance(X, Modalities):
            known = self.of if seen is None else seen.parts
            n_parts = len(known) if isinstance(known, (list, tuple)) else "several"
            raise ValueError(
                f"X must have {n_parts} parts, got a {type(X).__name__}: pass "
                "skcontrast.datasets.Modalities."
            )
        parts, schemas = [], []
        declared = self._declared(len(X.parts), seen)
        # Each part is read as if it were X, with what was seen of that part in fit.
        for place, (part, kind) in enumerate(zip(X.parts, declared, strict=True)):
            with naming_part(place):
                kind, part = recognised(part) if kind is None else (kind, part)
                seen_part = None if seen is None else seen.parts[place]
                part, schema = kind._read(part, replace(request, seen=seen_part))
            parts.append(part)
            schemas.append(schema)
        return Modalities(*parts), self._schema(schemas)

    def _declared(self, n_parts: int, seen: Schema | None) -> list[Kind | None]:
        """Return the kind of each part, None where it is to be recognised."""
        if seen is not None:
            if n_parts != len(seen.parts):
                raise ValueError(f"X has {n_parts} parts, in fit it had {len(seen.parts)}.")
            return [schema.kind for schema in seen.parts]
        of: Any = self.of if isinstance(self.of, (list, tuple)) else [self.of] * n_parts
        if len(of) != n_parts:
            raise ValueError(
                f"The 'of' parameter of MultimodalKind has {len(of)} kinds, but X has {n_parts} "
                "parts."
            )
        where = {"owner": "MultimodalKind", "parameter": "of"}
        return [None if kind is None else named_kind(kind, **where) for kind in of]

    def _schema(self, schemas: list[Schema]) -> Schema:
        """Return the schema of samples by those of their parts."""
        kind = clone(self)
        kind.kinds_ = [schema.kind for schema in schemas]
        shape = tuple(schema.sample_shape for schema in schemas)
        widths = [s.n_features_in for s in schemas if s.n_features_in is not None]
        n_features = sum(widths) if len(widths) == len(schemas) else None
        return Schema(kind, shape, n_features, parts=tuple(schemas))

    def _check_unusual(self, X: Any, *, is_declared: bool) -> None:
        """Warn about training samples that look like a mistake, part by part."""
        for place, (kind, part) in enumerate(self._pairs(X)):
            with naming_part(place):
                kind._check_unusual(part, is_declared=is_declared)

    def scaler(self) -> MultimodalScaler:
        """Return the maps of all parts as one, unfitted; see `Kind.scaler`."""
        return MultimodalScaler([kind.scaler() for kind in self.kinds_])

    def to_tensor(self, X: Any, device: torch.device | str) -> MultimodalBatch:
        """Return a batch of each part, unscaled."""
        return MultimodalBatch.of(kind.to_tensor(part, device) for kind, part in self._pairs(X))

    def _rows_per_call(self, X: Any) -> int:
        """Return the smallest of the numbers of samples that the parts allow."""
        return min(kind._rows_per_call(part) for kind, part in self._pairs(X))

    def _nbytes(self, X: Any) -> float:
        """Return how many bytes all parts take as tensors."""
        return sum(kind._nbytes(part) for kind, part in self._pairs(X))

    def _arrays(self, X: Any) -> Sequence[np.ndarray]:
        """Return the arrays of all parts."""
        return [array for kind, part in self._pairs(X) for array in kind._arrays(part)]

    def _pairs(self, X: Modalities) -> Iterator[tuple[Kind, Any]]:
        return zip(self.kinds_, X.parts, strict=True)


class MultimodalScaler:
    """The scalers of the parts as one.

    Parameters
    ----------
    scalers : list of object
        One for each part.
    """

    def __init__(self, scalers: Sequence[Any]):
        self.scalers = list(scalers)

    def fit(self, X: Modalities) -> MultimodalScaler:
        """Learn the map from each part of the training samples."""
        for place, (scaler, part) in enumerate(zip(self.scalers, X.parts, strict=True)):
            with naming_part(place):
                scaler.fit(part)
        return self

    def to_tensor(self, X: Modalities | OneModality, device: torch.device | str) -> Any:
        """Return the batches of all parts, or of one that is passed alone."""
        if isinstance(X, OneModality):
            return self.scalers[X.position].to_tensor(X.samples, device)
        batches = []
        for place, (scaler, part) in enumerate(zip(self.scalers, X.parts, strict=True)):
            with naming_part(place):
                batches.append(scaler.to_tensor(part, device))
        return MultimodalBatch.of(batches)

    def from_tensor(self, batch: MultimodalBatch, X: Modalities) -> Modalities:
        """Return views of each part in its own units."""
        triples = zip(self.scalers, batch.parts, X.parts, strict=True)
        return Modalities(*(as_given(scaler, views, part) for scaler, views, part in triples))
