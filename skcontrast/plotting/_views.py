"""Displays of samples: with their views, and with their nearest neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.metrics.pairwise import cosine_similarity

from .._checks import Interval
from .._checks._arguments import as_numbers, check_argument, naming
from .._data._metadata import is_unknown
from .._model._defaults import defaults_of
from .._model._model import chosen_rows, drawn_views
from .._runtime import generator_of, guarded
from ..augmentation import Augmentation
from ..embedder import ContrastiveEmbedder
from ..metrics._labeled import EMBEDDINGS
from ..metrics._scorers import embed, split_at_embedder
from ._axes import (
    Axes,
    as_pictures,
    axes,
    drawer,
    frame_grid,
    grid_size,
    is_images,
    is_series,
    one_per_sample,
)


class ViewsDisplay:
    """Samples and their views.

    Images are drawn in a grid with a column for each sample and the original on top. Black is 0
    and white 255 for uint8; for other dtypes they are the extremes of the originals. Series are
    drawn in a grid with a row for each sample and the original on the left. Each channel is a line
    with its own scale. For views of other kinds, use
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
    @guarded()
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
            Number of views per sample.
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
        if (picture := defaults_of(drawn.schema.kind).picture) is None:
            raise ValueError(
                f"{cls.__name__} draws images and series, not {drawn.schema.kind.name}: "
                "embedder.views(X) returns their views."
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

        # Rows and columns: series have a row for each sample, images a column.
        cells = [
            [draw(x, *((k, v) if self.as_series else (v, k))) for k, x in enumerate(X)]
            for v, X in enumerate(shown)
        ]
        frame_grid(self.ax_, *((n, len(shown)) if self.as_series else (len(shown), n)))
        if self.as_series:
            self.series_ = cells
            self.ax_.set_aspect("auto")
            self.ax_.set_xticks(range(len(shown)), labels)
            self.ax_.set_yticks(range(n), self.names or [str(k) for k in range(n)])
            self.ax_.xaxis.tick_top()
        else:
            self.images_ = cells
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


_FRAME: dict[str, Any] = {"fill": False, "linewidth": 2}
_RIGHT: dict[str, Any] = {"edgecolor": "#009E73", "linestyle": "-"}
_WRONG: dict[str, Any] = {"edgecolor": "#D55E00", "linestyle": "--"}


class RetrievalDisplay:
    """Queries and their nearest neighbours, one query per row.

    Parameters
    ----------
    pictures : array-like of shape (n, h, w) or (n, channels, h, w), or sequence of n str
        An image, a series or a text for each sample. An array that has the shape of series is
        drawn as lines, one for each channel, each with its own scale; if it holds images, pass
        ``pictures[:, None]``.
    queries : array-like of shape (n_queries,), int
        Rows of `pictures`.
    neighbors : array-like of shape (n_queries, n_neighbors), int
        Rows of `pictures`, the nearest first.
    y : array-like of shape (n,), default=None
        Classes, −1 where unknown. The frame of a neighbour is green if it has the class of its
        query, and dashed red if not.
    concentration : array-like of shape (n,), default=None
        Concentrations κ, written under the samples.

    Attributes
    ----------
    ax_ : Axes
        The axes of the grid.
    figure_ : Figure
        The figure of `ax_`.
    cells_ : list of list of AxesImage, Text or list of Line2D
        For each query, its cell and those of its neighbours.
    frames_ : dict of (int, int) to Rectangle
        The frames, by query and rank of the neighbour from 0.
    notes_ : list of list of Text
        The concentrations under the cells, if there are any.

    See Also
    --------
    EmbeddingDisplay : All samples in one map.
    ViewsDisplay : Samples and their views.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn.datasets import load_digits
    >>> from skcontrast import ContrastiveEmbedder
    >>> from skcontrast.plotting import RetrievalDisplay
    >>> digits = load_digits()
    >>> X, y = digits.images[:200], digits.target[:200]
    >>> embedder = ContrastiveEmbedder(max_epochs=1, random_state=0).fit(X)
    >>> display = RetrievalDisplay.from_estimator(embedder, X, y, queries=[0, 1], n_neighbors=4)
    >>> len(display.cells_), len(display.cells_[0]), len(display.frames_)
    (2, 5, 8)
    """

    def __init__(
        self,
        pictures: ArrayLike | Sequence[str],
        queries: ArrayLike,
        neighbors: ArrayLike,
        *,
        y: ArrayLike | None = None,
        concentration: ArrayLike | None = None,
    ):
        self.pictures = np.asarray(as_pictures(pictures))
        if not is_images(self.pictures) and self.pictures.ndim != 1:
            raise ValueError(
                f"pictures must be images or texts, got shape {self.pictures.shape}: pass "
                "pictures= with one for each sample."
            )
        self.queries, self.neighbors = np.asarray(queries), np.asarray(neighbors)
        n = len(self.pictures)
        self.y = one_per_sample(y, "y", n, is_flat=True)
        self.concentration = one_per_sample(concentration, "concentration", n, is_flat=True)

    @classmethod
    @guarded()
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike | None = None,
        *,
        pictures: ArrayLike | Sequence[str] | None = None,
        **kwargs: Any,
    ) -> RetrievalDisplay:
        """Find the neighbours in the embedding of a fitted estimator and draw them.

        If the estimator has concentrations, or is a Pipeline that ends in such an embedder, κ is
        written under each sample.

        Parameters
        ----------
        estimator : ContrastiveEmbedder, Pipeline or any other transformer
            Model; its ``transform`` returns the embeddings.
        X : array-like or list of graphs
            Samples as the estimator takes them; neighbours are searched among them.
        y : array-like of shape (n_samples,), default=None
            Classes, −1 where unknown.
        pictures : array-like of images or series or sequence of str, default=None
            An image, a series or a text for each sample; None draws X.
        **kwargs : dict
            Passed to `from_embeddings`.

        Returns
        -------
        display : RetrievalDisplay
            Already drawn.
        """
        pictures = X if pictures is None else pictures
        h = embed(estimator, X)
        kwargs.setdefault("concentration", _concentration(estimator, X))
        return cls.from_embeddings(h, pictures, y, **kwargs)

    @classmethod
    @guarded()
    def from_embeddings(
        cls,
        h: ArrayLike,
        pictures: ArrayLike | Sequence[str],
        y: ArrayLike | None = None,
        *,
        queries: ArrayLike | int = 5,
        n_neighbors: int = 6,
        concentration: ArrayLike | None = None,
        ax: Axes | None = None,
        random_state: int | np.random.RandomState | None = 0,
        **kwargs: Any,
    ) -> RetrievalDisplay:
        """Find the neighbours with the highest cosines and draw them.

        Parameters
        ----------
        h : array-like of shape (n_samples, d)
            Embeddings.
        pictures : array-like of images or series or sequence of str
            An image, a series or a text for each sample, as for the class.
        y : array-like of shape (n_samples,), default=None
            Classes, −1 where unknown.
        queries : int or array-like of int, default=5
            Number of queries to choose at random, or the rows of h to use as queries.
        n_neighbors : int, default=6
            Neighbours of each query, at most n_samples − 1. A query is not its own neighbour.
        concentration : array-like of shape (n_samples,), default=None
            Concentrations κ.
        ax : Axes, default=None
            The axes to draw on; None makes a figure.
        random_state : int, RandomState instance or None, default=0
            Seeds the choice of the queries.
        **kwargs : dict
            Passed to ``Axes.imshow``, to ``Axes.plot`` for series or ``Axes.text`` for texts.

        Returns
        -------
        display : RetrievalDisplay
            Already drawn.

        Raises
        ------
        ValueError
            If there are fewer samples than queries or neighbours, or lengths differ.
        """
        points: NDArray = as_numbers(h, "h", EMBEDDINGS, ensure_min_samples=2)
        pictures = one_per_sample(as_pictures(pictures), "pictures", len(points))
        rows = _queries(queries, len(points), random_state)
        within = [Interval(Integral, 1, len(points) - 1, closed="both")]
        check_argument("RetrievalDisplay", "n_neighbors", n_neighbors, within)
        neighbors = _nearest_rows(points, rows, n_neighbors)
        display = cls(pictures, rows, neighbors, y=y, concentration=concentration)
        return display.plot(ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> RetrievalDisplay:
        """Draw the queries and their neighbours.

        Parameters
        ----------
        ax : Axes, default=None
            The axes to draw on; None makes a figure.
        **kwargs : dict
            Passed to ``Axes.imshow``, to ``Axes.plot`` for series or ``Axes.text`` for texts.

        Returns
        -------
        display : RetrievalDisplay
            This display.
        """
        from matplotlib.patches import Rectangle

        n_queries, n_neighbors = self.neighbors.shape
        self.ax_ = axes(ax, figsize=grid_size(n_queries, 1 + n_neighbors))
        self.figure_ = self.ax_.figure
        self.cells_: list[list[Any]] = []
        self.frames_, self.notes_ = {}, []
        draw = self._text
        if is_images(self.pictures):
            draw = drawer(self.ax_, self.pictures, as_series=is_series(self.pictures), **kwargs)
            kwargs = {}
        for row, (query, nearest) in enumerate(zip(self.queries, self.neighbors, strict=True)):
            samples = [query, *nearest]
            cells = [draw(self.pictures[k], row, c, **kwargs) for c, k in enumerate(samples)]
            self.cells_.append(cells)
            if self.concentration is not None:
                box = {"facecolor": "white", "alpha": 0.8, "linewidth": 0, "pad": 0.8}
                style: dict[str, Any] = {"va": "bottom", "fontsize": "x-small", "bbox": box}
                texts = [f"κ {kappa:.3g}" for kappa in self.concentration[samples]]
                notes = [self._text(t, row + 0.44, c, **style) for c, t in enumerate(texts)]
                self.notes_.append(notes)
            # A frame is drawn where both classes are known.
            for rank, k in enumerate(nearest if self.y is not None else ()):
                if not (is_unknown(self.y[query]) or is_unknown(self.y[k])):
                    style = _RIGHT if self.y[query] == self.y[k] else _WRONG
                    frame = Rectangle((rank + 0.53, row - 0.47), 0.94, 0.94, **_FRAME, **style)
                    self.frames_[row, rank] = self.ax_.add_patch(frame)
        frame_grid(self.ax_, n_queries, 1 + n_neighbors)
        self.ax_.axvline(0.5, color="black", linewidth=1)
        ranks = map(str, range(1, 1 + n_neighbors))
        self.ax_.set_xticks(range(1 + n_neighbors), ["query", *ranks])
        self.ax_.set_yticks([])
        self.ax_.xaxis.tick_top()
        return self

    def _text(self, text: Any, row: float, column: int, **kwargs: Any) -> Any:
        style = {"ha": "center", "va": "center", "fontsize": "small", **kwargs}
        return self.ax_.text(column, row, str(text), **style)


def _queries(queries: Any, n_samples: int, random_state: Any) -> NDArray:
    """Return the rows to use as queries."""
    if isinstance(queries, Integral) and not isinstance(queries, bool):
        if not 1 <= int(queries) <= n_samples:
            raise ValueError(f"queries must be in [1, {n_samples}], got {queries!r}.")
        return generator_of(random_state).choice(n_samples, queries, replace=False)
    with naming("queries", f"an array of ints below {n_samples}", queries):
        return np.arange(n_samples)[np.atleast_1d(queries)]


def _nearest_rows(h: NDArray, rows: NDArray, n_neighbors: int) -> NDArray:
    """Return the rows of the nearest neighbours, without the query itself."""
    cosines = cosine_similarity(h[rows], h)
    cosines[np.arange(len(rows)), rows] = -np.inf
    return np.argsort(-cosines, axis=1, kind="stable")[:, :n_neighbors]


def _concentration(estimator: Any, X: Any) -> NDArray | None:
    """Return the concentrations of an embedder or of a Pipeline that ends in one, or None."""
    try:
        before, embedder = split_at_embedder(estimator, at_end=False)
    except TypeError:
        return None
    if not hasattr(embedder, "concentration"):
        return None
    return embedder.concentration(X if before is None else before.transform(X))
