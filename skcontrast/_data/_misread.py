"""What is no array of samples yet, or may be something else: each with the line that helps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import issparse

from .._warnings import warn
from ._columns import refuse_lazy

# A list of no more arrays may be one of batches, if they have more rows.
_FEW_SAMPLES = 3
# Images have seldom more channels.
_MOST_CHANNELS = 4
# So many matrices tell whether all are those of graphs.
_MATRICES_TRIED = 64
# So many rows tell whether a table is a long one.
_ROWS_TRIED = 10_000
# Runs of rows of a long table, and rows in each of them on average, at least.
_LEAST_RUNS, _LEAST_STEPS = 3, 3


def refuse_unread(X: Any) -> None:
    """Raise TypeError for a row of what has to be read by something else first.

    Texts, molecules, records, tables, lists of edges, sparse matrices.
    """
    is_column = getattr(X, "ndim", 0) > 0 and tuple(X.shape[1:]) in ((), (1,))
    is_column = is_column and not hasattr(X, "columns")
    first: Any = next(iter(X), None) if is_column or isinstance(X, (list, tuple)) else None
    first = first[0] if isinstance(first, np.ndarray) and first.shape == (1,) else first
    if isinstance(first, str) or type(first).__module__.startswith("rdkit."):
        raise TypeError(
            f"X holds {_found(first)}, not numbers. Molecules become graphs, see 'Molecules' on "
            "the page 'Graphs' of the user guide; other texts become vectors first, by "
            "TfidfVectorizer or a language model; a column of categories is a DataFrame."
        )
    if isinstance(first, Mapping):
        keys = sorted(map(str, first))
        advice = "pass the values of one key"
        if {"nodes", "edges"} <= set(keys) or {"nodes", "links"} <= set(keys):
            advice = "pass [networkx.node_link_graph(x) for x in X]"
        elif all(np.ndim(value) == 0 for value in first.values()):
            advice = "if they are rows of a table, pass pandas.DataFrame(X)"
        raise TypeError(
            f"X must hold samples, got a {type(first).__name__} with the keys {keys}: {advice}."
        )
    if hasattr(first, "columns") and hasattr(first, "to_numpy"):
        refuse_lazy(first)
        raise TypeError(
            "X is a list of DataFrames: if their rows are steps of series, pass "
            "[x.to_numpy().T for x in X]; if they are batches of one table, pandas.concat(X)."
        )
    if issparse(first):
        raise TypeError(
            "X is a list of sparse matrices: if they are adjacency matrices, pass "
            "[networkx.from_scipy_sparse_array(x) for x in X]; if they are batches of vectors, "
            "scipy.sparse.vstack(X)."
        )
    if isinstance(first, list) and first and isinstance(first[0], tuple) and len(first[0]) == 2:
        raise TypeError(
            "X is a list of lists of pairs: if these are edges, pass [networkx.Graph(x) for x in "
            "X]; if they are points, arrays."
        )


def _found(item: Any) -> str:
    return f"texts, such as {item[:40]!r}" if isinstance(item, str) else "molecules of RDKit"


def advice_on_shapes(shapes: set[tuple[int, ...]]) -> str:
    """Return the end of a message about arrays of several shapes."""
    if all(len(shape) == 2 and shape[0] == shape[1] for shape in shapes):
        return (
            "Adjacency matrices become graphs: pass [networkx.from_numpy_array(x) for x in X]. "
            "Images must have one size."
        )
    return (
        "Images must have one size, to which ImageFolder(folder, size=32) brings files. Series "
        "(n_channels, n_times) may differ in n_times alone."
    )


def refuse_batches(X: Any) -> None:
    """Raise ValueError for a list of few arrays of many rows: are these samples, or batches?"""
    are_arrays = isinstance(X, list) and all(isinstance(x, (np.ndarray, torch.Tensor)) for x in X)
    if not are_arrays or len({tuple(x.shape[1:]) for x in X}) != 1 or X[0].ndim not in (2, 3):
        return
    n_rows = min(len(x) for x in X)
    is_few = len(X) <= _FEW_SAMPLES if X[0].ndim == 2 else n_rows > _MOST_CHANNELS
    if is_few and len(X) < n_rows:
        raise ValueError(
            f"X is a list of {len(X)} arrays, the first of shape {tuple(X[0].shape)}, which may be"
            " batches of samples or samples: pass np.concatenate(X) if they are batches; if each "
            "is one sample, declare what it is, such as kind='images' or kind='series'."
        )


def refuse_matrices(X: NDArray) -> None:
    """Raise ValueError for square images that may be adjacency matrices of graphs."""
    some = X[:: -(-len(X) // _MATRICES_TRIED)]
    some = some.astype(np.uint8) if some.dtype == bool else some
    is_diagonal = np.eye(X.shape[1], dtype=bool)
    off, are_mirrored = some[:, ~is_diagonal], np.allclose(some, some.swapaxes(1, 2))
    are_links = np.isin(off, [0, 1]).all() and not some[:, is_diagonal].any()
    if X.shape[1] < 3 or not (are_mirrored or are_links) or not np.ptp(off, axis=1).any():
        return
    raise ValueError(
        f"X of shape {X.shape} holds matrices that are all "
        f"{'symmetric' if are_mirrored else '0 and 1, with 0 on the diagonal'}: if they are "
        "adjacency matrices, pass [networkx.from_numpy_array(x) for x in X], with "
        "create_using=networkx.DiGraph if edges have a direction; if they are images, "
        "kind='images'."
    )


def warn_of_long_table(X: Any) -> None:
    """Warn of a DataFrame whose rows seem to be steps of series, one series after the other."""
    if not (hasattr(X, "columns") and hasattr(X, "groupby")) or len(X.columns) < 3:
        return
    X = X.iloc[:_ROWS_TRIED]
    codes = [_order(X[name]) for name in X.columns]
    runs = [_runs(values) for values in codes]
    for series, starts in enumerate(runs):
        if starts is None:
            continue
        for step, values in enumerate(codes):
            falls = None if values is None or step == series else np.diff(values) <= 0
            if falls is not None and np.array_equal(np.flatnonzero(falls) + 1, starts):
                names = [str(X.columns[place]) for place in (series, step)]
                warn(
                    f"X looks like a long table of series: {names[1]!r} grows within each "
                    f"{names[0]!r}. Its rows are read as samples. If each series is a sample, "
                    "pass [part[channels].to_numpy().T for _, part in X.groupby(series)], where "
                    "series is the one of these columns that says which series a row belongs to, "
                    "and channels are the names of the others."
                )
                return


def _order(column: Any) -> NDArray | None:
    """Return the values of a column as numbers that grow with them, None if they have gaps."""
    values = np.asarray(column)
    if values.dtype.kind in "fc" or (values.dtype == object and not isinstance(values[0], str)):
        return None
    try:
        return np.unique(values, return_inverse=True)[1]
    except TypeError:
        return None


def _runs(values: NDArray | None) -> NDArray | None:
    """Return where runs of equal values begin but the first; None unless each has one long run."""
    if values is None:
        return None
    starts = np.flatnonzero(np.diff(values)) + 1
    n_runs = len(starts) + 1
    is_id = n_runs == values.max() + 1 and _LEAST_RUNS <= n_runs <= len(values) / _LEAST_STEPS
    return starts if is_id else None
