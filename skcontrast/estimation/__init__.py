r"""α, τ⁺ and other hyperparameters, estimated from data.

Under the model of BCL, the rank v of an anchor's positive among the candidate negatives (the
share of candidates that score at most as high) has the density

.. math:: f(v; \alpha, \tau^+) = \frac{2(1 - \alpha) + 2(2\alpha - 1)\,u}{b + 2a\,u}, \qquad
    v = b\,u + a\,u^2,\quad a = (1 - 2\alpha)(1 - 2\tau^+),\; b = 1 - a,

so that both parameters can be estimated by maximum likelihood from unlabeled data. With known
labels, τ⁺ is the probability that two samples share a class, α follows from the macro-AUC, and the
sharpness and the floor of ``SoftRing`` are fitted to the share of false negatives at each rank.
The model treats augmented views like samples of the same class, but views are closer to each
other: on real data, compare the estimate from ranks with one from labels.

With embeddings and labels, importance weights, the bias of a loss, the gradient on false negatives
and the reliability of probabilities can be computed on real scores::

    z1, z2 = project_views(embedder, X)
    sample = ScoreSample.from_views(z1, z2, y=y, similarity=embedder.similarity_)
    importance_weights(loss, sample), negative_bias(loss, sample)
    push_share(loss, sample), reliability(loss, sample)
"""

from ._estimates import (
    alpha_from_auc,
    estimate_alpha_and_tau_plus,
    estimate_soft_ring,
    macro_auc,
    positive_ranks,
    tau_plus_from_labels,
)
from ._known_scores import Reliability, importance_weights, negative_bias, push_share, reliability
from ._samples import Estimate, ScoreSample, project_views

__all__ = [
    "Estimate",
    "Reliability",
    "ScoreSample",
    "alpha_from_auc",
    "estimate_alpha_and_tau_plus",
    "estimate_soft_ring",
    "importance_weights",
    "macro_auc",
    "negative_bias",
    "positive_ranks",
    "project_views",
    "push_share",
    "reliability",
    "tau_plus_from_labels",
]
