"""Displays of the numerical experiments, in the manner of scikit-learn; they need matplotlib."""

from __future__ import annotations

import numpy as np
from scipy.stats import gaussian_kde

from ._sklearn_compat import check_component
from .simulation import EstimatorCurve, ScoreModel, ScoreSample, estimator_curve

__all__ = ["EstimatorCurveDisplay", "ScoreDensityDisplay"]

# Okabe and Ito's colours, which colour-blind readers tell apart. A name has one colour everywhere.
_STYLES = {
    "TN": {"color": "#0072B2", "linestyle": "-"},
    "FN": {"color": "#D55E00", "linestyle": "--"},
    "UN": {"color": "#555555", "linestyle": ":"},
    "BIASED": {"color": "#555555", "marker": "s", "linestyle": ":"},
    "DCL": {"color": "#0072B2", "marker": "o", "linestyle": "--"},
    "HCL": {"color": "#E69F00", "marker": "v", "linestyle": "-."},
    "BCL (printed)": {"color": "#D55E00", "marker": "D", "linestyle": "--"},
    "BCL (inverted)": {"color": "#009E73", "marker": "o", "linestyle": "-"},
    "NonparametricBCL": {"color": "#CC79A7", "marker": "^", "linestyle": "-."},
    "oracle": {"color": "black", "linestyle": "-", "linewidth": 6, "alpha": 0.25, "zorder": 1},
}
_COMPONENTS = {"TN": "true negatives", "FN": "false negatives", "UN": "unlabeled candidates"}
_PARAMETERS = {
    "alpha": "location parameter α",
    "tau_plus": "class prior τ⁺",
    "temperature": "temperature t",
    "gamma": "variation of the proposal γ",
    "n_candidates": "number of candidates N",
}
_METRICS = {
    "mse": "mean squared error of the mean of $e^s$",
    "bias": "bias of the mean of $e^s$",
    "mean": "estimated mean of $e^s$",
}
_LOGARITHMIC = ("n_candidates", "temperature")


