"""Displays that compare an embedder with baselines, and losses with observed shares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from .._baselines import COLUMNS, LEVEL, OURS
from .._runtime import guarded
from ..embedder import ContrastiveEmbedder
from ..estimation import Reliability, ScoreSample, project_views, reliability
from ..losses import Loss
from ..metrics import BaselineComparison, compare_with_baselines
from ._axes import MARKERS, Axes, axes, class_colors

# Share of the distance between rows over which the columns of a row are spread.
_SPREAD = 0.5


class BaselinesDisplay:
    """Accuracies of an embedder and of training-free baselines, row by row.

    A point is the mean over the repeats, and its bar is one standard deviation on either side. A
    hollow point is not significantly different from the embedder (paired t-test, p ≥ 0.05).
    Dashed lines mark the embedder's means.

    Parameters
    ----------
    comparison : BaselineComparison
        A result of :func:`skcontrast.metrics.compare_with_baselines`.

    Attributes
    ----------
    ax_ : Axes
        The axes.
    figure_ : Figure
        The figure of `ax_`.
    points_ : dict of str to dict of str to ErrorbarContainer
        The points and their bars, by row and column.
    lines_ : dict of str to Line2D
        The means of the embedder, by column.

    See Also
    --------
    skcontrast.metrics.compare_with_baselines : The numbers without a figure.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn.datasets import load_iris
    >>> from skcontrast import ContrastiveEmbedder
    >>> from skcontrast.plotting import BaselinesDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> embedder = ContrastiveEmbedder(max_epochs=5, random_state=0).fit(X)
    >>> display = BaselinesDisplay.from_estimator(embedder, X, y, n_repeats=3, random_state=0)
    >>> list(display.lines_)
    ['few labels', 'neighbours', 'linear']
    """

    def __init__(self, comparison: BaselineComparison):
        self.comparison = comparison

    @classmethod
    @guarded()
    def from_estimator(
        cls,
        estimator: ContrastiveEmbedder | Pipeline,
        X: Any,
        y: ArrayLike,
        *,
        n_labels: int = 5,
        n_repeats: int = 10,
        random_state: int | np.random.RandomState | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> BaselinesDisplay:
        """Compare an estimator with baselines, and draw the accuracies.

        Parameters
        ----------
        estimator : ContrastiveEmbedder, or Pipeline that ends in one
            If it is not fitted, a clone is fitted to X.
        X : array-like, DataFrame, Dataset or list of graphs
            Samples.
        y : array-like of shape (n_samples,)
            Classes; −1 where unknown.
        n_labels, n_repeats, random_state : int, int, int or RandomState or None
            As in :func:`skcontrast.metrics.compare_with_baselines`.
        ax : Axes, default=None
            The axes to draw on; None makes a figure.
        **kwargs : dict
            Passed to ``Axes.errorbar``.

        Returns
        -------
        display : BaselinesDisplay
            Already drawn.
        """
        comparison = compare_with_baselines(
            estimator, X, y, n_labels=n_labels, n_repeats=n_repeats, random_state=random_state
        )
        return cls(comparison).plot(ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> BaselinesDisplay:
        """Draw the accuracies.

        Parameters
        ----------
        ax : Axes, default=None
            The axes to draw on; None makes a figure.
        **kwargs : dict
            Passed to ``Axes.errorbar``.

        Returns
        -------
        display : BaselinesDisplay
            This display.
        """
        scores, records = self.comparison.scores, self.comparison.records
        self.ax_ = axes(ax, figsize=(6.0, 1.4 + 0.42 * len(scores)))
        self.figure_ = self.ax_.figure
        colors = class_colors(len(COLUMNS))
        self.points_: dict[str, dict[str, Any]] = {row: {} for row in scores}
        self.lines_ = {}
        for k, column in enumerate(COLUMNS):
            style = {"color": colors[k], "lw": 0.8, "ls": "--", "zorder": 0}
            self.lines_[column] = self.ax_.axvline(scores[OURS][column].mean(), **style)
            for y, record in enumerate(records):
                row, offset = record["row"], _SPREAD * ((k + 0.5) / len(COLUMNS) - 0.5)
                differs = row == OURS or record[f"p, {column}"] < LEVEL
                style = {
                    "color": colors[k],
                    "marker": MARKERS[k % len(MARKERS)],
                    "markersize": 5,
                    "markerfacecolor": colors[k] if differs else "white",
                    "lw": 1,
                    **kwargs,
                }
                values = scores[row][column]
                self.points_[row][column] = self.ax_.errorbar(
                    values.mean(), y + offset, xerr=values.std(), **style
                )
        n_labels = self.comparison.n_labels
        few_labels = f"{n_labels} label{'' if n_labels == 1 else 's'} per class"
        names = [few_labels if column == "few labels" else column for column in COLUMNS]
        # The last row is the embedder's, whose points are filled.
        handles = list(self.points_[records[-1]["row"]].values())
        above_axes: dict[str, Any] = {"loc": "lower center", "bbox_to_anchor": (0.5, 1)}
        self.ax_.legend(handles, names, **above_axes, ncols=len(names), frameon=False)
        self.ax_.set(
            xlabel="accuracy", yticks=range(len(records)), ylim=(len(records) - 0.5, -0.5)
        )
        self.ax_.set_yticklabels([record["row"] for record in records])
        return self


class ReliabilityDisplay:
    """The probability of a true negative at each rank: predicted by losses, and observed.

    Parameters
    ----------
    reliabilities : dict of str to Reliability
        Results of :func:`skcontrast.estimation.reliability` on the same scores, by name of the
        loss.

    Attributes
    ----------
    ax_ : Axes
        The axes of the curves.
    figure_ : Figure
        The figure of `ax_`.
    lines_ : dict of str to Line2D
        The predictions, by name.
    observed_ : Line2D
        The observed shares of true negatives.

    See Also
    --------
    skcontrast.estimation.reliability : The numbers without a figure.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from skcontrast.estimation import ScoreSample
    >>> from skcontrast.losses import BCL, Ring
    >>> y = np.repeat(np.arange(10), 20)
    >>> views = np.random.default_rng(0).normal(np.eye(10)[y], 0.3, (2, 200, 10))
    >>> sample = ScoreSample.from_views(*views, y=y)
    >>> from skcontrast.plotting import ReliabilityDisplay
    >>> losses = {"BCL": BCL(alpha=0.9), "Ring": Ring(outer=1.0, inner=0.1)}
    >>> display = ReliabilityDisplay.from_sample(sample, losses)
    >>> list(display.lines_)
    ['BCL', 'Ring']
    """

    def __init__(self, reliabilities: Mapping[str, Reliability]):
        self.reliabilities = reliabilities

    @classmethod
    @guarded()
    def from_sample(
        cls,
        sample: ScoreSample,
        losses: Mapping[str, Loss],
        *,
        n_bins: int = 10,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> ReliabilityDisplay:
        """Compute the probabilities of a sample of scores, and draw them.

        Parameters
        ----------
        sample : ScoreSample
            Scores, and whether each negative is a true one.
        losses : dict of str to Loss
            Losses by name. Each must have ``true_negative_probability``.
        n_bins : int, default=10
            Number of bins of ranks.
        ax : Axes, default=None
            The axes to draw on; None makes a figure.
        **kwargs : dict
            Passed to ``Axes.plot`` for the predictions.

        Returns
        -------
        display : ReliabilityDisplay
            Already drawn.
        """
        reliabilities = {name: reliability(loss, sample, n_bins) for name, loss in losses.items()}
        return cls(reliabilities).plot(ax, **kwargs)

    @classmethod
    @guarded()
    def from_estimator(
        cls,
        embedder: ContrastiveEmbedder,
        X: Any,
        y: Sequence | NDArray,
        losses: Mapping[str, Loss] | None = None,
        *,
        n_bins: int = 10,
        ax: Axes | None = None,
        random_state: int = 0,
        **kwargs: Any,
    ) -> ReliabilityDisplay:
        """Compute the probabilities from two views of each sample, and draw them.

        Parameters
        ----------
        embedder : ContrastiveEmbedder
            Model.
        X : array-like or list of graphs
            Samples of the shape seen in `fit`; a few hundred are enough.
        y : array-like of shape (n,)
            Classes; −1 where unknown.
        losses : dict of str to Loss, default=None
            As in `from_sample`; None is the embedder's loss with its last estimates.
        n_bins : int, default=10
            Number of bins of ranks.
        ax : Axes, default=None
            The axes to draw on; None makes a figure.
        random_state : int, default=0
            Seeds the views.
        **kwargs : dict
            Passed to ``Axes.plot`` for the predictions.

        Returns
        -------
        display : ReliabilityDisplay
            Already drawn.
        """
        views = project_views(embedder, X, random_state=random_state)
        if losses is None:
            loss = clone(embedder.loss_).set_params(**embedder.estimates_)
            losses = {type(loss).__name__: loss}
        sample = ScoreSample.from_views(*views, y=y, similarity=embedder.similarity_)
        return cls.from_sample(sample, losses, n_bins=n_bins, ax=ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> ReliabilityDisplay:
        """Draw the probabilities.

        Parameters
        ----------
        ax : Axes, default=None
            The axes to draw on; None makes a figure.
        **kwargs : dict
            Passed to ``Axes.plot`` for the predictions.

        Returns
        -------
        display : ReliabilityDisplay
            This display.
        """
        self.ax_ = axes(ax)
        self.figure_ = self.ax_.figure
        # The losses share the scores, so the observed shares are the same for all.
        first = next(iter(self.reliabilities.values()))
        (self.observed_,) = self.ax_.plot(
            first.ranks, first.observed, "o-", color="black", lw=3, alpha=0.4, label="observed"
        )
        self.lines_ = {}
        colors = class_colors(len(self.reliabilities))
        for k, (name, curve) in enumerate(self.reliabilities.items()):
            style = {"label": name, "color": colors[k], "marker": MARKERS[k % len(MARKERS)]}
            style = {**style, "markersize": 4, **kwargs}
            (self.lines_[name],) = self.ax_.plot(curve.ranks, curve.predicted, **style)
        self.ax_.set(
            xlabel="rank u among the candidates", ylabel="p(true negative | u)", xlim=(0, 1)
        )
        self.ax_.legend()
        return self
