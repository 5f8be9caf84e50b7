"""Embeddings with classes: a training set and, optionally, a test set."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import column_or_1d

from .._checks._arguments import as_numbers, naming, validated
from .._data._metadata import entries, validate_labels
from .._runtime import guarded

_F = TypeVar("_F", bound=Callable[..., Any])


def measure(
    as_scorer: Callable[..., Any], *, greater_is_better: bool = True, **constraints: Any
) -> Callable[[_F], _F]:
    """Return a decorator of measures of embeddings, which validates arguments as `validated` does.

    Called with an estimator, X and y, as the ``scoring`` of a search or a callback, the measure is
    a scorer.

    Parameters
    ----------
    as_scorer : callable
        Returns the scorer of a measure: `make_embedding_scorer` or `make_view_scorer`.
    greater_is_better : bool, default=True
        If False, the score is minus the measure.
    **constraints : list or type
        As in `validated`.
    """

    def decorate(function: _F) -> _F:
        inner = validated(**constraints)(function)

        @functools.wraps(function)
        @guarded()
        def call(*args: Any, **kwargs: Any) -> Any:
            if args and hasattr(args[0], "fit"):
                measured = functools.update_wrapper(functools.partial(call, **kwargs), call)
                return as_scorer(measured)(*args)
            return inner(*args, **kwargs)

        vars(call).update(greater_is_better=greater_is_better)
        return cast(_F, call)

    return decorate


# The description of embeddings in messages.
EMBEDDINGS = "embeddings, an array of numbers of shape (n_samples, d)"


class LabeledEmbeddings(NamedTuple):
    """Embeddings of known classes, float32 or float64, and the classes as 0, 1, ….

    Without a test set, `H_test` and `y_test` are None.
    """

    H: NDArray
    y: NDArray[np.int64]
    H_test: NDArray | None
    y_test: NDArray[np.int64] | None

    @property
    def queries(self) -> tuple[NDArray, NDArray[np.int64]]:
        """The evaluated samples: the test set or, without one, all samples."""
        if self.H_test is None or self.y_test is None:
            return self.H, self.y
        return self.H_test, self.y_test


def check_labeled(H: Any, y: Any, H_test: Any, y_test: Any, needed_by: str) -> LabeledEmbeddings:
    """Return both sets without the samples of unknown class (−1).

    Raises
    ------
    ValueError
        If embeddings are not finite, lengths or widths differ, one of `H_test` and `y_test` is
        missing, or fewer than two classes are known.
    """
    if (H_test is None) != (y_test is None):
        raise ValueError(f"{needed_by} needs both H_test and y_test, or neither.")
    H, y = _as_arrays(H, y, "H", "y", needed_by)
    if H_test is None:
        codes = validate_labels(y, len(y), needed_by=needed_by)
        return LabeledEmbeddings(*_samples_of_known_class(H, codes, "y", n_classes=2), None, None)
    H_test, y_test = _as_arrays(H_test, y_test, "H_test", "y_test", needed_by)
    if H.shape[1] != H_test.shape[1]:
        raise ValueError(
            f"H and H_test must be equally wide, got {H.shape[1]} and {H_test.shape[1]}."
        )
    validate_labels(y, len(y), needed_by=needed_by)
    with naming("y_test", "classes like those in y"):
        # A class has the same code in both sets.
        both = np.concatenate([y.astype(object), y_test.astype(object)])
        codes = validate_labels(both, len(both), needed_by=needed_by)
    train = _samples_of_known_class(H, codes[: len(H)], "y", n_classes=2)
    test = _samples_of_known_class(H_test, codes[len(H) :], "y_test", n_classes=1)
    return LabeledEmbeddings(*train, *test)


def _as_arrays(H: Any, y: Any, name: str, y_name: str, needed_by: str) -> tuple[NDArray, NDArray]:
    """Return embeddings and their classes as arrays of one length."""
    if y is None:
        raise ValueError(f"{needed_by} needs the classes of the samples, but {y_name} is None.")
    H = as_numbers(H, name, EMBEDDINGS, dtype=(np.float64, np.float32))
    with naming(y_name, "an array of classes, shape (n_samples,)"):
        y = column_or_1d(entries(y))
    if len(y) != len(H):
        wanted = f"one entry per row of {name}, {len(H)}"
        raise ValueError(f"{y_name} must have {wanted}, got {len(y)}.")
    return H, y


def _samples_of_known_class(
    H: NDArray, y: NDArray[np.int64], name: str, n_classes: int
) -> tuple[NDArray, NDArray[np.int64]]:
    """Return the samples of known class; raise unless they have at least `n_classes` classes."""
    n_known = len(np.unique(y[y >= 0]))
    if n_known < n_classes:
        raise ValueError(
            f"{name} must hold {n_classes} or more known classes, got {n_known}; -1 is unknown."
        )
    return H[y >= 0], y[y >= 0]


def check_count(value: int, name: str, limit: int, meaning: str) -> int:
    """Return `value`; raise ValueError if it exceeds `limit`, described by `meaning`."""
    if value > limit:
        raise ValueError(f"{name} must be at most {limit}, {meaning}, got {value}.")
    return int(value)
