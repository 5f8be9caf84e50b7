"""Embeddings with classes: a training part and, where there is one, a test part."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import column_or_1d

from .._checks import as_numbers, naming, validated
from .._checks._arguments import refuse_masked
from .._data._metadata import entries, validate_labels

_F = TypeVar("_F", bound=Callable[..., Any])


def measure(
    as_scorer: Callable[..., Any], *, greater_is_better: bool = True, **constraints: Any
) -> Callable[[_F], _F]:
    """Return a decorator of measures of embeddings, which checks arguments as `checked` does.

    A measure that is passed an estimator, X and y, as it is where the measure itself is the
    ``scoring`` of a search or a callback, is the scorer of itself.

    Parameters
    ----------
    as_scorer : callable
        Returns the scorer of a measure: `make_embedding_scorer` or `make_view_scorer`.
    greater_is_better : bool, default=True
        Whether the score is the measure, or minus it.
    **constraints : list or type
        As in `checked`.
    """

    def decorate(function: _F) -> _F:
        inner = validated(**constraints)(function)

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if args and hasattr(args[0], "fit"):
                measured = functools.update_wrapper(functools.partial(call, **kwargs), call)
                return as_scorer(measured)(*args)
            return inner(*args, **kwargs)

        vars(call).update(greater_is_better=greater_is_better)
        return cast(_F, call)

    return decorate


# How messages describe embeddings.
EMBEDDINGS = "embeddings, an array of numbers of shape (n_samples, d)"


class LabeledEmbeddings(NamedTuple):
    """Embeddings whose classes are known, float32 or float64, and the classes as 0, 1, ....

    Without a test part, `H_test` and `y_test` are None.
    """

    H: NDArray
    y: NDArray[np.int64]
    H_test: NDArray | None
    y_test: NDArray[np.int64] | None

    @property
    def queries(self) -> tuple[NDArray, NDArray[np.int64]]:
        """The judged samples: the test part, or, without one, every sample in turn."""
        if self.H_test is None or self.y_test is None:
            return self.H, self.y
        return self.H_test, self.y_test


def check_labeled(H: Any, y: Any, H_test: Any, y_test: Any, needed_by: str) -> LabeledEmbeddings:
    """Return both parts without the samples of unknown class (−1).

    Raises
    ------
    ValueError
        If embeddings are not finite, lengths or widths differ, one of `H_test` and `y_test` is
        missing, or fewer than two classes are known.
    """
    if (H_test is None) != (y_test is None):
        raise ValueError(f"{needed_by} needs both H_test and y_test, or neither.")
    H, y = _checked(H, y, "H", "y", needed_by)
    if H_test is None:
        codes = validate_labels(y, len(y), needed_by=needed_by)
        return LabeledEmbeddings(*_known(H, codes, "y", n_classes=2), None, None)
    H_test, y_test = _checked(H_test, y_test, "H_test", "y_test", needed_by)
    if H.shape[1] != H_test.shape[1]:
        raise ValueError(
            f"H and H_test must be equally wide, got {H.shape[1]} and {H_test.shape[1]}."
        )
    validate_labels(y, len(y), needed_by=needed_by)
    with naming("y_test", "classes like those in y"):
        # Coded together: a class has the same code in both parts.
        both = np.concatenate([y.astype(object), y_test.astype(object)])
        codes = validate_labels(both, len(both), needed_by=needed_by)
    train = _known(H, codes[: len(H)], "y", n_classes=2)
    return LabeledEmbeddings(*train, *_known(H_test, codes[len(H) :], "y_test", n_classes=1))


def _checked(H: Any, y: Any, name: str, y_name: str, needed_by: str) -> tuple[NDArray, NDArray]:
    """Return embeddings and their classes as arrays of one length."""
    if y is None:
        raise ValueError(f"{needed_by} needs the classes of the samples, but {y_name} is None.")
    H = as_numbers(H, name, EMBEDDINGS, dtype=(np.float64, np.float32))
    refuse_masked(y, y_name)
    with naming(y_name, "an array of classes, shape (n_samples,)"):
        y = column_or_1d(entries(y))
    if len(y) != len(H):
        wanted = f"one entry per row of {name}, {len(H)}"
        raise ValueError(f"{y_name} must have {wanted}, got {len(y)}.")
    return H, y


def _known(
    H: NDArray, y: NDArray[np.int64], name: str, n_classes: int
) -> tuple[NDArray, NDArray[np.int64]]:
    """Return the samples of known class, which must be of at least `n_classes` classes."""
    found = len(np.unique(y[y >= 0]))
    if found < n_classes:
        raise ValueError(
            f"{name} must hold {n_classes} or more known classes, got {found}; -1 is unknown."
        )
    return H[y >= 0], y[y >= 0]


def check_count(value: int, name: str, most: int, of: str) -> int:
    """Return a number that is at most `most`, which is the number of ... `of`."""
    if value > most:
        raise ValueError(f"{name} must be at most {most}, {of}, got {value}.")
    return int(value)
