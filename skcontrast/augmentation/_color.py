"""Augmentations that change the colours of images."""

from __future__ import annotations

import math
from numbers import Real

import torch
from torch import Tensor

from .._parameters import Interval
from ._fusion import ColorAugmentation
from ._matrices import jitters, uniform

_FRACTION = [Interval(Real, 0, 1, closed="both")]


class ColorJitter(ColorAugmentation):
    """Change brightness, contrast, saturation and hue of each image by its own random amounts.

    Brightness multiplies all values, contrast their distance from the mean grey of the image,
    saturation their distance from the grey of the pixel, each by a factor uniform in
    ``[1 - a, 1 + a]``. Grey is 0.299 R + 0.587 G + 0.114 B. Hue rotates the chroma plane of the
    YIQ colour space, which keeps the grey of every pixel; it is the linear counterpart of a shift
    of the HSV hue: it equals the shift on average over all colours, but deviates by up to 40 % for
    single ones. The four maps of colours commute: their order does not matter, and values are
    clamped to [0, 1] only once, at the end. Saturation and hue do not change grey images (one
    channel).

    Parameters
    ----------
    brightness, contrast, saturation : float, default=0.4
        Largest deviation of the factor from 1, in [0, 1].
    hue : float, default=0.1
        Largest angle, in [0, 0.5], as a fraction of a full turn, in both directions.
    p : float, default=0.8
        Probability, in [0, 1], that an image is changed.

    See Also
    --------
    RandomGrayscale : Removes all colour.
    SimCLRAugmentation : Combines it with crops and flips.

    Examples
    --------
    >>> import torch
    >>> from skcontrast.augmentation import ColorJitter
    >>> images = torch.rand(4, 3, 8, 8)
    >>> ColorJitter(brightness=0.8).augment(images).shape
    torch.Size([4, 3, 8, 8])
    """

    _parameter_constraints: dict = {
        "brightness": _FRACTION,
        "contrast": _FRACTION,
        "saturation": _FRACTION,
        "hue": [Interval(Real, 0, 0.5, closed="both")],
        "p": _FRACTION,
    }

    def __init__(
        self,
        brightness: float = 0.4,
        contrast: float = 0.4,
        saturation: float = 0.4,
        hue: float = 0.1,
        p: float = 0.8,
    ):
        self.brightness = brightness
        self.contrast = contrast
        self.saturation = saturation
        self.hue = hue
        self.p = p

    def color_matrix(self, mean: Tensor, n: int, generator: torch.Generator) -> Tensor:
        """Draw the colour maps, (n, C, C + 1); see `ColorAugmentation`."""
        u = uniform(n, 5, generator, mean.device).to(mean.dtype)
        drawn = (u[:, 4:] < self.p).to(u.dtype)
        brightness, contrast, saturation, hue = ((u[:, :4] * 2 - 1) * drawn).unbind(dim=1)
        return jitters(
            brightness=1 + self.brightness * brightness,
            contrast=1 + self.contrast * contrast,
            saturation=1 + self.saturation * saturation,
            hue=2 * math.pi * self.hue * hue,
            mean=mean,
        )


class RandomGrayscale(ColorAugmentation):
    """Replace each image, with some probability, by its grey 0.299 R + 0.587 G + 0.114 B.

    All three channels get the same value; grey images (one channel) stay unchanged.

    Parameters
    ----------
    p : float, default=0.2
        Probability, in [0, 1].

    See Also
    --------
    ColorJitter : Changes brightness, contrast, saturation and hue.

    Examples
    --------
    >>> import torch
    >>> from skcontrast.augmentation import RandomGrayscale
    >>> red = torch.tensor([1.0, 0.0, 0.0]).reshape(1, 3, 1, 1)
    >>> RandomGrayscale(p=1.0).augment(red).flatten()
    tensor([0.2990, 0.2990, 0.2990])
    """

    _parameter_constraints: dict = {"p": _FRACTION}

    def __init__(self, p: float = 0.2):
        self.p = p

    def color_matrix(self, mean: Tensor, n: int, generator: torch.Generator) -> Tensor:
        """Draw the colour maps, (n, C, C + 1); see `ColorAugmentation`."""
        u = uniform(n, 1, generator, mean.device)[:, 0]
        kept = (u >= self.p).to(mean.dtype)
        one = torch.ones_like(kept)
        return jitters(one, one, kept, torch.zeros_like(kept), mean)
