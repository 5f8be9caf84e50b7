"""Patches of images, compared with a dictionary and pooled."""

from __future__ import annotations

import numpy as np
from torch import Tensor, nn

from .._checks import NON_NEGATIVE, POSITIVE_INT
from .._layers._patches import Octaves, PatchLayer, octave_sides
from .._layers._pooling import average_to
from ._base import Features

# Patches begin at about so many places along the shorter side of an image.
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
    _parameter_constraints: dict = {
        "n_patches": POSITIVE_INT,
        "patch_size": POSITIVE_INT,
        "threshold": NON_NEGATIVE,
        "grid": POSITIVE_INT,
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_patches: int = 400,
        patch_size: int = 6,
        threshold: float = 1.0,
        grid: int = 2,
        random_state: int | np.random.RandomState | None = None,
    ):
        self.n_patches = n_patches
        self.patch_size = patch_size
        self.threshold = threshold
        self.grid = grid
        self.random_state = random_state

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
            places = layer.places(sides)
            cells = [min(self.grid, side) for side in places]
            octaves.append(nn.Sequential(layer, average_to(cells, places), nn.Flatten()))
        found = Octaves(octaves)
        found.learn(batch, rng)
        return found if len(octaves) > 1 else octaves[0]
