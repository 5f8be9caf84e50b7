"""Axes and colours of the displays, and which values have a place on an axis."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from .._arguments import naming

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# How messages describe embeddings.
EMBEDDINGS = "embeddings, an array of numbers of shape (n_samples, d)"

# Okabe and Ito's colours, which colour-blind readers can distinguish, neighbours best.
_DISTINCT = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#555555")
# Tell lines and points apart where colours do not.
MARKERS = "oDs^vP"


def axes(ax: Axes | None, **figure_settings: Any) -> Axes:
    """Return `ax`, or the axes of a new figure, which `figure_settings` describe."""
    if ax is not None:
        if not hasattr(ax, "get_window_extent") or not hasattr(ax, "plot"):
            raise TypeError(f"ax must be an Axes of matplotlib or None, got {ax!r}.")
        return ax
    return pyplot().subplots(layout="constrained", **figure_settings)[1]


def one_each(values: Any, name: str, n_samples: int) -> Any:
    """Return an array with an entry for each sample, or raise an error that names it; None stays.

    Parameters
    ----------
    values : array-like of length n_samples or None
        The argument.
    name : str
        The name of the argument.
    n_samples : int
        How many entries it must have.
    """
    if values is None:
        return None
    with naming(name, "an array with an entry for each sample", values):
        array = np.asarray(values)
        if array.ndim == 0 or len(array) != n_samples:
            shape = array.shape
            raise ValueError(f"{name} must have one entry per sample, {n_samples}, got {shape}.")
        if array.dtype.kind == "O":
            np.unique(array)
    return array


def is_number(value: Any) -> TypeGuard[float]:
    """Return whether a value is a finite number, which a bool is not."""
    is_bool = isinstance(value, (bool, np.bool_))
    return isinstance(value, (Real, np.number)) and not is_bool and bool(np.isfinite(float(value)))


def pyplot() -> Any:
    """Return the module matplotlib.pyplot, imported only now."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "skcontrast.plotting needs matplotlib: pip install 'skcontrast[plot]'."
        ) from error
    return plt


def class_colors(n: int) -> list[Any]:
    """Return a colour for each of n classes; up to seven can be told apart by everybody."""
    if n <= len(_DISTINCT):
        return list(_DISTINCT[:n])
    colors = pyplot().get_cmap("tab10" if n <= 10 else "tab20" if n <= 20 else "turbo")
    return [colors(k) if n <= 20 else colors(k / (n - 1)) for k in range(n)]
