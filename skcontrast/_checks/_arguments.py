"""Validation of arguments, of array-likes, and of what custom methods return."""

import functools
import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any, TypeVar, cast

import numpy as np
from sklearn.utils import check_array
from torch import Tensor

from ._constraints import brief, check_values
from ._names import names_checked

_F = TypeVar("_F", bound=Callable[..., Any])

# Types of the entries of long lists, which are not searched for arrays.
_PLAIN = {int, float, bool, str, type(None), np.float64, np.float32, np.int64, np.bool_}
_OBJECT = np.dtype(object)
# Errors that numpy, torch, pandas and scikit-learn raise at values that they cannot convert.
_RAISED = (ValueError, TypeError, AttributeError, LookupError, RuntimeError, ArithmeticError)


def validated(**constraints: Any) -> Callable[[_F], _F]:
    """Return a decorator that checks the arguments of a function.

    Parameters
    ----------
    **constraints : list or type
        By the name of the argument: a list of constraints as in ``_parameter_constraints``, or a
        class of which the argument must be an instance.

    Examples
    --------
    >>> from numbers import Integral
    >>> from skcontrast._checks import Interval
    >>> from skcontrast._checks._arguments import validated
    >>> @validated(n=[Interval(Integral, 1, 9, closed="both")])
    ... def double(n):
    ...     return 2 * n
    >>> double(n=True)
    Traceback (most recent call last):
        ...
    sklearn.utils._param_validation.InvalidParameterError: The 'n' parameter of double must be an \
int in the range [1, 9]. Got True instead.
    """

    def decorate(function: _F) -> _F:
        owner = function.__qualname__.removesuffix(".__init__")
        bind = inspect.signature(function).bind_partial

        @names_checked
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                arguments = bind(*args, **kwargs).arguments
            except TypeError:
                return function(*args, **kwargs)  # which raises the TypeError
            for name, wanted in constraints.items():
                if name in arguments:
                    check_argument(owner, name, arguments[name], wanted)
            return function(*args, **kwargs)

        return cast(_F, call)

    return decorate


def check_argument(owner: str, name: str, value: Any, wanted: Any) -> None:
    """Raise an error that names the argument unless it is admissible.

    Parameters
    ----------
    owner, name : str
        The names of the function or method, and of the argument.
    value : object
        What was passed.
    wanted : list or type
        As in `validated`.
    """
    check_values({name: [wanted] if inspect.isclass(wanted) else wanted}, {name: value}, owner)


def check_component(
    value: Any, base: type, owner: str, parameter: str, default: type | None = None
) -> Any:
    """Return `value`, or ``default()`` for None; raise unless it is an instance of `base`."""
    if value is None and default is not None:
        return default()
    if not isinstance(value, base):
        check_argument(owner, parameter, value, base)
    return value


@contextmanager
def naming(name: str, expected: str, values: Any = None) -> Iterator[None]:
    """Name an argument in errors of numpy, torch, pandas and scikit-learn.

    Parameters
    ----------
    name : str
        The name of the argument.
    expected : str
        A description of valid values.
    values : object, default=None
        What was passed; of a list, the error names the first item that does not fit.
    """
    try:
        yield
    except _RAISED as error:
        odd_item = _odd_item(values)
        # The word "a" need not be the argument of that name.
        named = rf"\b{name}\b" if len(name) > 1 or name.isupper() else rf"^(Input )?{name}\b"
        if re.search(rf"{named}|^The feature names", str(error)) and not odd_item:
            raise
        kind = TypeError if isinstance(error, TypeError) else ValueError
        # scikit-learn prints whole arrays.
        reason = re.sub(r":\narray=.*\n", ". ", str(error), flags=re.DOTALL).partition("\n")[0]
        raise kind(f"{name} must be {expected}{odd_item}: {reason}") from error


