"""Training-free features: their base class, raw samples, and frozen encoders."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from .._checks import Declared, learned, parameter, validate_parameters
from .._data._modalities import labeled_output
from .._inference import encode
from .._runtime import generator_of, guarded, seeded_everywhere
from ..augmentation._views import base_of
from ..encoders import Encoder
from ..encoders._base import KindOrName, apply_to, build_encoder, require_module
from ..kinds._base import Request, Schema, with_scaler
from ..kinds._recognise import (
    check_fits,
    declared_kind,
    kind_of_shape,
    named_kinds,
    naming_kind,
    read_samples,
)

_CPU = torch.device("cpu")


class Features(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Declared):
    """Base class of training-free features, as transformers.

    They take seconds: use them as a baseline, or together with an embedding. A subclass
    implements :meth:`learn`. Its class attribute `kind` is the kind of samples that it is for, or
    a tuple of kinds. Without it, the features are for samples of any kind.

    Parameters
    ----------
    kind : {"vectors", "series", "images", "graphs"} or Kind, default=None
        How X is read, see :class:`skcontrast.kinds.Kind`. None is the kind that the class is for,
        or is detected.

    See Also
    --------
    skcontrast.ContrastiveEmbedder : Trains a representation.

    Examples
    --------
    The mean of each channel of images:

    >>> import numpy as np
    >>> from torch import Tensor, nn
    >>> from skcontrast.features import Features
    >>> class Means(Features):
    ...     kind = "images"
    ...
    ...     def learn(self, batch, rng):
    ...         return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
    >>> Means().fit_transform(np.random.default_rng(0).uniform(size=(20, 3, 8, 8))).shape
    (20, 3)
    """

    kind: KindOrName | tuple[KindOrName, ...] | None = parameter(default=None, kw_only=True)
    module_: nn.Module = learned()
    _schema: Schema = learned()
    _scaler: Any = learned()

    @property
    def _expected_kind(self) -> Any:
        """The kind or kinds that the class is for, None for any."""
        return getattr(type(self), "kind", None)

    @property
    def _declared_kind(self) -> Any:
        """The parameter `kind`, or if it is None, what the class is for."""
        kind = vars(self).get("kind")  # the __init__ of a subclass may not have it
        return self._expected_kind if kind is None else kind

    def learn(self, batch: Any, rng: np.random.RandomState) -> nn.Module:
        """Return the map from samples to features.

        Parameters
        ----------
        batch : Tensor of shape (n, ...) or any other batch
            At most 10,000 training samples, standardised as for an encoder: vectors, images,
            or a :class:`~skcontrast.graphs.GraphBatch`.
        rng : RandomState
            Source of randomness.

        Returns
        -------
        module : torch.nn.Module
            Maps a batch of n samples to a tensor (n, n_features), whose rows do not depend on
            each other.
        """
        raise NotImplementedError(f"{type(self).__name__} does not implement learn.")

    def _learn_checked(self, batch: Any, rng: np.random.RandomState) -> tuple[nn.Module, int]:
        """Return the validated module of `learn`, in inference mode, and its number of outputs."""
        learn, two = f"{type(self).__name__}.learn", batch[torch.arange(len(batch))[:2]]
        module, owner = require_module(self.learn(batch, rng), learn), f"The module of {learn}"
        with torch.inference_mode():
            rows = apply_to(module.eval(), two, owner, "samples as learn gets them")
        if not rows.isfinite().all():
            raise ValueError(f"{owner} returns NaN or infinity.")
        return module.requires_grad_(False), rows.shape[1]

    @guarded()
    def fit(self, X: Any, y: None = None) -> Self:
        """Learn the features from X.

        Parameters
        ----------
        X : array-like of shape (n_samples, ...), or list of graphs
            The training samples.
        y : None
            Ignored.

        Returns
        -------
        self : Features

        Raises
        ------
        ValueError
            If a parameter is outside its range, or X is invalid for its kind.
        """
        validate_parameters(self)
        X, schema = read_samples(base_of(X), hint=declared_kind(self), estimator=self)
        holds = f"but X holds {schema.kind.name}"
        for declared in (self._expected_kind, self._declared_kind):
            check_fits(self, declared, lambda kind: isinstance(schema.kind, type(kind)), holds)
        schema.kind.check_unusual(X, is_declared=vars(self).get("kind") is not None)
        kind = schema.kind
        with naming_kind(kind):
            _, scaler, batch = with_scaler(kind, X)
            first = kind.first_layer(batch, scaler, channels_last=False) or nn.Identity()
            rng = generator_of(getattr(self, "random_state", None))
            # `learn` may draw from global generators: they are seeded, and restored afterwards.
            with seeded_everywhere(rng.randint(2**31), _CPU):
                learned, width = self._learn_checked(first(batch), rng)
            module = nn.Sequential(first, learned).eval()
        self._schema, self._scaler, self.module_ = schema, scaler, module
        schema.assign_names(self)
        self._n_features_out = width
        return self

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Return the features of samples.

        Parameters
        ----------
        X : array-like of shape (n_samples, ...), or list of graphs
            Samples of the shape seen in `fit`.

        Returns
        -------
        features : ndarray of shape (n_samples, n_features), dtype float32
            The row of a sample does not depend on the other samples in X.
        """
        return labeled_output(self._encode(X), X, self)

    @guarded()
    def _encode(self, X: Any) -> NDArray[np.float32]:
        check_is_fitted(self)
        kind, scaler = self._schema.kind, self._scaler
        samples = kind.read(base_of(X), Request(self, self._schema))[0]
        return encode(self.module_, samples, kind, lambda rows: scaler.to_tensor(rows, _CPU))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.sparse = self._declared_kind is None
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags


