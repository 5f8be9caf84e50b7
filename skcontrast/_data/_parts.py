"""Samples that consist of several parts: as users pass them, and as batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .._sklearn_compat import rows_of
from ._row_labels import row_labels


class Parts:
    """The parts of samples, each in an array of its own, as one X that can be indexed by rows.

    A tuple of arrays holds the same samples, but scikit-learn cannot split it. `Parts` goes
    through Pipelines, ``train_test_split``, cross-validation and searches. Whatever selects rows
    selects them in every part.

    Parameters
    ----------
    *parts : array-like of length n_samples
        At least two, with the same samples in the same order, each in a form that an embedder
        takes by itself: arrays, memory maps, DataFrames, sparse matrices, lists of graphs.
        They are not copied.

    Attributes
    ----------
    parts : tuple
        The parts as they were passed.
    shape : tuple (n_samples, n_parts)
        Number of samples and of parts.

    Raises
    ------
    ValueError
        If there are fewer than two parts, or they differ in length.
    TypeError
        If a part has no length.

    See Also
    --------
    skcontrast.frameworks.CMC : Trains an encoder for each part.
    skcontrast.augmentation.PerPart : Draws views of each part by its own augmentations.
    skcontrast.kinds.Several : Declares what the parts are.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.pipeline import make_pipeline
    >>> from skcontrast import ContrastiveEmbedder
    >>> from skcontrast.datasets import Parts
    >>> from skcontrast.frameworks import CMC
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(60) % 2
    >>> words, pixels = rng.normal(size=(60, 4)) + y[:, None], rng.uniform(size=(60, 1, 8, 8))
    >>> X = Parts(words, pixels)
    >>> X, X[:10].parts[1].shape
    (Parts of 60 samples: ndarray (60, 4), ndarray (60, 1, 8, 8), (10, 1, 8, 8))
    >>> embedder = ContrastiveEmbedder(framework=CMC(), max_epochs=1, random_state=0)
    >>> cross_val_score(make_pipeline(embedder, LogisticRegression()), X, y, cv=3).shape
    (3,)
    """

    ndim = 2

    def __init__(self, *parts: Any):
        if len(parts) < 2:
            raise ValueError(f"X must have at least two parts, got {len(parts)}.")
        lengths = [_n_samples(part, place) for place, part in enumerate(parts)]
        for place, n in enumerate(lengths):
            if n != lengths[0]:
                raise ValueError(
                    "The parts of X must hold the same samples: part 0 has "
                    f"{lengths[0]}, part {place} has {n}."
                )
        self.parts = parts
        self.shape = (lengths[0], len(parts))

    @property
    def index(self) -> Any:
        """The row labels of the first part that has any, an index of pandas, or None."""
        return next(
            (labels for part in self.parts if (labels := row_labels(part)) is not None), None
        )

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Any:
        """Return the parts of some samples; of one sample, a tuple of them."""
        if isinstance(rows, tuple) and len(rows) == 2 and rows[1] is Ellipsis:
            rows = rows[0]
        if isinstance(rows, tuple):
            raise IndexError("Parts are indexed by samples only: X[rows]; X.parts has the parts.")
        if not isinstance(rows, slice):
            rows = np.arange(len(self))[rows]
        if np.ndim(rows) == 0 and not isinstance(rows, slice):
            return tuple(rows_of(part, int(rows)) for part in self.parts)
        return Parts(*(rows_of(part, rows) for part in self.parts))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray:
        raise TypeError(
            "X is Parts, which are several arrays: only an embedder with framework=CMC() and "
            "augmentations take them. Prepare each part before, Parts(prepare(first), second)."
        )

    def __repr__(self) -> str:
        held = ", ".join(_brief(part) for part in self.parts)
        return f"Parts of {len(self)} samples: {held}"


def _n_samples(part: Any, place: int) -> int:
    """Return the number of samples in a part."""
    shape = getattr(part, "shape", None)
    try:
        if isinstance(part, (str, bytes)):
            raise TypeError("a name has no samples")
        return int(shape[0]) if shape else len(part)
    except TypeError as error:
        raise TypeError(f"Part {place} of X must hold samples, got {_brief(part)}.") from error


def _brief(part: Any) -> str:
    """Return the class and the shape of a part, or its value if it has none."""
    if part is None or isinstance(part, (str, bytes, int, float, type)):
        return repr(part)
    shape = getattr(part, "shape", None)
    return type(part).__name__ + ("" if shape is None else f" {tuple(shape)}")


@contextmanager
def naming_part(place: int) -> Iterator[None]:
    """Say in errors about samples which of their parts they are about."""
    try:
        yield
    except (ValueError, TypeError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"Part {place} of X: {error}") from error


class OnePart(NamedTuple):
    """Samples of one part alone, to be converted like those of `Parts`.

    Attributes
    ----------
    place : int
        Which part.
    samples : array-like of length n
        As its kind returns them.
    """

    place: int
    samples: Any


class PartsBatch:
    """A batch for each part of the same n samples.

    Parameters
    ----------
    parts : sequence of Tensor of shape (n, ...), or batches of their own classes
        The batches.
    """

    def __init__(self, parts: Sequence[Any]):
        self.parts = tuple(parts)

    @property
    def shape(self) -> tuple[int, ...]:
        """``(n, n_parts)``."""
        return len(self), len(self.parts)

    @property
    def device(self) -> torch.device:
        """The device of the parts."""
        return self.parts[0].device

    def __len__(self) -> int:
        return len(self.parts[0])

    def __getitem__(self, rows: Any) -> PartsBatch:
        return PartsBatch([part[rows] for part in self.parts])

    def to(self, device: torch.device | str, non_blocking: bool = False) -> PartsBatch:
        """Return the batch on a device."""
        return PartsBatch(
            [
                part.to(device, non_blocking=non_blocking)
                if isinstance(part, Tensor)
                else part.to(device)
                for part in self.parts
            ]
        )

    def pin_memory(self) -> PartsBatch:
        """Return the batch with its tensors in pinned memory, from which a GPU copies faster."""
        return PartsBatch(
            [part.pin_memory() if isinstance(part, Tensor) else part for part in self.parts]
        )

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Let frameworks concatenate views of any kind by ``torch.cat``."""
        if function is torch.cat and not kwargs and len(args) == 1:
            several = zip(*(batch.parts for batch in args[0]), strict=True)
            return cls([torch.cat(list(batches)) for batches in several])
        return NotImplemented
