"""Base class of augmentations: transformers that attach random views to X."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
import torch
from scipy.sparse import issparse
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from .._checks import validate_parameters
from .._checks._arguments import check_returned
from .._checks._names import belongs_to_package
from .._data._arrays import representative_array
from .._data._modalities import Modalities, label_rows, row_labels
from .._runtime import guarded
from .._sklearn_compat import as_task
from ..kinds._base import Kind, Request, Schema
from ..kinds._recognise import KINDS, check_fits, declared_kind, kind_of_shape, read_samples
from ._views import Transformer, Views, base_of, is_dataframe


class Augmentation(Transformer):
    """Base class of the augmentations: transformers that draw views while an embedder trains.

    ``transform`` returns X unchanged. ``fit_transform``, which a Pipeline calls while it is
    fitted, returns :class:`Views`, from which the embedder draws in each training step.

    A subclass implements :meth:`augment` and sets `kind`. If it needs statistics of X, it
    overrides :meth:`learn`, which `fit` calls with the checked training samples.

    Attributes
    ----------
    kind : {"vectors", "series", "images", "graphs"}, Kind, a tuple of these or None
        The kind of samples that it augments, see :class:`skcontrast.kinds.Kind`; None is for
        vectors and images.

    See Also
    --------
    Views : Returned by `fit_transform`.
    compose : Applies a chain of augmentations to a batch.
    skcontrast.kinds.Kind : Base class of the kinds of data.

    Examples
    --------
    An augmentation that changes the sign of random features:

    >>> import numpy as np, torch
    >>> from skcontrast import ContrastiveEmbedder
    >>> from skcontrast.augmentation import Augmentation
    >>> class SignFlip(Augmentation):
    ...     kind = "vectors"
    ...
    ...     def __init__(self, rate=0.1):
    ...         self.rate = rate
    ...
    ...     def augment(self, batch, generator=None):
    ...         u = torch.rand(batch.shape, generator=generator, device=batch.device)
    ...         return torch.where(u < self.rate, -batch, batch)
    >>> SignFlip(rate=1.0).augment(torch.tensor([[1.0, -2.0]]))
    tensor([[-1.,  2.]])
    >>> X = np.random.default_rng(0).normal(size=(50, 4))
    >>> embedder = ContrastiveEmbedder(augmentation=SignFlip(), max_epochs=1, random_state=0)
    >>> embedder.fit_transform(X).shape
    (50, 128)
    """

    kind: ClassVar[str | Kind | tuple[str | Kind, ...] | None] = None
    # Attributes that hold training samples, which `save` leaves out.
    _samples: ClassVar[tuple[str, ...]] = ()

    @as_task
    @guarded()
    def fit(self, X: Any, y: None = None) -> Self:
        """Validate the parameters, and learn the statistics that `augment` needs.

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
            If a parameter is outside its range or X is not finite, numeric and non-empty.
        """
        X, schema = self._checked(X)
        return self._fit_checked(representative_array(X), schema)

    @guarded()
    def fit_transform(self, X: Any, y: None = None) -> Views:
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
        chain = X.chain if isinstance(X, Views) else ()
        base = X.base if chain else _unchanged_or(base_of(X), self._checked(X)[0])
        self.fit(X if chain else base)
        return Views(base, (*chain, self))

    @guarded()
    def transform(self, X: Any) -> Any:
        """Return X unchanged.

        Parameters
        ----------
        X : array-like of shape (n_samples, ...) or Views
            Samples of the same shape as in ``fit``.

        Returns
        -------
        X : ndarray or DataFrame of shape (n_samples, ...)
            X itself if it is a numeric array or a DataFrame, else an array of its values.
        """
        check_is_fitted(self)
        base = base_of(X)
        return _unchanged_or(base, self._schema.kind.read(base, Request(self, self._schema))[0])

    def augment(self, batch: Any, generator: torch.Generator | None = None) -> Any:
        """Draw one fresh view of each sample.

        Parameters
        ----------
        batch : Tensor of shape (n, ...)
            Vectors in the units of X; images as uint8 or as floats in [0, 1]; a
            :class:`~skcontrast.graphs.GraphBatch`; or a batch of a custom kind. Not modified.
        generator : torch.Generator, default=None
            Source of all randomness, on the device of `batch`; None draws an unpredictable view.
            `fit` warns if PyTorch's global random state, or any other, is used.

        Returns
        -------
        views : Tensor of shape (n, ...)
            One view per sample: floating-point numbers for vectors and images.
        """
        raise NotImplementedError(f"{type(self).__name__} does not implement augment.")

    def prepared(self, convert: Callable[[Any], Tensor]) -> Augmentation:
        """Return an augmentation whose fitted arrays are in the units of the training batches.

        Parameters
        ----------
        convert : callable
            Maps an ndarray of samples (m, n_features), in the units of X, to a float32 tensor
            (m, n_features) on the training device; affine in each feature.

        Returns
        -------
        augmentation : Augmentation
            A copy of this augmentation, or itself if nothing has to be converted.
        """
        return self

    @property
    def lacks_samples(self) -> bool:
        """Whether its training samples were left out of a file."""
        return not all(hasattr(self, name) for name in self._samples)

    def check_kind(self, sample_shape: tuple, kind: Kind | None = None) -> None:
        """Raise ValueError if samples of this kind cannot be augmented.

        Parameters
        ----------
        sample_shape : tuple of int
            Shape of a sample.
        kind : Kind, default=None
            Their kind; None infers it from their shape.
        """
        kind = kind_of_shape(sample_shape) if kind is None else kind
        shape = f"(n, {', '.join(map(str, sample_shape))})"
        got = kind.name if None in sample_shape else f"{kind.name} of shape {shape}"
        advice = ""
        if kind.name == "vectors":
            flattened = "put Unflatten((channels, height, width)) before it"
            advice = f": if they are flattened images, {flattened}"
        if self.kind is None and kind.name in KINDS:
            advice = f": if it is for {kind.name}, set kind={kind.name!r}"
        declared, cls = self.kind or ("vectors", "images"), type(kind)
        check_fits(self, declared, lambda kind: issubclass(cls, type(kind)), f"got {got}{advice}")

    def expand(self, sample_shape: tuple) -> tuple[Augmentation, ...]:
        """Return the augmentations that this one combines, for samples of a shape."""
        return (self,)

    def fit_checked(self, X: Any, schema: Schema) -> Self:
        """Fit to samples that have already been checked.

        Parameters
        ----------
        X : array-like of length n_samples
            Output of the kind; for lazy samples, a `representative_array`.
        schema : Schema
            Their kind and shape.

        Returns
        -------
        self : Augmentation
        """
        return self.fit(X) if self._overrides_fit else self._fit_checked(X, schema)

    @property
    def uses_samples(self) -> bool:
        """Whether `fit` may use the samples themselves, beyond their shape."""
        return self._overrides_fit or type(self).learn is not Augmentation.learn

    @property
    def _overrides_fit(self) -> bool:
        return type(self).fit is not Augmentation.fit

    def _checked(self, X: Any) -> tuple[Any, Schema]:
        """Return validated X and its schema."""
        validate_parameters(self)
        # The steps before this one may have declared the kind of X.
        hint = declared_kind(self, *(X.chain if isinstance(X, Views) else ()))
        return read_samples(base_of(X), hint=hint, estimator=self)

    def _fit_checked(self, X: Any, schema: Schema) -> Self:
        validate_parameters(self)
        if self.uses_samples:  # others are checked when they draw views
            self.check_kind(schema.sample_shape, schema.kind)
        self._schema = schema
        self.learn(X)
        schema.assign_names(self)
        return self

    def validate(self) -> None:
        """Raise ValueError for combinations of values that the constraints cannot exclude."""

    def learn(self, X: Any) -> None:
        """Set the fitted attributes.

        Parameters
        ----------
        X : array-like of shape (n_samples, ...)
            The checked training samples; of a Dataset, at most 10,000 of them.
        """

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_schema")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.sparse = True
        return tags


Chain: TypeAlias = list[Augmentation]


def changed(augmentation: Any, **attributes: Any) -> Any:
    """Return a copy of an augmentation with changed attributes."""
    copied = copy.copy(augmentation)
    vars(copied).update(attributes)
    return copied


def _unchanged_or(X: Any, checked: Any) -> Any:
    """Return X itself if the next step can read it without loss, else `checked`."""
    is_numeric = isinstance(X, np.ndarray) and X.dtype.kind in "fiu"
    if is_numeric or is_dataframe(X) or issparse(X) or isinstance(X, Modalities):
        return X
    return label_rows(checked, row_labels(X))


def checked_views(views: Any, batch: Any, cls: type) -> Any:
    """Return the output of `augment`, validated if the class is defined by a user.

    Raises
    ------
    TypeError, ValueError
        If the views are invalid; the message names the class.
    """
    if belongs_to_package(cls):
        return views
    name = f"{cls.__name__}.augment"
    if isinstance(batch, Tensor):
        views = check_returned(name, views, batch.shape)
        if batch.is_floating_point():
            check_view_values(views, batch, name)
            views = views if views.dtype == torch.uint8 else views.to(batch.dtype)
    elif not hasattr(views, "__len__") or len(views) != len(batch):
        got = len(views) if hasattr(views, "__len__") else f"a {type(views).__name__}"
        raise ValueError(f"{name} must return a view for each of {len(batch)} samples, got {got}.")
    return views


def check_view_values(views: Tensor, batch: Tensor, name: str) -> None:
    """Raise an error unless views are floating, and finite if the batch is."""
    if not views.is_floating_point() and views.dtype != torch.uint8:
        raise TypeError(f"{name} must return {batch.dtype}, got {views.dtype}.")
    has_gaps = batch.isnan().any() and not views.isinf().any()
    if not (has_gaps or views.isfinite().all()):
        raise ValueError(f"{name} returned views of X that hold NaN or infinity.")


def as_float(batch: Tensor) -> Tensor:
    """Return `batch` as float32 (float64 stays), with uint8 images scaled to [0, 1]."""
    check_batch(batch)
    if batch.dtype in (torch.float32, torch.float64):
        return batch
    floats = batch.to(torch.float32)
    return floats.div_(255) if batch.dtype == torch.uint8 and batch.ndim > 2 else floats


def check_batch(batch: Any) -> None:
    """Raise TypeError unless a batch is a tensor of numbers in memory."""
    if not isinstance(batch, Tensor):
        advice = ": pass torch.from_numpy(batch)" if isinstance(batch, np.ndarray) else ""
        raise TypeError(f"batch must be a tensor (n, ...), got {type(batch).__name__}{advice}.")


def generator_for(batch: Any, generator: torch.Generator | None) -> torch.Generator:
    """Return `generator`, or for None a new, unpredictable one on the device of the batch."""
    if generator is None:
        generator = torch.Generator(batch.device)
        generator.seed()
    return generator
