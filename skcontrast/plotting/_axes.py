"""Axes, colours and cells of images for the displays."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._checks._arguments import naming
from .._data._metadata import entries, split_known
from ..kinds._series import is_long, lists_series, padded

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
else:
    Axes = Any

# Okabe and Ito's colours, which colour-blind readers can distinguish.
_DISTINCT = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#555555")
# Markers distinguish lines and points where colours do not.
MARKERS = "oDs^vP"


def axes(ax: Axes | None, **figure_settings: Any) -> Axes:
    """Return `ax`, or the axes of a new figure, which `figure_settings` describe."""
    return pyplot().subplots(layout="constrained", **figure_settings)[1] if ax is None else ax


def one_per_sample(values: Any, name: str, n_samples: int, *, is_flat: bool = False) -> Any:
    """Return values as an array with an entry for each sample, or raise an error; None stays None.

    Parameters
    ----------
    values : array-like of length n_samples or None
        The argument's value.
    name : str
        The argument's name, for the error.
    n_samples : int
        The number of samples.
    is_flat : bool, default=False
        Whether the array must be one-dimensional.
    """
    if values is None:
        return None
    with naming(name, "an array with an entry for each sample", values):
        array = entries(values) if is_flat else np.asarray(values)
        if array.ndim == 0 or len(array) != n_samples:
            got = f"shape {array.shape}"
            raise ValueError(f"{name} must have one entry per sample, {n_samples}, got {got}.")
        if is_flat and array.ndim != 1:
            raise ValueError(f"{name} must have shape (n_samples,), got {array.shape}.")
        if array.dtype.kind == "O" and is_flat:
            known, is_known = split_known(array, name)
            if known.dtype.kind == "f":  # quantities
                return np.asarray(values, dtype=np.float64)
            array = known if is_known.all() else array
    return array


def pyplot() -> Any:
    """Import matplotlib.pyplot, which is optional, and return it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("plotting needs matplotlib: pip install 'skcontrast[plot]'.") from error
    return plt


def class_colors(n: int) -> list[Any]:
    """Return a colour for each of n classes; colour-blind readers can distinguish up to seven."""
    if n <= len(_DISTINCT):
        return list(_DISTINCT[:n])
    colors = pyplot().get_cmap("tab10" if n <= 10 else "tab20" if n <= 20 else "turbo")
    return [colors(k) if n <= 20 else colors(k / (n - 1)) for k in range(n)]


# Share of a cell's side that its picture covers.
_COVERED = 0.92


def is_images(X: Any) -> bool:
    """Return whether X holds grey images (n, h, w) or images with channels first."""
    return getattr(X, "ndim", 0) in (3, 4) and not hasattr(X, "topology")


def is_series(X: Any) -> bool:
    """Return whether X is an array (n, n_channels, n_times) that is recognised as series."""
    return getattr(X, "ndim", 0) == 3 and is_long(*X.shape[1:])


def as_pictures(X: Any) -> Any:
    """Pad a list of series of unequal lengths to one array; return anything else unchanged."""
    X = list(X) if isinstance(X, tuple) or getattr(X, "dtype", None) == np.dtype(object) else X
    return padded(X) if isinstance(X, list) and lists_series(X, is_declared=False) else X


def value_ranges(series: NDArray) -> NDArray[np.float64]:
    """Return the minimum and the maximum of each channel, shape (n_channels, 2)."""
    low, high = (f(series, axis=(0, 2)).astype(np.float64) for f in (np.nanmin, np.nanmax))
    return np.stack([low, np.where(high > low, high, low + 1)], axis=1)


def intensities(X: NDArray) -> tuple[float, float]:
    """Return the intensities that are drawn black and white."""
    if X.dtype == np.uint8:
        return 0.0, 255.0
    low, high = float(X.min()), float(X.max())
    return low, high if high > low else low + 1.0


def picture(image: NDArray, limits: tuple[float, float]) -> NDArray:
    """Return an image in the form that matplotlib draws.

    Parameters
    ----------
    image : ndarray of shape (h, w) or (channels, h, w)
        Three channels are red, green and blue; of any other number, the mean is drawn.
    limits : tuple of two floats
        The intensities of black and white.

    Returns
    -------
    picture : ndarray of shape (h, w) or (h, w, 3)
        Grey images in their own intensities, colour images in [0, 1].
    """
    if image.ndim == 2:
        return image
    if len(image) != 3:
        return image[0] if len(image) == 1 else image.mean(axis=0)
    low, high = limits
    return ((np.moveaxis(image, 0, -1).astype(np.float64) - low) / (high - low)).clip(0, 1)


def draw_cell(
    ax: Axes, image: NDArray, row: int, column: int, limits: tuple[float, float], **kwargs: Any
) -> Any:
    """Draw an image in a cell of a grid, centred at x = column and y = row.

    Parameters
    ----------
    ax : Axes
        The axes to draw on, with y growing downwards.
    image : ndarray of shape (h, w) or (channels, h, w)
        The image.
    row, column : int
        The cell.
    limits : tuple of two floats
        The intensities of black and white.
    **kwargs : dict
        Passed to ``Axes.imshow``.
    """
    shown = picture(image, limits)
    longest = max(shown.shape[:2])
    half_height, half_width = (_COVERED / 2 * side / longest for side in shown.shape[:2])
    style = {"cmap": "gray", "vmin": limits[0], "vmax": limits[1], "interpolation": "nearest"}
    extent = (column - half_width, column + half_width, row + half_height, row - half_height)
    return ax.imshow(shown, extent=extent, **{**style, **kwargs})


def draw_series(
    ax: Axes, series: NDArray, row: int, column: int, limits: NDArray, **kwargs: Any
) -> list[Any]:
    """Draw a series in a cell of a grid, as `draw_cell` draws an image, one line per channel.

    Parameters
    ----------
    ax : Axes
        The axes to draw on, with y growing downwards.
    series : ndarray of shape (n_channels, n_times)
        The series; NaN is not drawn.
    row, column : int
        The cell.
    limits : ndarray of shape (n_channels, 2)
        The values at the bottom and at the top of the cell, for each channel.
    **kwargs : dict
        Passed to ``Axes.plot``.
    """
    x = column + _COVERED * (np.linspace(0, 1, series.shape[1]) - 0.5)
    heights = (series - limits[:, :1]) / np.diff(limits)
    colors = class_colors(len(series))
    return [
        ax.plot(x, row - _COVERED * (y - 0.5), **{"color": color, "linewidth": 0.8, **kwargs})[0]
        for y, color in zip(heights, colors, strict=True)
    ]


def drawer(ax: Axes, samples: NDArray, *, as_series: bool, **kwargs: Any) -> Callable[..., Any]:
    """Return a function of a sample, a row and a column that draws on the scale of all samples.

    It calls `draw_cell` for images and `draw_series` for series.
    """
    draw: Callable[..., Any] = draw_series if as_series else draw_cell
    limits: Any = value_ranges(samples) if as_series else intensities(samples)
    return lambda sample, row, column: draw(ax, sample, row, column, limits, **kwargs)


def frame_grid(ax: Axes, n_rows: int, n_columns: int) -> None:
    """Set the limits of a grid of cells, and hide the ticks and the frame."""
    ax.set(xlim=(-0.5, n_columns - 0.5), ylim=(n_rows - 0.5, -0.5), aspect="equal", xticks=[])
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)


def grid_size(n_rows: int, n_columns: int) -> tuple[float, float]:
    """Return the size of a figure for a grid, at most 7 inches wide."""
    cell = min(0.9, 6.2 / n_columns)
    return 0.8 + cell * n_columns, 0.3 + cell * n_rows
