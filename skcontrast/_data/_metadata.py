"""Validation of y, sample weights, groups, domains and descriptions."""

from numbers import Integral
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from torch import Tensor

from .._checks._arguments import as_numbers, check_length, naming
from .._checks._names import advice_on
from .._warnings import warn
from ._arrays import as_array, as_tensor

# What `fit` takes besides X and y.
NAMES = frozenset({"sample_weight", "descriptions", "groups", "domains"})
# Texts that libraries write for a missing value.
_UNKNOWN_TEXTS = frozenset({"", "nan", "none", "<na>", "nat", "null", "n/a", "na"})


def validate_labels(y: Any, n_samples: int | None, *, needed_by: str) -> NDArray[np.int64]:
    """Return y as integers, −1 where unlabeled.

    Parameters
    ----------
    y : array-like of shape (n_samples,) or None
        Classes, numbers or strings; −1, None, NaN or ``pandas.NA`` where unknown.
    n_samples : int or None
        The required length; None is any length.
    needed_by : str
        Name of the loss, for the message.

    Returns
    -------
    labels : ndarray of shape (n_samples,), dtype int64
    """
    _refuse_none(y, needed_by)
    known, is_known = split_known(y)
    if _are_fractions(known):
        raise ValueError(f"{needed_by} needs classes as y, got numbers that are not integers.")
    return _codes(known, is_known, n_samples, "y")


def _are_fractions(values: NDArray) -> bool:
    return values.dtype.kind == "f" and bool((values % 1).any())


def known_classes(y: Any, *, needed_by: str) -> tuple[NDArray, NDArray[np.bool_]]:
    """Return the known classes of y, at least one, and a mask of the known entries."""
    _refuse_none(y, needed_by)
    known, is_known = split_known(y, warns=True)
    with naming("y", "an array of classes, shape (n_samples,)"):
        check_classification_targets(known)
    if not len(known):
        raise ValueError("y must hold known classes, got none; -1 marks samples of unknown class.")
    return known, is_known


def _refuse_none(y: Any, needed_by: str) -> None:
    """Raise ValueError if there are no classes."""
    if y is None:
        raise ValueError(
            f"{needed_by} requires y to be passed, but the target y is None: pass the classes, "
            "with -1 where they are unknown."
        )


def validate_groups(groups: Any, n_samples: int) -> NDArray[np.int64] | None:
    """Return the groups of the samples as integers, −1 where there is none; None stays None."""
    if groups is None:
        return None
    codes = group_codes(groups, n_samples)
    if len(np.unique(codes[codes >= 0])) == (codes >= 0).sum():
        warn("groups have no effect: no two samples share one.")
    if len(codes) > 1 and (codes == codes[0]).all() and codes[0] >= 0:
        warn("groups separate nothing: all samples are in one group.")
    return codes


def group_codes(groups: Any, n_samples: int) -> NDArray[np.int64]:
    """Return the groups of the samples as integers, −1 where there is none."""
    return _codes(*split_known(groups, "groups", "groups"), n_samples, "groups")


def validate_domains(domains: Any, n_samples: int) -> NDArray[np.int64] | None:
    """Return the domains of the samples as numbers from 0 on; None stays None.

    Samples of an unknown domain, −1, form a domain. A domain of one sample has no negatives:
    several such domains are merged, and a single one joins the largest.
    """
    if domains is None:
        return None
    codes = _codes(*split_known(domains, "domains", "domains"), n_samples, "domains")
    codes, counts = np.unique(codes, return_inverse=True, return_counts=True)[1:]
    alone = np.flatnonzero(counts[codes] == 1)
    if len(alone):
        warn(
            f"{len(alone)} domain(s) have a single sample and no negatives. They are merged, a "
            "single one into the largest domain."
        )
        codes[alone] = counts.argmax() if len(alone) == 1 else codes[alone[0]]
    return np.unique(codes, return_inverse=True)[1]


