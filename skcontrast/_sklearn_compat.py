"""The only place that imports names scikit-learn does not promise to keep."""

from sklearn.utils._param_validation import (
    Interval,
    InvalidParameterError,
    StrOptions,
    validate_parameter_constraints,
)

__all__ = ["Interval", "InvalidParameterError", "StrOptions", "validate_parameter_constraints"]
