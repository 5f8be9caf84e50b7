"""Checks of what users pass: ranges, misspelled names, parameter objects and arguments."""

# ruff: noqa: F401
from .._sklearn_compat import InvalidParameterError, Options, StrOptions
from ._arguments import (
    check_argument,
    check_component,
    check_entries,
    checked,
    naming,
    numbers,
    refuse_masked,
)
from ._classes import (
    are_rows,
    belongs_to_package,
    check_names,
    check_once,
    check_returned,
    check_rows,
    got,
)
from ._constraints import (
    FRACTION,
    NON_NEGATIVE,
    POSITIVE,
    POSITIVE_INT,
    Closed,
    Interval,
    Numbers,
    Pair,
    brief,
)
from ._names import advice_on, choices_instead, names_checked, parameter_owners
from ._parameters import (
    Declared,
    ParameterObject,
    check_constraints,
    learned,
    parameter,
    validate_parameters,
)
