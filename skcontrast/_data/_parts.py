"""Samples that consist of several parts: as users pass them, and as batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .._sklearn_compat import rows_of
from ._row_labels import along_rows, row_labels


class Parts:
    """The parts of samples, each in its own array, as one X that can be indexed by rows.

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
    skcontrast.kinds.PartsKind : Declares what the parts are.

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
        found = (row_labels(part) for part in self.parts)
        return next((labels for labels in found if labels is not None), None)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Any:
        """Return the parts of the given samples; of one sample, a tuple of them."""
        rows = along_rows(rows, "Parts")
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


class TensorBatch:
    """A batch of several tensors that describe the same n samples, such as ids and a mask.

    :meth:`skcontrast.kinds.Kind.to_tensor` may return it where one tensor is not enough. An
    embedder can index it by rows, concatenate views of it and move it to a device. Encoders and
    augmentations of the kind get the batch itself.

    Parameters
    ----------
    **tensors : Tensor of shape (n, ...)
        The tensors by name.

    Attributes
    ----------
    tensors : dict of str to Tensor
        The tensors by name, also as ``batch["name"]``.

    See Also
    --------
    Kind : A kind of data, which makes batches.

    Examples
    --------
    >>> import torch
    >>> from skcontrast.kinds import TensorBatch
    >>> ids = torch.tensor([[5, 2], [7, 0]])
    >>> batch = TensorBatch(ids=ids, mask=ids > 0)
    >>> len(batch), batch[torch.tensor([1])]["ids"]
    (2, tensor([[7, 0]]))
    """

    def __init__(self, **tensors: Any):
        if len({len(tensor) for tensor in tensors.values()}) != 1:
            lengths = {name: len(tensor) for name, tensor in tensors.items()}
            raise ValueError(f"The tensors of a batch must have one length, got {lengths}.")
        self.tensors = tensors

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the first tensor."""
        return tuple(next(iter(self.tensors.values())).shape)

    @property
    def device(self) -> torch.device:
        """The device of the tensors."""
        return next(iter(self.tensors.values())).device

    def __len__(self) -> int:
        return len(next(iter(self.tensors.values())))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self.tensors)}; {len(self)} samples)"

    def __getitem__(self, rows: Any) -> Any:
        """Return the batch of the given rows, or the tensor of a name."""
        return self.tensors[rows] if isinstance(rows, str) else self._mapped(lambda t: t[rows])

    def to(self, device: torch.device | str, non_blocking: bool = False) -> Self:
        """Return the batch on a device."""
        options = {"non_blocking": non_blocking}
        return self._mapped(lambda t: t.to(device, **(options if isinstance(t, Tensor) else {})))

    def pin_memory(self) -> Self:
        """Return the batch with its tensors in pinned memory, from which a GPU copies faster."""
        return self._mapped(lambda t: t.pin_memory() if isinstance(t, Tensor) else t)

    def _mapped(self, function: Callable[[Any], Any]) -> Self:
        """Return a batch of what a function makes of each tensor."""
        return type(self)(**{name: function(tensor) for name, tensor in self.tensors.items()})

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Let frameworks concatenate views of any kind by ``torch.cat``."""
        if function is torch.cat and not kwargs and len(args) == 1:
            batches = list(args[0])
            names = batches[0].tensors
            return cls(**{name: torch.cat([b.tensors[name] for b in batches]) for name in names})
        return NotImplemented


class PartsBatch(TensorBatch):
    """A batch for each part of the same n samples: a tensor (n, ...), or one of another class."""

    @classmethod
    def of(cls, parts: Iterable[Any]) -> Self:
        """Return the batches of parts as one."""
        return cls(**{str(place): part for place, part in enumerate(parts)})

    @property
    def parts(self) -> tuple[Any, ...]:
        """The batch of each part."""
        return tuple(self.tensors.values())

    @property
    def shape(self) -> tuple[int, ...]:
        """``(n, n_parts)``."""
        return len(self), len(self.tensors)
