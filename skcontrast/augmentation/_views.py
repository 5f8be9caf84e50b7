"""Lazy views, by which augmentations reach the embedder in a Pipeline; and Unflatten."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from .._checks import Declared, learned, parameter, validate_parameters
from .._checks._arguments import check_entries, naming, validated
from .._data._arrays import as_array
from .._data._modalities import along_rows, label_rows, row_labels
from .._sklearn_compat import CallbackSupportMixin, as_task
from .._warnings import warn


class AugmentationDropped(UserWarning):
    """A step between an augmentation and the embedder has discarded the augmentation."""


class Views:
    """Samples with the augmentations that draw their views.

    An embedder draws fresh views of `base` in each training step. Any other step
    that converts them to an array gets `base`, with a warning.

    Parameters
    ----------
    base : ndarray or DataFrame of shape (n_samples, ...)
        The samples.
    chain : tuple of Augmentation
        Model augmentations, in the order in which they are applied.

    See Also
    --------
    compose : Draws views of a batch directly.

    Examples
    --------
    >>> import numpy as np
    >>> from skcontrast.augmentation import GaussianNoise, MarginalCorruption
    >>> views = MarginalCorruption().fit_transform(GaussianNoise().fit_transform(np.eye(3)))
    >>> views
    Views(base of shape (3, 3), chain=(GaussianNoise(), MarginalCorruption()))
    >>> views[:2].shape
    (2, 3)
    """

    @validated(chain=[list, tuple])
    def __init__(self, base: Any, chain: Iterable[Any]):
        self.base = base
        self.chain = tuple(chain)
        self._is_reported = False

    @property
    def shape(self) -> tuple:
        """Shape of `base`."""
        return tuple(self.base.shape)

    @property
    def index(self) -> Any:
        """The row labels of `base`, an index of pandas; None if there are none."""
        return row_labels(self.base)

    @property
    def ndim(self) -> int:
        """Number of dimensions of `base`."""
        return len(self.shape)

    @property
    def dtype(self) -> np.dtype:
        """The dtype of `base` as an array."""
        return np.asarray(self.base[:1]).dtype if is_dataframe(self.base) else self.base.dtype

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Views:
        """Return the views of samples; `rows` is an index, a slice, indices or a mask."""
        rows = along_rows(rows, "Views")
        if not isinstance(rows, slice):
            rows = np.atleast_1d(np.arange(len(self))[rows])
        base = self.base.iloc[rows] if hasattr(self.base, "iloc") else self.base[rows]
        if self.index is not None:
            base = label_rows(base, self.index[rows])
        return Views(base, self.chain)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray:
        if not self._is_reported:
            self._is_reported = True
            names = ", ".join(type(augmentation).__name__ for augmentation in self.chain)
            warn(
                f"A step converted the views of {names} to an array and lost the augmentation: "
                f"move {names} directly before the embedder.",
                AugmentationDropped,
            )
        return np.array(self.base, dtype=dtype, copy=copy)

    def __repr__(self) -> str:
        return f"Views(base of shape {self.shape}, chain={self.chain})"


def base_of(X: Any) -> Any:
    """Return the samples of views, and anything else unchanged."""
    return X.base if isinstance(X, Views) else X


class Transformer(CallbackSupportMixin, OneToOneFeatureMixin, TransformerMixin, Declared):
    """Base class of transformers whose output is never wrapped in a DataFrame."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(auto_wrap_output_keys=None, **kwargs)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def set_output(self, *, transform: str | None = None) -> Self:
        """Do nothing: the output is passed on unchanged.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"} or None, default=None
            Ignored; accepted so that a Pipeline can be configured as a whole.

        Returns
        -------
        self : estimator
            The transformer itself.
        """
        return self


def is_dataframe(X: Any) -> bool:
    """Return whether X is a table of pandas or polars."""
    return hasattr(X, "columns") and hasattr(X, "to_numpy")


class Unflatten(Transformer):
    """Give flattened samples (n_samples, n_features) the shape of images.

    The first step of a Pipeline on flattened images. Values and dtype stay, nothing is copied.

    Parameters
    ----------
    shape : tuple of int
        Shape of one sample, ``(channels, height, width)`` or ``(height, width)``. One entry may
        be -1: it is inferred from the number of features.

    Attributes
    ----------
    n_features_in_ : int
        Number of features of X.

    See Also
    --------
    Augmentation : Base class of the augmentations, which follow in the Pipeline.
    RandomAffine : Part of the default augmentation of small grey images.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from skcontrast.augmentation import Unflatten
    >>> X, _ = load_digits(return_X_y=True)
    >>> Unflatten((1, 8, 8)).fit_transform(X).shape
    (1797, 1, 8, 8)
    """

    shape: tuple[int, ...] = parameter([tuple, list])

    n_features_in_: int = learned()

    @as_task
    def fit(self, X: ArrayLike, y: None = None) -> Unflatten:
        """Check that the number of features fits `shape`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Flattened samples.
        y : None
            Ignored.

        Returns
        -------
        self : Unflatten
            The fitted transformer.

        Raises
        ------
        ValueError
            If `shape` is not a shape or does not fit the number of features, or X is not a finite
            numeric matrix.
        """
        validate_parameters(self)
        n_features = self._validate(X, reset=True).shape[1]
        try:
            np.empty((1, n_features)).reshape(1, *self.shape)
        except (ValueError, TypeError) as error:
            raise ValueError(
                f"X has {n_features} features, which do not fit the 'shape' parameter "
                f"{tuple(self.shape)}: pass (channels, height, width), one of which may be -1."
            ) from error
        return self

    def transform(self, X: ArrayLike) -> NDArray:
        """Return X with samples of this shape.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Flattened samples.

        Returns
        -------
        images : ndarray of shape (n_samples, ...)
            A view of X if X is a C-contiguous array. It keeps the index of a DataFrame for the
            output of the embedder.
        """
        check_is_fitted(self)
        checked = self._validate(X, reset=False)
        return label_rows(checked.reshape(len(checked), *self.shape), row_labels(X))

    def _validate(self, X: Any, *, reset: bool) -> NDArray:
        if isinstance(X, Views):
            raise ValueError(
                "Unflatten must come before the augmentations: it got the views of "
                f"{', '.join(type(augmentation).__name__ for augmentation in X.chain)}."
            )
        check_entries(X, "X")
        with naming("X", "an array of numbers, shape (n_samples, n_features)", X):
            if isinstance(X, torch.Tensor):
                X = as_array(X)
            return validate_data(self, X, reset=reset)
