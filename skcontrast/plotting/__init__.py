"""Displays of the numerical experiments, in the manner of scikit-learn; they need matplotlib."""

from ._estimator_curve import EstimatorCurveDisplay
from ._score_density import ScoreDensityDisplay

__all__ = ["EstimatorCurveDisplay", "ScoreDensityDisplay"]
