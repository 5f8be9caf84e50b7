"""Features or embeddings, whitened by their covariance between views of a sample."""

from __future__ import annotations

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
from ._fit._defaults import default_chain, no_default_error
from ._fit._settings import augmentations_of
from ._fit._setup import shown_symmetries
from ._runtime import resolve_seed
from .augmentation import Views, compose
from .kinds._base import Schema, in_units_of_X, with_scaler
from .kinds._recognise import declared_kind, read_samples

# Numbers of which the covariance is estimated at most, 256 MiB of them.
_MOST_NUMBERS = 2**26
# Principal components of the covariance that are kept; beyond them, variances are taken as equal.
_MOST_COMPONENTS = 256
# Features whose standardised variance between views is less are equal but for rounding.
_ROUNDING = 1e-10
# Samples of which views are drawn at a time.
_BATCH = 256


class ViewWhitening(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Declared):
    r"""Whiten features by their covariance between views of a sample.

    Directions in which the views of one sample differ shrink, and those in which samples differ
    remain. It takes no labels and no gradient descent: the views are the classes of within-class
    covariance normalisation [1]_, or of a linear discriminant analysis with a class for each
    sample. Up to the shrinkage it is the linear map with the least spectral contrastive loss
    [2]_ [3]_.

    Views of sample i have standardised features :math:`a_{iv}`, with the mean :math:`\bar a_i`:

    .. math::

        z = \Big((1 - s) W + s \frac{\operatorname{tr} W}{d} I\Big)^{-1/2}
        \frac{h - \mu}{\sigma}, \qquad W = \frac{1}{n (V - 1)} \sum_{i=1}^n \sum_{v=1}^V
        (a_{iv} - \bar a_i)(a_{iv} - \bar a_i)^\top

    with n samples, V views of each and d features. W keeps 256 principal components; the
    others get their mean variance.

    Parameters
    ----------
    transformer : transformer
        What computes the features: one of :mod:`skcontrast.features`, an embedder, or any other
        transformer of samples, also a union or a Pipeline. It is cloned and fitted;
        ``FrozenEstimator(transformer)`` of scikit-learn is used as fitted.
    augmentation : augmentation, list or Pipeline of augmentations, default=None
        Draws the views. None takes the views that come with X; those of `transformer`, if it is an
        embedder; or else the default of the kind of data.
    shrinkage : float, default=0.95
        s in (0, 1], as in scikit-learn's ``LinearDiscriminantAnalysis``: 1 only standardises.
    n_views : int, default=3
        Views of each sample, V, at least 2.
    random_state : int, RandomState instance or None, default=None
        Seeds the views. `transformer` has its own seed.

    Attributes
    ----------
    transformer_ : transformer
        The fitted transformer.
    scaler_ : sklearn.preprocessing.StandardScaler
        The mean and the standard deviation of its features, in X of `fit`.
    components_ : ndarray of shape (n_components, d)
        Principal components of W.
    gains_ : ndarray of shape (n_components,)
        Factors of the components, minus `gain_`.
    gain_ : float
        Factor of everything orthogonal to the components.

    See Also
    --------
    skcontrast.features : Training-free features.
    skcontrast.features.PartialWhitening : Whitens by the covariance between samples.

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

    def fit(self, X: Any, y: ArrayLike | None = None) -> Self:
        """Fit the transformer, and learn the covariance of its features between views.

        Parameters
        ----------
        X : array-like, Dataset, list of graphs or Views
            The training samples, at least 2.
        y : array-like of shape (n_samples,), default=None
            Passed to `transformer`; nothing else looks at it.

        Returns
        -------
        self : ViewWhitening

        Raises
        ------
        TypeError, ValueError
            If a parameter is outside its range, or X is not as `transformer` or `augmentation`
            needs it; or if views do not differ.
        """
        validate_parameters(self)
        seed = resolve_seed(self.random_state)
        if isinstance(X, Views):  # the augmentation is not lost
            X._is_reported = True
        self.transformer_ = clone(self.transformer).fit(X, y)
        H = self._features(X)
        self.scaler_, self._n_features_out = StandardScaler().fit(H), H.shape[1]
        D = self._deviations(X, seed)
        n_degrees = len(D) * (1 - 1 / self.n_views)
        squares = np.einsum("ij,ij->", D, D, dtype=np.float64)
        mean = squares / (n_degrees * D.shape[1])  # tr W / d
        if mean < _ROUNDING:
            raise ValueError(
                "The views of each sample have equal features: pass an augmentation that changes "
                f"them, got augmentation={self.augmentation!r}."
            )
        pca = PCA(min(*D.shape, _MOST_COMPONENTS), random_state=seed).fit(D)
        variances = pca.explained_variance_ * ((len(D) - 1) / n_degrees)
        n_others = D.shape[1] - len(variances)
        other = max(mean * D.shape[1] - variances.sum(), 0) / max(n_others, 1)
        gains = (
            (1 - self.shrinkage) * np.append(variances, other) + self.shrinkage * mean
        ) ** -0.5
        self.gain_ = float(gains[-1])
        self.components_, self.gains_ = pca.components_, (gains[:-1] - self.gain_).astype(D.dtype)
        return self

    def _deviations(self, X: Any, seed: int) -> NDArray:
        """Return features of views, less their mean over the views of a sample."""
        X, schema, draw = self._drawer(X)
        schema.assign_names(self)
        n_rows = max(2, _MOST_NUMBERS // (self._n_features_out * self.n_views))
        rows = np.linspace(0, len(X) - 1, min(n_rows, len(X))).astype(int)
        generator, found = torch.Generator().manual_seed(seed), []
        for some in np.array_split(rows, -(-len(rows) // _BATCH)):
            views = [self._features(draw(X[some], generator)) for _ in range(self.n_views)]
            A = np.stack([self.scaler_.transform(view) for view in views])
            found.append((A - A.mean(0)).reshape(-1, A.shape[2]))
        return np.concatenate(found)

    def _drawer(self, X: Any) -> tuple[Any, Schema, Callable[[Any, torch.Generator], Any]]:
        """Return checked X, its schema, and what draws views of samples in the units of X."""
        chain = augmentations_of(self.augmentation, type(self).__name__)
        if isinstance(X, Views):
            chain, X = list(X.chain) if chain is None else chain, X.base
        given = X
        # Fitted embedders know how they read X and draw views.
        known: Any = getattr(self.transformer_, "_fitted", None)
        if known is not None:
            X, schema, scaler = known.read(X, self), known.schema, known.scaler
            array = representative_array(X)
        else:
            hint = declared_kind(self.transformer_, *(chain or ()))
            X, schema = read_samples(X, hint=hint, owner=self, min_samples=2)
            array, scaler, _ = with_scaler(schema.kind, X)
        shape, kind = schema.sample_shape, schema.kind
        if chain is None and known is not None:
            chain = known.augmentation
        else:
            if chain is None:
                symmetries = shown_symmetries(array, schema, scaler)
                chain = default_chain(kind, shape, symmetries=symmetries)
            if chain is None:
                raise no_default_error("augmentation", kind)
            chain = [clone(step).fit_checked(array, schema) for step in chain]

        def read(samples: Any) -> Any:
            return scaler.to_tensor(samples, "cpu")

        views = compose(chain, shape, kind=kind, convert=read)

        def draw(samples: Any, generator: torch.Generator) -> Any:
            drawn = in_units_of_X(scaler, views(read(samples), generator), samples)
            return type(given)(drawn, columns=given.columns) if hasattr(given, "iloc") else drawn

        return X, schema, draw

    def _features(self, X: Any) -> NDArray:
        return check_array(
            self.transformer_.transform(X), dtype=[np.float64, np.float32], estimator=self
        )

    def transform(self, X: Any) -> NDArray:
        """Return whitened features.

        Parameters
        ----------
        X : array-like, Dataset or list of graphs
            Samples of the shape seen in `fit`.

        Returns
        -------
        Z : ndarray of shape (n_samples, d)
        """
        check_is_fitted(self)
        Z = self.scaler_.transform(self._features(X))
        whitened = Z * self.gain_ + (Z @ self.components_.T * self.gains_) @ self.components_
        return labeled_output(whitened, X, self)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "components_")

    def __sklearn_tags__(self) -> Tags:
        tags, inner = super().__sklearn_tags__(), get_tags(self.transformer)
        tags.input_tags, tags.transformer_tags = inner.input_tags, inner.transformer_tags
        tags.input_tags.allow_nan = False
        return tags
