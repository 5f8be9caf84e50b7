"""Validation of parameters and arguments."""

# ruff: noqa: F401
from .._sklearn_compat import HasMethods, InvalidParameterError, Options, StrOptions
from ._arguments import check_argument, check_component, check_entries, naming
from ._constraints import FRACTION, NON_NEGATIVE, POSITIVE, POSITIVE_INT, Interval, Numbers, Pair
from ._names import available_unless_refused
from ._parameters import Declared, ParameterObject, learned, parameter, validate_parameters
