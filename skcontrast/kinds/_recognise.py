"""Detection of the kind of X, and validation of X by it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from sklearn.base import clone

from .._checks import StrOptions, learned, parameter, validate_parameters
from .._checks._arguments import check_argument
from .._checks._names import belongs_to_package
from .._data._array_like import as_array_like, warn_of_panel
from .._data._modalities import Modalities, MultimodalBatch, OneModality, naming_modality
from ..graphs._convert import is_graphs
from ._base import Kind, Request, Schema, in_units_of_X
from ._graphs import Graphs
from ._images import Images
from ._series import Series
from ._vectors import Vectors

KindName: TypeAlias = Literal["vectors", "series", "images", "graphs"]
# In the order of detection; everything else is vectors.
KINDS: dict[str, Any] = {kind.name: kind for kind in (Graphs, Series, Images, Vectors)}


def read_samples(
    X: Any,
    kind: Kind | None = None,
    *,
    hint: Kind | None = None,
    estimator: Any,
    min_samples: int = 1,
) -> tuple[Any, Schema]:
    """Return X, validated by its kind, and its schema.

    Parameters
    ----------
    X : object
        The argument of the user.
    kind : Kind, default=None
        The kind that reads X; None detects it.
    hint : Kind, default=None
        The kind that an augmentation or an encoder is for. A custom kind reads X; a kind of the
        package decides if X is ambiguous.
    estimator : estimator
        Named in messages; never changed.
    min_samples : int, default=1
        The minimum number of samples.

    Raises
    ------
    ValueError, TypeError
        If X is neither an array nor a table nor a list of series or graphs, its kind is
        ambiguous, or its values are invalid for its kind.
    """
    if kind is None and hint is not None and (is_custom(hint) or isinstance(hint, MultimodalKind)):
        kind = hint
    if isinstance(X, Modalities) and not isinstance(kind, MultimodalKind):
        kind = MultimodalKind(kind)
    if kind is None:
        kind, X = recognised(X, hint)
    return kind.read(X, Request(estimator, min_samples=min_samples))


def recognised(X: Any, hint: Kind | None = None) -> tuple[Any, Any]:
    """Return the kind of X, and X as an array, or a list of graphs or of arrays of other shapes.

    Parameters
    ----------
    X : object
        The argument of the user.
    hint : Kind, default=None
        A kind of the package that decides if X is ambiguous.

    Raises
    ------
    ValueError, TypeError
        If X is neither an array nor a table nor a list of series or graphs, or its kind is
        ambiguous.
    """
    if is_graphs(X):
        return hint if isinstance(hint, Graphs) else Graphs(), X
    warn_of_panel(X)
    X = as_array_like(X, one_shape=False, size=getattr(hint, "size", None))
    # The declared kind is tried first.
    for known in sorted((Series, Images, Vectors), key=lambda k: not isinstance(hint, k)):
        kind: Kind = hint if hint is not None and isinstance(hint, known) else known()
        if kind.recognise(X, is_declared=kind is hint):
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
        The name of the class that declares it, for messages.
    parameter : str, default="kind"
        The parameter that declares it.
    """
    check_argument(owner, parameter, kind, [StrOptions(set(KINDS)), Kind])
    return KINDS[kind]() if isinstance(kind, str) else kind


def named_kinds(declared: Any, *, owner: str) -> list[Kind]:
    """Return the kinds that an augmentation or an encoder declares; [] for none."""
    if declared is None:
        return []
    kinds = declared if isinstance(declared, (tuple, list)) else [declared]
    return [named_kind(kind, owner=owner) for kind in kinds]


def check_fits(component: Any, declared: Any, fits: Callable[[Kind], bool], got: str) -> None:
    """Raise ValueError unless one of the kinds that a component declares fits."""
    owner = type(component).__name__
    kinds = named_kinds(declared, owner=owner)
    if kinds and not any(map(fits, kinds)):
        expected = " or ".join(kind.expected or kind.name for kind in kinds)
        raise ValueError(f"{owner} expects {expected}, {got}.")


def declared_kind(*components: Any) -> Kind | None:
    """Return the kind that augmentations or encoders are for, if any of them is for one only.

    Parameters
    ----------
    *components : Augmentation, Encoder or any other object
        An object without an attribute `kind` declares none. A custom kind takes precedence over
        a kind of the package, which can be detected.
    """
    single = []
    for component in components:
        # The parameter `kind` of features may be None where their class is for one kind.
        kind = getattr(component, "_declared_kind", getattr(component, "kind", None))
        kinds = named_kinds(kind, owner=type(component).__name__)
        single += kinds if len(kinds) == 1 else []
    return max(single, key=is_custom, default=None)


def is_custom(kind: Kind) -> bool:
    """Return whether a kind is defined outside of this package."""
    return not belongs_to_package(type(kind))


def kind_of_shape(sample_shape: Sequence[int | None]) -> Kind:
    """Return the kind of the package whose samples have such a shape."""
    return next(kind() for kind in KINDS.values() if kind().describes(tuple(sample_shape)))


@contextmanager
def naming_kind(kind: Kind) -> Iterator[None]:
    """Explain torch's errors about batches of custom kinds or of series."""
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
            f"The network cannot process the {kind.name} in X: {error}.{known} Use an encoder for "
            "samples of any length, such as SeriesNet() for series, or samples of one length."
        ) from error


