"""Samples as they are, as features."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from ._base import Features


class Raw(Features):
    """The numbers of each sample, standardised as an encoder gets them, as one row.

    Of vectors and tables these are the columns, of tables also one-hot vectors of categories; of
    images and of series of one length, all pixels and steps. Beside what is learned, see
    :class:`~skcontrast.encoders.Wide`, they keep every detail.

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
        if not isinstance(batch, Tensor):
            raise TypeError("Raw needs samples that are arrays of one shape, X holds others.")
        return nn.Flatten()
