"""Displays of scores and of what losses make of them, in the manner of scikit-learn.

They need matplotlib.
"""

from ._estimator_curve import EstimatorCurveDisplay
from ._reliability import ReliabilityDisplay
from ._score_density import ScoreDensityDisplay

__all__ = ["EstimatorCurveDisplay", "ReliabilityDisplay", "ScoreDensityDisplay"]
