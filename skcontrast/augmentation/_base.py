"""What all augmentations have in common: transformers that leave X alone and remember a recipe."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from .._data._guess import declared_kind, guess_kind, kind_of_shape, named_kinds
from .._data._kinds import Kind
from .._data._sources import read
from .._parameters import validate_parameters
from ._compose import Stage
from ._views import NoOutputContainer, Views, is_dataframe


class Augmentation(
    NoOutputContainer,
    OneToOneFeatureMixin,
    TransformerMixin,
    BaseEstimator,
    auto_wrap_output_keys=None,
):
    """Base class of the augmentations: transformers that leave X alone and remember a recipe.

    ``transform`` returns X unchanged. ``fit_transform``, which a Pipeline calls while it is
    fitted, returns :class:`Views`, from which the embedder draws in each training step.

    A subclass implements :meth:`augment`, sets `kind` and learns what it needs in ``_learn``.
    """

    _parameter_constraints: dict = {}

    kind: str | Kind | None = None
    """``"vectors"``, ``"images"``, ``"graphs"`` or an object of :mod:`skcontrast.kinds`; None for
    vectors and images."""

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(auto_wrap_output_keys=None, **kwargs)

    def fit(self, X, y=None):
        """Check the parameters and learn from X what `augment` needs.

        Parameters
        ----------
        X : array-like of shape (n_samples, ...) or Views
            The training samples.
        y : None
            Ignored.

        Returns
        -------
        self : Augmentation
            The fitted augmentation.

        Raises
        ------
        ValueError
            If a parameter lies outside its range or X is not finite, numeric and non-empty.
        """
        self._fit(X)
        return self

    def fit_transform(self, X, y=None):
        """Fit to X and return lazy views of it.

        Parameters
        ----------
        X : array-like of shape (n_samples, ...) or Views
            The training samples, or the views that an augmentation before this one returned.
        y : None
            Ignored.

        Returns
        -------
        views : Views
            The samples, with this augmentation at the end of the chain.
        """
        inputs = self._fit(X)
        if isinstance(X, Views):
            return Views(X.base, (*X.chain, self), inputs)
        return Views(_as_given(X, inputs[0]), (self,), inputs)

    def transform(self, X):
        """Return X as it is.

        Parameters
        ----------
        X : array-like of shape (n_samples, ...) or Views
            Samples of the same shape as in ``fit``.

        Returns
        -------
        X : ndarray or DataFrame of shape (n_samples, ...)
            X itself where it is a numeric array or a DataFrame, else its values as an array.
        """
        check_is_fitted(self)
        base = X.base if isinstance(X, Views) else X
        return _as_given(base, self._schema.kind.read(base, owner=self, seen=self._schema)[0])

    def augment(self, batch, generator=None):
        """Draw one fresh view of each sample.

        Parameters
        ----------
        batch : Tensor of shape (n, ...)
            Vectors in the units of X; images as uint8 or as floats in [0, 1]. Not modified.
        generator : torch.Generator, default=None
            Source of randomness, on the device of `batch`; None draws an unpredictable view.
            PyTorch's global random state is never used.

        Returns
        -------
        views : Tensor of shape (n, ...)
            Floating-point views, one per sample.
        """
        raise NotImplementedError

    def prepared(self, convert):
        """Return an augmentation whose fitted arrays live in the space of the training batches.

        Parameters
        ----------
        convert : callable
            Maps an ndarray of samples (m, n_features), in the units of X, to a float32 tensor
            (m, n_features) on the training device; affine in each feature.

        Returns
        -------
        augmentation : Augmentation
            A copy of this augmentation, or itself where nothing has to be converted.
        """
        return self

    def check_kind(self, sample_shape, kind=None):
        """Raise ValueError if samples of this kind cannot be augmented.

        Parameters
        ----------
        sample_shape : tuple of int
            Shape of a sample.
        kind : Kind, default=None
            What the samples are; None tells it from their shape.
        """
        kind = kind_of_shape(sample_shape) if kind is None else kind
        own = named_kinds(self.kind or ("vectors", "images"), owner=type(self).__name__)
        if not any(isinstance(kind, type(one)) for one in own):
            expected = " or ".join(one.expected or one.name for one in own)
            shape = f"(n, {', '.join(map(str, sample_shape))})"
            got = kind.name if None in sample_shape else f"{kind.name} of shape {shape}"
            raise ValueError(
                f"{type(self).__name__} expects {expected}, got {got}{kind.augmentation_advice}."
            )

    def parts(self, sample_shape):
        """Return the tuple of augmentations that this one consists of for such samples."""
        return (self,)

    def stage(self):
        """Return a new :class:`Stage` that starts with this augmentation."""
        return Stage(self)

    def fit_checked(self, X, schema):
        """Fit to samples that have been checked already.

        Parameters
        ----------
        X : array-like of length n_samples
            As the kind of the samples returns it.
        schema : Schema
            What they are.

        Returns
        -------
        self : Augmentation
        """
        if type(self).fit is not Augmentation.fit:
            return self.fit(X)
        validate_parameters(self)
        self._check_parameters()
        self._learn(read(X))
        schema.assign_names(self)
        self._schema = schema
        return self

    def _fit(self, X):
        """Check X and fit to it; return it as it was checked, and what it is."""
        validate_parameters(self)
        inputs = X.inputs if isinstance(X, Views) else None
        if inputs is None:
            X = X.base if isinstance(X, Views) else X
            kind, X = guess_kind(X, declared_kind(self))
            inputs = kind.read(X, owner=self)
        Augmentation.fit_checked(self, *inputs)
        return inputs

    def _check_parameters(self):
        """Raise ValueError for what ``_parameter_constraints`` cannot express."""

    def _learn(self, X):
        """Set the fitted attributes from the validated training array."""

    def __sklearn_is_fitted__(self):
        return hasattr(self, "_schema")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _as_given(X, validated):
    """Return X itself if the next step can read it without loss, else the validated array."""
    if is_dataframe(X) or (isinstance(X, np.ndarray) and X.dtype.kind in "fiu"):
        return X
    return validated