def split_known(
    values: Any, name: str = "y", what: str = "classes", *, warns: bool = False
) -> tuple[NDArray, NDArray[np.bool_]]:
    """Return the known entries, and a mask of them: not −1, None, NaN or pandas.NA.

    Parameters
    ----------
    values : array-like of shape (n_samples,)
        Numbers or strings.
    name, what : str
        The name of the argument and of its values, for messages.
    warns : bool, default=False
        Whether a column, (n_samples, 1), gets the warning of scikit-learn.

    Returns
    -------
    known : ndarray of shape (n_known,)
    is_known : ndarray of shape (n_samples,), dtype bool
    """
    expected = f"an array of {what}, shape (n_samples,)"
    with naming(name, expected):
        array = entries(values)
        if array.ndim != 1 and (array.ndim != 2 or array.shape[1] != 1):
            got = f"the text {values!r}" if isinstance(values, str) else f"shape {array.shape}"
            raise ValueError(f"{name} must be {expected}, got {got}.")
        array = column_or_1d(array, warn=warns)
        is_known = np.array([not is_unknown(value) for value in array.tolist()], dtype=bool)
        known = array[is_known]
        if known.dtype == object:
            known = _of_one_type(known.tolist(), name)
    if known.dtype.kind == "f":
        assert_all_finite(known, input_name=name)
        if (np.abs(known) >= 2 / np.finfo(known.dtype).eps).any():
            raise ValueError(
                f"{name} holds floats that are too large to tell integers apart: pass integers, "
                "such as the dtype 'Int64' of pandas, or strings."
            )
    if known.dtype.kind in "US":
        for text in sorted({"-1", "-1.0"}.intersection(known.astype(str).tolist())):
            raise ValueError(
                f"{name} holds the string {text!r}: rename it if it is one of the {what}. Mark "
                "unknown entries by the number -1 or None."
            )
    if texts := sorted({value for value in array[~is_known].tolist() if isinstance(value, str)}):
        warn(
            f"{name} holds the text {texts[0]!r}, which is read as unknown. Mark unknown "
            f"entries by None or -1; if it is one of the {what}, rename it."
        )
    return known, is_known


def entries(values: Any) -> NDArray:
    """Return classes or groups as an array, without loss.

    numpy converts integers with missing values to floats, in which large integers become equal:
    these are returned as an array of objects, and so is a list.
    """
    if isinstance(values, torch.Tensor):
        return as_array(values)
    if np.ma.isMaskedArray(values):
        pairs = zip(np.ma.getmaskarray(values).flat, values.data.flat, strict=True)
        return np.array([None if m else v for m, v in pairs], dtype=object).reshape(values.shape)
    if hasattr(values, "columns") and getattr(values, "shape", ())[1:] == (1,):
        return entries(values[values.columns[0]])[:, None]
    array = np.asarray(values, dtype=None if hasattr(values, "dtype") else object)
    if array.dtype.kind == "T":  # numpy's StringDType
        return array.astype(object)
    if isinstance(values, np.ndarray) or (array.dtype.kind != "f" and hasattr(values, "dtype")):
        return array
    # pandas, polars and pyarrow, in this order.
    if hasattr(values, "astype"):
        return np.asarray(values.astype(object))
    as_list = getattr(values, "to_list", None) or getattr(values, "to_pylist", None)
    return np.asarray(as_list() if as_list else values, dtype=object)


def _of_one_type(known: list, name: str) -> NDArray:
    """Return numbers or strings as an array; integers stay integers."""
    if len({isinstance(value, str) for value in known}) > 1:
        raise ValueError(f"{name} must hold numbers or strings, got both.")
    array = np.array(known)
    if array.ndim > 1:
        raise ValueError(f"{name} must hold numbers or strings, got lists or tuples.")
    # numpy converts integers to floats if some need uint64.
    are_whole = array.dtype.kind == "f" and all(isinstance(value, Integral) for value in known)
    return np.array(known, dtype=np.uint64) if are_whole else array


def is_unknown(value: Any) -> bool:
    """Return whether an entry is −1, None, NaN or pandas.NA, or the text of one of them."""
    if isinstance(value, str):
        return value.strip().lower() in _UNKNOWN_TEXTS
    try:
        return value is None or bool(value != value) or bool(value == -1)
    except TypeError:  # pandas.NA is neither equal to anything nor unequal
        return True


def _codes(
    known: NDArray, is_known: NDArray[np.bool_], n_samples: int | None, name: str
) -> NDArray[np.int64]:
    """Return known values as integers from 0 on, −1 where they are unknown."""
    if n_samples is not None:
        check_length(name, len(is_known), n_samples)
    codes = np.full(len(is_known), -1, dtype=np.int64)
    with naming(name, "an array of numbers or strings"):
        codes[is_known] = np.unique(known, return_inverse=True)[1]
    return codes


