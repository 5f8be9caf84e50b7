"""Row labels: the index of a pandas object, kept when X is converted to an array."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._sklearn_compat import get_output_config


class LabeledArray(np.ndarray):
    """An array that knows the row labels of the table that it was made from.

    Arrays computed from it, slices too, do not have labels.

    Attributes
    ----------
    index : pandas.Index or None
        The labels of the rows.
    """

    index: Any = None

    def __reduce__(self) -> tuple:
        return label_rows, (np.asarray(self), self.index)


def row_labels(X: Any) -> Any:
    """Return the index of a pandas object, or of what was made from one; None if X has none.

    The index that pandas gives a table without labels, 0 to n - 1, counts as none.
    """
    index: Any = getattr(X, "index", None)
    if not hasattr(index, "get_indexer"):  # lists have a method of the name "index"
        return None
    is_range = (getattr(index, "start", None), getattr(index, "step", None)) == (0, 1)
    return None if is_range and index.name is None else index


def label_rows(array: Any, labels: Any) -> Any:
    """Return an ndarray as a `LabeledArray`; without labels, or no ndarray, unchanged."""
    if labels is None or not isinstance(array, np.ndarray):
        return array
    labeled = array.view(LabeledArray)
    labeled.index = labels
    return labeled


def labeled_output(h: NDArray, X: Any, estimator: Any) -> Any:
    """Return what `transform` computed for X, as a DataFrame if labels would get lost otherwise.

    With ``set_output(transform="pandas")``, scikit-learn takes the index of DataFrames only.
    """
    labels = row_labels(X)
    if labels is None or get_output_config("transform", estimator)["dense"] != "pandas":
        return h
    import pandas as pd

    return pd.DataFrame(h, index=labels)


def along_rows(rows: Any, name: str) -> Any:
    """Return an index of samples without the ellipsis that scikit-learn adds for further axes."""
    if isinstance(rows, tuple) and len(rows) == 2 and rows[1] is Ellipsis:
        rows = rows[0]
    if rows is None or isinstance(rows, (tuple, bool, np.bool_)) or np.ndim(rows) > 1:
        raise IndexError(f"{name} can only be indexed by samples, [rows], got {rows!r}.")
    return rows
