"""Supervised losses: samples of the anchor's class are excluded as negatives, or positives."""

from __future__ import annotations

import math
from numbers import Real

import torch
import torch.nn.functional as F
from torch import Tensor

from .._checks import FRACTION, POSITIVE_INT, Interval, parameter
from ._base import Loss, PseudoLabels
from ._rows import Rows


class Supervised(Loss):
    r"""Contrastive loss over true negatives alone; needs y. The oracle of the debiased losses.

    .. math:: L_i = -\log \frac{e^{s_i^+}}{e^{s_i^+} + N \hat E_i^-}, \qquad
        \hat E_i^- = \frac{1}{N^-_i} \sum_{j : y_j \ne y_i} e^{s_{ij}}

    :math:`N^-_i` is the number of candidates of a different class. Candidates and anchors
    without a label (y = −1) are treated as in :class:`InfoNCE`. If no sample has a label, or all
    labels differ, the loss is :class:`InfoNCE`. An anchor without true negatives is only pulled
    to its positive. Positives are views of the same sample.

    See Also
    --------
    SupCon : All samples of a class are positives.
    DCL : Estimate of the same mean without labels.

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

    requires_y = True

    def class_weights(self, same_class: Tensor) -> Tensor:
        """Return 1[y_j ≠ y_i], shape (n_anchors, n)."""
        return ~same_class


class SupCon(Loss):
    r"""Supervised contrastive loss: all samples of the anchor's class are its positives; needs y.

    .. math:: L_i = \frac{-1}{|P(i)|} \sum_{p \in P(i)} \log
        \frac{e^{s_{ip}}}{\sum_{a \in A(i)} e^{s_{ia}}}

    A(i) are all views except the anchor. P(i) are the views among them that have its class,
    including the other views of its sample [1]_. The mean over positives is outside the logarithm.
    Samples without a label (y = −1) have only their own views as positives. If all y are −1, the
    loss is
    :class:`InfoNCE`.

    See Also
    --------
    Supervised : Labels determine the negatives alone.
    SINCERE : Samples of the same class are not pushed apart.

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

    requires_y = pulls = True

    def losses(self, rows: Rows) -> Tensor:
        """Return the loss of each anchor; all its positives are in the denominator."""
        log_negatives = math.log(rows.n_candidates) + rows.log_mean(self)
        log_total = torch.logaddexp(log_negatives, rows.positives.logsumexp(1))
        pulled, n_pulled = rows.weighted_sum(rows.same_class)
        n_pulled = n_pulled + rows.positives.shape[1]
        return log_total - (rows.positives.sum(1) + pulled) / n_pulled


class SINCERE(Loss):
    r"""SupCon without repulsion between samples of the same class; needs y.

    .. math:: L_i = \frac{-1}{|P(i)|} \sum_{p \in P(i)} \log
        \frac{e^{s_{ip}}}{e^{s_{ip}} + \sum_{n \notin P(i)} e^{s_{in}}}

    P(i) is that of :class:`SupCon`. The denominator of SupCon contains all other positives, which
    are pulled and pushed at once [1]_. If all y are −1, with two views, the loss is
    :class:`InfoNCE`.

    See Also
    --------
    SupCon : Other positives are in the denominator, too.

    Notes
    -----
    Autograd computes the gradient, tile by tile. ``pair_weights`` of a
    :class:`~skcontrast.frameworks.Contrast` are not supported.

    References
    ----------
    .. [1] P. Feeney, M. C. Hughes, "SINCERE: Supervised Information Noise-Contrastive Estimation
       REvisited", 2023.

    Examples
    --------
    >>> import torch
    >>> from skcontrast import contrastive_loss
    >>> from skcontrast.losses import SINCERE, SupCon
    >>> z, y = torch.eye(4), torch.tensor([0, 0, 1, -1])
    >>> losses = [contrastive_loss(z, z, loss=loss, y=y) for loss in (SINCERE(), SupCon())]
    >>> bool(losses[0] < losses[1])
    True
    """

    requires_y = pulls = True

    def losses(self, rows: Rows) -> Tensor:
        """Return for each anchor the mean of the losses of its positives."""
        scores, positives, same_class = rows.scores, rows.positives, rows.same_class
        # A column of a very low score, in case an anchor has no negatives.
        lowest = scores.new_full((len(scores), 1), torch.finfo(scores.dtype).min / 4)
        negatives = torch.cat([scores.masked_fill(same_class, -torch.inf), lowest], 1)
        log_negative = negatives.logsumexp(1, keepdim=True)
        pulled = torch.cat([torch.ones_like(positives, dtype=torch.bool), same_class], 1)
        excess = torch.cat([positives, scores], 1) - log_negative
        return -F.logsigmoid(excess.masked_fill(~pulled, torch.inf)).sum(1) / pulled.sum(1)


