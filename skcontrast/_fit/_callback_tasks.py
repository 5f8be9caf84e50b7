"""scikit-learn's own callbacks, set by `set_callbacks`, hear of every epoch of a fit."""

from __future__ import annotations

from typing import Any

from skorch.callbacks import Callback


class EpochTasks(Callback):
    """Reports a fit and its epochs to scikit-learn's callbacks as a task and its subtasks.

    Parameters
    ----------
    estimator : ContrastiveEmbedder
        The embedder that is fitted, with callbacks.
    X, y : array-like
        What it is fitted to.
    n_epochs : int
        The most epochs.
    """

    def __init__(self, estimator: Any, X: Any, y: Any, n_epochs: int):
        # Not the metadata: ScoringMonitor would pass it to `score`, which takes none.
        self.passed_ = {"estimator": estimator, "X": X, "y": y}
        self.fit_ = estimator._init_callback_context(max_subtasks=n_epochs)
        self.fit_.call_on_fit_task_begin(**self.passed_)

    def on_epoch_begin(self, net: Any, **kwargs: Any) -> None:
        """Report the begin of an epoch."""
        self.epoch_ = self.fit_.subcontext(task_name="epoch")
        self.epoch_.call_on_fit_task_begin(**self.passed_)

    def on_epoch_end(self, net: Any, **kwargs: Any) -> None:
        """Report the end of an epoch; a callback may ask for the end of the training."""
        if self.epoch_.call_on_fit_task_end(
            **self.passed_, reconstruction_attributes=lambda: vars(net.as_estimator())
        ):
            net.stop()

    def end(self) -> None:
        """Report the end of the fit, whose results the estimator holds."""
        self.fit_.call_on_fit_task_end(**self.passed_, reconstruction_attributes={})


def epoch_tasks(estimator: Any, X: Any, y: Any, n_epochs: int) -> list[EpochTasks]:
    """Return what reports to scikit-learn's callbacks; nothing if the estimator has none.

    Parameters
    ----------
    estimator : ContrastiveEmbedder
        The embedder that is fitted.
    X, y : array-like
        What it is fitted to.
    n_epochs : int
        The most epochs.
    """
    if not getattr(estimator, "_skl_callbacks", None):
        return []
    return [EpochTasks(estimator, X, y, n_epochs)]
