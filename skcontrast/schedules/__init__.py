"""Schedules: hyperparameters that depend on the progress of the fit.

A schedule maps progress in [0, 1] to a number. It may replace most numeric hyperparameters of a
loss or of a similarity (not ``kappa_max`` of ``VonMisesFisher``), and is the ``lr_schedule`` of
the embedder::

    BCL(alpha=Linear(0.5, 0.85), beta=Linear(2, 0))
"""

from ._numbers import Auto, CosineDecay, Linear, Schedule, Steps, at_progress, interval

__all__ = ["Auto", "CosineDecay", "Linear", "Schedule", "Steps", "at_progress", "interval"]
