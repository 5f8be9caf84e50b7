"""Base class of the kinds of data, which has everything that depends on what X holds.

The rest of the package calls methods of the kind, or looks up a default by its class.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
import torch
from sklearn.utils import check_array
from torch import Tensor, nn

from .._checks import ParameterObject
from .._checks._arguments import validated
from .._data._arrays import SparseSamples, representative_array, row_blocks, subset
from .._data._modalities import TensorBatch
from .._runtime import guarded

# Samples from which the memory of all is estimated.
_SAMPLES_WEIGHED = 100


@dataclass(frozen=True)
class Schema:
    """Description of the X of `fit`, with which every later X must agree.

    Attributes
    ----------
    kind : Kind
        Reads X, and has what `fit` has learned from it.
    sample_shape : tuple
        Shape of a sample of X, as its kind returns it; for several modalities, the shape of
        each.
    n_features_in : int or None
        Numbers per sample, if it is fixed.
    feature_names_in : ndarray of str or None
        Names of the features, if X has names.
    modalities : tuple of Schema
        The schemas of the modalities, if samples have several.
    """

    kind: Kind
    sample_shape: tuple
    n_features_in: int | None = None
    feature_names_in: np.ndarray | None = None
    modalities: tuple[Schema, ...] = ()

    def assign_names(self, estimator: Any) -> None:
        """Set ``n_features_in_`` and ``feature_names_in_`` of an estimator, or remove them."""
        for name in ("n_features_in", "feature_names_in"):
            vars(estimator).pop(f"{name}_", None)
            if (value := getattr(self, name)) is not None:
                setattr(estimator, f"{name}_", value)


class Scaler(Protocol):
    """Converts samples that `Kind.read` returns to batches, after `fit`."""

    def fit(self, X: Any) -> Any: ...

    def to_tensor(self, X: Any, device: torch.device) -> Any: ...


@dataclass(frozen=True)
class Request:
    """Requirements on X, and validation that several kinds share.

    Attributes
    ----------
    estimator : object
        Named in messages; never changed.
    seen : Schema or None
        The schema of `fit`; None in `fit` itself.
    min_samples : int
        The minimum number of samples.
    """

    estimator: Any
    seen: Schema | None = None
    min_samples: int = 1

    @property
    def name(self) -> str:
        """Name of the class of the estimator."""
        return type(self.estimator).__name__

    def convert(self, X: Any, **options: Any) -> Any:
        """Return X as an array of any number of dimensions, validated by scikit-learn."""
        return check_array(X, allow_nd=True, estimator=self.estimator, input_name="X", **options)

    def check_length(self, X: Any) -> None:
        """Raise ValueError if X has too few samples."""
        if len(X) < self.min_samples:
            raise ValueError(
                f"Found {len(X)} sample(s) in X while a minimum of {self.min_samples} is required "
                f"by {self.name}."
            )

    def check_shape(self, sample_shape: tuple) -> None:
        """Raise ValueError unless samples have the shape of the samples in `fit`."""
        if self.seen is not None and sample_shape != self.seen.sample_shape:
            seen = self.seen.sample_shape
            axes = {(1, *sample_shape): "X[:, None]", sample_shape[1:]: "X[:, 0]"}
            advice = f": pass {axes[seen]}" if seen in axes else ""
            raise ValueError(
                f"X has samples of shape {sample_shape}, but {self.name} was fitted on samples of "
                f"shape {seen}{advice}."
            )


class Unscaled:
    """A scaler that does not change samples.

    Parameters
    ----------
    kind : Kind
        Its ``to_tensor`` is used.
    """

    def __init__(self, kind: Kind):
        self.kind = kind

    def fit(self, X: Any) -> Unscaled:
        """Return the scaler unchanged."""
        return self

    def to_tensor(self, X: Any, device: torch.device | str) -> Any:
        """Return samples as a batch on a device, unscaled; floats in float32.

        Raises
        ------
        ValueError
            If X holds NaN or infinity, unless NaN marks gaps in this kind.
        """
        batch = _checked_batch(self.kind.to_tensor(X, device), len(X), self.kind)
        if isinstance(batch, TensorBatch):
            return TensorBatch(**{k: self._floats(tensor) for k, tensor in batch.tensors.items()})
        return self._floats(batch)

    def _floats(self, batch: Any) -> Any:
        if not (isinstance(batch, Tensor) and batch.is_floating_point()):
            return batch
        batch = batch.float()
        if not (self.kind.has_gaps or batch.sum().isfinite() or batch.isfinite().all()):
            row = int((~batch.flatten(1).isfinite().all(1)).nonzero()[0])
            raise ValueError(
                f"X contains NaN or infinity, first in sample {row} of {len(batch)}. If NaN marks "
                f"gaps or padding, set has_gaps = True in the class {type(self.kind).__name__}."
            )
        return batch


def _checked_batch(batch: Any, n: int, scaler: Any) -> Any:
    """Return the output of `to_tensor`; raise TypeError unless it is a batch of n samples."""
    is_array = isinstance(batch, np.ndarray)
    is_batch = hasattr(batch, "device") and hasattr(batch, "shape") and not is_array
    if is_batch and len(batch) == n:
        return batch
    got = f"{len(batch)} samples" if is_batch else f"a {type(batch).__name__}"
    raise TypeError(
        f"{type(scaler).__name__}.to_tensor must return a batch of {n} samples: a tensor, or a "
        f"skcontrast.kinds.TensorBatch of several, got {got}."
    )


def with_scaler(kind: Kind, X: Any) -> tuple[Any, Any, Any]:
    """Return checked X as an array, its fitted scaler, and a batch of some samples.

    Of lazy samples, the array has a subset. For a sparse matrix, the scaler uses all samples.
    """
    array, scaler = representative_array(X), kind.scaler()
    scaler.fit(X if isinstance(X, SparseSamples) else array)
    some = subset(array)
    batch = scaler.to_tensor(some, torch.device("cpu"))
    return array, scaler, _checked_batch(batch, len(some), scaler)


def in_units_of_X(scaler: Any, batch: Any, X: Any) -> Any:
    """Return views in the units of X if the scaler has an inverse, else unchanged."""
    if hasattr(scaler, "from_tensor"):
        return scaler.from_tensor(batch, X)
    return batch.numpy() if isinstance(batch, Tensor) else batch


class Kind(ParameterObject):
    """A kind of data: how samples are checked, turned into batches and read by an encoder.

    The kind is recognised from X unless it is declared: pass ``ContrastiveEmbedder(kind=...)``, or
    set `kind` on a custom augmentation or encoder.

    A subclass implements `check` and `to_tensor`, and may override other methods.

    Attributes
    ----------
    name : str
        The name of samples in messages, in the plural.
    float_batches : bool
        Whether batches are tensors of numbers, which augmentations receive as floats. If not,
        augmentations receive what `to_tensor` returns.
    has_gaps : bool
        Whether NaN in batches marks gaps or padding. If not, NaN in X is refused.
    expected : str
        `name` and the form of X, for messages.
    trains_in_bf16 : bool
        Whether ``precision="auto"`` may train networks for these samples in bfloat16.
    differs_in_length : bool
        Whether arrays of unequal shapes may be samples, so that a list of them stays a list.

    See Also
    --------
    skcontrast.ContrastiveEmbedder : Its parameter `kind` declares what X holds.
    skcontrast.augmentation.Augmentation : Draws views of batches of a kind.
    skcontrast.encoders.Encoder : Is built for samples of a kind.

    Examples
    --------
    Sequences of numbers, of unequal lengths, padded with NaN. The user guide trains on a
    kind of token ids: :ref:`own-kind`.

    >>> import numpy as np
    >>> import torch
    >>> from skcontrast.kinds import Kind
    >>> class Sequences(Kind):
    ...     name = "sequences"
    ...     has_gaps = True
    ...
    ...     def check(self, X):
    ...         sequences = np.empty(len(X), dtype=object)
    ...         sequences[:] = [np.asarray(x, dtype=np.float32) for x in X]
    ...         return sequences
    ...
    ...     def to_tensor(self, X, device):
    ...         tensors = [torch.from_numpy(x) for x in X]
    ...         return torch.nn.utils.rnn.pad_sequence(tensors, True, torch.nan).to(device)
    >>> kind = Sequences()
    >>> kind.to_tensor(kind.check([[1, 2, 3], [4]]), "cpu")
    tensor([[1., 2., 3.],
            [4., nan, nan]])
    """

    name: ClassVar[str] = "samples"
    float_batches: ClassVar[bool] = False
    has_gaps: ClassVar[bool] = False
    expected: ClassVar[str] = ""
    trains_in_bf16: ClassVar[bool] = False
    differs_in_length: ClassVar[bool] = False

    def check(self, X: Any) -> Any:
        """Validate X, and return samples that can be indexed by rows.

        Parameters
        ----------
        X : object
            The samples as the user passed them.

        Returns
        -------
        X : array-like of length n_samples
            The samples in their order, each independent of the others. Can be indexed by slices
            and by arrays of rows. Checking it again changes nothing.

        Raises
        ------
        ValueError, TypeError
            If X does not hold such samples; the message should say what is expected.
        """
        raise NotImplementedError(f"{type(self).__name__} does not implement check.")

    def to_tensor(self, X: Any, device: torch.device | str) -> Any:
        """Return checked samples as a batch on a device.

        Parameters
        ----------
        X : array-like of length n
            Rows of the samples that `check` returned.
        device : torch.device or str
            The device of the batch.

        Returns
        -------
        batch : Tensor of shape (n, ...)
            Or any object with a length, a `device` and a `shape` that can be indexed by a tensor
            of rows and concatenated by ``torch.cat``.
        """
        raise NotImplementedError(f"{type(self).__name__} does not implement to_tensor.")

    def sample_shape(self, X: Any) -> tuple:
        """Return the shape of a sample of checked X, with None for a size that varies."""
        return tuple(getattr(X, "shape", ())[1:]) or (None,)

    def scaler(self) -> Any:
        """Return the unfitted map from checked samples to batches, by default `to_tensor`.

        Returns
        -------
        scaler : object
            Its ``fit(X)`` learns from the training samples, such as their mean, and
            ``to_tensor(X, device)`` returns a batch.
        """
        return Unscaled(self)

    def recognise(self, X: Any, *, is_declared: bool = False) -> bool:
        """Return whether X holds samples of this kind; by default False.

        Parameters
        ----------
        X : object
            As the user passed it; an array for kinds of arrays.
        is_declared : bool, default=False
            Whether an augmentation, an encoder or the user has declared this kind, which decides
            if X is ambiguous.

        Returns
        -------
        is_recognised : bool
        """
        return False

    def describes(self, sample_shape: tuple) -> bool:
        """Return whether samples of this kind can have a shape; by default False.

        Parameters
        ----------
        sample_shape : tuple
            Shape of a sample of checked X.

        Returns
        -------
        is_possible : bool
        """
        return False

    def image_shape(self, sample_shape: tuple) -> tuple[int, ...] | None:
        """Return the shape of samples as images, None if they are none.

        Parameters
        ----------
        sample_shape : tuple
            Shape of a sample of checked X.

        Returns
        -------
        shape : tuple of int or None
            ``(channels, height, width)``.
        """
        return None

    def example_batch(self, sample_shape: tuple) -> Any:
        """Return a batch of two samples, to validate a new encoder.

        Parameters
        ----------
        sample_shape : tuple
            Shape of a sample of checked X.

        Returns
        -------
        batch : Tensor of shape (2, ...) or any other batch
        """
        return torch.zeros(2, *(3 if size is None else size for size in sample_shape))

    def adapt(self, module: nn.Module) -> nn.Module:
        """Return a user's module as a module that takes a batch; by default unchanged.

        Parameters
        ----------
        module : torch.nn.Module
            The module that was passed as an encoder.

        Returns
        -------
        module : torch.nn.Module
        """
        return module

    def encoded_shape(self, sample_shape: tuple) -> tuple:
        """Return the shape of a sample of a batch after `first_layer`.

        Parameters
        ----------
        sample_shape : tuple
            Shape of a sample of checked X.

        Returns
        -------
        shape : tuple
        """
        return sample_shape

    def read(self, X: Any, request: Request) -> tuple[Any, Schema]:
        """Validate X as the user passed it, by `check`.

        Parameters
        ----------
        X : object
            The samples as the user passed them.
        request : Request
            The number of samples that is needed, and the schema of `fit`, if there was one.

        Returns
        -------
        X : array-like of length n_samples
            The output of `check`.
        schema : Schema
            The kind and the shape of the samples.
        """
        raw, X = X, self.check(X)
        if not hasattr(X, "__len__") or isinstance(X, (list, tuple)):
            raise TypeError(
                f"{type(self).__name__}.check must return samples that can be indexed by an array "
                f"of rows, such as an array of objects, got a {type(X).__name__}."
            )
        if hasattr(raw, "__len__") and len(raw) != len(X):
            raise ValueError(
                f"{type(self).__name__}.check must return one sample for each of the {len(raw)} "
                f"in X, got {len(X)}."
            )
        request.check_length(X)
        shape = self.sample_shape(X)
        request.check_shape(shape)
        return X, Schema(self, shape)

    def check_unusual(self, X: Any, *, is_declared: bool) -> None:
        """Warn of samples that look like a mistake, or raise an error; once per fit.

        Parameters
        ----------
        X : array-like of length n
            Samples that `check` has returned.
        is_declared : bool
            Whether the kind is the parameter `kind` of the embedder.
        """

    def first_layer(self, subset: Any, scaler: Any, *, channels_last: bool) -> nn.Module | None:
        """Return the layer before the encoder, such as one that standardises its input.

        Parameters
        ----------
        subset : Tensor of shape (n, ...) or any other batch
            Training samples.
        scaler : object
            The fitted scaler that converted them.
        channels_last : bool
            Whether the layer returns images in channels-last memory format.

        Returns
        -------
        layer : torch.nn.Module or None
            None, the default, is no layer.
        """
        return None

    def rows_per_call(self, X: Any) -> int:
        """Return the batch size for inference; by default 1,024.

        Parameters
        ----------
        X : array-like of length n
            Samples that `check` has returned.

        Returns
        -------
        n_rows : int
        """
        return 1024

    def nbytes(self, X: Any) -> float:
        """Return the size of X as tensors.

        Parameters
        ----------
        X : array-like of length n
            Samples that `check` has returned.

        Returns
        -------
        n_bytes : float
            0 always keeps X in memory.
        """
        some = X[:: -(-len(X) // _SAMPLES_WEIGHED)]
        return len(X) / len(some) * sum(array.nbytes for array in self.arrays(some))

    def arrays(self, X: Any) -> Iterable[np.ndarray]:
        """Yield the arrays of samples, by which two X are compared.

        Parameters
        ----------
        X : array-like of length n
            Samples that `check` has returned.
        """
        for rows in row_blocks(X, self.rows_per_call(X)):
            batch = self.to_tensor(rows, torch.device("cpu"))
            tensors = batch.tensors.values() if isinstance(batch, TensorBatch) else [batch]
            yield from (tensor.numpy() for tensor in tensors if isinstance(tensor, Tensor))


@guarded()
@validated(kind=Kind)
def check_kind(kind: Kind, X: Any) -> None:
    """Check that a custom kind keeps the order, treats samples independently, and leaves X alone.

    Call this in a test of your class. ``fit`` only checks the types and lengths of the outputs
    of methods.

    Parameters
    ----------
    kind : Kind
        An instance of your class.
    X : list or ndarray of length n_samples
        At least two samples.

    Raises
    ------
    TypeError, ValueError
        If ``check`` returns other samples when it is called with the first and the last one alone,
        or with its own output; or if it, ``scaler`` or ``to_tensor`` returns an object of the
        wrong type or length.

    See Also
    --------
    skcontrast.encoders.check_encoder : Compares samples of a kind alone and in a padded batch.

    Examples
    --------
    >>> import numpy as np, torch
    >>> from skcontrast.kinds import Kind, check_kind
    >>> class Sorted(Kind):
    ...     def check(self, X):
    ...         return np.sort(X, axis=0)
    ...
    ...     def to_tensor(self, X, device):
    ...         return torch.from_numpy(X).to(device)
    >>> check_kind(Sorted(), np.array([[3.0], [1.0], [2.0]]))
    Traceback (most recent call last):
    ...
    ValueError: Sorted.check must keep the order, treat samples independently, be idempotent...
    """
    checked, schema = kind.read(X, Request(kind, min_samples=2))
    with_scaler(kind, checked)
    if None in schema.sample_shape and getattr(checked, "dtype", None) != np.dtype(object):
        return  # padded by `check`, to the longest of the samples that it gets
    ends = np.array([0, len(X) - 1])
    expected = [array.copy() for array in kind.arrays(checked[ends])]
    few = X[ends] if isinstance(X, np.ndarray) else [X[0], X[-1]]
    for some in (few, checked[ends]):
        both = zip(kind.arrays(kind.read(some, Request(kind))[0]), expected, strict=True)
        if any(a.shape != b.shape or not np.allclose(a, b, equal_nan=True) for a, b in both):
            raise ValueError(
                f"{type(kind).__name__}.check must keep the order, treat samples independently, "
                "be idempotent, and not modify X."
            )
