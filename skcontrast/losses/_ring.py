"""Ring: only candidates at a middle distance are negatives."""

from __future__ import annotations

import math

from torch import Tensor

from ..schedules._numbers import Number, current_value, interval
from ._base import Loss


class Ring(Loss):
    r"""Contrastive loss whose negatives form a ring around the anchor.

    Of the N candidates the closest ⌊outer · N⌋ are kept; of these the closest
    ⌊inner · ⌊outer · N⌋⌋, the likeliest false negatives, are dropped [1]_:

    .. math:: L = -\log \frac{e^{s^+}}{e^{s^+} + \sum_{j \in \mathrm{ring}} e^{s_j}}

    The sum is not rescaled: the size of the ring takes the place of N. Under the Jensen–Shannon
    objective, in which N does not occur, the estimate is the mean over the ring.

    Parameters
    ----------
    outer : float or Schedule, default=0.5
        Share of the candidates within the outer radius, in (0, 1].
    inner : float or Schedule, default=0.1
        Share of these candidates within the inner radius, in [0, 1). With
        ``outer=1, inner=0`` the loss is :class:`InfoNCE`.

    See Also
    --------
    BCL : Lowers the weights of the closest candidates instead of dropping them.

    References
    ----------
    .. [1] M. Wu, M. Mosse, C. Zhuang, D. Yamins, N. Goodman, "Conditional Negative Sampling for
       Contrastive Learning of Visual Representations", ICLR 2021.

    Examples
    --------
    >>> import torch
    >>> from skcontrast import contrastive_loss
    >>> from skcontrast.losses import InfoNCE, Ring
    >>> z = torch.randn(8, 16, generator=torch.Generator().manual_seed(0))
    >>> whole = contrastive_loss(z, z, loss=Ring(outer=1.0, inner=0.0))
    >>> torch.allclose(whole, contrastive_loss(z, z, loss=InfoNCE()))
    True
    """

    _parameter_constraints: dict = {
        "outer": interval(0, 1, "right"),
        "inner": interval(0, 1, "left"),
    }
    sum_of_weights = "replaces N"

    def __init__(self, outer: Number = 0.5, inner: Number = 0.1):
        self.outer = outer
        self.inner = inner

    def rank_weights(self, ranks_from_farthest: Tensor, n_candidates: int) -> Tensor:
        """Return 1[in ring] by rank."""
        within = _floor(current_value(self.outer) * n_candidates)
        dropped = _floor(current_value(self.inner) * within)
        if within == 0:
            raise ValueError(
                f"The ring is empty: outer={self.outer} of {n_candidates} candidates is less than "
                "one. Enlarge 'outer' of Ring or the batch."
            )
        ranks = ranks_from_farthest
        inside = (ranks > n_candidates - within) & (ranks <= n_candidates - dropped)
        return inside.to(ranks.dtype)

    def true_negative_probability(self, ranks_from_farthest: Tensor, n_candidates: int) -> Tensor:
        """Return 1 in the ring and 0 outside of it."""
        return self.rank_weights(ranks_from_farthest, n_candidates)


def _floor(share: float) -> int:
    """Return the integer below; a number that misses an integer by rounding counts as that."""
    return math.floor(share * (1 + 1e-12))
