"""Partial whitening: principal components, divided by a power of their standard deviations."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import assert_all_finite, check_is_fitted, validate_data

from .._checks import FRACTION, POSITIVE_INT, Declared, parameter, validate_parameters
from .._checks._arguments import check_entries, naming
from .._runtime import guarded

_FLOATS = [np.float64, np.float32]
# Components with a smaller relative standard deviation are rounding errors.
_LEAST_SPREAD = 1e-6


class PartialWhitening(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Declared):
    r"""Project vectors on their principal components, and equalise the variances partially.

    .. math:: z_j = v_j^\top (h - \mu) / s_j^p

    with v the principal axes and s the standard deviations along them, in X of `fit`. p = 0 is
    PCA, p = 1 is whitening. Values in between give more weight to directions of small variance,
    without amplifying noise. For neighbours and retrieval, p = 0.5 was better than p = 0 in every
    measured embedding of images, see :ref:`neighbours`; linear classifiers and few labels lose a
    little.

    Parameters
    ----------
    n_components : int, default=256
        Number of components; at most the number of features and of samples.
    power : float, default=0.5
        p, in [0, 1].
    random_state : int, RandomState instance or None, default=None
        Seeds the randomised solver of large X.

    Attributes
    ----------
    pca_ : sklearn.decomposition.PCA
        The fitted rotation.
    scale_ : ndarray of shape (n_components,)
        The divisors of the components.

    See Also
    --------
    skcontrast.metrics.knn_accuracy : Evaluates embeddings by neighbours.

    Examples
    --------
    >>> import numpy as np
    >>> from skcontrast.features import PartialWhitening
    >>> X = np.random.default_rng(0).normal(size=(500, 3)) * [9, 4, 1]
    >>> PartialWhitening().fit_transform(X).std(axis=0).round()
    array([3., 2., 1.])
    """

    n_components: int = parameter(POSITIVE_INT, default=256)
    power: float = parameter(FRACTION, default=0.5)
    random_state: int | np.random.RandomState | None = parameter(["random_state"], default=None)

    @guarded()
    def fit(self, X: ArrayLike, y: None = None) -> Self:
        """Learn the principal axes and the standard deviations.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Embeddings; more samples than components are better.
        y : None
            Ignored.

        Returns
        -------
        self : PartialWhitening

        Raises
        ------
        ValueError
            If a parameter is outside its range, or X is not a matrix of finite numbers with two
            rows or more.
        """
        # Imported here, because every fit of an embedder imports this module.
        from sklearn.decomposition import PCA

        validate_parameters(self)
        array = self._checked(X, ensure_min_samples=2)
        n_components = min(self.n_components, *array.shape)
        # Identical rows have no variance, whose shares are NaN.
        quiet = np.errstate(invalid="ignore", over="ignore")
        with quiet, naming("X", "numbers of finite variance"):
            # Centred first, since products of columns far from 0 would lose the covariance.
            center = array.mean(axis=0, dtype=np.float64).astype(array.dtype)
            self.pca_ = PCA(n_components, random_state=self.random_state).fit(array - center)
            self.pca_.mean_ += center
            spread = np.sqrt(self.pca_.explained_variance_)
            assert_all_finite(spread)
        least = _LEAST_SPREAD * spread.max(initial=0)
        self.scale_ = np.where(spread > least, spread, np.inf) ** self.power
        self._n_features_out = n_components
        return self

    @guarded()
    def transform(self, X: ArrayLike) -> NDArray:
        """Return the components of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Embeddings.

        Returns
        -------
        Z : ndarray of shape (n_samples, n_components)
        """
        check_is_fitted(self)
        return self.pca_.transform(self._checked(X, reset=False)) / self.scale_

    def _checked(self, X: ArrayLike, **options: Any) -> NDArray:
        check_entries(X, "X")
        with naming("X", "an array of numbers, shape (n_samples, n_features)", X):
            return validate_data(self, X, dtype=_FLOATS, **options)