class ScoreDensityDisplay:
    """Densities of the scores of true and false negatives.

    Parameters
    ----------
    densities : dict of str to (ndarray, ndarray)
        Points and density of "TN", "FN", "UN", or some of them.
    xlabel : str
        What the points are.
    samples : dict of str to ndarray, default=None
        Values whose histograms are drawn behind the curves.

    Attributes
    ----------
    ax_ : Axes
        Where it was drawn.
    figure_ : Figure
        The figure of `ax_`.
    lines_ : dict of str to Line2D
        The curves.

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

    def __init__(self, densities, *, xlabel, samples=None):
        self.densities = densities
        self.xlabel = xlabel
        self.samples = samples

    @classmethod
    def from_model(cls, model, *, components=("TN", "FN", "UN"), ax=None, **kwargs):
        """Draw the densities of x = s · t of an anchor without shift, from their formula.

        Parameters
        ----------
        model : ScoreModel
            The model.
        components : sequence of {"TN", "FN", "UN"}, default=("TN", "FN", "UN")
            Which densities.
        ax : Axes, default=None
            Where to draw; None makes a figure.
        **kwargs : dict
            Passed to ``Axes.plot``.

        Returns
        -------
        display : ScoreDensityDisplay
            After `plot`.
        """
        check_component(model, ScoreModel, owner=f"{cls.__name__}.from_model", parameter="model")
        reach = 0.5 if model.proposal == "uniform" else 4.0
        x = np.linspace(-reach, reach, 401)
        densities = {name: (x, model.density(x, name)) for name in components}
        return cls(densities, xlabel="score times temperature, x").plot(ax, **kwargs)

    @classmethod
    def from_sample(cls, sample, *, bins=60, ax=None, **kwargs):
        """Draw histograms and kernel densities of e^s of true and of false negatives.

        Parameters
        ----------
        sample : ScoreSample
            As :meth:`ScoreModel.sample <skcontrast.simulation.ScoreModel.sample>` draws it, with
            two or more true and false negatives.
        bins : int, default=60
            Number of bins of the histograms.
        ax : Axes, default=None
            Where to draw; None makes a figure.
        **kwargs : dict
            Passed to ``Axes.plot``.

        Returns
        -------
        display : ScoreDensityDisplay
            After `plot`.

        Raises
        ------
        ValueError
            If there are fewer than two true or false negatives.
        """
        check_component(
            sample, ScoreSample, owner=f"{cls.__name__}.from_sample", parameter="sample"
        )
        values = np.exp(sample.scores)
        samples = {"TN": values[sample.is_negative], "FN": values[~sample.is_negative]}
        smallest = min(map(len, samples.values()))
        if smallest < 2:
            raise ValueError(
                "sample must hold at least two true and two false negatives, got "
                f"{len(samples['TN'])} and {len(samples['FN'])}."
            )
        densities = {}
        for name, some in samples.items():
            kernel = gaussian_kde(some)
            tail = 3 * kernel.factor * some.std()
            x = np.linspace(some.min() - tail, some.max() + tail, 301)
            densities[name] = x, kernel(x)
        display = cls(densities, xlabel="$e^s$", samples=samples)
        return display.plot(ax, bins=bins, **kwargs)

    def plot(self, ax=None, *, bins=60, **kwargs):
        """Draw the densities.

        Parameters
        ----------
        ax : Axes, default=None
            Where to draw; None makes a figure.
        bins : int, default=60
            Number of bins of the histograms, if there are samples.
        **kwargs : dict
            Passed to ``Axes.plot``.

        Returns
        -------
        display : ScoreDensityDisplay
            Itself.
        """
        self.ax_ = _axes(ax)
        self.figure_ = self.ax_.figure
        self.lines_ = {}
        for name, some in (self.samples or {}).items():
            color = _STYLES[name]["color"]
            self.ax_.hist(some, bins=bins, density=True, color=color, alpha=0.25)
        for name, (x, density) in self.densities.items():
            style = {"label": _COMPONENTS[name], **_STYLES[name], **kwargs}
            (self.lines_[name],) = self.ax_.plot(x, density, **style)
            self.lines_[name].sticky_edges.y.append(0)  # no margin below 0
        self.ax_.set(xlabel=self.xlabel, ylabel="density")
        self.ax_.legend()
        return self


class EstimatorCurveDisplay:
    """Error, bias or mean of estimators along one parameter.

    Parameters
    ----------
    curve : EstimatorCurve
        As :func:`skcontrast.simulation.estimator_curve` returns it.

    Attributes
    ----------
    ax_ : Axes
        Where it was drawn.
    figure_ : Figure
        The figure of `ax_`.
    lines_ : dict of str to Line2D
        The curves.
    bands_ : dict of str to PolyCollection
        Two Monte-Carlo standard errors on either side of them.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from skcontrast.plotting import EstimatorCurveDisplay
    >>> from skcontrast.simulation import ScoreModel
    >>> display = EstimatorCurveDisplay.from_model(
    ...     ScoreModel(), "alpha", [0.6, 0.9], names=["DCL", "BCL (inverted)"], random_state=0
    ... )
    >>> list(display.lines_)
    ['DCL', 'BCL (inverted)']
    """

    def __init__(self, curve):
        owner = type(self).__name__
        self.curve = check_component(curve, EstimatorCurve, owner=owner, parameter="curve")

    @classmethod
    def from_model(
        cls,
        model,
        parameter,
        values,
        estimators=None,
        *,
        metric="mse",
        names=None,
        ax=None,
        random_state=None,
        **settings,
    ):
        """Simulate and draw.

        Parameters
        ----------
        model : ScoreModel
            The model; its other parameters are kept.
        parameter : {"alpha", "tau_plus", "temperature", "gamma", "n_candidates"}
            What varies.
        values : array-like of shape (n_values,)
            Its values.
        estimators : dict of str to Loss, callable or None, default=None
            As in :func:`skcontrast.simulation.estimator_curve`.
        metric : {"mse", "bias", "mean"}, default="mse"
            What is drawn.
        names : str or sequence of str, default=None
            Which estimators are drawn, as in `plot`.
        ax : Axes, default=None
            Where to draw; None makes a figure.
        random_state : int, Generator or None, default=None
            As in :meth:`ScoreModel.sample <skcontrast.simulation.ScoreModel.sample>`.
        **settings : dict
            Further arguments of :func:`skcontrast.simulation.compare_estimators`.

        Returns
        -------
        display : EstimatorCurveDisplay
            After `plot`.
        """
        curve = estimator_curve(
            model, parameter, values, estimators, random_state=random_state, **settings
        )
        return cls(curve).plot(ax, metric=metric, names=names)

    def plot(self, ax=None, *, metric="mse", names=None, **kwargs):
        """Draw one metric.

        Parameters
        ----------
        ax : Axes, default=None
            Where to draw; None makes a figure.
        metric : {"mse", "bias", "mean"}, default="mse"
            Mean squared error (on a logarithmic axis), bias, or mean of the estimates.
        names : str or sequence of str, default=None
            Which estimators; None is all, but the oracle only where `metric` is "mean".
        **kwargs : dict
            Passed to ``Axes.plot``.

        Returns
        -------
        display : EstimatorCurveDisplay
            Itself.

        Raises
        ------
        ValueError
            If `metric` is none of these, or a name is no estimator of the curve.
        """
        summary = self.curve.summary(metric)
        names = [names] if isinstance(names, str) else names
        self._check_names(names, summary)
        if names is None:
            names = [name for name in summary if name != "oracle" or metric == "mean"]
        self.ax_ = _axes(ax)
        self.figure_ = self.ax_.figure
        self.lines_, self.bands_ = {}, {}
        for name in names:
            self._draw(name, *summary[name], kwargs)
        self._label(metric)
        return self

    @staticmethod
    def _check_names(names, summary):
        unknown = [name for name in names or () if name not in summary]
        if unknown:
            raise ValueError(
                f"names must be among the estimators {list(summary)}, got {unknown[0]!r}."
            )

    def _draw(self, name, means, errors, kwargs):
        style = {"label": name, "markersize": 4, **_STYLES.get(name, {"marker": "o"}), **kwargs}
        x = np.asarray(self.curve.values, dtype=float)
        (line,) = self.ax_.plot(x, means, **style)
        self.lines_[name] = line
        self.bands_[name] = self.ax_.fill_between(
            x, means - 2 * errors, means + 2 * errors, color=line.get_color(), alpha=0.15, lw=0
        )

    def _label(self, metric):
        parameter = self.curve.parameter
        self.ax_.set(xlabel=_PARAMETERS[parameter], ylabel=_METRICS[metric])
        if parameter in _LOGARITHMIC:
            self.ax_.set_xscale("log", base=2)
            self.ax_.set_xticks(self.curve.values, [f"{v:g}" for v in self.curve.values])
        if metric == "mse":
            self.ax_.set_yscale("log")
        if metric == "bias":
            self.ax_.axhline(0, color="black", linewidth=0.8, zorder=0)
        self.ax_.legend()


def _axes(ax):
    """Return `ax`, or the axes of a new figure."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "skcontrast.plotting needs matplotlib: pip install 'skcontrast[plot]'."
        ) from error
    return plt.subplots(layout="constrained")[1]
