"""The only place that imports names scikit-learn does not promise to keep."""

from __future__ import annotations

from typing import Any

from sklearn.utils._param_validation import (
    Interval,
    InvalidParameterError,
    StrOptions,
    validate_parameter_constraints,
)
from sklearn.utils._set_output import _get_output_config as get_output_config

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9 has no callbacks

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands for scikit-learn's, which adds `set_callbacks`."""

    def with_callbacks(method: Any) -> Any:
        """Return a method as it is, since there are no callbacks to tear down."""
        return method


__all__ = [
    "CallbackSupportMixin",
    "Interval",
    "InvalidParameterError",
    "StrOptions",
    "get_output_config",
    "validate_parameter_constraints",
    "with_callbacks",
]
