"""A display of estimators along one parameter."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._arguments import StrOptions, checked
from .._parameters import check_component
from ..losses import Loss
from ..simulation import EstimatorCurve, ScoreModel, estimator_curve
from ..simulation._curves import CurveParameter
from ..simulation._estimators import Metric
from ._axes import STYLES, axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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


class EstimatorCurveDisplay:
    """Error, bias or mean of estimators along one parameter.

    Parameters
    ----------
    curve : EstimatorCurve
        As :func:`skcontrast.simulation.estimator_curve` returns it.

    Attributes
    ----------
    ax_ : Axes
        The axes of the curves.
    figure_ : Figure
        The figure of `ax_`.
    lines_ : dict of str to Line2D
        The curves.
    bands_ : dict of str to PolyCollection
        Two Monte-Carlo standard errors on either side of them.

    See Also
    --------
    ScoreDensityDisplay : Densities of the scores themselves.
    skcontrast.simulation.estimator_curve : The numbers without a figure.

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

    def __init__(self, curve: EstimatorCurve):
        owner = type(self).__name__
        self.curve = check_component(curve, EstimatorCurve, owner=owner, parameter="curve")

    @classmethod
    def from_model(
        cls,
        model: ScoreModel,
        parameter: CurveParameter,
        values: ArrayLike,
        estimators: dict[str, Loss] | Callable[[ScoreModel], dict[str, Loss]] | None = None,
        *,
        metric: Metric = "mse",
        names: str | Sequence[str] | None = None,
        ax: Axes | None = None,
        random_state: int | np.random.Generator | None = None,
        **settings: Any,
    ) -> EstimatorCurveDisplay:
        """Simulate and draw.

        Parameters
        ----------
        model : ScoreModel
            The model; its other parameters are kept.
        parameter : {"alpha", "tau_plus", "temperature", "gamma", "n_candidates"}
            The parameter that varies.
        values : array-like of shape (n_values,)
            Its values.
        estimators : dict of str to Loss, callable or None, default=None
            As in :func:`skcontrast.simulation.estimator_curve`.
        metric : {"mse", "bias", "mean"}, default="mse"
            The metric that is drawn.
        names : str or sequence of str, default=None
            The estimators that are drawn, as in `plot`.
        ax : Axes, default=None
            The axes to draw on; None makes a figure.
        random_state : int, Generator or None, default=None
            As in :meth:`ScoreModel.sample <skcontrast.simulation.ScoreModel.sample>`.
        **settings : dict
            Further arguments of :func:`skcontrast.simulation.compare_estimators`.

        Returns
        -------
        display : EstimatorCurveDisplay
            Already drawn.
        """
        curve = estimator_curve(
            model, parameter, values, estimators, random_state=random_state, **settings
        )
        return cls(curve).plot(ax, metric=metric, names=names)

    @checked(metric=[StrOptions(set(_METRICS))], names=[str, list, tuple, None])
    def plot(
        self,
        ax: Axes | None = None,
        *,
        metric: Metric = "mse",
        names: str | Sequence[str] | None = None,
        **kwargs: Any,
    ) -> EstimatorCurveDisplay:
        """Draw one metric.

        Parameters
        ----------
        ax : Axes, default=None
            The axes to draw on; None makes a figure.
        metric : {"mse", "bias", "mean"}, default="mse"
            Mean squared error (on a logarithmic axis), bias, or mean of the estimates.
        names : str or sequence of str, default=None
            The estimators; None is all, with the oracle only if `metric` is "mean".
        **kwargs : dict
            Passed to ``Axes.plot``.

        Returns
        -------
        display : EstimatorCurveDisplay
            This display.

        Raises
        ------
        ValueError
            If `metric` is not one of these, or a name is not an estimator of the curve.
        """
        summary = self.curve.summary(metric)
        names = [names] if isinstance(names, str) else names
        self._check_names(names, summary)
        if names is None:
            names = [name for name in summary if name != "oracle" or metric == "mean"]
        self.ax_ = axes(ax)
        self.figure_ = self.ax_.figure
        self.lines_: dict[str, Any] = {}
        self.bands_: dict[str, Any] = {}
        for name in names:
            means, errors = summary[name]
            self._draw(name, means, errors, kwargs)
        self._label(metric)
        return self

    @staticmethod
    def _check_names(names: Sequence[str] | None, summary: Mapping[str, Any]) -> None:
        unknown = [n for n in names or () if not (isinstance(n, str) and n in summary)]
        if unknown:
            raise ValueError(
                f"names must be among the estimators {list(summary)}, got {unknown[0]!r}."
            )

    def _draw(self, name: str, means: NDArray, errors: NDArray, kwargs: dict) -> None:
        style = {"label": name, "markersize": 4} | STYLES.get(name, {"marker": "o"}) | kwargs
        x = np.asarray(self.curve.values, dtype=float)
        (line,) = self.ax_.plot(x, means, **style)
        self.lines_[name] = line
        self.bands_[name] = self.ax_.fill_between(
            x, means - 2 * errors, means + 2 * errors, color=line.get_color(), alpha=0.15, lw=0
        )

    def _label(self, metric: Metric) -> None:
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
