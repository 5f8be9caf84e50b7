"""Any encoder, and beside what it learns any features that need no training."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from .._checks import NON_NEGATIVE, Numbers, parameter, validate_parameters
from .._layers._wide import SideFeatures, WideNetwork
from ..kinds._recognise import check_fits
from ._base import Encoder, build_encoder

# Samples whose features are computed together.
_BATCH = 250


def _of_deep(name: str, default: Any) -> Any:
    return property(lambda self: getattr(self.deep, name, default), doc=f"The {name} of `deep`.")


class Wide(Encoder):
    """An encoder, and beside what it learns features that need no training.

    Every block is standardised and has a weight, its share of the squared norm of the
    representation. Only the first, what the encoder learns, is trained, and the projection head
    reads it alone; the others are not even computed before `transform`. With few labels, and for
    neighbours, the blocks together are nearly always better than each [1]_.

    Parameters
    ----------
    deep : Encoder, torch.nn.Module or callable
        What is trained, as the parameter `encoder` of the embedder.
    features : list of Features, default=()
        Transformers of :mod:`skcontrast.features`, not fitted, or of your own. The embedder's
        `random_state` seeds them, not their own.
    weights : list of float, default=None
        One for each of `features`; what is learned has 1. None is 1 for each.

    See Also
    --------
    skcontrast.features.Features : Base class of the features.

    References
    ----------
    .. [1] H.-T. Cheng et al., "Wide & Deep Learning for Recommender Systems", 2016, for the idea.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from skcontrast import ContrastiveEmbedder
    >>> from skcontrast.encoders import ConvNet, Wide
    >>> from skcontrast.features import OrientedGradients
    >>> encoder = Wide(ConvNet(), [OrientedGradients()])
    >>> embedder = ContrastiveEmbedder(encoder, max_epochs=1, random_state=0)
    >>> embedder.fit_transform(load_digits().images).shape  # 128 learned, 36 gradients
    (1797, 164)
    """

    deep: Any = parameter()
    features: Sequence[Any] = parameter([list, tuple], default=())
    weights: Sequence[float] | None = parameter([Numbers(NON_NEGATIVE[0]), None], default=None)

    largest_side = _of_deep("largest_side", None)
    kind = _of_deep("kind", None)
    relative_rate = _of_deep("relative_rate", 1.0)
    _channels_last = _of_deep("_channels_last", False)

    def validate(self) -> None:
        """Raise an error for features that are none, or that have no weight each."""
        for feature in self.features:
            if isinstance(feature, type) or not hasattr(feature, "learn"):
                raise TypeError(
                    "The 'features' parameter of Wide must hold objects of skcontrast.features, "
                    f"such as OrientedGradients(), got {feature!r}."
                )
            validate_parameters(feature)
        if self.weights is not None and len(self.weights) != len(self.features):
            raise ValueError(
                f"The 'weights' parameter of Wide must hold {len(self.features)} numbers, one for "
                f"each of 'features', got {self.weights!r}."
            )

    def build(self, sample_shape: tuple, n_components: int | None = None) -> nn.Module:
        """Return the network of `deep`, beside which nothing stands before :meth:`learn`.

        The weights are drawn from torch's global random state.

        Parameters
        ----------
        sample_shape : tuple of int
            Shape of one sample, as for `deep`.
        n_components : int or None, default=None
            Width of the representation, which is then that of `deep` alone.

        Returns
        -------
        module : torch.nn.Module
            Maps a batch to (n, width).

        Raises
        ------
        ValueError
            If a hyperparameter is outside its range, or a feature is for samples of another kind.
        """
        validate_parameters(self)
        shape = tuple(sample_shape)
        for feature in self.features:
            got = f"got samples of shape {shape}"
            check_fits(feature, feature.kind, lambda kind: kind._describes(shape), got)
        module, width = build_encoder(
            self.deep, sample_shape, n_components, owner="Wide", parameter="deep"
        )
        return module if n_components is not None else WideNetwork(module, SideFeatures(width))

    def learn(self, module: nn.Module, batch: Any, rng: np.random.RandomState) -> None:
        """Put the features beside what is learned; see `Encoder.learn`.

        All of them start from the same random state, so that a dictionary of patches in `deep`
        and one in `features` are the same.
        """
        deep = module.deep if isinstance(module, WideNetwork) else module
        if isinstance(self.deep, Encoder):
            self.deep.learn(cast(nn.Module, deep), batch, copy.deepcopy(rng))
        if not isinstance(module, WideNetwork):
            return
        # Each feature draws the same numbers, whatever stands beside it.
        batches = batch.split(_BATCH) if isinstance(batch, Tensor) else [batch]
        weights = self.weights or [1.0] * len(self.features)
        for feature, weight in zip(self.features, weights, strict=True):
            block, _ = feature.learn_checked(batch, copy.deepcopy(rng))
            one_scale = bool(feature.one_scale)
            with torch.no_grad():
                module.beside.add(block, batches, one_scale=one_scale, weight=weight)
        module.beside.start(module.deep, batches)

    def pace(self, n_batches: int, sides: Sequence[int] | None = None) -> tuple[float, int]:
        """Return the learning rate and the number of epochs of `deep`; see `Encoder.pace`."""
        deep = self.deep if isinstance(self.deep, Encoder) else Encoder()
        return deep.pace(n_batches, sides)
