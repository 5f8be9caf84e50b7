"""Supervised: the mean that the debiased losses estimate, computed from labels."""

from __future__ import annotations

from torch import Tensor

from ._base import Loss, elementwise


class Supervised(Loss):
    r"""Contrastive loss over true negatives only: the oracle of the debiased losses; needs y.

    .. math:: L_i = -\log \frac{e^{s_i^+}}{e^{s_i^+} + N \hat E_i^-}, \qquad
        \hat E_i^- = \frac{1}{N^-_i} \sum_{j : y_j \ne y_i} e^{s_{ij}}

    with :math:`N^-_i` the number of candidates of a different class. Candidates and anchors
    without a label (y = −1) are treated as in :class:`InfoNCE`; without labels at all, or if all
    labels differ, the loss is :class:`InfoNCE`. An anchor without a true negative is only pulled
    to its positive. Positives are views of the same sample; for all samples of a class as
    positives see :class:`SupCon`.

    See Also
    --------
    SupCon : All samples of a class are positives.
    DCL : Estimates the same mean without labels.

    References
    ----------
    .. [1] C.-Y. Chuang, J. Robinson, L. Yen-Chen, A. Torralba, S. Jegelka, "Debiased Contrastive
       Learning", NeurIPS 2020.

    Examples
    --------
    >>> import torch
    >>> from skcontrast import contrastive_loss
    >>> from skcontrast.losses import InfoNCE, Supervised
    >>> z = torch.randn(4, 16, generator=torch.Generator().manual_seed(0))
    >>> value = contrastive_loss(z, z, loss=Supervised(), y=torch.tensor([0, 1, 2, 3]))
    >>> torch.allclose(value, contrastive_loss(z, z, loss=InfoNCE()))
    True
    """

    @elementwise
    def class_weights(self, same_class: Tensor) -> Tensor:
        """Return 1[y_j ≠ y_i], shape (n_anchors, n)."""
        return ~same_class
