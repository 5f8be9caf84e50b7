"""Features of images and series: HOG, patch dictionaries and fixed convolutional kernels."""

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

# Cells along the shorter side of an image, and the minimum size of a cell in pixels.
_CELLS, _LEAST_CELL = 8, 4


class OrientedGradients(Features):
    r"""HOG features: histograms of oriented gradients in the cells of an image.

    The gradient of each pixel, in the channel where it is largest, adds its length to the two
    nearest of k orientations. The sums over a cell, the vector :math:`v`, are divided by the norm
    of each of the four blocks of 2×2 cells that contain it, :math:`E_1, \dots, E_4`, to reduce
    the effect of lighting [1]_ [2]_:

    .. math:: h = \sum_{b=1}^4 \min\Big(0.2,\; \frac{v}{\sqrt{\lVert E_b\rVert^2 + 0.1}}\Big)

    Parameters
    ----------
    cell_size : int, default=None
        Height and width of a cell in pixels. None is an eighth of the shorter side, at least 4;
        elongated images then have longer cells, so that there are at most 64.
    n_orientations : int, default=9
        The number k of orientations in 180°, at least 2.
    kind : "images" or Images, default=None
        How X is read, such as ``Images(size=64)``. None is "images".

    Attributes
    ----------
    module_ : torch.nn.Module
        The map from images to features.

    See Also
    --------
    PatchDictionary : Learns a dictionary of patches from the data.
    skcontrast.encoders.PatchNet : Convolutions on patch-dictionary features.

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


# The number of patches along the shorter side of an image, about.
_MOST_PATCHES = 48


class PatchDictionary(Features):
    r"""Compare the patches of an image with a dictionary of patches, and average by regions.

    The single-layer network of [1]_ and [2]_. Patches lose their mean, are divided by their
    contrast and whitened; spherical k-means on the patches of the training images gives the
    directions d. The response of a whitened patch w is

    .. math:: f_k = \max(0, d_k^\top w - \theta)

    and its mean over each cell of a grid is a feature. Images of 48 pixels or more have features
    at several octaves, each with its own dictionary: full size, half of it, and so on down to 24
    pixels. Followed by a linear classifier, they are better on small photographs than many
    networks trained without labels, in a fraction of the time.

    Parameters
    ----------
    n_patches : int, default=400
        Size of the dictionary.
    patch_size : int, default=6
        Height and width of a patch in pixels; at most the side of an image.
    threshold : float, default=1.0
        θ, at least 0.
    grid : int, default=2
        Rows and columns of cells.
    random_state : int, RandomState instance or None, default=None
        Seeds the choice of patches and k-means.
    kind : "images" or Images, default=None
        How X is read, such as ``Images(size=64)``. None is "images".

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
        channels, *full_sides = batch.shape[1:]
        octaves = []
        for sides in octave_sides(*full_sides):
            height, width = (min(self.patch_size, side) for side in sides)
            # Neighbouring patches of large images are similar.
            stride = max(1, min(sides) // _MOST_PATCHES)
            shape = (channels, height, width)
            layer = PatchLayer(self.n_patches, shape, float(self.threshold), stride)
            map_sides = layer.map_sides(sides)
            cells = [min(self.grid, side) for side in map_sides]
            octaves.append(nn.Sequential(layer, average_to(cells, map_sides), nn.Flatten()))
        dictionary = Octaves(octaves)
        dictionary.learn(batch, rng)
        return dictionary if len(octaves) > 1 else octaves[0]


class MiniRocket(Features):
    r"""Convolve series with fixed kernels, and count how often the result exceeds a threshold.

    The features of [1]_. There are 84 kernels w of length 9, whose weights are 2 three times and
    -1 six times. Each is spread over a series by several dilations d, from 1 to that at which it
    is as long as the longest training series, and has several thresholds b: quantiles of its
    convolution with a training series drawn at random. A feature is the share of times at which

    .. math:: \sum_{j=-4}^{4} w_j\, x_{t + jd} > b.

    Every second convolution is padded with zeros; the others count only where the kernel is
    inside of the series, and are 0 if it is longer. Padding of shorter series does not count. With
    several channels, a kernel has the sum of a few random channels as input, as in the authors'
    multivariate version. In series of 1,000 steps or more, 500 to 1,000 steps count, spread
    evenly, so that features of 5,000 steps take little longer than those of 500. Followed by a
    linear classifier, it is as good as far larger methods on most small sets of series.

    Parameters
    ----------
    n_features : int, default=2016
        Number of features, at least 84, rounded down to a multiple of 84.
    random_state : int, RandomState instance or None, default=None
        Seeds the choice of channels and of the series for thresholds.
    kind : "series" or Series, default=None
        How X is read, such as ``Series(standardize=False)``. None is "series".

    Attributes
    ----------
    module_ : torch.nn.Module
        The map from series to features.

    See Also
    --------
    skcontrast.encoders.SeriesNet : A trainable network of series.

    References
    ----------
    .. [1] A. Dempster, D. F. Schmidt, G. I. Webb, "MiniRocket: A Very Fast (Almost) Deterministic
       Transform for Time Series Classification", KDD 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from skcontrast.features import MiniRocket
    >>> X = np.random.default_rng(0).normal(size=(20, 3, 100))  # 3 channels, 100 steps
    >>> MiniRocket(random_state=0).fit_transform(X).shape
    (20, 2016)
    """

    kind = "series"
    n_features: int = parameter([Interval(Integral, N_KERNELS, None, closed="left")], default=2016)
    random_state: int | np.random.RandomState | None = parameter(["random_state"], default=None)

    def learn(self, batch: Tensor, rng: np.random.RandomState) -> nn.Module:
        """Return kernels with their thresholds as a module; see `Features.learn`."""
        return KernelLayer.of(batch, self.n_features, rng)


# Added to squared norms of blocks in standardised images, so that flat regions have no edges.
_LEAST_ENERGY = 0.1
# Larger values are clipped.
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
        Bins of 180°.
    most : int, default=None
        Maximum number of cells of elongated images, whose cells are then elongated; they count
        as squares.
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
        # Central differences, in the channel of the largest gradient.
        right = pad(x[..., 2:] - x[..., :-2], (1, 1))[..., :width]
        down = pad(x[..., 2:, :] - x[..., :-2, :], (0, 0, 1, 1))[..., :height, :]
        strongest = (right.square() + down.square()).argmax(1, keepdim=True)
        right, down = right.gather(1, strongest), down.gather(1, strongest)
        # Each pixel adds to the two nearest of k orientations, linearly interpolated.
        bins = torch.arange(self.n_orientations, device=x.device).view(1, -1, 1, 1)
        angle = torch.atan2(down, right) * (self.n_orientations / torch.pi)
        far = (torch.remainder(angle, self.n_orientations) - bins).abs()
        near = relu(1 - torch.minimum(far, self.n_orientations - far))
        counts = self.cells((right.square() + down.square()).sqrt() * near) * self.cell_area
        # A cell is divided by the norms of the four blocks of 2×2 cells that contain it. Cells
        # outside of the image are 0.
        energy = avg_pool2d(pad(counts.square().sum(1, keepdim=True), (1, 1, 1, 1)), 2, 1) * 4
        unit = (energy + _LEAST_ENERGY).rsqrt()
        rows, columns = counts.shape[2:]
        units = [unit[..., i : i + rows, j : j + columns] for i in (0, 1) for j in (0, 1)]
        return torch.stack([(counts * unit).clamp(max=_GREATEST_SHARE) for unit in units]).sum(0)
