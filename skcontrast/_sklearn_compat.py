"""The only place that imports names scikit-learn does not promise to keep."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from sklearn.utils import _safe_indexing as rows_of
from sklearn.utils._param_validation import (
    Interval,
    InvalidParameterError,
    Options,
    StrOptions,
    validate_parameter_constraints,
)
from sklearn.utils._set_output import _get_output_config as get_output_config

_Method = TypeVar("_Method")


class CallbackSupportMixin:
    """Takes the place of scikit-learn's, which adds `set_callbacks`."""


def with_callbacks(method: _Method) -> _Method:
    """Return a method unchanged, since there are no callbacks to tear down."""
    return method


if not TYPE_CHECKING:  # scikit-learn has no annotations
    with suppress(ImportError):  # nor has it callbacks before 1.9
        from sklearn.callback import CallbackSupportMixin, with_callbacks

__all__ = [
    "CallbackSupportMixin", "Interval", "InvalidParameterError", "Options", "StrOptions",
    "get_output_config", "rows_of", "validate_parameter_constraints", "with_callbacks",
]  # fmt: skip
