"""Unflatten: flattened images back to images."""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any

import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from .._checks import check_entries, naming, validate_parameters
from .._data._row_labels import label_rows, row_labels
from ._views import Transformer, Views


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

    _parameter_constraints: dict = {"shape": [tuple, list]}

    n_features_in_: int

    def __init__(self, shape: tuple[int, ...]):
        self.shape = shape

    def fit(self, X: ArrayLike, y: None = None) -> Unflatten:
        """Check that samples of X have as many features as `shape` has entries.

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
        valid = all(isinstance(size, Integral) and (size > 0 or size == -1) for size in self.shape)
        if not (valid and self.shape and list(self.shape).count(-1) <= 1):
            raise ValueError(
                "The 'shape' parameter of Unflatten must be a tuple of positive integers such as "
                f"(channels, height, width), one of which may be -1, got {self.shape!r}."
            )
        n_features = self._validate(X, reset=True).shape[1]
        known = math.prod(size for size in self.shape if size != -1)
        if n_features % known if -1 in self.shape else n_features != known:
            raise ValueError(
                f"X has {n_features} features, which do not fit shape={tuple(self.shape)}."
            )
        return self

    def transform(self, X: ArrayLike) -> NDArray:
        """Return X with samples of the given shape.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Flattened samples.

        Returns
        -------
        images : ndarray of shape (n_samples, ...)
            A view of X where X is a C-contiguous array. It remembers the index of a DataFrame for
            the embedder, whose output has the same index.
        """
        check_is_fitted(self)
        checked = self._validate(X, reset=False)
        return label_rows(checked.reshape(len(checked), *self.shape), row_labels(X))

    def _validate(self, X: Any, *, reset: bool) -> NDArray:
        if isinstance(X, Views):
            raise ValueError(
                "Unflatten must stand before the augmentations: it got the views of "
                f"{', '.join(type(augmentation).__name__ for augmentation in X.chain)}."
            )
        check_entries(X, "X")
        with naming("X", "an array of numbers, shape (n_samples, n_features)", X):
            if isinstance(X, torch.Tensor):
                X = X.detach().cpu().numpy()
            return validate_data(self, X, reset=reset)
