"""Validation of parameters and arguments."""

# ruff: noqa: F401
from .._sklearn_compat import HasMethods, InvalidParameterError, Options, StrOptions
from ._arguments import (
    as_numbers,
    check_argument,
    check_component,
    check_entries,
    check_returned,
    check_rows,
    naming,
    validated,
)
from ._constraints import FRACTION, NON_NEGATIVE, POSITIVE, POSITIVE_INT, Interval, Numbers, Pair
from ._names import (
    advice_on,
    available_unless_refused,
    belongs_to_package,
    choices_instead,
    names_checked,
    parameter_owners,
)
from ._parameters import Declared, ParameterObject, learned, parameter, validate_parameters
