"""A display of embeddings as points in the plane."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.multiclass import type_of_target

from .._checks import Interval
from .._checks._arguments import as_numbers, validated
from .._data._metadata import split_known
from .._runtime import generator_of, guarded
from ..metrics._labeled import EMBEDDINGS
from ..metrics._scorers import embed
from ._axes import Axes, axes, class_colors, intensities, one_per_sample, picture

# Classes beyond this number cannot be distinguished by their colours.
_MOST_CLASSES = 20
_UNKNOWN = -1
# Classes in a column of the legend, and the side of a thumbnail, as a share of the diagonal.
_LEGEND_ROWS, _SIDE = 20, 0.05


class EmbeddingDisplay:
    """A map of embeddings in the plane, coloured by labels.

    Neighbours in the map tend to be neighbours in the embedding. With t-SNE and UMAP, do not read
    anything into the sizes of clusters or the distances between them.

    Parameters
    ----------
    points : array-like of shape (n, 2)
        Coordinates of the samples in the map.
    y : array-like of shape (n,), default=None
        Classes, −1 or None where unknown, or numbers.
    thumbnails : ndarray of shape (n, h, w) or (n, channels, h, w), default=None
        Images of the samples, drawn at their points where they do not overlap.
    xlabel, ylabel : str, default=""
        Labels of the axes.

    Attributes
    ----------
    ax_ : Axes
        The axes of the map.
    figure_ : Figure
        The figure of `ax_`.
    rows_ : ndarray of shape (n,), dtype int64
        The rows of X or h that were drawn.
    scatters_ : dict of object to PathCollection
        The points by class; if y does not hold classes, all points, under None.
    legend_ : Legend or None
        The legend of the classes.
    colorbar_ : Colorbar or None
        The scale of the colours if y holds numbers.
    thumbnails_ : dict of int to AnnotationBbox
        The images that are drawn, by index into `points`.

    See Also
    --------
    RetrievalDisplay : Samples and their nearest neighbours.
    skcontrast.metrics.neighbor_agreement : How many neighbours are of the same class.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn.datasets import load_digits
    >>> from skcontrast import ContrastiveEmbedder
    >>> from skcontrast.plotting import EmbeddingDisplay
    >>> X, y = load_digits(n_class=4, return_X_y=True)
    >>> embedder = ContrastiveEmbedder(max_epochs=1, random_state=0).fit(X)
    >>> display = EmbeddingDisplay.from_estimator(embedder, X, y, method="pca")
    >>> [text.get_text() for text in display.legend_.get_texts()]
    ['0', '1', '2', '3']
    """

    def __init__(
        self,
        points: ArrayLike,
        y: ArrayLike | None = None,
        *,
        thumbnails: NDArray | None = None,
        xlabel: str = "",
        ylabel: str = "",
    ):
        self.points, self.thumbnails = np.asarray(points), thumbnails
        self.y = one_per_sample(y, "y", len(self.points), is_flat=True)
        self.xlabel, self.ylabel = xlabel, ylabel
        self.rows_ = np.arange(len(self.points))

    @classmethod
    @guarded()
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike | None = None, **kwargs: Any
    ) -> EmbeddingDisplay:
        """Draw the embeddings of samples by a fitted estimator.

        Parameters
        ----------
        estimator : ContrastiveEmbedder, Pipeline or any other transformer
            Model; its ``transform`` returns the embeddings.
        X : array-like or list of graphs
            Samples as the estimator takes them.
        y : array-like of shape (n_samples,), default=None
            Classes, −1 or None where unknown, or numbers.
        **kwargs : dict
            Passed to `from_embeddings`.

        Returns
        -------
        display : EmbeddingDisplay
            Already drawn.
        """
        return cls.from_embeddings(embed(estimator, X), y, **kwargs)

    @classmethod
    @guarded()
    @validated(
        subsample=[Interval(Integral, 3, None, closed="left"), None], random_state=["random_state"]
    )
    def from_embeddings(
        cls,
        h: ArrayLike,
        y: ArrayLike | None = None,
        *,
        method: Any = "tsne",
        subsample: int | None = 2000,
        thumbnails: NDArray | None = None,
        ax: Axes | None = None,
        random_state: int | np.random.RandomState | None = 0,
        **kwargs: Any,
    ) -> EmbeddingDisplay:
        """Draw embeddings.

        Parameters
        ----------
        h : array-like of shape (n_samples, d)
            Embeddings.
        y : array-like of shape (n_samples,), default=None
            Classes, −1 or None where unknown, or numbers.
        method : {"pca", "tsne"} or transformer, default="tsne"
            How embeddings are reduced to two dimensions: to their first two principal components;
            by t-SNE on cosine distances; or by the ``fit_transform`` of an object, such as
            ``umap.UMAP(metric="cosine")``. Embeddings of two dimensions (see
            :class:`~skcontrast.similarity.Cauchy`) are drawn without reduction, unless an object
            is passed.
        subsample : int or None, default=2000
            The number of samples to draw, chosen at random, if there are more; None draws all.
        thumbnails : ndarray of shape (n_samples, ..., h, w), default=None
            Images of the samples, grey or with channels first, drawn at their points where they
            do not overlap.
        ax : Axes, default=None
            The axes to draw on; None makes a figure.
        random_state : int, RandomState instance or None, default=0
            Seeds the choice of the samples and the map.
        **kwargs : dict
            Passed to ``Axes.scatter``.

        Returns
        -------
        display : EmbeddingDisplay
            Already drawn.

        Raises
        ------
        ValueError
            If the method is unknown or lengths differ.
        """
        points: NDArray = as_numbers(h, "h", EMBEDDINGS, ensure_min_samples=3)
        if points.shape[1] < 2:
            raise ValueError("h must have two columns or more, got one: draw a histogram of it.")
        labels = one_per_sample(y, "y", len(points), is_flat=True)
        thumbnails = one_per_sample(thumbnails, "thumbnails", len(points))
        rng = generator_of(random_state)
        rows = np.arange(len(points))
        if subsample is not None and subsample < len(points):
            rows = np.sort(rng.choice(len(points), subsample, replace=False))
        reducer, name = _reducer(method, len(rows), rng.randint(2**31 - 1))
        if points.shape[1] == 2 and isinstance(method, str):
            reducer, name = FunctionTransformer(), "dimension"
        display = cls(
            np.asarray(reducer.fit_transform(points[rows])),
            None if labels is None else labels[rows],
            thumbnails=None if thumbnails is None else thumbnails[rows],
            xlabel=f"{name} 1",
            ylabel=f"{name} 2",
        )
        display.rows_ = rows
        return display.plot(ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> EmbeddingDisplay:
        """Draw the points.

        Parameters
        ----------
        ax : Axes, default=None
            The axes to draw on; None makes a figure.
        **kwargs : dict
            Passed to ``Axes.scatter``.

        Returns
        -------
        display : EmbeddingDisplay
            This display.
        """
        classes = None if self.y is None else _known_classes(self.y)
        n_columns = 1 if classes is None else -(-len(classes) // _LEGEND_ROWS)
        self.ax_ = axes(ax, figsize=(5.1 + 1.1 * n_columns, 4.8))
        self.figure_ = self.ax_.figure
        self.scatters_: dict[Any, Any] = {}
        self.legend_: Any = None
        self.colorbar_: Any = None
        # The caller's settings come last, so they override.
        kwargs = {"s": 10, "linewidths": 0, **kwargs}
        if classes is not None:
            self._plot_classes(classes, n_columns, **kwargs)
        else:
            style = {"color": "#0072B2"} if self.y is None else {"c": self.y, "cmap": "viridis"}
            points = self.ax_.scatter(*self.points.T, **{**style, **kwargs})
            self.scatters_[None] = points
            if self.y is not None:
                self.colorbar_ = self.figure_.colorbar(points, ax=self.ax_, label="y")
        self.thumbnails_ = {} if self.thumbnails is None else self._drawn_thumbnails()
        self.ax_.set(xlabel=self.xlabel, ylabel=self.ylabel, xticks=[], yticks=[])
        return self

    def _plot_classes(self, classes: list[Any], n_columns: int, **kwargs: Any) -> None:
        known, is_known = split_known(self.y)
        colors = [*class_colors(len(classes)), "0.8"]
        for label, color in zip([*classes, _UNKNOWN], colors, strict=True):
            style = {"color": color, "label": str(label)}
            points = self.points[is_known][known == label]
            if label is _UNKNOWN:  # behind the known classes
                style = {"color": color, "label": "unknown", "zorder": 0.9}
                points = self.points[~is_known]
            if len(points):
                self.scatters_[label] = self.ax_.scatter(*points.T, **{**style, **kwargs})
        beside_axes: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.01, 1)}
        style = {"borderaxespad": 0, "markerscale": 2.5, "frameon": False}
        self.legend_ = self.ax_.legend(**beside_axes, **style, ncols=n_columns)

    def _drawn_thumbnails(self) -> dict[int, Any]:
        """Draw images at their points, except where they would overlap one drawn already."""
        from matplotlib.colors import Normalize
        from matplotlib.offsetbox import AnnotationBbox, OffsetImage

        images: Any = self.thumbnails
        limits, size = intensities(images), self.ax_.get_window_extent().size
        span = np.ptp(self.points, axis=0)
        # Distances are in pixels, because the sides of the axes differ in length.
        pixels = self.points / np.where(span > 0, span, 1) * size
        image_side = _SIDE * float(np.hypot(*size))
        drawn: dict[int, Any] = {}
        for k, point in enumerate(pixels):
            if drawn and np.abs(pixels[list(drawn)] - point).max(axis=1).min() < 1.1 * image_side:
                continue
            shown = picture(images[k], limits)
            # An OffsetImage draws each pixel as a point, 1/72 inch.
            zoom = 72 / self.figure_.dpi * image_side / max(shown.shape[:2])
            style: dict[str, Any] = {"cmap": "gray", "interpolation": "nearest"}
            image = OffsetImage(shown, zoom=zoom, norm=Normalize(*limits), **style)
            drawn[k] = AnnotationBbox(image, self.points[k], frameon=False)
            self.ax_.add_artist(drawn[k])
        return drawn


def _known_classes(y: NDArray) -> list[Any] | None:
    """Return the known classes in y, or None if it holds numbers or too many classes."""
    if y.dtype.kind == "f" and type_of_target(y[np.isfinite(y)]).startswith("continuous"):
        return None
    classes = np.unique(split_known(y)[0])
    are_too_many = classes.dtype.kind in "iuf" and len(classes) > _MOST_CLASSES
    return None if are_too_many else classes.tolist()


def _reducer(method: Any, n_samples: int, seed: int) -> tuple[Any, str]:
    """Return a transformer to two dimensions, and the name of its axes."""
    if hasattr(method, "fit_transform") and not isinstance(method, type):
        return clone(method), type(method).__name__
    if isinstance(method, str) and method == "pca":
        return PCA(2, random_state=seed), "principal component"
    if isinstance(method, str) and method == "tsne":
        perplexity = min(30.0, (n_samples - 1) / 3)
        return TSNE(metric="cosine", perplexity=perplexity, random_state=seed), "t-SNE"
    raise ValueError(
        f"method must be 'pca', 'tsne' or a transformer, such as umap.UMAP(), got {method!r}."
    )
