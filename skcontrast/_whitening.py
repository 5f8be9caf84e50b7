"""Whitening of features by their covariance between views of a sample."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_array, check_is_fitted

from ._checks import Declared, HasMethods, Interval, parameter, validate_parameters
from ._data._arrays import representative_array
from ._data._modalities import labeled_output
from ._model._views import ViewSampler, augmentations_of, fit_chain, shown_symmetries
from ._runtime import guarded, resolve_seed
from .augmentation import Views
from .kinds._base import Schema, with_scaler
from .kinds._recognise import declared_kind, read_samples

# The most numbers from which the covariance is estimated: 256 MiB.
_MOST_NUMBERS = 2**26
# The most principal components of the covariance; the others are treated as having equal variance.
_MOST_COMPONENTS = 256
# A smaller variance between views, of standardised features, is due to rounding.
_ROUNDING = 1e-10
# Samples per batch of views.
_BATCH = 256


class ViewWhitening(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Declared):
    r"""Whiten features by their covariance between views of a sample.

    Directions in which the views of one sample differ are shrunk; those in which samples differ
    are kept. It needs no labels and no gradient descent. It is within-class covariance
    normalisation [1]_, a step of linear discriminant analysis, with each sample as a class.
    Its discriminant directions are those of the linear map with the smallest spectral contrastive
    loss [2]_ [3]_, which scales them differently.

    With the standardised features :math:`a_{iv}` of view v of sample i, and their mean
    :math:`\bar a_i` over the views,

    .. math::

        z = \Big((1 - s) W + s \frac{\operatorname{tr} W}{d} I\Big)^{-1/2}
        \frac{h - \mu}{\sigma}, \qquad W = \frac{1}{n (V - 1)} \sum_{i=1}^n \sum_{v=1}^V
        (a_{iv} - \bar a_i)(a_{iv} - \bar a_i)^\top

    for n samples, V views of each and d features. 256 principal components of W are kept; the
    variances of the others are replaced by their mean.

    Parameters
    ----------
    transformer : transformer
        Computes the features: one of :mod:`skcontrast.features`, an embedder, or any other
        transformer of samples, such as a union or a Pipeline. A clone is fitted to X and y,
        without groups; scikit-learn's ``FrozenEstimator(transformer)`` is used as fitted.
    augmentation : augmentation, list or Pipeline of augmentations, default=None
        Draws the views. None uses the augmentations of a Pipeline; otherwise those of
        `transformer`, if it is an embedder; otherwise the default of the kind of data.
    shrinkage : float, default=0.95
        The shrinkage s in (0, 1], as in ``LinearDiscriminantAnalysis``. 1 only standardises.
    n_views : int, default=3
        Number V of views of each sample, at least 2.
    random_state : int, RandomState instance or None, default=None
        Seeds the views. `transformer` has its own seed.

    Attributes
    ----------
    transformer_ : transformer
        The fitted transformer.
    scaler_ : sklearn.preprocessing.StandardScaler
        Mean and standard deviation of the features of X in `fit`.
    components_ : ndarray of shape (n_components, d)
        Principal components of W.
    gains_ : ndarray of shape (n_components,)
        Factor of each component, minus `gain_`.
    gain_ : float
        Factor of everything orthogonal to the components.

    See Also
    --------
    skcontrast.features : Training-free features.
    skcontrast.features.PartialWhitening : Whitening by the covariance between samples.

    References
    ----------
    .. [1] A. O. Hatch, S. Kajarekar, A. Stolcke, "Within-Class Covariance Normalization for
       SVM-Based Speaker Recognition", Interspeech 2006.
    .. [2] J. Z. HaoChen, C. Wei, A. Gaidon, T. Ma, "Provable Guarantees for Self-Supervised Deep
       Learning with Spectral Contrastive Loss", NeurIPS 2021.
    .. [3] D. D. Johnson, A. El Hanchi, C. J. Maddison, "Contrastive Learning Can Find an Optimal
       Basis for Approximately View-Invariant Functions", ICLR 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from skcontrast import ViewWhitening
    >>> from skcontrast.features import MiniRocket
    >>> X = np.random.default_rng(0).normal(size=(40, 1, 64)).cumsum(axis=2)
    >>> ViewWhitening(MiniRocket(random_state=0), random_state=0).fit_transform(X).shape
    (40, 2016)
    """

    transformer: Any = parameter([HasMethods(["fit", "transform"])])
    augmentation: Any = parameter(default=None)
    shrinkage: float = parameter([Interval(Real, 0, 1, closed="right")], default=0.95)
    n_views: int = parameter([Interval(Integral, 2, None, closed="left")], default=3)
    random_state: int | np.random.RandomState | None = parameter(["random_state"], default=None)

    @guarded()
    def fit(self, X: Any, y: ArrayLike | None = None) -> Self:
        """Fit the transformer, and estimate the covariance of its features between views.

        Parameters
        ----------
        X : array-like, Dataset, list of graphs or Views
            The training samples, at least 2.
        y : array-like of shape (n_samples,), default=None
            Passed to `transformer`; not used otherwise.

        Returns
        -------
        self : ViewWhitening

        Raises
        ------
        TypeError, ValueError
            If a parameter is invalid, if `transformer` or `augmentation` cannot use X, or if the
            views of a sample do not differ.
        """
        validate_parameters(self)
        seed = resolve_seed(self.random_state)
        if isinstance(X, Views):  # avoids the warning that views are lost
            X._is_reported = True
        self.transformer_ = clone(self.transformer).fit(X, y)
        H = self._features(X)
        self.scaler_, self._n_features_out = StandardScaler().fit(H), H.shape[1]
        del H  # may be large
        D = self._deviations(X, seed)
        n_degrees = len(D) * (1 - 1 / self.n_views)
        mean = np.einsum("ij,ij->", D, D, dtype=np.float64) / (n_degrees * D.shape[1])  # tr W / d
        if mean < _ROUNDING:
            raise ValueError(
                "All views of a sample have equal features, with "
                f"augmentation={self.augmentation!r}: pass an augmentation that changes them."
            )
        pca = PCA(min(*D.shape, _MOST_COMPONENTS), random_state=seed).fit(D)
        variances = pca.explained_variance_ * ((len(D) - 1) / n_degrees)
        n_others = D.shape[1] - len(variances)
        other = max(mean * D.shape[1] - variances.sum(), 0) / max(n_others, 1)
        shrunk = (1 - self.shrinkage) * np.append(variances, other) + self.shrinkage * mean
        gains = shrunk**-0.5
        self.gain_ = float(gains[-1])
        self.components_, self.gains_ = pca.components_, (gains[:-1] - self.gain_).astype(D.dtype)
        return self

    def _deviations(self, X: Any, seed: int) -> NDArray:
        """Return the features of views minus their mean over the views of the same sample."""
        X, schema, draw = self._view_sampler(X)
        schema.assign_names(self)
        n_rows = max(2, _MOST_NUMBERS // (self._n_features_out * self.n_views))
        rows = np.linspace(0, len(X) - 1, min(n_rows, len(X))).astype(int)
        generator, deviations = torch.Generator().manual_seed(seed), []
        for batch in np.array_split(rows, -(-len(rows) // _BATCH)):
            with warnings.catch_warnings():
                # Views may be brighter or darker than X.
                warnings.filterwarnings("ignore", "X has values from")
                views = [self._features(draw(X[batch], generator)) for _ in range(self.n_views)]
            A = np.stack([self.scaler_.transform(view) for view in views])
            deviations.append((A - A.mean(0)).reshape(-1, A.shape[2]))
        return np.concatenate(deviations)

    def _view_sampler(self, X: Any) -> tuple[Any, Schema, Callable[[Any, torch.Generator], Any]]:
        """Return checked X, its schema, and a function that draws views in the units of X."""
        chain = augmentations_of(self.augmentation, type(self).__name__)
        if isinstance(X, Views):
            chain, X = list(X.chain) if chain is None else chain, X.base
        original = X
        # A fitted embedder has read X and drawn views before: do the same.
        model: Any = getattr(self.transformer_, "_model", None)
        if model is not None:
            X, schema, scaler = model.read(X, self), model.schema, model.scaler
            array = representative_array(X)
        else:
            hint = declared_kind(self.transformer_, *(chain or ()))
            X, schema = read_samples(X, hint=hint, estimator=self, min_samples=2)
            array, scaler, _ = with_scaler(schema.kind, X)
        if chain is None and model is not None:
            chain = model.augmentation or None
        symmetries = None if chain else shown_symmetries(array, schema, scaler)
        chain = fit_chain(chain, array, schema, symmetries=symmetries)
        views = ViewSampler(chain, schema, scaler)
        # A DataFrame of file names has other columns than its images.
        shape: tuple[int, ...] = getattr(original, "shape", ())
        is_flat = len(shape) == 2 and shape[1] == math.prod(X.shape[1:])
        is_frame = is_flat and hasattr(original, "columns")
        keyword = "columns" if hasattr(original, "iloc") else "schema"  # of pandas, polars

        def draw(samples: Any, generator: torch.Generator) -> Any:
            drawn = views.in_units_of_X(samples, generator, len(samples))
            drawn = drawn.reshape(len(drawn), -1) if is_flat else drawn
            named = {keyword: list(original.columns)} if is_frame else {}
            return type(original)(drawn, **named) if is_frame else drawn

        return X, schema, draw

    def _features(self, X: Any) -> NDArray:
        H = self.transformer_.transform(X)
        return check_array(H, dtype=[np.float64, np.float32], estimator=self)

    def transform(self, X: Any) -> NDArray:
        """Return whitened features.

        Parameters
        ----------
        X : array-like, Dataset or list of graphs
            Samples of the same shape as in `fit`.

        Returns
        -------
        Z : ndarray of shape (n_samples, d)
        """
        return labeled_output(self._whitened(X), X, self)

    @guarded()
    def _whitened(self, X: Any) -> NDArray:
        check_is_fitted(self)
        Z = self.scaler_.transform(self._features(X))
        change = (Z @ self.components_.T * self.gains_) @ self.components_
        Z *= self.gain_
        Z += change
        return Z

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "components_")

    def __sklearn_tags__(self) -> Tags:
        tags, inner = super().__sklearn_tags__(), get_tags(self.transformer)
        tags.input_tags, tags.transformer_tags = inner.input_tags, inner.transformer_tags
        tags.input_tags.allow_nan = False
        return tags
