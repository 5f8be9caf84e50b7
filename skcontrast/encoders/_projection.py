"""The projection head, between the representation and the loss."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ._base import init_kaiming

# Representations wider than this, grids of a map, would make a square W₁ the largest layer of all.
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
        Numbers that follow the projection and say how certain it is; see `WithExtra`.

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
    >>> from skcontrast.encoders._projection import projection_head
    >>> projection_head(64, 16)(torch.zeros(2, 64)).shape
    torch.Size([2, 16])
    """
    if projection_dim == 0:
        return WithExtra(nn.Identity(), in_features, n_extra) if n_extra else nn.Identity()
    hidden = min(in_features, _WIDEST_HIDDEN)
    first = init_kaiming(nn.Linear(in_features, hidden, bias=False))
    last = init_kaiming(nn.Linear(hidden, projection_dim), "linear")
    if n_extra:
        last = WithExtra(last, hidden, n_extra)
    return nn.Sequential(first, nn.BatchNorm1d(hidden), nn.ReLU(), last)


class WithExtra(nn.Module):
    r"""A layer whose output is followed by a few numbers that say how certain it is.

    Each number is computed from the standardised input :math:`g = \mathrm{BN}(h)`,

    .. math:: x = w \cdot \tanh(g) + 10\,b - 2 \log\frac{1 + \overline{g^2}}{2}

    where w and b start from 0. The input is standardised so that b alone sets the general level;
    otherwise the weights w would learn the level too, from the size of h, and x would grow with
    that size. The factor 10 lets b move as fast as the many weights together. tanh and the last
    term are for samples unlike those of the training: what was learned is not extrapolated to
    them, and the further away they are, the less certain the output is.

    Parameters
    ----------
    layer : torch.nn.Module
        Maps (n, in_features) to (n, d).
    in_features, n_extra : int
        Width of the input, and how many numbers are added.
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
