"""Layers of images: dictionaries of patches, averages over grids of cells, and reductions."""

import copy
import math
import warnings
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.random import sample_without_replacement
from threadpoolctl import threadpool_limits
from torch import Tensor, nn

from .._runtime import on_threads

# The most patches, and numbers in them, from which a dictionary is learned: five times as many
# are not better. And the iterations of k-means.
_N_PATCHES, _N_NUMBERS = 10_000, 2**23
_ITERATIONS = 15
# The minimum of the shorter side of an octave.
_LEAST_SIDE = 24
# Added to the variance of a patch, relative to that of images, so that flat patches are near 0.
_LEAST_CONTRAST = 0.003
# Added to the variances of principal components, so that noise is not amplified.
_LEAST_VARIANCE = 0.1
# Share of the variance of patches that is kept.
_KEPT = 0.99


class PatchLayer(nn.Module):
    r"""Compare each patch of an image with a dictionary, which is not trained by gradients.

    .. math:: f_k(x) = \max\Big(0,\; d_k^\top W \Big(\frac{x - \bar x}{\sqrt{\sigma_x^2 +
        \epsilon}} - \mu\Big) - \theta\Big)

    with :math:`\bar x` and :math:`\sigma_x^2` the mean and the variance of the patch x, μ and W
    the mean and the whitening of such patches, and d the directions of the dictionary. This
    is a convolution and two box averages.

    Parameters
    ----------
    n_patches : int
        Size of the dictionary.
    shape : tuple of int
        ``(channels, height, width)`` of a patch.
    threshold : float
        θ.
    stride : int, default=1
        Distance of patches in pixels.
    """

    filters: Tensor
    offsets: Tensor
    epsilon: Tensor

    def __init__(
        self, n_patches: int, shape: tuple[int, int, int], threshold: float, stride: int = 1
    ):
        super().__init__()
        self.threshold, self.stride = threshold, stride
        self.register_buffer("filters", torch.zeros(n_patches, *shape))
        self.register_buffer("offsets", torch.zeros(n_patches))
        self.register_buffer("epsilon", torch.ones(()))

    @torch.no_grad()
    def forward(self, x: Tensor) -> Tensor:
        """Map (n, channels, height, width) to (n, n_patches, ...), with the stride."""
        mean, squares = self._means(x), self._means(x.square())
        contrast = (squares - mean.square()).clamp_(min=0).add_(self.epsilon).rsqrt_()
        # In bfloat16 under autocast. With few input channels, channels-last memory is slow.
        maps = F.conv2d(x, self.filters.contiguous(), stride=self.stride)
        maps.mul_(contrast.to(maps.dtype)).sub_(self.offsets.to(maps.dtype)[:, None, None])
        return maps.relu_()

    def _means(self, x: Tensor) -> Tensor:
        """Return the means of patches, (n, 1, ...), twice as fast as a pooling layer."""
        height, width = self.filters.shape[-2:]
        rows = x.mean(1, keepdim=True).unfold(2, height, self.stride).mean(-1)
        return rows.unfold(3, width, self.stride).mean(-1)

    def map_sides(self, sides: Sequence[int]) -> list[int]:
        """Return the height and width of the output for images of these sides."""
        pairs = zip(sides, self.filters.shape[-2:], strict=True)
        return [(side - size) // self.stride + 1 for side, size in pairs]

    @torch.no_grad()
    def learn(self, images: Tensor, rng: np.random.RandomState) -> None:
        """Set the dictionary: directions of spherical k-means on whitened patches of images."""
        n_patches, *shape = self.filters.shape
        variance = float(images.var(dim=(0, 2, 3), unbiased=False).mean())
        self.epsilon.fill_(max(_LEAST_CONTRAST * variance, 1e-12))
        patches = _random_patches(images, shape, rng)
        patches -= patches.mean(axis=1, keepdims=True)
        patches /= np.sqrt(patches.var(axis=1, keepdims=True) + float(self.epsilon))
        mean, whitening = _whitening(patches)
        patches -= mean
        filters = _spherical_kmeans(patches @ whitening.T, n_patches, rng) @ whitening
        self.offsets.copy_(torch.from_numpy(filters @ mean + self.threshold))
        filters -= filters.mean(axis=1, keepdims=True)
        self.filters.copy_(torch.from_numpy(filters).view(self.filters.shape))


class Octaves(nn.Module):
    """Patch-dictionary features of an image at full size, half of it, a quarter, and so on.

    Parameters
    ----------
    octaves : list of torch.nn.Sequential
        Map images of each size to (n, width) or to maps (n, width, rows, columns) of the same
        size; the first layer is a `PatchLayer`.
    """

    def __init__(self, octaves: Sequence[nn.Module]):
        super().__init__()
        self.octaves = nn.ModuleList(octaves)

    def forward(self, x: Tensor) -> Tensor:
        """Map (n, channels, height, width) to (n, width of all octaves, ...)."""
        outputs = []
        for level, octave in enumerate(self.octaves):
            x = _halved(x) if level else x
            outputs.append(octave(x))
        return torch.cat(outputs, 1)

    def learn(self, images: Tensor, rng: np.random.RandomState) -> None:
        """Set the dictionary of each octave."""
        for level, octave in enumerate(cast(Any, self.octaves)):
            images = _halved(images) if level else images
            octave[0].learn(images, copy.deepcopy(rng))


def octave_sides(height: int, width: int) -> list[tuple[int, int]]:
    """Return the sides of an image at full size, half of it, and so on down to 24 pixels."""
    sides = [(height, width)]
    while min(sides[-1]) >= 2 * _LEAST_SIDE:
        sides.append((sides[-1][0] // 2, sides[-1][1] // 2))
    return sides


def _halved(images: Tensor) -> Tensor:
    """Return the means of 2×2 pixels, three times as fast as a pooling layer."""
    height, width = (side // 2 * 2 for side in images.shape[-2:])
    rows = images[..., 0:height:2, :] + images[..., 1:height:2, :]
    return (rows[..., 0:width:2] + rows[..., 1:width:2]).mul_(0.25)


def _random_patches(images: Tensor, shape: list[int], rng: np.random.RandomState) -> NDArray:
    """Return different random patches of images, or all of them, shape (n, d)."""
    windows = images.unfold(2, shape[1], 1).unfold(3, shape[2], 1)
    counts = (len(windows), *windows.shape[2:4])
    n, n_most = math.prod(counts), min(_N_PATCHES, max(1, _N_NUMBERS // math.prod(shape)))
    chosen = sample_without_replacement(n, min(n, n_most), random_state=rng)
    image, row, column = map(torch.from_numpy, np.unravel_index(chosen, counts))
    return windows[image, :, row, column].flatten(1).double().numpy()


def _whitening(patches: NDArray) -> tuple[NDArray, NDArray]:
    """Return the mean (d,) and the whitening (n_kept, d) of patches (n, d)."""
    n, d = patches.shape
    mean = patches.mean(axis=0)
    centred = patches - mean
    # Both products have the same eigenvalues: the smaller one is decomposed.
    products = centred.T @ centred if d <= n else centred @ centred.T
    variances, axes = np.linalg.eigh(products / n)
    variances, axes = variances[::-1].clip(0), axes[:, ::-1]
    n_kept = 1 + int((np.cumsum(variances) < _KEPT * variances.sum()).sum())
    variances, axes = variances[:n_kept], axes[:, :n_kept]
    if d > n:
        axes = centred.T @ (axes / np.sqrt(n * variances.clip(1e-12)))
    return mean, (axes / np.sqrt(variances + _LEAST_VARIANCE)).T


def _spherical_kmeans(whitened: NDArray, n: int, rng: np.random.RandomState) -> NDArray:
    """Return n unit vectors (n, d) by k-means on the normalised rows (m, d)."""
    from sklearn.cluster import KMeans, kmeans_plusplus

    unit = whitened / np.maximum(np.linalg.norm(whitened, axis=1, keepdims=True), 1e-6)
    unit = np.resize(unit, (max(n, len(unit)), unit.shape[1]))  # fewer patches are repeated
    # The rounding of several threads is not reproducible.
    with on_threads(), threadpool_limits(1, user_api="openmp"), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # few distinct patches
        # In float32, scikit-learn would convert all patches for each new centre.
        start = kmeans_plusplus(unit, n, random_state=rng)[0].astype(np.float32)
        kmeans = KMeans(n, init=start, n_init=1, max_iter=_ITERATIONS)
        centres = kmeans.fit(unit.astype(np.float32)).cluster_centers_.astype(np.float64)
    return centres / np.maximum(np.linalg.norm(centres, axis=1, keepdims=True), 1e-6)


def average_to(cells: Sequence[int], sides: Sequence[int]) -> nn.Module:
    """Return the average pooling from a map of `sides` pixels to one of `cells` pixels.

    Windows cover every pixel and may overlap. Unlike AdaptiveAvgPool2d, the gradient is
    deterministic on every device.
    """
    (height, width), (rows, columns) = sides, cells
    down, right = height // rows, width // columns
    kernel = (height - (rows - 1) * down, width - (columns - 1) * right)
    return nn.AvgPool2d(kernel, (down, right))


class GridMeans(nn.Module):
    """Means of maps over a grid of cells, as AdaptiveAvgPool2d, but three times as fast.

    They are computed by products with two matrices.

    Parameters
    ----------
    cells, sides : sequence of int
        Rows and columns of the grid, and of the maps.
    """

    rows: Tensor
    columns: Tensor

    def __init__(self, cells: Sequence[int], sides: Sequence[int]):
        super().__init__()
        for name, n_cells, side in zip(("rows", "columns"), cells, sides, strict=True):
            matrix = F.adaptive_avg_pool2d(torch.eye(side)[None], (n_cells, side))[0]
            self.register_buffer(name, matrix)

    def forward(self, x: Tensor) -> Tensor:
        """Map (n, channels, height, width) to (n, channels, rows, columns)."""
        return self.rows.to(x.dtype) @ x @ self.columns.T.to(x.dtype)


def bounded_grid(cells: Sequence[int], most: int) -> list[int]:
    """Return rows and columns of a grid of at most `most` cells, by shortening the longer side."""
    shorter = min(cells)
    return [min(side, max(shorter, most // shorter)) for side in cells]


def reduced_sides(sides: Sequence[int], largest: int | None) -> tuple[int, int]:
    """Return the sides of images, reduced to at most the area of a square; None is any area.

    The aspect ratio is kept unless the shorter side would be below half of the square's side:
    then only the longer side shrinks, since the rows of a strip or a spectrogram matter.
    """
    height, width = sides
    if largest is None or height * width <= largest**2:
        return height, width
    factor = largest / math.sqrt(height * width)
    least = min(height, width, max(1, largest // 2))
    if factor * min(sides) >= least:
        return round(factor * height), round(factor * width)
    longer = largest**2 // least
    return (least, longer) if height < width else (longer, least)


def reduced(images: Tensor, sides: Sequence[int] | None) -> Tensor:
    """Return images (n, channels, height, width), resized to these sides; unchanged for None."""
    if sides is None or tuple(images.shape[-2:]) == tuple(sides):
        return images
    if images.dtype == torch.uint8 and images.device.type != "cpu":
        images = images / 255
    return F.interpolate(images, tuple(sides), mode="bilinear", antialias=True)


class Reduced(nn.Module):
    """A layer after a reduction of images, by two matrices, so that all runtimes agree.

    Parameters
    ----------
    layer : torch.nn.Module
        Maps images in [0, 1] of sides `smaller`.
    sides, smaller : sequence of int
        Height and width of the images before and after the reduction; other sizes are unchanged.
    """

    rows: Tensor
    columns: Tensor

    def __init__(self, layer: nn.Module, sides: Sequence[int], smaller: Sequence[int]):
        super().__init__()
        self.layer = layer
        for name, full, small in zip(("rows", "columns"), sides, smaller, strict=True):
            # Column k is the reduced unit vector k.
            matrix = reduced(torch.eye(full)[None, None], (small, full))[0, 0]
            self.register_buffer(name, matrix)

    @property
    def sides(self) -> tuple[int, int]:
        """Height and width of the reduced images."""
        return len(self.rows), len(self.columns)

    def forward(self, x: Tensor) -> Tensor:
        """Map (n, channels, height, width), uint8 or floats in [0, 1]."""
        if x.shape[-2:] != self.sides:
            x = x / 255 if x.dtype == torch.uint8 else x
            x = self.rows @ x @ self.columns.T
        return self.layer(x)
