"""A display of an embedder and of what needs no training."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from .._baselines import COLUMNS, LEVEL, OURS
from .._checks import check_component
from ..metrics import BaselineComparison, compare_with_baselines
from ._axes import MARKERS, Axes, axes, class_colors

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

    from ..embedder import ContrastiveEmbedder

# Columns of a row stand side by side in so much of the distance between rows.
_SPREAD = 0.5


class BaselinesDisplay:
    """Accuracies of an embedder and of what needs no training, row by row.

    A point is the mean over the repeats, its bar one standard deviation on either side. A hollow
    point cannot be told from the embedder: the paired t-test has p ≥ 0.05. Dashed lines are at the
    means of the embedder.

    Parameters
    ----------
    comparison : BaselineComparison
        As :func:`skcontrast.metrics.compare_with_baselines` returns it.

    Attributes
    ----------
    ax_ : Axes
        The axes.
    figure_ : Figure
        The figure of `ax_`.
    points_ : dict of str to dict of str to ErrorbarContainer
        By row and column.
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
        check_component(
            comparison, BaselineComparison, owner=type(self).__name__, parameter="comparison"
        )
        self.comparison = comparison

    @classmethod
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
        """Compare and draw.

        Parameters
        ----------
        estimator : ContrastiveEmbedder, or Pipeline that ends in one
            Fitted; otherwise a clone is fitted to X.
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
            ours = records[-1][column]
            self.lines_[column] = self.ax_.axvline(
                ours, color=colors[k], lw=0.8, ls="--", zorder=0
            )
            for place, record in enumerate(records):
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
                    values.mean(), place + offset, xerr=values.std(), **style
                )
        n_labels = self.comparison.n_labels
        few = f"{n_labels} label{'' if n_labels == 1 else 's'} a class"
        names = [few if column == "few labels" else column for column in COLUMNS]
        # The last row is the embedder's, whose points are filled.
        handles = list(self.points_[records[-1]["row"]].values())
        above: dict[str, Any] = {"loc": "lower center", "bbox_to_anchor": (0.5, 1)}
        self.ax_.legend(handles, names, **above, ncols=len(names), frameon=False)
        self.ax_.set(
            xlabel="accuracy", yticks=range(len(records)), ylim=(len(records) - 0.5, -0.5)
        )
        self.ax_.set_yticklabels([record["row"] for record in records])
        return self
