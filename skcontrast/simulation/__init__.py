r"""Simulated scores: how well does a loss estimate the expectation over true negatives.

The numerical experiments of the BCL paper. A model draws the scores of anchors and of their
candidates together with the truth that is hidden in practice, which candidates share the anchor's
class; the losses of :mod:`skcontrast.losses` estimate the mean of :math:`e^s` over the others from
the scores alone. The estimates are computed by the code that trains with these losses::

    model = ScoreModel(alpha=0.9, tau_plus=0.1)
    compare_estimators(model, n_candidates=512, random_state=0).summary("mse")
"""

from ._estimators import (
    EstimatorComparison,
    compare_estimators,
    estimate,
    matched_estimators,
)
from ._scores import ScoreModel, ScoreSample

__all__ = [
    "EstimatorComparison",
    "ScoreModel",
    "ScoreSample",
    "compare_estimators",
    "estimate",
    "matched_estimators",
]