def as_numbers(
    values: Any, name: str, expected: str = "an array of numbers", **options: Any
) -> Any:
    """Return an array of numbers as scikit-learn checks it; errors name the argument.

    Parameters
    ----------
    values : array-like or Tensor
        The argument.
    name : str
        The name of the argument.
    expected : str, default="an array of numbers"
        A description of valid values.
    **options : dict
        Passed to ``sklearn.utils.check_array``.

    Returns
    -------
    array : ndarray
    """
    check_entries(values, name)
    with naming(name, expected, values):
        array = values.detach().cpu().numpy() if isinstance(values, Tensor) else values
        return check_array(array, input_name=name, **options)


def check_entries(values: Any, name: str) -> None:
    """Raise an error for dates: as a number, a missing date would be −9.2e18."""
    is_table = hasattr(values, "columns") and hasattr(values, "dtypes")
    dtypes = values.dtypes if is_table else {getattr(x, "dtype", None) for x in _entries(values)}
    if any(map(_is_of_dates, dtypes)):
        raise TypeError(
            f"{name} holds dates or durations, not numbers: convert them to numbers, or pass a "
            "DataFrame with them through skrub.TableVectorizer()."
        )


def _entries(values: Any) -> Iterator[Any]:
    """Yield a value and, of nested lists and arrays of objects, their entries."""
    yield values
    is_nested = isinstance(values, (list, tuple)) or getattr(values, "dtype", None) is _OBJECT
    entries = list(np.ravel(values) if hasattr(values, "dtype") else values) if is_nested else []
    if not set(map(type, entries)) <= _PLAIN:
        yield from chain.from_iterable(map(_entries, entries))


def _is_of_dates(dtype: Any) -> bool:
    """Return whether a dtype of numpy, pandas or polars holds dates or durations."""
    is_named = str(dtype).startswith(("Date", "Time", "Duration"))  # by polars
    return is_named or getattr(dtype, "kind", "") in ("M", "m")


def _odd_item(values: Any) -> str:
    """Describe the first item of a list that differs from item 0, for a message; "" for none."""
    first = None
    for row, item in enumerate(values if isinstance(values, (list, tuple)) else ()):
        array = item.detach().cpu() if isinstance(item, Tensor) else item
        try:
            shape = np.asarray(array, dtype=np.float64).shape
        except _RAISED:
            return f", but item {row} is {brief(item, 40)}"
        first = shape if first is None else first
        if shape != first:
            return f", but item {row} has shape {shape}, item 0 {first}"
    return ""


def check_length(name: str, n_entries: int, n_samples: int) -> None:
    """Raise ValueError unless an argument has one entry per sample."""
    if n_entries != n_samples:
        raise ValueError(f"{name} must have one entry per sample, {n_samples}, got {n_entries}.")


def check_returned(owner: str, output: Any, shape: Sequence[int]) -> Tensor:
    """Return what a custom method has returned; raise unless it is a tensor of this shape."""
    is_tensor, shape = isinstance(output, Tensor), tuple(shape)
    if is_tensor and output.shape == shape:
        return output
    got = f"shape {tuple(output.shape)}" if is_tensor else type(output).__name__
    error = ValueError if is_tensor else TypeError
    raise error(f"{owner} must return a tensor of shape {shape}, got {got}.")


def are_rows(output: Any, *lengths: int) -> bool:
    """Return whether this is a floating tensor of two dimensions and one of these lengths."""
    is_floating = isinstance(output, Tensor) and output.is_floating_point()
    return is_floating and output.ndim == 2 and len(output) in lengths


def check_rows(owner: str, output: Any, n: int, samples: str) -> Tensor:
    """Return the output of a module; raise unless it is a floating tensor of shape (n, width)."""
    if are_rows(output, n) and output.shape[1]:
        return output
    raise ValueError(
        f"{owner} must map a batch of {n}, {samples}, to a floating tensor of shape "
        f"({n}, width), got {got(output)}."
    )


def got(output: Any) -> str:
    """Describe the output of a custom method, for messages."""
    if not isinstance(output, Tensor):
        return f"a {type(output).__name__}"
    return f"a tensor of shape {tuple(output.shape)} and dtype {output.dtype}"
