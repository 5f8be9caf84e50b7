"""A display of samples and their views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from .._checks import check_argument, checked, naming, numbers
from .._data._sources import LazySamples, representative_array
from .._data._statistics import mean_and_std
from .._fit._drawn_views import chosen_rows, drawn_views
from ..augmentation import Augmentation
from ..embedder import ContrastiveEmbedder
from ..kinds._images import Images
from ..kinds._series import Series
from ..kinds._vectors import Vectors
from ..metrics._scorers import split_at_embedder
from ._axes import (
    MARKERS,
    Axes,
    axes,
    class_colors,
    draw_cell,
    draw_series,
    frame_grid,
    grid_size,
    intensities,
    is_images,
    is_series,
    one_each,
    ranges,
)

# Vectors of more features than this are drawn as lines, and their features are not named.
_MOST_BARS = 30


class ViewsDisplay:
    """Samples and their views: the first thing to look at.

    Images are drawn in a grid with a column for each sample, the original on top; series in one
    with a row for each sample, the original on the left, a line for each channel, each channel on
    a scale of its own. Of vectors, the features are bars (lines if there are more than 30) and
    those of the views markers (or lines), each sample at its own height.

    Parameters
    ----------
    samples : array-like of shape (n, n_features), (n, h, w) or (n, channels, h, w)
        The originals: vectors, images, or series (n, n_channels, n_times), in which NaN follows
        the end.
    views : sequence of array-likes of the shape of `samples`
        Each holds one view of each sample, as
        :meth:`ContrastiveEmbedder.views <skcontrast.ContrastiveEmbedder.views>` returns them.
    limits : tuple of two floats, default=None
        The intensities that are drawn black and white; None takes 0 and 255 for uint8, and else
        the lowest and the highest in `samples`.
    names : sequence of str, default=None
        Names of the samples; None numbers them.
    feature_names : sequence of str, default=None
        Names of the features of vectors.
    xlabel : str, default="feature"
        Label of the x axis of vectors.
    as_series : bool, default=None
        Whether arrays of three dimensions are series; None is what an embedder recognises.

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
    originals_ : list of BarContainer or Line2D
        A sample each; only for vectors.
    lines_ : list of list of Line2D
        For each set of views, the views of the samples; only for vectors.

    See Also
    --------
    skcontrast.ContrastiveEmbedder.views : The views without a figure.
    RetrievalDisplay : Images that an embedder takes for similar.

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
        limits: tuple[float, float] | None = None,
        names: Sequence[str] | None = None,
        feature_names: Sequence[str] | None = None,
        xlabel: str = "feature",
        as_series: bool | None = None,
    ):
        settings: dict[str, Any] = {"ensure_2d": False, "allow_nd": True, "dtype": "numeric"}
        check_argument("ViewsDisplay", "as_series", as_series, ["boolean", None])
        self.as_series = is_series(samples) if as_series is None else bool(as_series)
        settings["ensure_all_finite"] = "allow-nan" if self.as_series else True
        self.samples = numbers(samples, "samples", **settings)
        with naming("views", "a sequence of arrays", views):
            self.views = [numbers(view, "views", **settings) for view in views]
        dimensions = (3,) if self.as_series else (2, 3, 4)
        shapes = {view.shape for view in (self.samples, *self.views)}
        if len(shapes) > 1 or not views or self.samples.ndim not in dimensions:
            others = "vectors (n, n_features), images (n, h, w) or (n, channels, h, w) or "
            raise ValueError(
                "samples and each of views must be arrays of one shape, "
                f"{'by as_series=True ' if as_series else others}series (n, channels, times), got "
                f"{sorted(shapes)} and {len(views)} views."
            )
        self.limits, self.xlabel = limits, xlabel
        self.names = _texts(names, "names", len(self.samples))
        self.feature_names = _texts(feature_names, "feature_names", self.samples.shape[1])

    @classmethod
    @checked(standardize=["boolean"])
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        rows: Any = slice(8),
        n_views: int = 2,
        standardize: bool = True,
        ax: Axes | None = None,
        random_state: int | np.random.RandomState | None = 0,
        **kwargs: Any,
    ) -> ViewsDisplay:
        """Draw views and show them.

        Parameters
        ----------
        estimator : ContrastiveEmbedder, Pipeline, augmentation or list of augmentations
            An embedder, which need not be fitted, see
            :meth:`ContrastiveEmbedder.views <skcontrast.ContrastiveEmbedder.views>`; a Pipeline
            with an embedder as a step; or what an embedder is passed as ``augmentation``.
        X : array-like
            Images, series or vectors, as the estimator takes them.
        rows : array-like of int or bool, or slice, default=slice(8)
            The samples that are shown.
        n_views : int, default=2
            Views of each.
        standardize : bool, default=True
            Whether vectors are shown in standard deviations from the mean of each feature in X,
            so that features of different units fit one axis.
        ax : Axes, default=None
            The axes to draw on; None makes a figure.
        random_state : int, RandomState instance or None, default=0
            Seeds the views.
        **kwargs : dict
            Passed to ``Axes.imshow`` for images and to ``Axes.plot`` for series and the views of
            vectors.

        Returns
        -------
        display : ViewsDisplay
            Already drawn.

        Raises
        ------
        ValueError
            If X holds neither images nor series nor vectors.
        """
        embedder, X = _embedder_and_input(estimator, X)
        drawn = drawn_views(embedder, X, n_views, rows, random_state)
        kind = drawn.schema.kind
        if not isinstance(kind, (Images, Series, Vectors)):
            raise ValueError(
                f"{cls.__name__} draws images, series and vectors, not {kind.name}. "
                "ContrastiveEmbedder.views returns their views."
            )
        names = [str(row) for row in chosen_rows(rows, len(drawn.X))]
        settings: dict[str, Any] = {"names": names, "as_series": isinstance(kind, Series)}
        settings["feature_names"] = drawn.schema.feature_names_in
        if isinstance(kind, Images):
            # Those of a Dataset would have to be read first.
            is_lazy = isinstance(drawn.X, LazySamples)
            settings["limits"] = intensities(drawn.samples if is_lazy else drawn.X)
        samples, views = drawn.samples, list(drawn.views)
        if standardize and isinstance(kind, Vectors):
            mean, std = mean_and_std(representative_array(drawn.X))
            samples, *views = ((vectors - mean) / std for vectors in (samples, *views))
            settings["xlabel"] = "feature, in standard deviations from its mean"
        return cls(samples, views, **settings).plot(ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> ViewsDisplay:
        """Draw the samples and their views.

        Parameters
        ----------
        ax : Axes, default=None
            The axes to draw on; None makes a figure.
        **kwargs : dict
            Passed to ``Axes.imshow`` for images and to ``Axes.plot`` for series and the views of
            vectors.

        Returns
        -------
        display : ViewsDisplay
            This display.
        """
        of_images, n = is_images(self.samples) and not self.as_series, len(self.samples)
        size = (6.5, (0.4 if self.as_series else 2.0) + 0.9 * n)
        self.ax_ = axes(ax, figsize=grid_size(1 + len(self.views), n) if of_images else size)
        self.figure_ = self.ax_.figure
        if self.as_series:
            self._plot_series(**kwargs)
        elif of_images:
            self._plot_images(**kwargs)
        else:
            self._plot_vectors(**kwargs)
        return self

    def _plot_images(self, **kwargs: Any) -> None:
        limits = self.limits or intensities(self.samples)
        shown = (self.samples, *self.views)
        self.images_: list[list[Any]] = []
        for row, images in enumerate(shown):
            cells = [(image, row, column, limits) for column, image in enumerate(images)]
            self.images_.append([draw_cell(self.ax_, *cell, **kwargs) for cell in cells])
        frame_grid(self.ax_, len(shown), len(self.samples))
        self.ax_.set_yticks(range(len(shown)), self._labels())

    def _plot_series(self, **kwargs: Any) -> None:
        n, shown = len(self.samples), (self.samples, *self.views)
        limits = ranges(np.concatenate(shown))
        self.series_ = [
            [draw_series(self.ax_, x, row, column, limits, **kwargs) for row, x in enumerate(each)]
            for column, each in enumerate(shown)
        ]
        frame_grid(self.ax_, n, len(shown))
        self.ax_.set_aspect("auto")
        self.ax_.set_xticks(range(len(shown)), self._labels())
        self.ax_.set_yticks(range(n), self.names or [str(k) for k in range(n)])
        self.ax_.xaxis.tick_top()

    def _plot_vectors(self, **kwargs: Any) -> None:
        originals, views = self.samples, self.views
        n, n_features = originals.shape
        x, as_bars = np.arange(n_features), n_features <= _MOST_BARS
        style: dict[str, Any]
        every = np.concatenate([originals, *views])
        step = 1.15 * float(np.ptp(every)) or 1.0
        heights = -step * np.arange(n)
        colors = class_colors(len(views))
        self.originals_: list[Any] = []
        self.lines_: list[list[Any]] = [[] for _ in views]
        for k, height in enumerate(heights):
            self.ax_.axhline(height, color="0.8", linewidth=0.8, zorder=0)
            if as_bars:
                style = {"bottom": height, "color": "0.75", "width": 0.8, "zorder": 1}
                self.originals_.append(self.ax_.bar(x, originals[k], **style))
            else:
                style = {"color": "black", "linewidth": 1.5}
                self.originals_ += self.ax_.plot(x, height + originals[k], **style)
            for j, view in enumerate(views):
                style = {"color": colors[j], "linewidth": 1, "alpha": 0.8}
                if as_bars:
                    marker = MARKERS[j % len(MARKERS)]
                    style = {**style, "linestyle": "none", "marker": marker, "markersize": 4}
                (line,) = self.ax_.plot(x, height + view[k], **{**style, **kwargs})
                self.lines_[j].append(line)
        handles = [self.originals_[0], *(lines[0] for lines in self.lines_)]
        self.ax_.legend(
            handles, self._labels(), loc="lower center", bbox_to_anchor=(0.5, 1), ncols=4
        )
        self.ax_.set_yticks(heights, self.names or [str(k) for k in range(n)])
        self.ax_.set(xlabel=self.xlabel, ylabel="sample")
        if as_bars and self.feature_names is not None:
            self.ax_.set_xticks(x, self.feature_names, rotation=45, ha="right")

    def _labels(self) -> list[str]:
        return ["original", *(f"view {k + 1}" for k in range(len(self.views)))]


def _embedder_and_input(estimator: Any, X: Any) -> tuple[ContrastiveEmbedder, Any]:
    """Return an embedder and the X that it is passed, after the steps of a Pipeline before it."""
    if isinstance(estimator, (Augmentation, list, tuple)):
        return ContrastiveEmbedder(augmentation=estimator), X
    before, embedder = split_at_embedder(estimator, at_end=False)
    if before is None:
        return embedder, X
    if embedder.__sklearn_is_fitted__():
        return embedder, before.transform(X)
    return embedder, clone(before).fit_transform(X)


def _texts(names: Any, name: str, n: int) -> list[str] | None:
    return None if names is None else [str(text) for text in one_each(names, name, n)]