class Raw(Features):
    """The standardised values of each sample as one row: columns, pixels, or steps of series.

    Parameters
    ----------
    kind : {"vectors", "series", "images"} or Kind, default=None
        How X is read. None detects the kind.

    Attributes
    ----------
    module_ : torch.nn.Module
        The map from samples to features.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from skcontrast.features import Raw
    >>> Raw().fit_transform(load_digits().images).shape
    (1797, 64)
    """

    def get_feature_names_out(
        self, input_features: ArrayLike | None = None
    ) -> NDArray[np.object_]:
        """Return the names of the columns of X if it has names, else generated ones.

        Parameters
        ----------
        input_features : array-like of shape (n_features,), default=None
            Names of the columns of X, if X had none in `fit`.

        Returns
        -------
        names : ndarray of shape (n_features,), dtype object
        """
        names = super().get_feature_names_out(input_features)
        column_names = self._schema.feature_names_in if input_features is None else input_features
        renamed = np.asarray(names if column_names is None else column_names, dtype=object)
        return renamed if len(set(renamed)) == len(names) else names

    def learn(self, batch: Any, rng: np.random.RandomState) -> nn.Module:
        """Return the identity; see `Features.learn`."""
        if not isinstance(batch, Tensor) or batch.isnan().any():  # padded series
            raise TypeError(
                "Raw needs arrays of one shape, not graphs or samples of several sizes."
            )
        return nn.Flatten()


class Frozen(Features):
    """The output of an encoder without training, such as that of a pretrained network.

    Parameters
    ----------
    encoder : Encoder, torch.nn.Module or callable
        Any `encoder` of the embedder, such as ``Pretrained(network)``. It is copied.
    random_state : int, RandomState instance or None, default=None
        Seeds the weights of an encoder that is not pretrained.
    kind : {"vectors", "series", "images", "graphs"} or Kind, default=None
        How X is read. None is the kind that `encoder` is for, or is detected.

    Attributes
    ----------
    module_ : torch.nn.Module
        The map from samples to features.

    See Also
    --------
    skcontrast.encoders.Pretrained : A pretrained network as an encoder.

    Examples
    --------
    A network with random weights:

    >>> from sklearn.datasets import load_digits
    >>> from skcontrast.encoders import ConvNet
    >>> from skcontrast.features import Frozen
    >>> Frozen(ConvNet(), random_state=0).fit_transform(load_digits().images).shape
    (1797, 128)
    """

    encoder: Any = parameter()
    random_state: int | np.random.RandomState | None = parameter(["random_state"], default=None)

    @property
    def _expected_kind(self) -> Any:
        """The kind of data that `encoder` encodes."""
        return getattr(self.encoder, "kind", None)

    def learn(self, batch: Any, rng: np.random.RandomState) -> nn.Module:
        """Return the encoder's network, frozen; see `Features.learn`."""
        shape = tuple(batch.shape[1:])
        kinds = named_kinds(self._declared_kind, owner=type(self).__name__)
        fitting = (kind for kind in kinds if kind.describes(shape))
        kind = next(fitting, None) or kind_of_shape(shape)
        shape = kind.encoded_shape(shape)
        module, _ = build_encoder(self.encoder, shape, kind=kind, owner=type(self).__name__)
        module.requires_grad_(False)  # otherwise Pretrained would choose the layers to train
        if isinstance(self.encoder, Encoder):
            self.encoder.learn(module, batch, rng)
        return module
