"""SupCon: every sample of a class is a positive."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ._base import Loss, elementwise


class SupCon(Loss):
    r"""Supervised contrastive loss: all samples of the anchor's class are its positives; needs y.

    .. math:: L_i = \frac{-1}{|P(i)|} \sum_{p \in P(i)} \log
        \frac{e^{s_{ip}}}{\sum_{a \in A(i)} e^{s_{ia}}}

    with A(i) all views except the anchor, and P(i) the views among them of its class, its own
    other views included [1]_. The mean over positives stands outside the logarithm. Samples
    without a label (y = −1) have only their own views as positives; without labels at all the
    loss is :class:`InfoNCE`.

    See Also
    --------
    Supervised : Labels choose the negatives only.

    References
    ----------
    .. [1] P. Khosla et al., "Supervised Contrastive Learning", NeurIPS 2020.

    Examples
    --------
    >>> import torch
    >>> from skcontrast import contrastive_loss
    >>> from skcontrast.losses import SupCon
    >>> z = torch.eye(4)
    >>> contrastive_loss(z, z, loss=SupCon(), y=torch.tensor([0, 0, 1, -1])).item()
    1.26...
    """

    @elementwise
    def class_weights(self, same_class: Tensor) -> Tensor:
        """Return 1 for candidates of the anchor's class and 0 for all others."""
        return same_class

    @elementwise
    def push_and_pull(self, weights: Tensor) -> tuple[None, Tensor]:
        """Push all candidates alike, and pull those of the anchor's class."""
        return None, weights

    def anchor_loss(
        self,
        log_means: list[Tensor],
        positives: Tensor,
        n_candidates: int,
        bounds: tuple[float, Tensor | float],
    ) -> Tensor:
        """Return the loss of each anchor, with all its positives in one denominator."""
        log_negatives = math.log(n_candidates) + log_means[0]
        return torch.logaddexp(log_negatives, positives.logsumexp(1)) - positives.mean(1)
