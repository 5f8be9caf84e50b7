"""Parameters, declared in the body of a class with their type, default and range."""

import functools
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, ClassVar, Literal, Self, dataclass_transform

from sklearn.base import BaseEstimator

from .._sklearn_compat import StrOptions
from ._constraints import brief, check_values
from ._names import advice_on, names_checked


def parameter(
    constraints: Any = "no_validation", *, default: Any = MISSING, kw_only: bool = False
) -> Any:
    """Declare a parameter in the body of a class.

    Parameters
    ----------
    constraints : list, set of str or "no_validation"
        Valid values, as in scikit-learn's ``_parameter_constraints``, or a set of strings, which
        may hold None.
    default : object
        The default value, which must not be mutable; without it, the parameter is required.
    kw_only : bool, default=False
        Whether it is passed by name only, as are all parameters of a loss.
    """
    if isinstance(constraints, set):
        rest = [None] if None in constraints else []
        constraints = [StrOptions(constraints - {None}), *rest]
    by_name: Any = kw_only or MISSING  # as the class has it
    return field(default=default, kw_only=by_name, metadata={"constraints": constraints})


def learned(*, init: Literal[False] = False) -> Any:
    """Declare a fitted attribute, which is set after the constructor."""
    return field(init=init)


@dataclass_transform(field_specifiers=(parameter, learned))
class Declared(BaseEstimator):
    """Base class of objects whose classes declare parameters in their body.

    Such a class becomes a dataclass without class attributes for its parameters. For an unknown
    parameter, the constructor and `set_params` suggest a name.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        declared = {name for name, field in vars(cls).items() if isinstance(field, Field)}
        if declared:
            by_name = cls.__dataclass_transform__["kw_only_default"]  # type: ignore[attr-defined]
            dataclass(eq=False, repr=False, match_args=False, kw_only=by_name)(cls)
            for name in declared & vars(cls).keys():
                delattr(cls, name)
            init = [field for field in fields(cls) if field.init]  # type: ignore[arg-type]
            cls._parameter_constraints = {
                field.name: field.metadata["constraints"] for field in init
            }
        super().__init_subclass__(**kwargs)
        if "__init__" in vars(cls):
            cls.__init__ = names_checked(cls.__init__)  # type: ignore[method-assign]

    @names_checked
    def __init__(self) -> None:
        super().__init__()

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name; ``component__parameter`` reaches into a component."""
        known, owner = self.get_params(deep=False), type(self).__name__
        for name, _, nested in (name.partition("__") for name in params):
            if name not in known:
                advice = advice_on(name, known, is_set=True)
                raise ValueError(f"Invalid parameter {name!r} for estimator {owner}{advice}")
            value = params.get(name, known[name])
            if nested and not hasattr(value, "set_params"):
                is_list = isinstance(value, (list, tuple))
                advice = "set the list" if is_list else f"pass an object as {name} first"
                raise ValueError(
                    f"The {name!r} parameter of {owner} is {brief(value)} and has no parameters "
                    f"to set: {advice}."
                )
        return super().set_params(**params)


class ParameterObject(Declared):
    """Base class of components with hyperparameters, each passed as a parameter of an estimator.

    Losses, similarities, frameworks, encoders and schedules are parameter objects: they have
    ``get_params``, ``set_params``, ``clone`` and ``repr`` as every scikit-learn object, so that
    a grid search can set ``embedder__loss__tau_plus``. Their values are checked
    against ``_parameter_constraints`` where they are used, never in ``__init__``.
    """

    @classmethod
    @functools.cache
    def _get_param_names(cls) -> list[str]:
        # scikit-learn reads the signature at each call, which shows in a loss of small batches.
        return super()._get_param_names()

    def validate(self) -> None:
        """Raise ValueError for combinations of values that the constraints cannot exclude."""


def validate_parameters(obj: Any) -> None:
    """Raise ``InvalidParameterError`` if a parameter of `obj` is outside its range.

    Parameter objects inside `obj` are checked too, at any depth.
    """
    parameters = obj.get_params(deep=False)
    check_values(obj._parameter_constraints, parameters, type(obj).__name__)
    for value in parameters.values():
        if isinstance(value, ParameterObject):
            validate_parameters(value)
    if hasattr(obj, "validate"):
        obj.validate()