class SemiSupCon(SupCon):
    r"""Semi-supervised contrastive loss: SupCon where most labels are unknown; needs y.

    The loss of a batch is that of :class:`SupCon`. With 5 labels per class, a batch rarely
    contains two labeled samples of a class. Therefore `fit` does two more things:

    - Labeled samples are drawn more often, as a share of every batch.
    - Every few epochs, label spreading on the graph of nearest neighbours of the representations
      [1]_, [2]_ assigns pseudo-labels. The most confident ones of each class are used as labels
      until the next round. Known labels never change.

    Samples of unknown class have only their own views as positives. If all classes are known,
    the fit is that of :class:`SupCon`; if none is known, that of :class:`InfoNCE`. If only one
    class is known, there are no pseudo-labels. Outside of `fit` this is :class:`SupCon`. A
    ``Pretrained`` network with ``adapt="auto"`` is always trained, even with few labels.

    Parameters
    ----------
    every : int, default=2
        Epochs between two rounds of pseudo-labels; the first epochs have none. `partial_fit`, and
        a `fit` with ``warm_start=True``, start with pseudo-labels for their X and y.
    share : float, default=0.8
        Share of the pseudo-labels of each class that is used, in [0, 1]. With 0, only known
        labels are used.
    labeled_share : float, default=0.2
        Smallest share of each batch that is drawn from the labeled samples, in [0, 1). The other
        samples still occur once per epoch, so an epoch has more steps.
    n_neighbors : int, default=15
        Neighbours of each sample in the graph.

    See Also
    --------
    SupCon : The same without pseudo-labels.

    Notes
    -----
    Each round of pseudo-labels computes the representations of all samples in inference mode. They
    must fit into memory, even if samples are read batch by batch. The graph has at most 10,000
    samples; others get the classes of their neighbours in it.

    References
    ----------
    .. [1] A. Iscen, G. Tolias, Y. Avrithis, O. Chum, "Label Propagation for Deep Semi-supervised
       Learning", CVPR 2019.
    .. [2] D. Zhou, O. Bousquet, T. N. Lal, J. Weston, B. Schölkopf, "Learning with Local and
       Global Consistency", NeurIPS 2003.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from skcontrast import ContrastiveEmbedder
    >>> from skcontrast.losses import SemiSupCon
    >>> X, y = load_digits(return_X_y=True)
    >>> few = np.full(len(y), -1)
    >>> few[:50] = y[:50]
    >>> embedder = ContrastiveEmbedder(loss=SemiSupCon(), max_epochs=3, random_state=0)
    >>> embedder.fit(X, few).transform(X).shape
    (1797, 128)
    """

    every: int = parameter(POSITIVE_INT, default=2)
    share: float = parameter(FRACTION, default=0.8)
    labeled_share: float = parameter([Interval(Real, 0, 1, closed="left")], default=0.2)
    n_neighbors: int = parameter(POSITIVE_INT, default=15)

    def pseudo_labels(self) -> PseudoLabels:
        """Return how `fit` assigns pseudo-labels."""
        return PseudoLabels(self.every, self.share, self.labeled_share, self.n_neighbors)
