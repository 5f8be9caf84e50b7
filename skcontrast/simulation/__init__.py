r"""Scores with known truth, simulated or of embeddings with labels: how well losses do on them.

The numerical experiments of the BCL paper. A model draws the scores of anchors and of their
candidates together with the truth that is hidden in practice, which candidates share the anchor's
class; the losses of :mod:`skcontrast.losses` estimate the mean of :math:`e^s` over the others from
the scores alone. The estimates are computed by the code that trains with these losses::

    model = ScoreModel(alpha=0.9, tau_plus=0.1)
    compare_estimators(model, n_candidates=512, random_state=0).summary("mse")

The same for real scores, where the gradient of a loss goes, and how reliable its probabilities are
is computed from embeddings and labels::

    z1, z2 = project_views(embedder, X)
    sample = ScoreSample.from_views(z1, z2, y=y, similarity=embedder.similarity_)
    negative_bias(loss, sample), push_share(loss, sample), reliability(loss, sample)
"""

from ..estimation._samples import ScoreSample
from ._estimators import (
    EstimatorComparison,
    compare_estimators,
    estimate,
    matched_estimators,
)
from ._scores import ScoreModel
from ._truth import Reliability, negative_bias, push_share, reliability

__all__ = [
    "EstimatorComparison",
    "Reliability",
    "ScoreModel",
    "ScoreSample",
    "compare_estimators",
    "estimate",
    "matched_estimators",
    "negative_bias",
    "push_share",
    "reliability",
]
