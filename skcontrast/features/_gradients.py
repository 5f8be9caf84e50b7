"""Oriented gradients of images."""

from __future__ import annotations

from numbers import Integral

import numpy as np
from torch import Tensor, nn

from .._checks import POSITIVE_INT, Interval
from .._layers._gradients import GradientLayer
from ._base import Features

# Cells along the shorter side of an image, if they have so many pixels.
_CELLS, _LEAST_CELL = 8, 4


class OrientedGradients(Features):
    r"""Histograms of the directions of edges in the cells of an image.

    The gradient of each pixel, in the channel where it is longest, adds its length to the two
    nearest of k directions, of which opposite ones are the same. The sums over a cell, the vector
    :math:`v`, are divided by the length of those of each of the four blocks of 2×2 cells that it
    lies in, :math:`E_1, \dots, E_4`, so that lighting hardly matters [1]_ [2]_:

    .. math:: h = \sum_{b=1}^4 \min\Big(0.2,\; \frac{v}{\sqrt{\lVert E_b\rVert^2 + 0.1}}\Big)

    Parameters
    ----------
    cell_size : int, default=None
        Height and width of a cell in pixels. None is an eighth of the shorter side, at least 4.
    n_orientations : int, default=9
        The number k of directions of the half circle, at least 2.

    Attributes
    ----------
    module_ : torch.nn.Module
        The map from images to features.

    See Also
    --------
    PatchDictionary : Learns what to look for from the data.
    skcontrast.encoders.PatchNet : The default encoder, which has both beside what it learns.

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
    _parameter_constraints: dict = {
        "cell_size": [*POSITIVE_INT, None],
        "n_orientations": [Interval(Integral, 2, None, closed="left")],
    }

    def __init__(self, cell_size: int | None = None, n_orientations: int = 9):
        self.cell_size = cell_size
        self.n_orientations = n_orientations

    def learn(self, batch: Tensor, rng: np.random.RandomState) -> nn.Module:
        """Return the histograms as a module; see `Features.learn`."""
        height, width = batch.shape[2:]
        cell_size = self.cell_size or max(_LEAST_CELL, min(height, width) // _CELLS)
        layer = GradientLayer((height, width), cell_size, self.n_orientations)
        return nn.Sequential(layer, nn.Flatten())
