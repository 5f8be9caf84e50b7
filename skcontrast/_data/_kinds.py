"""What a kind of data is: everything that depends on whether X holds vectors, images or graphs.

The rest of the package asks a kind and never tests what X is. The kinds of the package have a room
each: ``_vectors.py``, ``_images.py``, ``_graphs.py``, ``_pairs.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from .._parameters import ParameterObject


@dataclass(frozen=True)
class Schema:
    """What `fit` saw of X, with which every later X must agree.

    Attributes
    ----------
    kind : Kind
        The kind of the samples in a batch.
    sample_shape : tuple
        Shape of one sample of X, in the words of its kind.
    reader : Kind
        What reads X: the kind itself, or `Pairs` of it.
    n_features_in : int or None
        Numbers per sample, where samples have a fixed number.
    feature_names_in : ndarray of str or None
        Names of the features, where X has names.
    border : int or None
        Where the second part of each sample begins, if X was a pair of arrays.
    """

    kind: Kind
    sample_shape: tuple
    reader: Kind
    n_features_in: int | None = None
    feature_names_in: np.ndarray | None = None
    border: int | None = None

    def assign_names(self, estimator: Any) -> None:
        """Set ``n_features_in_`` and ``feature_names_in_`` of an estimator, or remove them."""
        for name in ("n_features_in", "feature_names_in"):
            vars(estimator).pop(f"{name}_", None)
            if (value := getattr(self, name)) is not None:
                setattr(estimator, f"{name}_", value)


class Scaler:
    """The map from validated samples to the tensors of the training; this one learns nothing.

    Parameters
    ----------
    kind : Kind
        Its ``to_tensor`` is the map.
    """

    finds_nonfinite = False
    """Whether `to_tensor` itself raises ValueError for NaN and infinity in X."""

    def __init__(self, kind: Kind):
        self.kind = kind

    def fit(self, X: Any) -> Scaler:
        """Learn the map from the training samples."""
        return self

    def to_tensor(self, X: Any, device: torch.device | str) -> Any:
        """Return samples as a batch on a device."""
        return self.kind.to_tensor(X, device)


class Kind(ParameterObject):
    """A kind of data: how samples are checked, turned into batches and read by an encoder.

    The embedder and the augmentations ask the kind of X. It is guessed where nobody declares it:
    pass ``ContrastiveEmbedder(kind=...)``, or set `kind` on an augmentation or an encoder of your
    own. A kind of your own implements `check` and `to_tensor`, and `zeros` unless an encoder
    can be tried on floating-point zeros; the rest has defaults that suit small data.

    Attributes
    ----------
    name : str
        What samples are called in messages, in the plural.
    expected : str
        `name` and how they are passed, for messages to who passes something else.
    augmentation_advice : str
        What to do where an augmentation is for a different kind, for messages.
    float_batches : bool
        Whether batches are tensors of numbers, which augmentations get as floats. If not, they
        get what `to_tensor` returns.
    trains_in_bf16 : bool
        Whether ``precision="auto"`` may train its networks in bfloat16.
    shares_batches : bool
        Whether several processes can share the batches of one fit.
    network_parameters : tuple of str
        Parameters of the embedder that the network depends on, apart from those that it depends
        on for every kind.

    See Also
    --------
    skcontrast.augmentation.Augmentation : Draws views of batches of a kind.
    skcontrast.encoders.Encoder : Is built for samples of a kind.

    Examples
    --------
    Sequences of numbers, of unequal length, that are padded with NaN:

    >>> import numpy as np
    >>> import torch
    >>> from skcontrast.kinds import Kind
    >>> class Sequences(Kind):
    ...     name = "sequences"
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

    name = "samples"
    expected = ""
    augmentation_advice = ""
    float_batches = False
    trains_in_bf16 = False
    shares_batches = False
    network_parameters: tuple[str, ...] = ()

    def accepts(self, X: Any) -> bool:
        """Return whether X, whose kind was not declared, is of this kind."""
        return False

    def describes(self, sample_shape: tuple) -> bool:
        """Return whether samples of this kind can have such a shape."""
        return False

    def image_shape(self, sample_shape: tuple) -> tuple[int, int, int] | None:
        """Return ``(channels, height, width)`` if samples are images, else None."""
        return None

    def check(self, X: Any) -> Any:
        """Check X and return it in the form in which it is cut into batches.

        Parameters
        ----------
        X : object
            What the user passed.

        Returns
        -------
        X : array-like of length n_samples
            Indexed by slices and by arrays of rows. A second call must change nothing.

        Raises
        ------
        ValueError, TypeError
            If X does not hold such samples; the message says what was expected.
        """
        raise NotImplementedError(f"{type(self).__name__} does not implement check.")

    def to_tensor(self, X: Any, device: torch.device | str) -> Any:
        """Return validated samples as a batch on a device.

        Parameters
        ----------
        X : array-like of length n
            Some rows of what `check` returned.
        device : torch.device or str
            Where the batch is needed.

        Returns
        -------
        batch : Tensor of shape (n, ...)
            Or any object with a length, a `device` and a `shape`, that is indexed by tensors of
            rows and can be put together with others by ``torch.cat``.
        """
        raise NotImplementedError(f"{type(self).__name__} does not implement to_tensor.")

    def sample_shape(self, X: Any) -> tuple:
        """Return the shape of one sample of validated X; one number is None where it varies."""
        return tuple(X.shape[1:]) or (None,)

    def zeros(self, sample_shape: tuple) -> Any:
        """Return a batch of two samples that a new encoder is tried on.

        Parameters
        ----------
        sample_shape : tuple
            Shape of one sample of a batch.
        """
        return torch.zeros(2, *(3 if size is None else size for size in sample_shape))

    def adapt(self, module: nn.Module) -> nn.Module:
        """Return a user's module as one that is called with a batch."""
        return module

    def describe(self, sample_shape: tuple) -> str:
        """Return how samples of a shape are called in messages about encoders."""
        return f"samples of shape {sample_shape}"

    def read(
        self,
        X: Any,
        *,
        owner: Any,
        seen: Schema | None = None,
        min_samples: int = 1,
        check_finite: bool = True,
    ) -> tuple[Any, Schema]:
        """Check what the user passed as X.

        Parameters
        ----------
        X : object
            What the user passed.
        owner : estimator
            Named in messages; never changed.
        seen : Schema, default=None
            What `fit` saw; None in `fit` itself.
        min_samples : int, default=1
            The least number of samples.
        check_finite : bool, default=True
            If False, the caller looks for NaN and infinity.

        Returns
        -------
        X : array-like of length n_samples
            As `check` returns it.
        schema : Schema
            What X is.
        """
        X = self.check(X)
        if len(X) < min_samples:
            raise ValueError(
                f"Found {len(X)} sample(s) in X while a minimum of {min_samples} is required by "
                f"{type(owner).__name__}."
            )
        shape = self.sample_shape(X)
        if seen is not None and shape != seen.sample_shape:
            raise ValueError(
                f"X has samples of shape {shape}, but {type(owner).__name__} was fitted on "
                f"samples of shape {seen.sample_shape}."
            )
        return X, Schema(self, shape, self)

    def warn_unusual(self, X: Any) -> None:
        """Warn once per fit about training samples that look like a mistake."""

    def scaler(self, *, standardize: bool, node_features: str) -> Any:
        """Return the map from validated samples to batches, unfitted.

        Parameters
        ----------
        standardize, node_features : bool, str
            Parameters of the embedder.
        """
        return Scaler(self)

    def first_layer(
        self,
        some: Any,
        scaler: Any,
        *,
        standardize: bool,
        channels_last: bool,
        convert: nn.Module | None = None,
    ) -> nn.Module | None:
        """Return the layer before the encoder, which standardises its input; None for none.

        Parameters
        ----------
        some : Tensor of shape (n, ...)
            Some training samples, as in a batch.
        scaler : object
            What `scaler` returned, fitted.
        standardize : bool
            The parameter of the embedder.
        channels_last : bool
            Whether the encoder runs in channels-last memory format.
        convert : torch.nn.Module, default=None
            Applied to batches before they are standardised.
        """
        return None

    def rows_per_call(self, X: Any) -> int:
        """Return how many samples of X go through the encoder at a time in inference."""
        return 1024

    def nbytes(self, X: Any) -> float:
        """Return how many bytes X takes as tensors; 0 if it is always held in memory."""
        return 0

    def arrays(self, X: Any) -> Sequence[np.ndarray]:
        """Return arrays that tell validated samples from different ones."""
        batch = self.to_tensor(X, torch.device("cpu"))
        return [batch.numpy()] if isinstance(batch, Tensor) else []