class MultimodalKind(Kind):
    """Samples of several modalities, for a framework with an encoder for each.

    X is :class:`~skcontrast.datasets.Modalities` or a tuple of arrays that hold the same samples.
    Each modality has its own batch, scale and augmentation. Put channels or features that should
    share these into one array, which :class:`~skcontrast.frameworks.CMC` splits.

    Parameters
    ----------
    of : Kind, str or list of them, default=None
        The kind of all modalities, or a list of their kinds; None detects them.

    Attributes
    ----------
    kinds_ : list of Kind
        The kind of each modality; only on the copy in a fitted embedder.

    See Also
    --------
    skcontrast.datasets.Modalities : The modalities as one X that scikit-learn can split.
    skcontrast.frameworks.CMC : Has an encoder for each modality.
    skcontrast.augmentation.PerModality : Augmentations of each modality.
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

    name = "samples of several modalities"
    expected = "several modalities, X as skcontrast.datasets.Modalities"

    of: Kind | str | Sequence[Kind | str] | None = parameter(default=None)

    kinds_: list[Kind] = learned()

    def read(self, X: Any, request: Request) -> tuple[Any, Schema]:
        validate_parameters(self)
        X, seen = Modalities(*X) if isinstance(X, tuple) else X, request.seen
        if not isinstance(X, Modalities):
            known = self.of if seen is None else seen.modalities
            n = len(known) if isinstance(known, (list, tuple)) else "several"
            got = f"got a {type(X).__name__}: pass skcontrast.datasets.Modalities."
            raise ValueError(f"X must have {n} modalities, {got}")
        modalities, schemas = [], []
        declared = self._declared(len(X.modalities), seen)
        # Each modality is read like an X, with its own schema of fit.
        for position, (samples, kind) in enumerate(zip(X.modalities, declared, strict=True)):
            with naming_modality(position):
                kind, samples = recognised(samples) if kind is None else (kind, samples)
                of_fit = None if seen is None else seen.modalities[position]
                samples, schema = kind.read(samples, replace(request, seen=of_fit))
            modalities.append(samples)
            schemas.append(schema)
        return Modalities(*modalities), self._schema(schemas)

    def _declared(self, n: int, seen: Schema | None) -> list[Kind | None]:
        """Return the kind of each modality, None if it is to be detected."""
        if seen is not None:
            if n != len(seen.modalities):
                raise ValueError(f"X has {n} modalities, in fit it had {len(seen.modalities)}.")
            return [schema.kind for schema in seen.modalities]
        of: Any = self.of if isinstance(self.of, (list, tuple)) else [self.of] * n
        if len(of) != n:
            got = f"has {len(of)} kinds, but X has {n} modalities."
            raise ValueError(f"The 'of' parameter of MultimodalKind {got}")
        where = {"owner": "MultimodalKind", "parameter": "of"}
        return [None if kind is None else named_kind(kind, **where) for kind in of]

    def _schema(self, schemas: list[Schema]) -> Schema:
        """Return the schema of samples from those of their modalities."""
        kind = clone(self)
        kind.kinds_ = [schema.kind for schema in schemas]
        shape = tuple(schema.sample_shape for schema in schemas)
        widths = [s.n_features_in for s in schemas if s.n_features_in is not None]
        n_features = sum(widths) if len(widths) == len(schemas) else None
        return Schema(kind, shape, n_features, modalities=tuple(schemas))

    def check_unusual(self, X: Any, *, is_declared: bool) -> None:
        """Warn about training samples that look like a mistake, modality by modality."""
        for position, (kind, samples) in enumerate(self._pairs(X)):
            with naming_modality(position):
                kind.check_unusual(samples, is_declared=is_declared)

    def scaler(self) -> MultimodalScaler:
        """Return the unfitted map from modalities to batches; see `Kind.scaler`."""
        return MultimodalScaler([kind.scaler() for kind in self.kinds_])

    def rows_per_call(self, X: Any) -> int:
        """Return the smallest batch size of the modalities."""
        return min(kind.rows_per_call(samples) for kind, samples in self._pairs(X))

    def nbytes(self, X: Any) -> float:
        """Return the bytes of all modalities as tensors."""
        return sum(kind.nbytes(samples) for kind, samples in self._pairs(X))

    def arrays(self, X: Any) -> Sequence[np.ndarray]:
        """Return the arrays of all modalities."""
        return [array for kind, samples in self._pairs(X) for array in kind.arrays(samples)]

    def _pairs(self, X: Modalities) -> Iterator[tuple[Kind, Any]]:
        return zip(self.kinds_, X.modalities, strict=True)


class MultimodalScaler:
    """The scalers of the modalities as one.

    Parameters
    ----------
    scalers : list of object
        One for each modality.
    """

    def __init__(self, scalers: Sequence[Any]):
        self.scalers = list(scalers)

    def fit(self, X: Modalities) -> MultimodalScaler:
        """Learn the map from each modality of the training samples."""
        for position, (scaler, samples) in enumerate(zip(self.scalers, X.modalities, strict=True)):
            with naming_modality(position):
                scaler.fit(samples)
        return self

    def to_tensor(self, X: Modalities | OneModality, device: torch.device | str) -> Any:
        """Return the batches of all modalities, or the batch of one modality."""
        if isinstance(X, OneModality):
            return self.scalers[X.position].to_tensor(X.samples, device)
        batches = []
        for position, (scaler, samples) in enumerate(zip(self.scalers, X.modalities, strict=True)):
            with naming_modality(position):
                batches.append(scaler.to_tensor(samples, device))
        return MultimodalBatch.of(batches)

    def from_tensor(self, batch: MultimodalBatch, X: Modalities) -> Modalities:
        """Return views of each modality in its own units."""
        triples = zip(self.scalers, batch.modalities, X.modalities, strict=True)
        return Modalities(*(in_units_of_X(*triple) for triple in triples))
