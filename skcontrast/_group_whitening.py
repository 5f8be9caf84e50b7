"""Whitening of vectors by their covariance within groups: linear discriminant analysis."""

from __future__ import annotations

from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils import Tags, check_array
from sklearn.utils.validation import assert_all_finite, check_is_fitted, validate_data

from ._checks import (
    Declared,
    HasMethods,
    Interval,
    check_entries,
    learned,
    naming,
    parameter,
    validate_parameters,
)
from ._data._metadata import group_codes
from ._runtime import guarded
from ._warnings import warn

_FLOATS = [np.float64, np.float32]
# The eigenvectors of this many columns take a minute and 1 GiB.
_MOST_COLUMNS = 4096
# On a data set of 22 groups, the output was worse than X. The margin is not measured.
FEW_GROUPS = 40
# Smaller variances, relative to the largest possible or found one, are due to rounding.
_LEAST_WITHIN, _LEAST_BETWEEN = 1e-20, 1e-12


class GroupWhitening(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Declared):
    r"""Whiten vectors within groups, and weight the directions that separate groups.

    This is linear discriminant analysis [1]_ with groups instead of classes: rows of one patient,
    author, video or source, which mostly share a class. It needs no labels and no gradient
    descent. Directions in which the rows of a group differ are shrunk, as by relevant component
    analysis [2]_. Directions in which groups do not differ are removed.

    With the covariance W within groups and the mean :math:`\mu` of X, W is shrunk [3]_ and
    whitened by A. B is the covariance of the means of groups, weighted by their sizes
    :math:`n_g`. Its eigenvectors after A are the columns of U. The variance between groups along
    each of them is b, without what the variance within groups adds to the means:

    .. math::

        z &= \operatorname{diag}\Big(\sqrt{\tfrac{b}{b + 1}}\Big)\, U^\top A^\top (x - \mu),
        \qquad A A^\top = \Big((1 - s) W + s \frac{\operatorname{tr} W}{d} I\Big)^{-1} \\
        b_j &= \max\Big(0,\; u_j^\top A^\top \Big(B - \frac{W}{n_0}\Big) A u_j\Big), \qquad
        n_0 = \frac{1}{G - 1} \Big(n - \frac{1}{n} \sum_g n_g^2\Big)

    for G groups of n rows and d columns. Rows without a group contribute to :math:`\mu` only; a
    group of one row contributes to B. Without groups, X is only centred.

    Parameters
    ----------
    shrinkage : float, default=0.5
        The shrinkage s in (0, 1], as in ``LinearDiscriminantAnalysis``. With 1, A is a multiple
        of I, and z are principal components of the means of groups.
    transformer : transformer, default=None
        Features that are whitened; a clone is fitted. None whitens X.

    Attributes
    ----------
    transformer_ : transformer or None
        The fitted transformer.
    mean_ : ndarray of shape (d,)
        The mean of X in `fit`.
    components_ : ndarray of shape (d, d) or None
        The rows map centred X to each output, in descending order of b. None if `transform` only
        centres.
    variances_ : ndarray of shape (d,) or None
        b of each output. The output is 0 where b is 0.
    n_features_in_ : int
        Number of columns of X; as of `transformer_`, if there is one.
    feature_names_in_ : ndarray of str
        Names of the columns of X, if all are strings; as of `transformer_`, if there is one.

    See Also
    --------
    ViewWhitening : Whitening by the covariance between views of a sample, without groups.
    skcontrast.features.PartialWhitening : Whitening by the covariance between samples.

    Notes
    -----
    Groups must differ in their classes. If each group has samples of all classes, as users or
    measuring devices may, the output is worse than X. The scale of the outputs matters: a
    ``StandardScaler`` after this step undoes the weights.

    References
    ----------
    .. [1] R. A. Fisher, "The Use of Multiple Measurements in Taxonomic Problems", Annals of
       Eugenics 7, 1936.
    .. [2] A. Bar-Hillel, T. Hertz, N. Shental, D. Weinshall, "Learning a Mahalanobis Metric from
       Equivalence Constraints", JMLR 6, 2005.
    .. [3] J. H. Friedman, "Regularized Discriminant Analysis", Journal of the American
       Statistical Association 84, 1989.

    Examples
    --------
    Of four columns, the first two differ between groups:

    >>> import numpy as np
    >>> from skcontrast import GroupWhitening
    >>> rng = np.random.default_rng(0)
    >>> groups = np.repeat(np.arange(100), 5)
    >>> X = rng.normal(size=(100, 4))[groups] * [3, 1, 0, 0] + rng.normal(size=(500, 4))
    >>> whitening = GroupWhitening().fit(X, groups=groups)
    >>> whitening.variances_.round()
    array([8., 1., 0., 0.])
    >>> whitening.transform(X).shape
    (500, 4)
    """

    shrinkage: float = parameter([Interval(Real, 0, 1, closed="right")], default=0.5)
    transformer: Any = parameter([HasMethods(["fit", "transform"]), None], default=None)
    transformer_: Any = learned()
    mean_: NDArray[np.float64] = learned()
    components_: NDArray[np.float64] | None = learned()
    variances_: NDArray[np.float64] | None = learned()

    @guarded()
    def fit(self, X: Any, y: None = None, *, groups: ArrayLike | None = None) -> Self:
        """Estimate the covariances within and between groups.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Vectors, at least 2, of at most 4,096 columns. A sparse matrix is made dense.
        y : None
            Ignored.
        groups : array-like of shape (n_samples,), default=None
            Numbers or strings that name the group of each row; −1, None, NaN or ``pandas.NA`` for
            a row without a group. In a Pipeline ``groupwhitening__groups=``, with the name of the
            step, or by metadata routing.

        Returns
        -------
        self : GroupWhitening

        Raises
        ------
        ValueError
            If a parameter is outside its range, X is not a matrix of finite numbers of this size,
            or `groups` has not one entry per row.
        """
        validate_parameters(self)
        transformer = None if self.transformer is None else clone(self.transformer).fit(X, None)
        array = self._checked(X, transformer, reset=True)
        n = len(array)
        codes = np.full(n, -1) if groups is None else group_codes(groups, n)
        known = codes >= 0
        quiet = np.errstate(over="ignore", invalid="ignore")
        with quiet, naming("X", "numbers of finite variance"):
            mean = array.mean(axis=0, dtype=np.float64)
            D = array[known] - mean
            assert_all_finite(mean)
            assert_all_finite(D)
        sizes = np.bincount(codes[known])
        components, b = _discriminants(D, codes[known], sizes, self.shrinkage)
        if b is None:
            got = "None" if groups is None else f"{len(sizes)} group(s) of {len(D)} row(s)"
            warn(
                "GroupWhitening only centres X: it needs 2 or more groups, one of them with 2 or "
                f"more different rows, got groups={got}. Pass fit(X, groups=...), or "
                "STEP__groups= to a Pipeline; as a block of ContrastiveClassifier, pass "
                "GroupWhitening(transformer=...) instead of a Pipeline."
            )
        elif (sizes > 1).sum() < FEW_GROUPS:  # without their number, which differs between folds
            warn(
                f"groups has fewer than {FEW_GROUPS} groups of 2 rows or more: the output may "
                "be worse than X. Compare both on labeled samples."
            )
        if b is not None and not b.any():
            warn(
                "groups have means that differ no more than those of random rows, so that the "
                "output is 0. Use X without GroupWhitening, or other groups."
            )
        # Only now, so that a failed fit leaves the estimator as it was.
        self.transformer_, self.mean_ = transformer, mean
        self.components_, self.variances_ = components, b
        self._n_features_out = array.shape[1]
        for name in ("n_features_in_", "feature_names_in_") if transformer is not None else ():
            if hasattr(transformer, name):
                setattr(self, name, getattr(transformer, name))
            elif hasattr(self, name):
                delattr(self, name)
        return self

    @guarded()
    def transform(self, X: Any) -> NDArray:
        """Return centred and whitened vectors.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Vectors.

        Returns
        -------
        Z : ndarray of shape (n_samples, n_features)
            Of dtype float32 if X is, else float64.
        """
        check_is_fitted(self)
        array = self._checked(X, self.transformer_, reset=False)
        Z = array - self.mean_
        Z = Z if self.components_ is None else Z @ self.components_.T
        return Z.astype(array.dtype, copy=False)

    def _checked(self, X: Any, inner: Any, *, reset: bool) -> NDArray:
        X = X if inner is None else inner.transform(X)
        check_entries(X, "X")
        options: Any = {"dtype": _FLOATS, "accept_sparse": "csr", "ensure_min_samples": 1 + reset}
        with naming("X", "an array of numbers, shape (n_samples, n_features)", X):
            if inner is None:
                array = validate_data(self, X, reset=reset, **options)
            else:  # it has checked the columns
                array = check_array(X, input_name="X", estimator=self, **options)
        if array.shape[1] > _MOST_COLUMNS:
            raise ValueError(
                f"X must have at most {_MOST_COLUMNS:,} columns, got {array.shape[1]:,}: reduce "
                "it first, such as by PCA(512), or TruncatedSVD(512) if it is sparse."
            )
        return array.toarray() if issparse(array) else array

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _discriminants(
    D: NDArray[np.float64], codes: NDArray[np.int64], sizes: NDArray[np.int64], shrinkage: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | tuple[None, None]:
    """Return the components and their variances between groups, from centred rows, if any."""
    if len(sizes) < 2 or sizes.max() < 2:
        return None, None
    (n, d), scale = D.shape, np.abs(D).max() or 1.0
    D /= scale  # squares of very large or small numbers would overflow
    means = csr_array((np.ones(n), (codes, np.arange(n)))) @ D / sizes[:, None]
    D -= means[codes]
    W = D.T @ D / (n - len(sizes))
    mean = W.trace() / d
    if mean < _LEAST_WITHIN:
        return None, None
    within, A = np.linalg.eigh(W)
    A /= np.sqrt((1 - shrinkage) * within.clip(0) + shrinkage * mean)
    root = ((means - sizes @ means / n) * np.sqrt(sizes / n)[:, None]) @ A
    between, U = np.linalg.eigh(root.T @ root)
    A = A @ U
    noise = (A * (W @ A)).sum(0) * (len(sizes) - 1) / (n - sizes @ sizes / n)
    b = np.where(between > noise + _LEAST_BETWEEN * abs(between[-1]), between - noise, 0)
    order = np.argsort(-b, kind="stable")
    b, components = b[order], A.T[order] * np.sqrt(b / (b + 1))[order, None]
    # The sign of an eigenvector is arbitrary.
    largest = np.take_along_axis(components, np.abs(components).argmax(1)[:, None], 1)
    return components * np.where(largest < 0, -1, 1) / scale, b
