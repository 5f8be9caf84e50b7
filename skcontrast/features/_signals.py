"""Features of images and series: oriented gradients, codes of patches, fixed kernels."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, pad, relu

from .._checks import NON_NEGATIVE, POSITIVE_INT, Interval, parameter
from .._layers._images import Octaves, PatchLayer, average_to, bounded_grid, octave_sides
from .._layers._kernels import N_KERNELS, KernelLayer
from ._base import Features

# Cells along the shorter side of an image, and the least pixels of a cell.
_CELLS, _LEAST_CELL = 8, 4


class OrientedGradients(Features):
    r"""Histograms of the directions of edges in the cells of an image.

    The gradient of each pixel, in the channel where it is longest, adds its length to the two
    nearest of k directions, of which opposite ones are the same. The sums over a cell, the vector
    :math:`v`, are divided by the length of those of each of the four blocks of 2×2 cells that it
    lies in, :math:`E_1, \dots, E_4`, to reduce the effect of lighting [1]_ [2]_:

    .. math:: h = \sum_{b=1}^4 \min\Big(0.2,\; \frac{v}{\sqrt{\lVert E_b\rVert^2 + 0.1}}\Big)

    Parameters
    ----------
    cell_size : int, default=None
        Height and width of a cell in pixels. None is an eighth of the shorter side, at least 4;
        of elongated images the cells are then longer, so that there are at most 64.
    n_orientations : int, default=9
        The number k of directions of the half circle, at least 2.

    Attributes
    ----------
    module_ : torch.nn.Module
        The map from images to features.

    See Also
    --------
    PatchDictionary : Learns what to look for from the data.
    skcontrast.encoders.PatchNet : Learns convolutions on the codes of a dictionary.

    References
    ----------
    .. [1] N. Dalal, B. Triggs, "Histograms of Oriented Gradients for Human Detection", CVPR 2005.
    .. [2] P. F. Felzenszwalb, R. B. Girshick, D. McAllester, D. Ramanan, "Object Detection with
       Discriminatively Trained Part-Based Models", TPAMI 2010: sums over the four blocks.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from skcontrast.features import OrientedGradients
    >>> OrientedGradients().fit_transform(load_digits().images).shape
    (1797, 36)
    """

    kind = "images"
    cell_size: int | None = parameter([*POSITIVE_INT, None], default=None)
    n_orientations: int = parameter([Interval(Integral, 2, None, closed="left")], default=9)

    def learn(self, batch: Tensor, rng: np.random.RandomState) -> nn.Module:
        """Return the histograms as a module; see `Features.learn`."""
        sides = batch.shape[2:]
        cell_size = self.cell_size or max(_LEAST_CELL, min(sides) // _CELLS)
        most = None if self.cell_size else _CELLS**2
        layer = GradientLayer(sides, cell_size, self.n_orientations, most)
        return nn.Sequential(layer, nn.Flatten())


# Patches begin at about this many positions along the shorter side of an image.
_MOST_PLACES = 48


class PatchDictionary(Features):
    r"""Compare the patches of an image with a dictionary of patches, and average by regions.

    The single-layer network of [1]_ and [2]_. Patches lose their mean, are divided by their
    contrast and whitened; spherical k-means on the patches of the training images gives the
    directions d. The code of a patch with whitened numbers w is

    .. math:: f_k = \max(0, d_k^\top w - \theta)

    and its mean over each cell of a grid is a feature. Images of 48 pixels or more have codes at
    several octaves, each with its own dictionary: their own size, half of it, and so on down to 24
    pixels or more. With a linear classifier after it, on small
    photographs it is ahead of many networks trained without labels, in a fraction of their time.

    Parameters
    ----------
    n_patches : int, default=400
        Directions of the dictionary.
    patch_size : int, default=6
        Height and width of a patch in pixels; at most the side of an image.
    threshold : float, default=1.0
        θ, at least 0.
    grid : int, default=2
        Rows and columns of cells.
    random_state : int, RandomState instance or None, default=None
        Seeds the choice of patches and k-means.

    Attributes
    ----------
    module_ : torch.nn.Module
        The map from images to features.

    See Also
    --------
    skcontrast.encoders.PatchNet : Learns on top of such a dictionary.

    References
    ----------
    .. [1] A. Coates, H. Lee, A. Y. Ng, "An Analysis of Single-Layer Networks in Unsupervised
       Feature Learning", AISTATS 2011.
    .. [2] A. Coates, A. Y. Ng, "The Importance of Encoding Versus Training with Sparse Coding and
       Vector Quantization", ICML 2011.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from skcontrast.features import PatchDictionary
    >>> X = load_digits().images
    >>> PatchDictionary(n_patches=50, patch_size=3, random_state=0).fit_transform(X).shape
    (1797, 200)
    """

    kind = "images"
    n_patches: int = parameter(POSITIVE_INT, default=400)
    patch_size: int = parameter(POSITIVE_INT, default=6)
    threshold: float = parameter(NON_NEGATIVE, default=1.0)
    grid: int = parameter(POSITIVE_INT, default=2)
    random_state: int | np.random.RandomState | None = parameter(["random_state"], default=None)

    def learn(self, batch: Tensor, rng: np.random.RandomState) -> nn.Module:
        """Return the dictionary and the grid as a module; see `Features.learn`."""
        channels, *whole = batch.shape[1:]
        octaves = []
        for sides in octave_sides(*whole):
            height, width = (min(self.patch_size, side) for side in sides)
            # Neighbouring patches of large images say nearly the same.
            stride = max(1, min(sides) // _MOST_PLACES)
            shape = (channels, height, width)
            layer = PatchLayer(self.n_patches, shape, float(self.threshold), stride)
            places = layer.map_sides(sides)
            cells = [min(self.grid, side) for side in places]
            octaves.append(nn.Sequential(layer, average_to(cells, places), nn.Flatten()))
        found = Octaves(octaves)
        found.learn(batch, rng)
        return found if len(octaves) > 1 else octaves[0]


class MiniRocket(Features):
    r"""Convolve series with fixed kernels, and count how often the result exceeds a threshold.

    The features of [1]_. There are 84 kernels w of length 9, whose weights are 2 three times and
    -1 six times. Each is spread over a series by several dilations d, from 1 to that at which it
    is as long as the longest training series, and has several thresholds b: quantiles of its
    convolution with a training series drawn at random. A feature is the share of times at which

    .. math:: \sum_{j=-4}^{4} w_j\, x_{t + jd} > b.

    Every second convolution is padded with zeros, the others are counted only
    where the kernel is inside of it; where it is longer than a series, the feature is 0. Times
    behind the end of a shorter series do not count. With several channels, a kernel reads the
    sum of a few, drawn at random, as in the multivariate form of the authors. In series of 1,000
    times or more, 500 to 1,000 are counted, spread evenly, so that features of 5,000 times cost
    little more than those of 500. With a linear classifier after it, it is level with far larger
    methods on most small sets of series.

    Parameters
    ----------
    n_features : int, default=2016
        Number of features, at least 84, rounded down to a multiple of 84.
    random_state : int, RandomState instance or None, default=None
        Seeds the choice of channels and of the series that give the thresholds.

    Attributes
    ----------
    module_ : torch.nn.Module
        The map from series to features.

    See Also
    --------
    skcontrast.encoders.SeriesNet : A network of series, which is trained.

    References
    ----------
    .. [1] A. Dempster, D. F. Schmidt, G. I. Webb, "MiniRocket: A Very Fast (Almost) Deterministic
       Transform for Time Series Classification", KDD 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from skcontrast.features import MiniRocket
    >>> X = np.random.default_rng(0).normal(size=(20, 3, 100))  # 3 channels, 100 times
    >>> MiniRocket(random_state=0).fit_transform(X).shape
    (20, 2016)
    """

    kind = "series"
    n_features: int = parameter([Interval(Integral, N_KERNELS, None, closed="left")], default=2016)
    random_state: int | np.random.RandomState | None = parameter(["random_state"], default=None)

    def learn(self, batch: Tensor, rng: np.random.RandomState) -> nn.Module:
        """Return kernels with their thresholds as a module; see `Features.learn`."""
        return KernelLayer.of(batch, self.n_features, rng)


# Of standardised images: an even region has no edges, however little it varies.
_LEAST_ENERGY = 0.1
# No orientation of a cell has a greater share of its neighbourhood.
_GREATEST_SHARE = 0.2


class GradientLayer(nn.Module):
    """Histograms of oriented gradients of images, normalised over neighbouring cells.

    Parameters
    ----------
    sides : sequence of int
        Height and width of the images.
    cell_size : int
        Pixels on a side of a cell, at most those of the image.
    n_orientations : int
        Bins of the half circle of directions.
    most : int, default=None
        The most cells of elongated images, whose cells are as long as that takes, and count as if
        they were squares.
    """

    def __init__(
        self, sides: Sequence[int], cell_size: int, n_orientations: int, most: int | None = None
    ):
        super().__init__()
        self.n_orientations = n_orientations
        cells = [max(1, side // cell_size) for side in sides]
        self.cells = average_to(bounded_grid(cells, most) if most else cells, sides)
        self.cell_area = cell_size**2

    def forward(self, x: Tensor) -> Tensor:
        """Map (n, channels, height, width) to (n, n_orientations, rows, columns)."""
        height, width = x.shape[2:]
        # Differences of the pixels on both sides, in the channel where they are longest.
        right = pad(x[..., 2:] - x[..., :-2], (1, 1))[..., :width]
        down = pad(x[..., 2:, :] - x[..., :-2, :], (0, 0, 1, 1))[..., :height, :]
        strongest = (right.square() + down.square()).argmax(1, keepdim=True)
        right, down = right.gather(1, strongest), down.gather(1, strongest)
        # Each pixel votes for the two nearest of k directions, by how near they are.
        bins = torch.arange(self.n_orientations, device=x.device).view(1, -1, 1, 1)
        turned = torch.atan2(down, right) * (self.n_orientations / torch.pi)
        far = (torch.remainder(turned, self.n_orientations) - bins).abs()
        near = relu(1 - torch.minimum(far, self.n_orientations - far))
        length = (right.square() + down.square()).sqrt()
        counts = self.cells(length * near) * self.cell_area
        # A cell is divided by the lengths of the four blocks of 2×2 cells that it lies in; beyond
        # the border, cells are empty.
        energy = avg_pool2d(pad(counts.square().sum(1, keepdim=True), (1, 1, 1, 1)), 2, 1) * 4
        unit = (energy + _LEAST_ENERGY).rsqrt()
        rows, columns = counts.shape[2:]
        units = [unit[..., i : i + rows, j : j + columns] for i in (0, 1) for j in (0, 1)]
        return torch.stack([(counts * one).clamp(max=_GREATEST_SHARE) for one in units]).sum(0)
