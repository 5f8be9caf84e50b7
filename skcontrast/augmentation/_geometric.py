"""Augmentations that move the pixels of images: affine maps, crops and flips."""

from __future__ import annotations

import math
from numbers import Real
from typing import Literal

import torch
from torch import Tensor

from .._checks import FRACTION, Interval, Pair, parameter
from ._compose import GeometricAugmentation
from ._matrices import between, boxes, rotations, uniform


class RandomAffine(GeometricAugmentation):
    """Rotate, shift, enlarge and shear each image by its own random amounts.

    All amounts are uniform in their ranges. The image is sheared and enlarged, turned about its
    centre and then shifted; interpolation is bilinear.

    Parameters
    ----------
    rotation : float, default=15
        Largest angle of rotation in degrees, in [0, 180], in both directions.
    translate : float, default=0.1
        Largest shift, in [0, 1], as a fraction of the width and of the height.
    scale : tuple of two floats, default=(0.8, 1.2)
        Least and largest enlargement, above 0.
    shear : float, default=15
        Largest angle of shear along the horizontal axis in degrees, in [0, 90).
    p : float, default=1.0
        Probability, in [0, 1], that an image is changed.
    padding : {"zeros", "border", "reflection"}, default="border"
        The pixels outside the image: black, its border pixels or its mirror image.

    See Also
    --------
    RandomResizedCrop : Enlarges a random box of the image.
    RandomFlip : Mirrors the image.

    Examples
    --------
    >>> import torch
    >>> from skcontrast.augmentation import RandomAffine
    >>> images = torch.rand(4, 1, 8, 8)
    >>> RandomAffine(rotation=30).augment(images).shape
    torch.Size([4, 1, 8, 8])
    """

    rotation: float = parameter([Interval(Real, 0, 180, closed="both")], default=15)
    translate: float = parameter(FRACTION, default=0.1)
    scale: tuple[float, float] = parameter([Pair()], default=(0.8, 1.2))
    shear: float = parameter([Interval(Real, 0, 90, closed="left")], default=15)
    p: float = parameter(FRACTION, default=1.0)
    padding: Literal["zeros", "border", "reflection"] = parameter(
        {"zeros", "border", "reflection"}, default="border"
    )

    def affine(self, n: int, shape: tuple[int, int], generator: torch.Generator) -> Tensor:
        """Draw the coordinate maps, (n, 2, 3); see `GeometricAugmentation`."""
        u = uniform(n, 6, generator)
        drawn = (u[:, 5] < self.p).to(u.dtype)
        sign = (u[:, :4] * 2 - 1) * drawn.unsqueeze(1)
        factor = 1 + (between(u[:, 4], self.scale) - 1) * drawn
        height, width = shape
        angle = sign[:, 0] * math.radians(self.rotation)
        shear = sign[:, 1] * math.radians(self.shear)
        return rotations(angle, shear, factor, sign[:, 2:] * self.translate, width / height)


class RandomResizedCrop(GeometricAugmentation):
    """Cut a random box out of each image and enlarge it to the size of the image.

    The area of the box is a uniform fraction of the image. Its aspect ratio is log-uniform among
    the ratios at which a box of this area fits into the image; if there are none, the box is the
    largest one of the nearest ratio. Its position is uniform, not restricted to whole pixels, and
    always inside the image.

    Parameters
    ----------
    scale : tuple of two floats, default=(0.2, 1.0)
        Least and largest area, in (0, 1], as a fraction of the image.
    ratio : tuple of two floats, default=(3 / 4, 4 / 3)
        Least and largest ratio of width to height in pixels, above 0.

    See Also
    --------
    RandomAffine : Rotates, shifts, enlarges and shears.
    SimCLRAugmentation : Starts with this crop.

    Examples
    --------
    >>> import torch
    >>> from skcontrast.augmentation import RandomResizedCrop
    >>> RandomResizedCrop(scale=(0.5, 1.0)).augment(torch.rand(4, 3, 32, 32)).shape
    torch.Size([4, 3, 32, 32])
    """

    scale: tuple[float, float] = parameter([Pair(most=1)], default=(0.2, 1.0))
    ratio: tuple[float, float] = parameter([Pair()], default=(3 / 4, 4 / 3))

    def affine(self, n: int, shape: tuple[int, int], generator: torch.Generator) -> Tensor:
        """Draw the coordinate maps, (n, 2, 3); see `GeometricAugmentation`."""
        u = uniform(n, 4, generator)
        sides = self._sides(u[:, 0], u[:, 1], shape[1] / shape[0])
        return boxes(sides, (1 - sides) * (u[:, 2:] * 2 - 1))

    def _sides(self, u_area: Tensor, u_ratio: Tensor, aspect: float) -> Tensor:
        """Return width and height, (n, 2), as fractions of the image."""
        log_area = between(u_area, self.scale).log()
        # Relative to the image's own aspect, a box of this area fits if |log ratio| <= -log area.
        least, most = (math.log(ratio / aspect) for ratio in self.ratio)
        low, high = log_area.clamp(min=least), (-log_area).clamp(max=most)
        log_ratio = (low + (high - low) * u_ratio).clamp(least, most)
        sides = torch.stack([log_area + log_ratio, log_area - log_ratio], dim=1).div_(2).exp_()
        return sides / sides.amax(dim=1, keepdim=True).clamp(min=1)


class RandomFlip(GeometricAugmentation):
    """Mirror each image at random.

    Parameters
    ----------
    horizontal : float, default=0.5
        Probability, in [0, 1], that left and right are exchanged.
    vertical : float, default=0.0
        Probability, in [0, 1], that top and bottom are exchanged.

    See Also
    --------
    RandomAffine : Rotates, shifts, enlarges and shears.

    Examples
    --------
    >>> import torch
    >>> from skcontrast.augmentation import RandomFlip
    >>> RandomFlip(horizontal=1.0).augment(torch.tensor([[[0.0, 0.25, 0.5, 1.0]]]))
    tensor([[[1.0000, 0.5000, 0.2500, 0.0000]]])
    """

    horizontal: float = parameter(FRACTION, default=0.5)
    vertical: float = parameter(FRACTION, default=0.0)

    def affine(self, n: int, shape: tuple[int, int], generator: torch.Generator) -> Tensor:
        """Draw the coordinate maps, (n, 2, 3); see `GeometricAugmentation`."""
        u = uniform(n, 2, generator)
        flips = torch.stack([u[:, 0] < self.horizontal, u[:, 1] < self.vertical], dim=1)
        signs = 1 - 2 * flips.to(u.dtype)
        return boxes(signs, torch.zeros_like(signs))
