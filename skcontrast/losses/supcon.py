"""SupCon: every sample of a class is a positive."""

from __future__ import annotations

import torch
from torch import Tensor

from ._base import Loss

__all__ = ["SupCon"]


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

    requires_y = True

    def row_loss(self, scores: Tensor, positives: Tensor, same_class: Tensor | None) -> Tensor:
        """Return the loss of each anchor, shape (n_anchors,)."""
        if same_class is None:
            raise ValueError("SupCon needs labels: pass y.")
        log_all = torch.logsumexp(torch.cat([scores, positives], dim=1), dim=1)
        pulled = torch.where(same_class, scores, 0.0).sum(1) + positives.sum(1)
        return log_all - pulled / (same_class.sum(1) + positives.shape[1])
