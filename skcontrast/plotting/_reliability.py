"""A display of probabilities by rank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray
from sklearn.base import clone

from .._checks import check_component
from ..estimation import Reliability, ScoreSample, project_views, reliability
from ..losses import Loss
from ._axes import MARKERS, Axes, axes, class_colors

if TYPE_CHECKING:
    from ..embedder import ContrastiveEmbedder


class ReliabilityDisplay:
    """The probability of a true negative by rank: predicted by losses, and observed.

    Parameters
    ----------
    reliabilities : dict of str to Reliability
        As :func:`skcontrast.estimation.reliability` returns them, of the same scores, by name.

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
    >>> losses = {"BCL": BCL(0.9), "Ring": Ring(outer=1.0, inner=0.1)}
    >>> display = ReliabilityDisplay.from_sample(sample, losses)
    >>> list(display.lines_)
    ['BCL', 'Ring']
    """

    def __init__(self, reliabilities: Mapping[str, Reliability]):
        if not isinstance(reliabilities, Mapping) or not reliabilities:
            raise ValueError(f"reliabilities must be a non-empty dict, got {reliabilities!r}.")
        for one in reliabilities.values():
            check_component(one, Reliability, owner=type(self).__name__, parameter="reliabilities")
        self.reliabilities = reliabilities

    @classmethod
    def from_sample(
        cls,
        sample: ScoreSample,
        losses: Mapping[str, Loss],
        *,
        n_bins: int = 10,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> ReliabilityDisplay:
        """Compute and draw.

        Parameters
        ----------
        sample : ScoreSample
            Scores and the truth.
        losses : dict of str to Loss
            Losses with a probability of true negatives by rank, by name.
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
        if not isinstance(losses, Mapping):
            raise TypeError(f"losses must be a dict of losses by name, got {losses!r}.")
        found = {name: reliability(loss, sample, n_bins) for name, loss in losses.items()}
        return cls(found).plot(ax, **kwargs)

    @classmethod
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
        """Compute and draw, from two views of each sample as a fitted embedder sees them.

        Parameters
        ----------
        embedder : ContrastiveEmbedder
            Fitted.
        X : array-like or list of graphs
            Samples of the shape seen in `fit`; a few hundred are enough.
        y : array-like of shape (n,)
            Classes; −1 where unknown.
        losses : dict of str to Loss, default=None
            As in `from_sample`; None is the embedder's own loss, with its last estimates.
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
        # What was observed is the same for all losses, as they share the scores.
        first = next(iter(self.reliabilities.values()))
        (self.observed_,) = self.ax_.plot(
            first.ranks, first.observed, "o-", color="black", lw=3, alpha=0.4, label="observed"
        )
        self.lines_ = {}
        colors = class_colors(len(self.reliabilities))
        for k, (name, found) in enumerate(self.reliabilities.items()):
            style = {"label": name, "color": colors[k], "marker": MARKERS[k % len(MARKERS)]}
            style = {**style, "markersize": 4, **kwargs}
            (self.lines_[name],) = self.ax_.plot(found.ranks, found.predicted, **style)
        self.ax_.set(
            xlabel="rank u among the candidates", ylabel="p(true negative | u)", xlim=(0, 1)
        )
        self.ax_.legend()
        return self