def classes_or_none(y: Any, n_samples: int) -> NDArray[np.int64] | None:
    """Return y as integers if it holds classes, −1 where unknown; None if it does not.

    Targets of a regression are not classes, nor are labels that all occur fewer than twice on
    average, unless some are marked as unknown.
    """
    with naming("y", "an array of classes, shape (n_samples,)"):
        y = entries(y)
    if y.ndim != 1 and y.shape[1:] != (1,):
        return None
    known, is_known = split_known(y)
    if _are_fractions(known):
        return None
    labels = _codes(known, is_known, n_samples, "y")
    _, counts = np.unique(labels[labels >= 0], return_counts=True)
    are_classes = bool((labels < 0).any()) or 2 * len(counts) <= counts.sum()
    return labels if len(counts) >= 2 and are_classes else None


def read_metadata(
    y: Any, metadata: dict[str, Any], n_samples: int, loss: Any, *, uses_classes: bool
) -> dict[str, Tensor]:
    """Return the metadata of the samples, classes too, as fields of a `Batch` by name.

    Parameters
    ----------
    y : array-like of shape (n_samples,) or None
        Classes.
    metadata : dict
        The arguments of fit besides X and y.
    n_samples : int
        The number of samples.
    loss : Loss
        May require y.
    uses_classes : bool
        Whether classes are used even if the loss does not require them.
    """
    # The length of y is checked even if the loss ignores y.
    if y is not None:
        with naming("y", "an array of classes, shape (n_samples,)"):
            check_length("y", len(entries(y)), n_samples)
    if unknown := sorted(metadata.keys() - NAMES):
        advice = advice_on(unknown[0], ("X", "y", *sorted(NAMES)))
        raise TypeError(f"fit got an unexpected argument {unknown[0]!r}{advice}")
    weights = checked_weights(metadata.get("sample_weight"), n_samples)
    descriptions = _numbers_of("descriptions", metadata.get("descriptions"), n_samples, ndim=2)
    if descriptions is not None and not descriptions.any():
        raise ValueError("descriptions must not be all zeros: every sample would have weight 0.")
    fields: dict[str, NDArray | None] = {"weights": weights, "descriptions": descriptions}
    fields["groups"] = validate_groups(metadata.get("groups"), n_samples)
    fields["domains"] = validate_domains(metadata.get("domains"), n_samples)
    if loss.requires_y:
        labels = validate_labels(y, n_samples, needed_by=type(loss).__name__)
        n_known, n_classes = (labels >= 0).sum(), len(np.unique(labels[labels >= 0]))
        if n_classes == n_known or (n_classes == 1 and n_known == len(labels) > 1):
            warn(
                f"{type(loss).__name__} learns nothing from y: it needs several classes, and two "
                "samples of one of them. -1 marks samples of unknown class."
            )
        fields["labels"] = labels
    elif uses_classes and y is not None:
        fields["labels"] = classes_or_none(y, n_samples)
    return {name: as_tensor(a) for name, a in fields.items() if a is not None}


def checked_weights(
    weights: Any, n_samples: int, dtype: type[np.floating] = np.float32
) -> NDArray[Any] | None:
    """Return weights as nonnegative numbers, not all 0; None stays None."""
    array = _numbers_of("sample_weight", weights, n_samples, ndim=1, dtype=dtype)
    if array is not None and (array.min() < 0 or array.max() == 0):
        raise ValueError("sample_weight must be nonnegative and not all zeros.")
    return array


def check_descriptions(descriptions: Tensor | None, width: int) -> None:
    """Raise ValueError unless descriptions have the width of the projections."""
    if descriptions is not None and descriptions.shape[1] != width:
        raise ValueError(
            f"descriptions must have shape (n_samples, {width}), as wide as the projection "
            f"('projection_dim'), got {tuple(descriptions.shape)}."
        )


def _numbers_of(
    name: str, value: Any, n_samples: int, *, ndim: int, dtype: type[np.floating] = np.float32
) -> NDArray[Any] | None:
    """Return an argument of fit as an array of numbers; None stays None."""
    if value is None:
        return None
    options: dict[str, Any] = {"dtype": dtype, "ensure_2d": False, "allow_nd": True}
    options |= {"ensure_min_samples": 0, "ensure_min_features": 0}
    with np.errstate(over="ignore"):  # values beyond float32 are refused as infinite
        value = as_numbers(value, name, **options)
    if value.ndim != ndim or len(value) != n_samples:
        shape = f"({n_samples},)" if ndim == 1 else f"({n_samples}, d)"
        raise ValueError(f"{name} must have shape {shape}, got {value.shape}.")
    return value
