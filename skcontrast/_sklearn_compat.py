"""The only place that imports names scikit-learn does not promise to keep."""

from __future__ import annotations

from sklearn.utils import _safe_indexing as rows_of
from sklearn.utils._param_validation import (
    Interval,
    InvalidParameterError,
    Options,
    StrOptions,
    validate_parameter_constraints,
)
from sklearn.utils._set_output import _get_output_config as get_output_config

__all__ = [
    "Interval", "InvalidParameterError", "Options", "StrOptions", "get_output_config", "rows_of",
    "validate_parameter_constraints",
]  # fmt: skip
