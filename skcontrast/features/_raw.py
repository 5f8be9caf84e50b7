"""Samples as they are, and what an encoder returns of them without training."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from .._checks import parameter
from ..encoders import Encoder
from ..encoders._base import KindOrName, build_encoder
from ..kinds._recognise import kind_of_shape, named_kinds
from ._base import Features


class Raw(Features):
    """The numbers of each sample, standardised as an encoder gets them, as one row.

    Of vectors these are the columns, of images and of series of one length all pixels and steps.
    Beside what is learned, see :class:`~skcontrast.encoders.Wide`, they keep every detail.

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

    one_scale = True

    def get_feature_names_out(
        self, input_features: ArrayLike | None = None
    ) -> NDArray[np.object_]:
        """Return the names of the columns of X where it has names, see the embedder's.

        Parameters
        ----------
        input_features : array-like of shape (n_features,), default=None
            Names of the columns of X, if `fit` saw none.

        Returns
        -------
        names : ndarray of shape (n_features,), dtype object
        """
        names = super().get_feature_names_out(input_features)
        return self._schema.renamed(names, slice(None), input_features)

    def learn(self, batch: Any, rng: np.random.RandomState) -> nn.Module:
        """Return the identity; see `Features.learn`."""
        if not isinstance(batch, Tensor) or batch.isnan().any():  # ends of shorter series
            raise TypeError("Raw needs samples that are arrays of one shape, X holds others.")
        return nn.Flatten()


class Frozen(Features):
    """What an encoder returns without training: of a pretrained network, what it has learned.

    Parameters
    ----------
    encoder : Encoder, torch.nn.Module or callable
        As the parameter `encoder` of the embedder, such as ``Pretrained(network)``. It is copied.
    random_state : int, RandomState instance or None, default=None
        Seeds the weights of an encoder that is not pretrained.

    Attributes
    ----------
    module_ : torch.nn.Module
        The map from samples to features.

    See Also
    --------
    skcontrast.encoders.Pretrained : A pretrained network as an encoder.
    skcontrast.encoders.Wide : Puts features beside what is learned.

    Examples
    --------
    An untrained network, the start of a training:

    >>> from sklearn.datasets import load_digits
    >>> from skcontrast.encoders import ConvNet
    >>> from skcontrast.features import Frozen
    >>> Frozen(ConvNet(), random_state=0).fit_transform(load_digits().images).shape
    (1797, 128)
    """

    encoder: Any = parameter()
    random_state: int | np.random.RandomState | None = parameter(["random_state"], default=None)

    @property
    def kind(self) -> KindOrName | tuple[KindOrName, ...] | None:  # type: ignore[override]
        """The kind of data that `encoder` encodes."""
        return getattr(self.encoder, "kind", None)

    def learn(self, batch: Any, rng: np.random.RandomState) -> nn.Module:
        """Return the encoder's network as it is; see `Features.learn`."""
        shape = tuple(batch.shape[1:])
        kinds = named_kinds(self.kind, owner=type(self).__name__)
        kind = next((one for one in kinds if one._describes(shape)), None) or kind_of_shape(shape)
        shape = kind._encoded_shape(shape)
        module, _ = build_encoder(self.encoder, shape, kind=kind, owner=type(self).__name__)
        if isinstance(self.encoder, Encoder):
            self.encoder.learn(module, batch, rng)
        return module
