"""InfoNCE: every candidate counts as a negative."""

from __future__ import annotations

import torch
from torch import Tensor

from ._base import Loss


class InfoNCE(Loss):
    r"""The biased contrastive loss: every candidate counts as a negative.

    .. math:: L = -\log \frac{e^{s^+}}{e^{s^+} + \sum_{j=1}^N e^{s_j}}

    With in-batch candidates (``SimCLR``) and cosine scores it is the NT-Xent loss of [2]_; with a
    queue (``MoCo``) it is InfoNCE as in [1]_. A candidate of the anchor's own class is pushed
    away like any other; :class:`DCL` and :class:`HCL` correct for that.

    See Also
    --------
    DCL : Subtracts the expected share of false negatives.
    HCL : The same, with more weight on hard negatives.

    References
    ----------
    .. [1] A. van den Oord, Y. Li, O. Vinyals, "Representation Learning with Contrastive
       Predictive Coding", 2018.
    .. [2] T. Chen, S. Kornblith, M. Norouzi, G. Hinton, "A Simple Framework for Contrastive
       Learning of Visual Representations", ICML 2020.

    Examples
    --------
    >>> import torch
    >>> from skcontrast import contrastive_loss
    >>> from skcontrast.losses import InfoNCE
    >>> z = torch.eye(3)
    >>> contrastive_loss(z, z, loss=InfoNCE()).item()  # log(1 + 4 e^-2) at temperature 0.5
    0.432...
    """

    def true_negative_probability(self, ranks_from_farthest: Tensor, n_candidates: int) -> Tensor:
        """Return 1: every candidate is taken for a true negative."""
        return torch.ones_like(ranks_from_farthest)
