"""A display of samples and their views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from .._fit._defaults import defaults_of
from .._fit._drawn_views import chosen_rows, drawn_views
from ..augmentation import Augmentation
from ..embedder import ContrastiveEmbedder
from ..metrics._scorers import split_at_embedder
from ._axes import Axes, axes, drawer, frame_grid, grid_size, is_series


class ViewsDisplay:
    """Samples and their views.

    Images are drawn in a grid with a column for each sample and the original on top; black and
    white are 0 and 255 for uint8, and otherwise the extremes of the originals. Series are drawn in
    a grid with a row for each sample, the original on the left, and a line for each channel, which
    has its own scale. For views of other kinds, use
    :meth:`ContrastiveEmbedder.views <skcontrast.ContrastiveEmbedder.views>`.

    Parameters
    ----------
    samples : array-like of shape (n, h, w) or (n, channels, h, w)
        The originals: images, or series (n, n_channels, n_times), padded with NaN.
    views : sequence of array-likes of the shape of `samples`
        Each holds one view of each sample; ``ContrastiveEmbedder.views`` returns them.
    names : sequence of str, default=None
        Names of the samples; None numbers them.
    as_series : bool, default=None
        Whether arrays of three dimensions are series; None decides by their shape.

    Attributes
    ----------
    ax_ : Axes
        The axes of the grid.
    figure_ : Figure
        The figure of `ax_`.
    images_ : list of list of AxesImage
        The originals, and then each set of views; only for images.
    series_ : list of list of list of Line2D
        The originals, and then each set of views, a line for each channel; only for series.

    See Also
    --------
    skcontrast.ContrastiveEmbedder.views : The views without a figure.
    RetrievalDisplay : Samples and their nearest neighbours.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn.datasets import load_digits
    >>> from skcontrast import ContrastiveEmbedder
    >>> from skcontrast.plotting import ViewsDisplay
    >>> X = load_digits().images
    >>> display = ViewsDisplay.from_estimator(ContrastiveEmbedder(), X, rows=range(5))
    >>> len(display.images_), len(display.images_[0])  # originals and two views, of five samples
    (3, 5)
    """

    def __init__(
        self,
        samples: ArrayLike,
        views: Sequence[ArrayLike],
        *,
        names: Sequence[str] | None = None,
        as_series: bool | None = None,
    ):
        self.samples, self.views = np.asarray(samples), list(map(np.asarray, views))
        self.names = None if names is None else list(map(str, names))
        self.as_series = is_series(self.samples) if as_series is None else as_series

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        rows: Any = slice(8),
        n_views: int = 2,
        ax: Axes | None = None,
        random_state: int | np.random.RandomState | None = 0,
        **kwargs: Any,
    ) -> ViewsDisplay:
        """Draw random views of samples, and plot them.

        Parameters
        ----------
        estimator : ContrastiveEmbedder, Pipeline, augmentation or list of augmentations
            An embedder, which need not be fitted (see
            :meth:`ContrastiveEmbedder.views <skcontrast.ContrastiveEmbedder.views>`); a
            Pipeline with an embedder as a step; or any value of an embedder's ``augmentation``.
        X : array-like
            Images or series, as the estimator takes them.
        rows : array-like of int or bool, or slice, default=slice(8)
            The samples that are shown.
        n_views : int, default=2
            Views of each.
        ax : Axes, default=None
            The axes to draw on; None makes a figure.
        random_state : int, RandomState instance or None, default=0
            Seeds the views.
        **kwargs : dict
            Passed to ``Axes.imshow`` for images and to ``Axes.plot`` for series.

        Returns
        -------
        display : ViewsDisplay
            Already drawn.

        Raises
        ------
        ValueError
            If X holds neither images nor series.
        """
        embedder, X = _embedder_and_input(estimator, X)
        drawn = drawn_views(embedder, X, n_views, rows, random_state)
        picture = defaults_of(drawn.schema.kind).picture
        if picture is None:
            raise ValueError(
                f"{cls.__name__} draws images and series, not {drawn.schema.kind.name}, "
                "whose views embedder.views(X) returns."
            )
        names = [str(row) for row in chosen_rows(rows, len(drawn.X))]
        display = cls(drawn.samples, drawn.views, names=names, as_series=picture == "series")
        return display.plot(ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> ViewsDisplay:
        """Draw the samples and their views.

        Parameters
        ----------
        ax : Axes, default=None
            The axes to draw on; None makes a figure.
        **kwargs : dict
            Passed to ``Axes.imshow`` for images and to ``Axes.plot`` for series.

        Returns
        -------
        display : ViewsDisplay
            This display.
        """
        n, shown = len(self.samples), (self.samples, *self.views)
        size = (6.5, 0.4 + 0.9 * n) if self.as_series else grid_size(len(shown), n)
        self.ax_ = axes(ax, figsize=size)
        self.figure_ = self.ax_.figure
        labels = ["original", *(f"view {k}" for k in range(1, len(shown)))]
        scale = np.concatenate(shown) if self.as_series else self.samples
        draw = drawer(self.ax_, scale, as_series=self.as_series, **kwargs)
        if self.as_series:
            self.series_ = [
                [draw(x, row, column) for row, x in enumerate(samples)]
                for column, samples in enumerate(shown)
            ]
            frame_grid(self.ax_, n, len(shown))
            self.ax_.set_aspect("auto")
            self.ax_.set_xticks(range(len(shown)), labels)
            self.ax_.set_yticks(range(n), self.names or [str(k) for k in range(n)])
            self.ax_.xaxis.tick_top()
        else:
            self.images_ = [
                [draw(x, row, column) for column, x in enumerate(samples)]
                for row, samples in enumerate(shown)
            ]
            frame_grid(self.ax_, len(shown), n)
            self.ax_.set_yticks(range(len(shown)), labels)
        return self


def _embedder_and_input(estimator: Any, X: Any) -> tuple[ContrastiveEmbedder, Any]:
    """Return the embedder, and X transformed by the steps of a Pipeline before it."""
    if isinstance(estimator, (Augmentation, list, tuple)):
        return ContrastiveEmbedder(augmentation=estimator), X
    before, embedder = split_at_embedder(estimator, at_end=False)
    if before is None:
        return embedder, X
    if embedder.__sklearn_is_fitted__():
        return embedder, before.transform(X)
    return embedder, clone(before).fit_transform(X)
