"""Several: samples of several parts, each of which has a kind of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .._data._parts import OnePart, Parts, PartsBatch, naming_part
from .._data._sources import is_lazy
from .._parameters import validate_parameters
from ._base import Kind, Schema
from ._guess import guess_kind, is_own, named_kind
from ._images import Images
from ._vectors import Vectors


class Several(Kind):
    """Samples of several parts, for a framework that has an encoder for each.

    X is :class:`~skcontrast.datasets.Parts` or a tuple of arrays that hold the same samples; or
    one array, which the framework splits.

    Arrays that fit side by side, all of vectors or all of images of one height and width, become
    one array, and batches are batches of its kind. They have one scale of intensities, and the
    augmentation sees all parts of a sample at once: images are moved together. Other parts, such
    as images with vectors, and all parts with ``apart=True``, are batches of their own with
    scales and augmentations of their own.

    Parameters
    ----------
    of : Kind, str or list of them, default=None
        The kind of all parts, or a list of the kinds of each; None guesses them.
    apart : bool, default=False
        Whether parts are kept apart that fit side by side.

    See Also
    --------
    skcontrast.datasets.Parts : The parts as one X that scikit-learn can split.
    skcontrast.frameworks.CMC : Has an encoder for each part, and reads X as parts by itself.
    skcontrast.augmentation.PerPart : Augmentations of each part.
    Kind : The base class.

    Examples
    --------
    The first part is a table, where an array of codes could be a vector:

    >>> import numpy as np
    >>> from skcontrast import ContrastiveEmbedder
    >>> from skcontrast.datasets import Parts
    >>> from skcontrast.frameworks import CMC
    >>> from skcontrast.kinds import Several, Tables, Vectors
    >>> rng = np.random.default_rng(0)
    >>> X = Parts(rng.integers(5, size=(50, 2)), rng.normal(size=(50, 6)))
    >>> embedder = ContrastiveEmbedder(
    ...     framework=CMC(),
    ...     kind=Several([Tables(categorical=[0, 1]), Vectors()]),
    ...     max_epochs=1,
    ...     random_state=0,
    ... )
    >>> embedder.fit_transform(X).shape
    (50, 256)
    """

    name = "samples of several parts"
    expected = "several parts, X as skcontrast.datasets.Parts"
    augmentation_advice = "; pass PerPart([...]) with what augments each part"

    _parameter_constraints: dict = {"of": "no_validation", "apart": ["boolean"]}

    def __init__(self, of: Kind | str | Sequence[Kind | str] | None = None, apart: bool = False):
        self.of = of
        self.apart = apart

    @property
    def kinds(self) -> list[Kind]:
        """The kinds of the parts of checked samples."""
        return list(self.of) if isinstance(self.of, (list, tuple)) else []

    @property
    def trains_in_bf16(self) -> bool:  # type: ignore[override]
        """Whether all parts may train in bfloat16 by default."""
        return all(kind.trains_in_bf16 for kind in self.kinds)

    @property
    def shares_batches(self) -> bool:  # type: ignore[override]
        """Whether several processes can share the batches of one fit."""
        return all(kind.shares_batches for kind in self.kinds)

    @property
    def network_parameters(self) -> tuple[str, ...]:  # type: ignore[override]
        """Parameters of the embedder that the networks of the parts depend on."""
        return tuple(
            dict.fromkeys(name for kind in self.kinds for name in kind.network_parameters)
        )

    def read(
        self,
        X: Any,
        *,
        owner: Any,
        seen: Schema | None = None,
        min_samples: int = 1,
        check_finite: bool = True,
    ) -> tuple[Any, Schema]:
        """Check X, and put its parts side by side if they fit."""
        validate_parameters(self)
        options = {"owner": owner, "min_samples": min_samples, "check_finite": check_finite}
        X = Parts(*X) if isinstance(X, tuple) else X
        if not isinstance(X, Parts):
            return self._read_whole(X, seen, options)
        if seen is not None:
            _check_number(X, seen)
            # Once parts are side by side, nobody knows any more in which of them a NaN was.
            options["check_finite"] |= seen.cut is not None
        parts, schemas = self._read_parts(X, seen, options)
        kind = self._common_kind(parts, schemas) if seen is None else seen.kind
        if kind is None or isinstance(kind, Several):
            return Parts(*parts), self._schema(schemas)
        parts, names = [_with_channels(part) for part in parts], _joined_names(schemas)
        if seen is not None:
            _check_shapes(parts, seen)
            _check_names(schemas, seen)
            seen = replace(seen, feature_names_in=None)  # the joined array has no names
        joined = np.concatenate(parts, axis=1)
        joined, schema = kind.read(joined, seen=seen, **{**options, "check_finite": False})
        cut = tuple(part.shape[1] for part in parts)
        return joined, replace(schema, reader=self, cut=cut, feature_names_in=names)

    def _read_whole(
        self, X: Any, seen: Schema | None, options: dict[str, Any]
    ) -> tuple[Any, Schema]:
        """Check one array, which the framework splits."""
        n_parts = _n_parts(self.of) if seen is None else len(seen.parts)
        if n_parts:
            raise ValueError(
                f"X must have {n_parts} parts, got a {type(X).__name__}: pass "
                "skcontrast.datasets.Parts."
            )
        if seen is not None:
            kind = seen.kind
        elif self.of is None:
            kind, X = guess_kind(X)
        else:
            kind = _named(self.of)
        X, schema = kind.read(X, seen=seen, **options)
        return X, replace(schema, reader=self, cut=None)

    def _read_parts(
        self, X: Parts, seen: Schema | None, options: dict[str, Any]
    ) -> tuple[list[Any], list[Schema]]:
        """Check each part by its own kind."""
        n_parts, read = len(X.parts), []
        kinds = self._declared(n_parts) if seen is None else [seen.kind] * n_parts
        before = seen.parts if seen is not None and seen.parts else (None,) * n_parts
        for place, (part, kind, own) in enumerate(zip(X.parts, kinds, before, strict=True)):
            with naming_part(place):
                if own is not None:
                    kind = own.kind
                elif kind is None:
                    kind, part = guess_kind(part)
                read.append(kind.read(part, seen=own, **options))
        return [part for part, _ in read], [schema for _, schema in read]

    def _common_kind(self, parts: Sequence[Any], schemas: Sequence[Schema]) -> Kind | None:
        """Return the kind of arrays that are put side by side, None if parts are kept apart."""
        kind = schemas[0].kind
        if self.apart or isinstance(self.of, (list, tuple)) or type(kind) not in (Vectors, Images):
            return None
        for part, schema in zip(parts, schemas, strict=True):
            if type(schema.kind) is not type(kind) or not isinstance(part, np.ndarray):
                return None
        sizes = {_with_channels(part).shape[2:] for part in parts}
        return kind if len(sizes) == 1 else None

    def _declared(self, n_parts: int) -> list[Kind | None]:
        """Return the kind of each part, None where it is to be guessed."""
        if not isinstance(self.of, (list, tuple)):
            kind = None if self.of is None else _named(self.of)
            return [kind] * n_parts
        if len(self.of) != n_parts:
            raise ValueError(
                f"The 'of' parameter of Several has {len(self.of)} kinds, but X has {n_parts} "
                "parts."
            )
        return [_named(kind) for kind in self.of]

    def _schema(self, schemas: list[Schema]) -> Schema:
        """Return what samples are whose parts are kept apart."""
        numbers = [s.n_features_in for s in schemas if s.n_features_in is not None]
        return Schema(
            Several([schema.kind for schema in schemas], apart=True),
            tuple(schema.sample_shape for schema in schemas),
            self,
            sum(numbers) if len(numbers) == len(schemas) else None,
            parts=tuple(schemas),
        )

    def check_unusual(self, X: Any, *, is_declared: bool) -> None:
        """Warn about training samples that look like a mistake, part by part."""
        for place, (kind, part) in enumerate(zip(self.kinds, X.parts, strict=True)):
            with naming_part(place):
                kind.check_unusual(part, is_declared=is_declared)

    def reads_like(self, other: Kind) -> bool:
        """Return whether another kind makes the same batches of each part."""
        return isinstance(other, Several) and all(
            mine.reads_like(theirs) for mine, theirs in zip(self.kinds, other.kinds, strict=True)
        )

    def scaler(self, parameters: Mapping[str, Any]) -> PartsScaler:
        """Return a `PartsScaler`."""
        return PartsScaler([kind.scaler(parameters) for kind in self.kinds])

    def to_tensor(self, X: Any, device: torch.device | str) -> PartsBatch:
        """Return a batch of each part, unscaled."""
        pairs = zip(self.kinds, X.parts, strict=True)
        return PartsBatch([kind.to_tensor(part, device) for kind, part in pairs])

    def rows_per_call(self, X: Any) -> int:
        """Return the smallest of the numbers of samples that the parts allow."""
        pairs = zip(self.kinds, X.parts, strict=True)
        return min(kind.rows_per_call(part) for kind, part in pairs)

    def nbytes(self, X: Any) -> float:
        """Return how many bytes all parts take as tensors."""
        pairs = zip(self.kinds, X.parts, strict=True)
        return sum(kind.nbytes(part) for kind, part in pairs)

    def arrays(self, X: Any) -> Sequence[np.ndarray]:
        """Return the arrays of all parts."""
        pairs = zip(self.kinds, X.parts, strict=True)
        return [array for kind, part in pairs for array in kind.arrays(part)]


class PartsScaler:
    """The scalers of the parts as one.

    Parameters
    ----------
    scalers : list of Scaler
        One for each part.
    """

    def __init__(self, scalers: Sequence[Any]):
        self.scalers = list(scalers)

    @property
    def finds_nonfinite(self) -> bool:
        """Whether all scalers themselves raise ValueError for NaN and infinity."""
        return all(scaler.finds_nonfinite for scaler in self.scalers)

    def fit(self, X: Parts) -> PartsScaler:
        """Learn the map from each part of the training samples."""
        for place, (scaler, part) in enumerate(zip(self.scalers, X.parts, strict=True)):
            with naming_part(place):
                self.scalers[place] = scaler.fit(part)
        return self

    def to_tensor(self, X: Parts | OnePart, device: torch.device | str) -> Any:
        """Return the batches of all parts, or of one that is passed alone."""
        if isinstance(X, OnePart):
            return self.scalers[X.place].to_tensor(X.samples, device)
        batches = []
        for place, (scaler, part) in enumerate(zip(self.scalers, X.parts, strict=True)):
            with naming_part(place):
                batches.append(scaler.to_tensor(part, device))
        return PartsBatch(batches)

    def from_tensor(self, batch: PartsBatch, X: Parts) -> Parts:
        """Return views of each part in its own units."""
        triples = zip(self.scalers, batch.parts, X.parts, strict=True)
        return Parts(
            *(
                getattr(scaler, "from_tensor", _unscaled)(views, part)
                for scaler, views, part in triples
            )
        )


def _named(kind: Any) -> Kind:
    """Return the kind that an item of the parameter `of` stands for."""
    return named_kind(kind, owner="Several", parameter="of")


def _n_parts(of: Any) -> int:
    """Return the number of parts that are declared, 0 for any."""
    return len(of) if isinstance(of, (list, tuple)) else 0


def _with_channels(part: Any) -> np.ndarray:
    """Return an array with an axis of features or channels."""
    part = part[:] if is_lazy(part) else part
    return part[:, None] if part.ndim == 3 else part


def _check_number(X: Parts, seen: Schema) -> None:
    """Raise ValueError unless X has as many parts as in `fit`."""
    n_parts, fitted = len(X.parts), len(seen.parts or seen.cut or ())
    if not fitted:
        raise ValueError(
            f"X has {n_parts} parts, but in fit it was one array that was not split into its "
            "first and its remaining features or channels: pass X as in fit."
        )
    if n_parts != fitted:
        raise ValueError(f"X has {n_parts} parts, in fit it had {fitted}.")


def _check_shapes(parts: Sequence[np.ndarray], seen: Schema) -> None:
    """Raise ValueError unless parts that fit side by side have the sizes of `fit`."""
    size = seen.sample_shape[1:][-2:] if len(seen.sample_shape) == 3 else ()
    for place, (part, width) in enumerate(zip(parts, seen.cut or (), strict=True)):
        if part.shape[2:] != size:
            raise ValueError(
                f"Part {place} of X has images of {part.shape[2:]} pixels, in fit {size}."
            )
        if part.shape[1] != width:
            raise ValueError(
                f"Part {place} of X has {part.shape[1]} features or channels, in fit it had "
                f"{width}."
            )


def _joined_names(schemas: Sequence[Schema]) -> np.ndarray | None:
    """Return the names of the features of all parts, None unless all parts have names."""
    names = [schema.feature_names_in for schema in schemas]
    known = [some for some in names if some is not None]
    return np.concatenate(known) if len(known) == len(names) else None


def _check_names(schemas: Sequence[Schema], seen: Schema) -> None:
    """Raise ValueError if features of a part have other names than in `fit`."""
    if seen.feature_names_in is None or seen.cut is None:
        return
    expected = np.split(seen.feature_names_in, np.cumsum(seen.cut)[:-1])
    for place, (schema, names) in enumerate(zip(schemas, expected, strict=True)):
        given = schema.feature_names_in
        if given is not None and list(given) != list(names):
            raise ValueError(
                f"The features of part {place} of X must be those of fit, in the same order: got "
                f"{_first_few(given)}, in fit {_first_few(names)}."
            )


def _first_few(names: np.ndarray, n: int = 5) -> str:
    return ", ".join(map(str, names[:n])) + (", …" if len(names) > n else "")


def _unscaled(batch: Any, X: Any) -> Any:
    """Return a batch of views as an array if it is a tensor, else as it is."""
    return batch.numpy() if isinstance(batch, Tensor) else batch


def guess_kind_or_parts(X: Any, declared: Kind | None = None) -> tuple[Kind, Any]:
    """Return what `guess_kind` does, and `Several` for parts."""
    if isinstance(X, Parts) and (declared is None or not is_own(declared)):
        return Several(declared), X
    return guess_kind(X, declared)
