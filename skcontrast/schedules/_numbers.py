"""Hyperparameters that are numbers, or something in the place of a number."""

from __future__ import annotations

from numbers import Real
from typing import Literal, TypeAlias, TypeVar, cast, get_args

from sklearn.base import clone

from .._checks import (
    Interval,
    ParameterObject,
    StrOptions,
    check_component,
    checked,
    validate_parameters,
)
from ._auto import Auto, Estimated, Quantity, estimable_parameters, is_auto
from ._schedules import NUMBER, Schedule

_P = TypeVar("_P", bound=ParameterObject)

# A hyperparameter that may be scheduled, and one that may be estimated as well.
Number: TypeAlias = float | Schedule
EstimableNumber: TypeAlias = float | Schedule | Auto | Literal["auto"]


def current_value(value: EstimableNumber) -> float:
    """Return the number that a hyperparameter is at present, where a loss or score is computed.

    Schedules and estimates are replaced by their values before, see `at_progress`; here only the
    type changes.
    """
    return cast(float, value)


@checked(
    low=[*NUMBER, None],
    high=[*NUMBER, None],
    closed=[StrOptions({"left", "right", "both", "neither"})],
    auto=[StrOptions(set(get_args(Quantity))), None],
)
def interval(
    low: float | None,
    high: float | None,
    closed: Literal["left", "right", "both", "neither"],
    auto: Quantity | None = None,
) -> list:
    """Return the constraint of a hyperparameter that is a number in a range or a schedule.

    Parameters
    ----------
    low, high : float or None
        The ends of the range; None is infinite.
    closed : {"left", "right", "both", "neither"}
        Which ends belong to it.
    auto : {"alpha", "floor", "sharpness", "tau_plus"}, default=None
        The quantity whose estimate the hyperparameter becomes if it is "auto"; None if it may not
        be "auto".

    See Also
    --------
    Auto : How and when the estimates are made.

    Examples
    --------
    >>> import torch
    >>> from skcontrast import ContrastiveEmbedder
    >>> from skcontrast.schedules import interval
    >>> from skcontrast.losses import Loss
    >>> class Shrunk(Loss):
    ...     _parameter_constraints = {"prior": interval(0, 1, "left", auto="tau_plus")}
    ...
    ...     def __init__(self, prior=0.1):
    ...         self.prior = prior
    ...
    ...     def coefficients(self):
    ...         return 1 - self.prior, 0.0
    >>> embedder = ContrastiveEmbedder(loss=Shrunk(prior="auto"), max_epochs=6, random_state=0)
    >>> sorted(embedder.fit(torch.eye(16).numpy()).estimates_)
    ['prior']
    """
    if low is not None and high is not None and low >= high:
        raise ValueError(f"The 'low' parameter of interval must be below high={high}, got {low}.")
    estimated = [] if auto is None else [Estimated(auto)]
    return [Interval(Real, low, high, closed=closed), Schedule, *estimated]


def at_progress(obj: _P, progress: float) -> _P:
    """Return a copy of a parameter object in which every schedule is replaced by its value.

    Parameters
    ----------
    obj : ParameterObject
        A loss or a similarity.
    progress : float
        Progress of the fit in [0, 1].

    Returns
    -------
    obj : ParameterObject
        A clone without schedules, its values checked against their ranges.

    Examples
    --------
    >>> from skcontrast.losses import DCL
    >>> from skcontrast.schedules import Linear, at_progress
    >>> at_progress(DCL(tau_plus=Linear(0.0, 0.4)), 0.5)
    DCL(tau_plus=0.2)
    """
    check_component(obj, ParameterObject, owner="at_progress", parameter="obj")
    validate_parameters(obj)
    values = obj.get_params().items()
    scheduled = {name: value(progress) for name, value in values if isinstance(value, Schedule)}
    # A schedule's own parameters appear in get_params too; replacing the schedule drops them.
    resolved = clone(obj).set_params(**scheduled)
    validate_parameters(resolved)
    return resolved


_ESTIMATORS = {
    "alpha": "estimate_alpha(ranks)",
    "floor": "estimate_soft_ring(sample)",
    "sharpness": "sharpness_from_auc(auc, tau_plus)",
    "tau_plus": "estimate_tau_plus(ranks)",
}


def check_numbers(component: ParameterObject) -> None:
    """Check the hyperparameters of a component that is used outside of `fit`.

    Raises
    ------
    ValueError
        If one is a schedule or "auto", or is outside its range.
    """
    owner = type(component).__name__
    for name, found in estimable_parameters(component).items():
        if is_auto(found.value):
            raise ValueError(
                f"The {name!r} parameter of {owner} is estimated from the data in fit only; "
                "outside of it pass a number, such as "
                f"skcontrast.estimation.{_ESTIMATORS[found.quantity]}.value."
            )
    for name, value in component.get_params().items():
        if isinstance(value, Schedule):
            raise ValueError(
                f"The {name!r} parameter of {owner} is a schedule; outside of fit it needs a "
                "number: pass skcontrast.schedules.at_progress(obj, progress)."
            )
    validate_parameters(component)
