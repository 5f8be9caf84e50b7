"""Augmentations that change the colours of images."""

from __future__ import annotations

import math
from numbers import Real

import torch

from .._parameters import Interval
from ._fusion import ColorAugmentation
from ._matrices import jitters, uniform

_FRACTION = [Interval(Real, 0, 1, closed="both")]


class ColorJitter(ColorAugmentation):
    """Change brightness, contrast, saturation and hue of each image by its own random amounts.

    Brightness multiplies all values, contrast moves them from the mean gray of the image,
    saturation from the gray of the pixel, each by a factor uniform in ``[1 - a, 1 + a]``. Gray is
    0.299 R + 0.587 G + 0.114 B. Hue turns the chroma plane of the YIQ colour space, which keeps
    the gray of every pixel; it is the linear counterpart of a shift of the HSV hue, which it
    equals on average over the colours but for single ones misses by up to 40 %. As maps of
    colours the four commute: their order does not matter, and values are clamped to [0, 1] only
    once, at the end. On grey images (one channel) saturation and hue change nothing.

    Parameters
    ----------
    brightness, contrast, saturation : float, default=0.4
        Largest deviation of the factor from 1, in [0, 1].
    hue : float, default=0.1
        Largest angle, in [0, 0.5], as a fraction of a full turn, in both directions.
    p : float, default=0.8
        Probability, in [0, 1], with which an image is changed at all.

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

    def __init__(self, brightness=0.4, contrast=0.4, saturation=0.4, hue=0.1, p=0.8):
        self.brightness = brightness
        self.contrast = contrast
        self.saturation = saturation
        self.hue = hue
        self.p = p

    def color_matrix(self, mean, n, generator):
        """Draw the colour maps, (n, C, C + 1); see :class:`ColorAugmentation`."""
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
    """Replace each image, with some probability, by its gray 0.299 R + 0.587 G + 0.114 B.

    All three channels get the same value; grey images (one channel) stay as they are.

    Parameters
    ----------
    p : float, default=0.2
        Probability, in [0, 1].

    Examples
    --------
    >>> import torch
    >>> from skcontrast.augmentation import RandomGrayscale
    >>> red = torch.tensor([1.0, 0.0, 0.0]).reshape(1, 3, 1, 1)
    >>> RandomGrayscale(p=1.0).augment(red).flatten()
    tensor([0.2990, 0.2990, 0.2990])
    """

    _parameter_constraints: dict = {"p": _FRACTION}

    def __init__(self, p=0.2):
        self.p = p

    def color_matrix(self, mean, n, generator):
        """Draw the colour maps, (n, C, C + 1); see :class:`ColorAugmentation`."""
        u = uniform(n, 1, generator, mean.device)[:, 0]
        kept = (u >= self.p).to(mean.dtype)
        one = torch.ones_like(kept)
        return jitters(one, one, kept, torch.zeros_like(kept), mean)
