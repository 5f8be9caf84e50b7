"""Samples of several modalities, as X and as batches, and row labels of pandas."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn import get_config
from torch import Tensor

from .._checks._constraints import brief
from .._sklearn_compat import get_output_config, rows_of


class Modalities:
    """Samples of several modalities, each an array, as one X that can be indexed by rows.

    A tuple of arrays holds the same samples, but scikit-learn cannot split it. `Modalities` works
    with Pipelines, ``train_test_split``, cross-validation and searches: indexing by rows selects
    them in every modality.

    Parameters
    ----------
    *modalities : array-like of length n_samples
        At least two, with the same samples in the same order, each in a form that an embedder
        takes by itself: arrays, memory maps, DataFrames, sparse matrices, lists of graphs.
        They are not copied.

    Attributes
    ----------
    modalities : tuple
        The modalities as they were passed.
    shape : tuple (n_samples, n_modalities)
        Number of samples and of modalities.

    Raises
    ------
    ValueError
        If there are fewer than two modalities, or they differ in length.
    TypeError
        If a modality has no length.

    See Also
    --------
    skcontrast.frameworks.CMC : Trains an encoder for each modality.
    skcontrast.augmentation.PerModality : Draws views of each modality by its own augmentations.
    skcontrast.kinds.MultimodalKind : Declares what the modalities are.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.pipeline import make_pipeline
    >>> from skcontrast import ContrastiveEmbedder
    >>> from skcontrast.datasets import Modalities
    >>> from skcontrast.frameworks import CMC
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(60) % 2
    >>> words, pixels = rng.normal(size=(60, 4)) + y[:, None], rng.uniform(size=(60, 1, 8, 8))
    >>> X = Modalities(words, pixels)
    >>> X[:10]
    Modalities of 10 samples: ndarray of shape (10, 4), ndarray of shape (10, 1, 8, 8)
    >>> embedder = ContrastiveEmbedder(framework=CMC(), max_epochs=1, random_state=0)
    >>> cross_val_score(make_pipeline(embedder, LogisticRegression()), X, y, cv=3).shape
    (3,)
    """

    ndim = 2

    def __init__(self, *modalities: Any):
        if len(modalities) < 2:
            raise ValueError(f"X must have at least two modalities, got {len(modalities)}.")
        lengths = [_n_samples(samples, position) for position, samples in enumerate(modalities)]
        if len(set(lengths)) > 1:
            raise ValueError(f"Modalities must have the same number of samples, got {lengths}.")
        self.modalities = modalities
        self.shape = (lengths[0], len(modalities))

    @property
    def index(self) -> Any:
        """The row labels of the first modality that has any, an index of pandas, or None."""
        indices = (row_labels(samples) for samples in self.modalities)
        return next((labels for labels in indices if labels is not None), None)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Any:
        """Return the modalities of the selected samples; of one sample, a tuple."""
        rows = along_rows(rows, "Modalities")
        if not isinstance(rows, slice):
            rows = np.arange(len(self))[rows]
            if np.ndim(rows) == 0:
                return tuple(rows_of(samples, int(rows)) for samples in self.modalities)
        return Modalities(*(rows_of(samples, rows) for samples in self.modalities))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray:
        raise TypeError(
            "X is a Modalities, which only augmentations and an embedder with framework=CMC() "
            "accept. Transform each array first: Modalities(transform(first), second)."
        )

    def __repr__(self) -> str:
        modalities = ", ".join(brief(samples, 40) for samples in self.modalities)
        return f"Modalities of {len(self)} samples: {modalities}"


def _n_samples(samples: Any, position: int) -> int:
    """Return the number of samples in a modality."""
    shape = getattr(samples, "shape", ())
    if isinstance(samples, (str, bytes)) or not (shape or hasattr(samples, "__len__")):
        raise TypeError(f"Modality {position} of X must hold samples, got {brief(samples, 40)}.")
    return shape[0] if shape else len(samples)


@contextmanager
def naming_modality(position: int) -> Iterator[None]:
    """Name the modality of X in errors about its samples."""
    try:
        yield
    except (ValueError, TypeError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"Modality {position} of X: {error}") from error


class OneModality(NamedTuple):
    """Samples of one modality alone, to be converted like those of `Modalities`.

    Attributes
    ----------
    position : int
        The index of the modality in X.
    samples : array-like of length n
        As its kind returns them.
    """

    position: int
    samples: Any


class Joinable:
    """A batch whose views frameworks concatenate by ``torch.cat``."""

    @classmethod
    def cat(cls, batches: Sequence[Any]) -> Any:
        """Return the samples of several batches as one."""
        raise NotImplementedError

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Concatenate batches by ``torch.cat``."""
        is_cat = function is torch.cat and not kwargs and len(args) == 1
        return cls.cat(list(args[0])) if is_cat else NotImplemented


