"""The only place that imports names scikit-learn does not promise to keep."""

from sklearn.utils._param_validation import (
    Interval,
    InvalidParameterError,
    StrOptions,
    validate_parameter_constraints,
)
from sklearn.utils._set_output import _get_output_config as get_output_config

__all__ = [
    "Interval",
    "InvalidParameterError",
    "StrOptions",
    "get_output_config",
    "validate_parameter_constraints",
]
