"""The projection head, between the representation and the loss."""

from __future__ import annotations

import torch
from torch import nn

from ._base import init_kaiming


def projection_head(in_features, projection_dim, n_extra=0):
    """Return the two-layer head of SimCLR, which training uses and ``transform`` leaves out.

    .. math:: z = W_2\\, \\mathrm{ReLU}(\\mathrm{BN}(W_1 h)) + b_2

    with W₁ square [1]_. The weights are drawn from torch's global random state.

    Parameters
    ----------
    in_features : int
        Width of the representation h.
    projection_dim : int
        Width of the projection z; 0 for no head, z = h.
    n_extra : int, default=0
        Numbers that stand behind the projection, of linear maps that are 0 at first.

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
    >>> from skcontrast.encoders.projection import projection_head
    >>> projection_head(64, 16)(torch.zeros(2, 64)).shape
    torch.Size([2, 16])
    """
    if projection_dim == 0:
        return WithExtra(nn.Identity(), in_features, n_extra) if n_extra else nn.Identity()
    last = init_kaiming(nn.Linear(in_features, projection_dim), "linear")
    return nn.Sequential(
        init_kaiming(nn.Linear(in_features, in_features, bias=False)),
        nn.BatchNorm1d(in_features),
        nn.ReLU(),
        WithExtra(last, in_features, n_extra) if n_extra else last,
    )


class WithExtra(nn.Module):
    """A layer, and behind its output a few numbers of a linear map, which is 0 at first.

    Parameters
    ----------
    layer : torch.nn.Module
        Maps (n, in_features) to (n, d).
    in_features, n_extra : int
        Widths of the input and of what is added.
    """

    def __init__(self, layer, in_features, n_extra):
        super().__init__()
        self.layer, self.extra = layer, nn.Linear(in_features, n_extra)
        nn.init.zeros_(self.extra.weight), nn.init.zeros_(self.extra.bias)

    def forward(self, h):
        """Return (n, d + n_extra)."""
        return torch.cat([self.layer(h), self.extra(h)], 1)
