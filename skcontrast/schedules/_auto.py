"""Hyperparameters that are estimated from the data."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Literal, NamedTuple, TypeAlias

from .._checks import NON_NEGATIVE, POSITIVE_INT, Interval, ParameterObject, StrOptions

Quantity: TypeAlias = Literal["alpha", "floor", "sharpness", "tau_plus"]


class Auto(ParameterObject):
    """A hyperparameter that is estimated from the data while the embedder trains.

    May replace ``alpha``, ``tau_plus``, ``sharpness`` and ``floor`` of losses, and every
    hyperparameter of a custom loss whose constraint names one of them; the string
    ``"auto"`` is short for ``Auto()``. Every few epochs the value is estimated again from the
    ranks of the positives, pooled over an epoch, as in
    :func:`skcontrast.estimation.estimate_alpha`. If `fit` gets classes as y, the estimates are
    those of :func:`skcontrast.estimation.alpha_from_auc` and
    :func:`skcontrast.estimation.tau_plus_from_labels` instead, the latter from the first epoch on.
    A sharpness and a floor are estimated from classes only: they are those of the least Brier
    score, as in :func:`skcontrast.estimation.estimate_soft_ring`.

    If only part of the samples have classes, these are spread to the others through the
    representation at every estimate, as by :class:`skcontrast.losses.SemiSupCon`. The shares of
    the spread classes give τ⁺, so that the labeled samples need not be drawn at random: five of
    each class will do. Labels that are drawn from the probabilities of the classes give the rest,
    unless the loss reads labels itself; then only given labels do.

    Parameters
    ----------
    every : int, default=5
        Epochs between two estimates.
    initial : float, default=None
        Value until the first estimate, ≥ 0. None is .5 for α, 0 for a sharpness (both trust no
        ranks), 0 for a floor, and .1 for τ⁺.
    n_classes : int, default=None
        The number of classes, at least 2, where it is all that is known: without y, τ⁺ is
        1/n_classes, as for classes of equal size, from the first epoch on. For ``tau_plus`` only.

    See Also
    --------
    skcontrast.estimation : The same estimates, outside of a fit.

    Examples
    --------
    >>> from skcontrast import ContrastiveEmbedder
    >>> from skcontrast.losses import BCL
    >>> from skcontrast.schedules import Auto
    >>> ContrastiveEmbedder(loss=BCL(alpha=Auto(every=20), tau_plus="auto"))
    ContrastiveEmbedder(loss=BCL(alpha=Auto(every=20), tau_plus='auto'))
    """

    _parameter_constraints: dict = {
        "every": POSITIVE_INT,
        "initial": [*NON_NEGATIVE, None],
        "n_classes": [Interval(Integral, 2, None, closed="left"), None],
    }

    def __init__(self, every: int = 5, initial: float | None = None, n_classes: int | None = None):
        self.every = every
        self.initial = initial
        self.n_classes = n_classes


class Estimated(StrOptions):
    """Constraint on a hyperparameter: "auto" or an ``Auto``, as an estimate of `quantity`.

    Parameters
    ----------
    quantity : {"alpha", "floor", "sharpness", "tau_plus"}
        The quantity that the hyperparameter is, whatever its own name.
    """

    def __init__(self, quantity: Quantity):
        super().__init__({"auto"})
        self.quantity = quantity

    def is_satisfied_by(self, val: Any) -> bool:
        return is_auto(val)

    def __str__(self) -> str:
        return "the str 'auto' or an instance of 'skcontrast.schedules.Auto'"


class Estimable(NamedTuple):
    """A hyperparameter, of an object or of one inside it, that may be estimated from the data.

    Attributes
    ----------
    quantity : {"alpha", "floor", "sharpness", "tau_plus"}
        The quantity that it is.
    owner : str
        Its place: the part of its name before its own, such as ``"negatives__"``.
    value : object
        Its value at present.
    """

    quantity: str
    owner: str
    value: Any


def estimable_parameters(obj: ParameterObject, owner: str = "") -> dict[str, Estimable]:
    """Return by name the hyperparameters of an object that its constraints call estimable."""
    found = {}
    for name, value in obj.get_params(deep=False).items():
        constraints = obj._parameter_constraints.get(name)
        declared = [c for c in constraints or () if isinstance(c, Estimated)]
        if declared:
            found[owner + name] = Estimable(declared[0].quantity, owner, value)
        elif isinstance(value, ParameterObject):
            found.update(estimable_parameters(value, f"{owner}{name}__"))
    return found


def is_auto(value: Any) -> bool:
    """Return whether a value is to be estimated from the data."""
    return isinstance(value, Auto) or (isinstance(value, str) and value == "auto")