class TensorBatch(Joinable):
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
        return self.tensors[rows] if isinstance(rows, str) else self._map(lambda t: t[rows])

    def to(self, device: torch.device | str, non_blocking: bool = False) -> Self:
        """Return the batch on a device."""
        options = {"non_blocking": non_blocking}
        return self._map(lambda t: t.to(device, **(options if isinstance(t, Tensor) else {})))

    def pin_memory(self) -> Self:
        """Return the batch with its tensors in pinned memory, from which a GPU copies faster."""
        return self._map(lambda t: t.pin_memory() if isinstance(t, Tensor) else t)

    def _map(self, function: Callable[[Any], Any]) -> Self:
        """Return a batch with a function applied to each tensor."""
        return type(self)(**{name: function(tensor) for name, tensor in self.tensors.items()})

    @classmethod
    def cat(cls, batches: Sequence[Any]) -> Any:
        """Return the samples of several batches as one."""
        names = batches[0].tensors
        return cls(**{name: torch.cat([b.tensors[name] for b in batches]) for name in names})


class MultimodalBatch(TensorBatch):
    """A batch for each modality of n samples: a tensor (n, ...), or one of another class."""

    @classmethod
    def of(cls, modalities: Iterable[Any]) -> Self:
        """Return the batches of modalities as one."""
        return cls(**{str(position): samples for position, samples in enumerate(modalities)})

    @property
    def modalities(self) -> tuple[Any, ...]:
        """The batch of each modality."""
        return tuple(self.tensors.values())

    @property
    def shape(self) -> tuple[int, ...]:
        """``(n, n_modalities)``."""
        return len(self), len(self.tensors)


class LabeledArray(np.ndarray):
    """An array with the row labels of the table that it was made from.

    Arrays computed from it, slices too, do not have labels.

    Attributes
    ----------
    index : pandas.Index or None
        The labels of the rows.
    """

    index: Any = None

    def __reduce__(self) -> tuple:
        return label_rows, (np.asarray(self), self.index)


def row_labels(X: Any) -> Any:
    """Return the index of a pandas object or of a `LabeledArray`, None if X has none.

    The index that pandas gives a table without labels, 0 to n - 1, counts as none.
    """
    index: Any = getattr(X, "index", None)
    if not hasattr(index, "get_indexer"):  # lists have a method of the name "index"
        return None
    is_range = (getattr(index, "start", None), getattr(index, "step", None)) == (0, 1)
    return None if is_range and index.name is None else index


def label_rows(array: Any, labels: Any) -> Any:
    """Return an ndarray as a `LabeledArray`; unchanged without labels or if it is no ndarray."""
    if labels is None or not isinstance(array, np.ndarray):
        return array
    labeled = array.view(LabeledArray)
    labeled.index = labels
    return labeled


def labeled_output(h: NDArray, X: Any, estimator: Any) -> Any:
    """Return the output of `transform` for X, as a DataFrame if it has to keep row labels.

    With ``set_output(transform="pandas")``, scikit-learn takes the index of DataFrames only. With
    scikit-learn's ``array_api_dispatch``, a tensor gives a tensor on its device.
    """
    if isinstance(X, Tensor) and get_config()["array_api_dispatch"]:
        return torch.from_numpy(h).to(X.device)
    labels = row_labels(X)
    if labels is None or get_output_config("transform", estimator)["dense"] != "pandas":
        return h
    import pandas as pd

    return pd.DataFrame(h, index=labels)


def along_rows(rows: Any, name: str) -> Any:
    """Return an index of samples without the ellipsis that scikit-learn adds for further axes."""
    if isinstance(rows, tuple) and len(rows) == 2 and rows[1] is Ellipsis:
        rows = rows[0]
    if rows is None or isinstance(rows, (tuple, bool, np.bool_)) or np.ndim(rows) > 1:
        raise IndexError(f"{name} can only be indexed by samples, [rows], got {rows!r}.")
    return rows
