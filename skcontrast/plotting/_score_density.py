"""A display of the densities of scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import gaussian_kde

from .._arguments import Interval, StrOptions, check_arguments, checked, numbers
from .._parameters import check_component
from ..estimation import project_views
from ..similarity import Similarity
from ..simulation import ScoreModel, ScoreSample
from ._axes import STYLES, axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..embedder import ContrastiveEmbedder

_COMPONENTS = {
    "TN": "true negatives",
    "FN": "false negatives",
    "UN": "unlabeled candidates",
    "P": "positives",
}
# A kernel density of this many quantiles is as good as one of all scores, and much quicker.
_MOST_VALUES = 4000

_BINS = [Interval(Integral, 1, None, closed="left"), "array-like"]


class ScoreDensityDisplay:
    """Densities of the scores of true and false negatives.

    Parameters
    ----------
    densities : dict of str to (ndarray, ndarray)
        Points and density of "TN", "FN", "UN" or "P" (positives), or some of them.
    xlabel : str
        Label of the x axis: the meaning of the points.
    samples : dict of str to ndarray, default=None
        Values whose histograms are drawn behind the curves.

    Attributes
    ----------
    ax_ : Axes
        The axes of the curves.
    figure_ : Figure
        The figure of `ax_`.
    lines_ : dict of str to Line2D
        The curves.

    See Also
    --------
    EstimatorCurveDisplay : Estimates from such scores along one parameter.
    skcontrast.simulation.ScoreModel : The model of the scores.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from skcontrast.plotting import ScoreDensityDisplay
    >>> from skcontrast.simulation import ScoreModel
    >>> display = ScoreDensityDisplay.from_model(ScoreModel(alpha=0.9, proposal="normal"))
    >>> list(display.lines_)
    ['TN', 'FN', 'UN']
    """

    def __init__(
        self,
        densities: Mapping[str, tuple[NDArray, NDArray]],
        *,
        xlabel: str,
        samples: Mapping[str, NDArray] | None = None,
    ):
        self.densities = {
            name: tuple(numbers(part, "densities", ensure_2d=False) for part in curve)
            for name, curve in _by_component(densities, "densities").items()
        }
        self.xlabel = xlabel
        self.samples = {
            name: numbers(some, "samples", ensure_2d=False)
            for name, some in _by_component({} if samples is None else samples, "samples").items()
        }

    @classmethod
    @checked(model=ScoreModel, components=[list, tuple])
    def from_model(
        cls,
        model: ScoreModel,
        *,
        components: Sequence[Literal["TN", "FN", "UN"]] = ("TN", "FN", "UN"),
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> ScoreDensityDisplay:
        """Draw the densities of x = s · t of an anchor without shift, from their formula.

        Parameters
        ----------
        model : ScoreModel
            The model.
        components : sequence of {"TN", "FN", "UN"}, default=("TN", "FN", "UN")
            The densities that are drawn.
        ax : Axes, default=None
            The axes to draw on; None makes a figure.
        **kwargs : dict
            Passed to ``Axes.plot``.

        Returns
        -------
        display : ScoreDensityDisplay
            Already drawn.
        """
        for name in components:
            one = [StrOptions({"TN", "FN", "UN"})]
            check_arguments(
                f"{cls.__name__}.from_model", {"components": one}, {"components": name}
            )
        reach = 0.5 if model.proposal == "uniform" else 4.0
        x = np.linspace(-reach, reach, 401)
        densities = {str(name): (x, model.density(x, name)) for name in components}
        return cls(densities, xlabel="score times temperature, x").plot(ax, **kwargs)

    @classmethod
    @checked(bins=_BINS)
    def from_sample(
        cls,
        sample: ScoreSample,
        *,
        bins: int | ArrayLike = 60,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> ScoreDensityDisplay:
        """Draw histograms and kernel densities of e^s of true and of false negatives.

        Parameters
        ----------
        sample : ScoreSample
            As :meth:`ScoreModel.sample <skcontrast.simulation.ScoreModel.sample>` draws it, with
            two or more true and false negatives.
        bins : int or array-like of shape (n_bins + 1,), default=60
            Number of bins of the histograms, or their increasing edges.
        ax : Axes, default=None
            The axes to draw on; None makes a figure.
        **kwargs : dict
            Passed to ``Axes.plot``.

        Returns
        -------
        display : ScoreDensityDisplay
            Already drawn.

        Raises
        ------
        ValueError
            If there are fewer than two true or false negatives.
        """
        check_component(
            sample, ScoreSample, owner=f"{cls.__name__}.from_sample", parameter="sample"
        )
        samples = {name: np.exp(some) for name, some in _split(sample).items()}
        bounds = np.exp(sample.lower_bound), np.exp(sample.upper_bound)
        display = cls(_kernel_densities(samples, bounds), xlabel="$e^s$", samples=samples)
        return display.plot(ax, bins=bins, **kwargs)

    @classmethod
    @checked(bins=_BINS)
    def from_views(
        cls,
        *views: Any,
        y: Sequence | NDArray,
        similarity: Similarity | None = None,
        bins: int | ArrayLike = 60,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> ScoreDensityDisplay:
        """Draw the scores of real embeddings: true and false negatives, and positives.

        Parameters
        ----------
        *views : array-like of shape (n, d)
            Embeddings of two or more views of the same samples, as in
            :meth:`ScoreSample.from_views <skcontrast.simulation.ScoreSample.from_views>`.
        y : array-like of shape (n,)
            Classes; −1 where unknown.
        similarity : Similarity, default=None
            The score; None is ``Cosine()``.
        bins : int or array-like of shape (n_bins + 1,), default=60
            Number of bins of the histograms, or their increasing edges.
        ax : Axes, default=None
            The axes to draw on; None makes a figure.
        **kwargs : dict
            Passed to ``Axes.plot``.

        Returns
        -------
        display : ScoreDensityDisplay
            Already drawn.

        Raises
        ------
        ValueError
            If there are fewer than two true or false negatives.
        """
        sample = ScoreSample.from_views(*views, y=y, similarity=similarity)
        samples = {**_split(sample), "P": sample.positives.ravel()}
        bounds = sample.lower_bound, sample.upper_bound
        display = cls(_kernel_densities(samples, bounds), xlabel="score s", samples=samples)
        return display.plot(ax, bins=bins, **kwargs)

    @classmethod
    @checked(bins=_BINS)
    def from_estimator(
        cls,
        embedder: ContrastiveEmbedder,
        X: Any,
        y: Sequence | NDArray,
        *,
        bins: int | ArrayLike = 60,
        ax: Axes | None = None,
        random_state: int = 0,
        **kwargs: Any,
    ) -> ScoreDensityDisplay:
        """Draw the scores of two views of each sample as a fitted embedder sees them.

        Parameters
        ----------
        embedder : ContrastiveEmbedder
            Fitted.
        X : array-like or list of graphs
            Samples of the shape seen in `fit`; a few hundred are enough.
        y : array-like of shape (n,)
            Classes; −1 where unknown.
        bins : int or array-like of shape (n_bins + 1,), default=60
            Number of bins of the histograms, or their increasing edges.
        ax : Axes, default=None
            The axes to draw on; None makes a figure.
        random_state : int, default=0
            Seeds the views.
        **kwargs : dict
            Passed to ``Axes.plot``.

        Returns
        -------
        display : ScoreDensityDisplay
            Already drawn.
        """
        views = project_views(embedder, X, random_state=random_state)
        similarity = embedder.similarity_
        return cls.from_views(*views, y=y, similarity=similarity, bins=bins, ax=ax, **kwargs)

    @checked(bins=_BINS)
    def plot(
        self, ax: Axes | None = None, *, bins: int | ArrayLike = 60, **kwargs: Any
    ) -> ScoreDensityDisplay:
        """Draw the densities.

        Parameters
        ----------
        ax : Axes, default=None
            The axes to draw on; None makes a figure.
        bins : int or array-like of shape (n_bins + 1,), default=60
            Number of bins of the histograms, or their increasing edges, if there are samples.
        **kwargs : dict
            Passed to ``Axes.plot``.

        Returns
        -------
        display : ScoreDensityDisplay
            This display.
        """
        drawn: Any = bins if isinstance(bins, Integral) else _edges(bins)
        self.ax_ = axes(ax)
        self.figure_ = self.ax_.figure
        self.lines_ = {}
        for name, some in self.samples.items():
            color = STYLES[name]["color"]
            self.ax_.hist(some, bins=drawn, density=True, color=color, alpha=0.25)
        for name, (x, density) in self.densities.items():
            style: dict[str, Any] = {"label": _COMPONENTS[name], **STYLES[name], **kwargs}
            (self.lines_[name],) = self.ax_.plot(x, density, **style)
            self.lines_[name].sticky_edges.y.append(0)  # no margin below 0
        self.ax_.set(xlabel=self.xlabel, ylabel="density")
        self.ax_.legend()
        return self


def _edges(bins: ArrayLike) -> NDArray:
    """Return the edges of bins, or raise ValueError."""
    edges: NDArray = numbers(
        bins, "bins", "a number or increasing edges", ensure_2d=False, dtype=np.float64
    )
    if edges.ndim != 1 or len(edges) < 2 or not (np.diff(edges) > 0).all():
        raise ValueError(f"bins must be a number or two or more increasing edges, got {bins!r}.")
    return edges


def _by_component(values: Any, name: str) -> Mapping[str, Any]:
    """Return a dict by the names of components, or raise an error that names the argument."""
    if not isinstance(values, Mapping) or not set(values) <= set(_COMPONENTS):
        raise ValueError(
            f"{name} must be a dict by names among {list(_COMPONENTS)}, got {values!r}."
        )
    return values


def _split(sample: ScoreSample) -> dict[str, NDArray]:
    """Return the scores of true and of false negatives."""
    samples = {
        "TN": sample.scores[sample.is_negative],
        "FN": sample.scores[~sample.is_negative],
    }
    if min(map(len, samples.values())) < 2:
        raise ValueError(
            "sample must hold at least two true and two false negatives, got "
            f"{len(samples['TN'])} and {len(samples['FN'])}."
        )
    return samples


def _kernel_densities(
    samples: Mapping[str, NDArray], bounds: tuple[float, float]
) -> dict[str, tuple[NDArray, NDArray]]:
    """Return points and density of each, within the bounds of the scores.

    What the kernels put beyond a bound is reflected there, so that the area stays 1.
    """
    low, high = bounds
    densities = {}
    for name, some in samples.items():
        if len(some) > _MOST_VALUES:
            some = np.quantile(some, (np.arange(_MOST_VALUES) + 0.5) / _MOST_VALUES)
        some = some.clip(low, high)
        kernel = gaussian_kde(some)
        tail = 3 * kernel.factor * some.std()
        x = np.linspace(max(some.min() - tail, low), min(some.max() + tail, high), 301)
        reflected = [2 * bound - x for bound in bounds if np.isfinite(bound)]
        densities[name] = x, kernel(x) + sum(kernel(points) for points in reflected)
    return densities
