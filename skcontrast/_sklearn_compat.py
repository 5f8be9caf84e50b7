"""Private names of scikit-learn, imported in one place."""

# ruff: noqa: F401
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from typing import Any, TypeVar

from sklearn.utils import _safe_indexing as rows_of
from sklearn.utils._param_validation import (
    HasMethods,
    Interval,
    InvalidParameterError,
    Options,
    StrOptions,
    validate_parameter_constraints,
)
from sklearn.utils._set_output import _get_output_config as get_output_config

try:  # from scikit-learn 1.9 on, and experimental
    from sklearn import callback as _callback
    from sklearn.callback import CallbackSupportMixin
except ImportError:
    _callback = None

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Adds nothing."""


_Method = TypeVar("_Method", bound=Callable)


def with_callbacks(method: _Method) -> _Method:
    """Notify scikit-learn's callbacks of the end of a method, also after an error."""
    return method if _callback is None else _callback.with_callbacks(method)


def as_task(fit: _Method) -> _Method:
    """Return a method `fit` that scikit-learn's callbacks treat as one task."""

    @with_callbacks
    @wraps(fit)
    def reported(self: Any, X: Any, y: Any = None, **metadata: Any) -> Any:
        data = {"estimator": self, "X": X, "y": y}
        task = self._init_callback_context(max_subtasks=1).call_on_fit_task_begin(**data)
        fit(self, X, y, **metadata)
        task.call_on_fit_task_end(**data, reconstruction_attributes={})
        return self

    return fit if _callback is None else reported  # type: ignore[return-value]


def subtask(estimator: Any, part: Any) -> AbstractContextManager:
    """Return a context in which the fit of a part belongs to the task of an estimator."""
    fit = getattr(estimator, "_callback_fit_ctx", None)
    return fit.subcontext("fit-part").propagate_callback_context(part) if fit else nullcontext()
