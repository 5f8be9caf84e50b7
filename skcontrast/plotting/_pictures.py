"""Images of samples, drawn as cells of a grid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage

# Of a cell of size 1, so much is covered by its picture.
_COVERED = 0.92


def is_images(X: Any) -> bool:
    """Return whether X holds grey images (n, h, w) or images with channels first."""
    return getattr(X, "ndim", 0) in (3, 4) and not hasattr(X, "topology")


def intensities(X: NDArray) -> tuple[float, float]:
    """Return the intensities that are drawn black and white."""
    if X.dtype == np.uint8:
        return 0.0, 255.0
    low, high = float(X.min()), float(X.max())
    return low, high if high > low else low + 1.0


def picture(image: NDArray, limits: tuple[float, float]) -> NDArray:
    """Return an image as matplotlib draws it.

    Parameters
    ----------
    image : ndarray of shape (h, w) or (channels, h, w)
        With three channels, they are red, green and blue; of any other number, the mean is drawn.
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
) -> AxesImage:
    """Draw an image in a cell of a grid, whose middle is at x = column and y = row.

    Parameters
    ----------
    ax : Axes
        Where y grows downwards.
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
    half_height, half_width = (
        _COVERED / 2 * side / max(shown.shape[:2]) for side in shown.shape[:2]
    )
    style = {"cmap": "gray", "vmin": limits[0], "vmax": limits[1], "interpolation": "nearest"}
    extent = (column - half_width, column + half_width, row + half_height, row - half_height)
    return ax.imshow(shown, extent=extent, **{**style, **kwargs})


def frame_grid(ax: Axes, n_rows: int, n_columns: int) -> None:
    """Show a grid of cells as a whole, without ticks and frame."""
    ax.set(xlim=(-0.5, n_columns - 0.5), ylim=(n_rows - 0.5, -0.5), aspect="equal", xticks=[])
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)


def grid_size(n_rows: int, n_columns: int) -> tuple[float, float]:
    """Return the size of a figure for a grid, at most 7 inches wide."""
    cell = min(0.9, 6.2 / n_columns)
    return 0.8 + cell * n_columns, 0.3 + cell * n_rows
