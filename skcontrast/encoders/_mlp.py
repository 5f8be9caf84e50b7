"""Perceptrons: the encoder of vectors, and the projection head between it and the loss."""

import math
from collections.abc import Iterator, Sequence
from numbers import Real
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .._checks import POSITIVE_INT, Interval, Numbers, parameter
from ._base import Encoder, check_build, init_kaiming, last_layer

# The width of the representation if n_components is None.
_WIDTH = 128
_ACTIVATIONS = {"relu": nn.ReLU, "gelu": nn.GELU, "silu": nn.SiLU, "tanh": nn.Tanh}


class MLP(Encoder):
    """A multilayer perceptron: the default encoder of vectors.

    Each hidden layer is a linear map, batch normalisation, a non-linearity and dropout. The
    output of a last linear layer is the representation. Images are flattened.

    Parameters
    ----------
    widths : int or tuple of int, default=(256, 256)
        Widths of the hidden layers. ``()`` is a linear encoder.
    batch_norm : bool, default=True
        Whether the hidden layers are normalised over the batch [1]_.
    dropout : float, default=0.0
        Probability, in [0, 1), with which a hidden unit is dropped in training.
    activation : {"relu", "gelu", "silu", "tanh"}, default="relu"
        The non-linearity.

    See Also
    --------
    PatchNet : The default encoder of images of 24 pixels or more.
    ConvNet : The default encoder of smaller images.

    References
    ----------
    .. [1] S. Ioffe, C. Szegedy, "Batch Normalization: Accelerating Deep Network Training by
       Reducing Internal Covariate Shift", 2015.

    Examples
    --------
    >>> import torch
    >>> from skcontrast.encoders import MLP
    >>> MLP(widths=(32,)).build((10,), 4)(torch.zeros(2, 10)).shape
    torch.Size([2, 4])
    """

    kind = ("vectors", "images")
    widths: int | Sequence[int] = parameter(
        [*POSITIVE_INT, Numbers(*POSITIVE_INT)], default=(256, 256)
    )
    batch_norm: bool = parameter(["boolean"], default=True)
    dropout: float = parameter([Interval(Real, 0, 1, closed="left")], default=0.0)
    activation: Literal["relu", "gelu", "silu", "tanh"] = parameter(
        set(_ACTIVATIONS), default="relu"
    )

    def build(self, sample_shape: tuple, n_components: int | None = None) -> nn.Module:
        """Return a new perceptron for samples of shape `sample_shape`.

        The weights are drawn from torch's global random state.

        Parameters
        ----------
        sample_shape : tuple of int
            Shape of one sample: ``(n_features,)`` or ``(channels, height, width)``.
        n_components : int or None, default=None
            Width of the representation; None is 128.

        Returns
        -------
        module : torch.nn.Module
            Maps a float32 batch ``(n, *sample_shape)`` to a batch (n, n_components).

        Raises
        ------
        ValueError
            If a hyperparameter is outside its range, or the samples are neither vectors nor
            images.
        """
        check_build(self, sample_shape, n_components)
        widths = np.atleast_1d(self.widths).tolist()
        layers: list[nn.Module] = [nn.Flatten()]
        width = math.prod(sample_shape)
        for next_width in widths:
            layers += self._hidden_layer(width, next_width)
            width = next_width
        return nn.Sequential(*layers, last_layer(width, n_components or _WIDTH))

    def _hidden_layer(self, width: int, next_width: int) -> Iterator[nn.Module]:
        gain_of: Literal["tanh", "relu"] = "tanh" if self.activation == "tanh" else "relu"
        yield init_kaiming(nn.Linear(width, next_width, bias=not self.batch_norm), gain_of)
        if self.batch_norm:
            yield nn.BatchNorm1d(next_width)
        yield _ACTIVATIONS[self.activation]()
        if self.dropout > 0:
            yield nn.Dropout(self.dropout)


# For wider representations, a square W₁ would be the largest layer.
_WIDEST_HIDDEN = 512


def projection_head(in_features: int, projection_dim: int, n_extra: int = 0) -> nn.Module:
    """Return the two-layer head of SimCLR, which is used in training but not in ``transform``.

    .. math:: z = W_2\\, \\mathrm{ReLU}(\\mathrm{BN}(W_1 h)) + b_2

    with W₁ square [1]_, or with 512 rows if h is wider than that. The weights are drawn from
    torch's global random state.

    Parameters
    ----------
    in_features : int
        Width of the representation h.
    projection_dim : int
        Width of the projection z; 0 for no head, z = h.
    n_extra : int, default=0
        Number of uncertainty parameters that follow the projection, see `WithExtra`.

    Returns
    -------
    head : torch.nn.Module
        Maps (n, in_features) to (n, projection_dim + n_extra).

    References
    ----------
    .. [1] T. Chen, S. Kornblith, M. Norouzi, G. Hinton, "A Simple Framework for Contrastive
       Learning of Visual Representations", 2020, section 2.1 and appendix B.

    Examples
    --------
    >>> import torch
    >>> from skcontrast.encoders._mlp import projection_head
    >>> projection_head(64, 16)(torch.zeros(2, 64)).shape
    torch.Size([2, 16])
    """
    if projection_dim == 0:
        return WithExtra(nn.Identity(), in_features, n_extra) if n_extra else nn.Identity()
    hidden = min(in_features, _WIDEST_HIDDEN)
    first = init_kaiming(nn.Linear(in_features, hidden, bias=False))
    last = last_layer(hidden, projection_dim)
    if n_extra:
        last = WithExtra(last, hidden, n_extra)
    return nn.Sequential(first, nn.BatchNorm1d(hidden), nn.ReLU(), last)


class WithExtra(nn.Module):
    r"""A layer that appends uncertainty parameters to the output of another layer.

    Each number is computed from the standardised input :math:`g = \mathrm{BN}(h)`,

    .. math:: x = w \cdot \tanh(g) + 10\,b - 2 \log\frac{1 + \overline{g^2}}{2}

    where w and b start from 0. The input is standardised so that only b sets the overall level;
    otherwise w would learn it from the norm of h, and x would grow with that norm. The factor 10
    makes b as fast as the many weights together. tanh and the last term prevent extrapolation: the
    farther a sample is from the training samples, the less certain is its embedding.

    Parameters
    ----------
    layer : torch.nn.Module
        Maps (n, in_features) to (n, d).
    in_features, n_extra : int
        Width of the input, and the number of parameters.
    """

    def __init__(self, layer: nn.Module, in_features: int, n_extra: int):
        super().__init__()
        self.layer = layer
        self.standardize = nn.BatchNorm1d(in_features, affine=False)
        self.extra = nn.Linear(in_features, n_extra)
        nn.init.zeros_(self.extra.weight)
        nn.init.zeros_(self.extra.bias)

    def forward(self, h: Tensor) -> Tensor:
        """Map h of shape (n, in_features) to (n, d + n_extra)."""
        g = self.standardize(h)
        level = F.linear(torch.tanh(g), self.extra.weight, 10 * self.extra.bias)
        distance = ((1 + g.square().mean(1, keepdim=True)) / 2).log()
        return torch.cat([self.layer(h), level - 2 * distance], 1)
