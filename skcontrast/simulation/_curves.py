"""Comparisons of estimators along one parameter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from .._arguments import StrOptions, checked, generator_of, naming
from ._estimators import EstimatorComparison, Losses, Metric, compare_estimators
from ._scores import RandomState, ScoreModel

CurveParameter: TypeAlias = Literal["alpha", "tau_plus", "temperature", "gamma", "n_candidates"]


class EstimatorCurve(NamedTuple):
    """Comparisons of estimators along the values of one parameter.

    Attributes
    ----------
    parameter : str
        Its name.
    values : tuple of float
        Its values.
    comparisons : tuple of EstimatorComparison
        One per value.
    """

    parameter: str
    values: tuple[float, ...]
    comparisons: tuple[EstimatorComparison, ...]

    def summary(self, metric: Metric = "mse") -> dict[str, np.ndarray]:
        """Return value and standard error of every estimator along the curve.

        Parameters
        ----------
        metric : {"mse", "bias", "mean"}, default="mse"
            As in :meth:`EstimatorComparison.summary`.

        Returns
        -------
        summary : dict of str to ndarray of shape (2, n_values)
            The values and their Monte-Carlo standard errors.
        """
        columns = [comparison.summary(metric) for comparison in self.comparisons]
        return {name: np.array([column[name] for column in columns]).T for name in columns[0]}


@checked(model=ScoreModel, parameter=[StrOptions(set(get_args(CurveParameter)))])
def estimator_curve(
    model: ScoreModel,
    parameter: CurveParameter,
    values: ArrayLike,
    estimators: Losses | Callable[[ScoreModel], Losses] | None = None,
    *,
    random_state: RandomState = None,
    **settings: Any,
) -> EstimatorCurve:
    """Compare estimators along the values of one parameter, as ``validation_curve`` does scores.

    Parameters
    ----------
    model : ScoreModel
        Its other parameters are kept; the object itself is not changed.
    parameter : {"alpha", "tau_plus", "temperature", "gamma", "n_candidates"}
        The parameter that varies.
    values : array-like of shape (n_values,)
        Its values, at least one.
    estimators : dict of str to Loss, callable or None, default=None
        As in :func:`compare_estimators`. None and a function follow the model along the curve; the
        losses of a dict stay as they are.
    random_state : int, Generator or None, default=None
        As in :meth:`ScoreModel.sample`. Draws at different values are independent.
    **settings : dict
        Further arguments of :func:`compare_estimators`.

    Returns
    -------
    curve : EstimatorCurve
        One comparison per value.

    Raises
    ------
    ValueError
        If `parameter` is not one of these, there are no values, or one is outside its range.

    See Also
    --------
    compare_estimators : The comparison that is made for each value.

    Examples
    --------
    >>> from skcontrast.simulation import ScoreModel, estimator_curve
    >>> curve = estimator_curve(ScoreModel(), "n_candidates", [32, 256], random_state=0)
    >>> mse, error = curve.summary("mse")["BCL (inverted)"]
    >>> bool(mse[1] < mse[0])
    True
    """
    if parameter == "n_candidates" and parameter in settings:
        raise ValueError("n_candidates varies along the curve: pass it as values only.")
    with naming("values", "an array of numbers", values):
        points = np.atleast_1d(np.asarray(values, dtype=float))
    if not len(points) or points.ndim > 1:
        raise ValueError("values must hold at least one value, in one dimension.")
    if parameter == "n_candidates" and np.array_equal(points, np.rint(points)):
        points = points.astype(int)
    rng = generator_of(random_state, "estimator_curve")
    comparisons = []
    for value in points.tolist():
        if parameter == "n_candidates":
            settings["n_candidates"] = value
        else:
            model = clone(model).set_params(**{parameter: value})
        comparisons.append(compare_estimators(model, estimators, random_state=rng, **settings))
    return EstimatorCurve(parameter, tuple(points.tolist()), tuple(comparisons))
