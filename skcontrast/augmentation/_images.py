"""Augmentations of images (n_samples, channels, height, width), uint8 or floats in [0, 1]."""

from __future__ import annotations

from numbers import Real
from typing import Literal

import torch
from torch import Tensor

from .._parameters import Interval, StrOptions
from ..kinds._base import Kind
from ._base import Augmentation
from ._color import ColorJitter, RandomGrayscale
from ._compose import compose
from ._fusion import check_pair
from ._geometric import RandomAffine, RandomFlip, RandomResizedCrop
from ._matrices import between, gaussians, uniform
from ._stage import as_float, check_batch, generator_for
from ._vectors import GaussianNoise

__all__ = [
    "ColorJitter",
    "GaussianBlur",
    "GaussianNoise",
    "RandomAffine",
    "RandomFlip",
    "RandomGrayscale",
    "RandomResizedCrop",
    "SimCLRAugmentation",
]

_FRACTION = [Interval(Real, 0, 1, closed="both")]
_LEAST_SIDE_FOR_BLUR = 64
_SHARP = 1e4


class GaussianBlur(Augmentation):
    """Blur each image with a Gaussian of a random width, drawn for each image.

    Every pixel becomes the mean of its row and column neighbours with weights
    :math:`\\exp(-d^2 / 2\\sigma^2)`, normalised within the image. The weights are applied as one
    matrix per side, without cutting off the Gaussian inside the image.

    Parameters
    ----------
    sigma : tuple of two floats, default=(0.1, 2.0)
        Least and largest standard deviation in pixels, above 0; uniform in between.
    p : float, default=0.5
        Probability, in [0, 1], that an image is blurred.

    See Also
    --------
    GaussianNoise : Adds noise to each pixel.
    SimCLRAugmentation : Uses it on large images.

    Examples
    --------
    >>> import torch
    >>> from skcontrast.augmentation import GaussianBlur
    >>> GaussianBlur(sigma=(0.1, 1.0)).augment(torch.rand(4, 1, 8, 8)).shape
    torch.Size([4, 1, 8, 8])
    """

    _parameter_constraints: dict = {"sigma": [tuple, list], "p": _FRACTION}

    kind = "images"

    def __init__(self, sigma: tuple[float, float] = (0.1, 2.0), p: float = 0.5):
        self.sigma = sigma
        self.p = p

    def validate(self) -> None:
        check_pair(self, "sigma", least=0)

    def augment(self, batch: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Return `batch` blurred: a tensor of the same shape, see the base class."""
        batch = as_float(batch)
        self.check_kind(batch.shape[1:])
        n, *_, height, width = batch.shape
        u = uniform(n, 2, generator_for(batch, generator), batch.device)
        precision = between(u[:, 0], self.sigma).square().mul(2).reciprocal()
        precision = torch.where(u[:, 1] < self.p, precision.clamp(max=_SHARP), _SHARP)
        precision = precision.to(batch.dtype)
        rows = gaussians(precision, height)
        columns = rows if width == height else gaussians(precision, width)
        blurred = torch.bmm(batch.reshape(n, -1, width), columns.mT)
        blurred = rows.unsqueeze(1) @ blurred.view(n, -1, height, width)
        return blurred.view(batch.shape)


class SimCLRAugmentation(Augmentation):
    """The augmentations of SimCLR: crop, flip, colour jitter, grayscale and blur.

    The recipe of [1]_: :class:`RandomResizedCrop`, :class:`RandomFlip`, :class:`ColorJitter` with
    probability 0.8 and amounts (0.8, 0.8, 0.8, 0.2) times `strength`, :class:`RandomGrayscale`
    and, on large images, :class:`GaussianBlur` with probability 0.5. Grey images (one channel)
    only change in brightness and contrast.

    Parameters
    ----------
    crop_scale : tuple of two floats, default=(0.2, 1.0)
        Least and largest area of the crop, in (0, 1], as a fraction of the image.
    flip : float, default=0.5
        Probability, in [0, 1], of a horizontal flip.
    strength : float, default=0.5
        Strength of the colour jitter, in [0, 1.25]; 0.5 for small images such as CIFAR, 1 for
        photographs as in ImageNet.
    grayscale : float, default=0.2
        Probability, in [0, 1], of a conversion to grey.
    blur : "auto" or bool, default="auto"
        Whether to blur; "auto" blurs images of at least 64 pixels on both sides.

    See Also
    --------
    compose : Combines augmentations of your choice into few passes.

    References
    ----------
    .. [1] T. Chen, S. Kornblith, M. Norouzi, G. Hinton, "A Simple Framework for Contrastive
       Learning of Visual Representations", ICML 2020.

    Examples
    --------
    >>> import torch
    >>> from skcontrast.augmentation import SimCLRAugmentation
    >>> images = torch.zeros(4, 3, 32, 32, dtype=torch.uint8)
    >>> SimCLRAugmentation().augment(images).shape
    torch.Size([4, 3, 32, 32])
    """

    _parameter_constraints: dict = {
        "crop_scale": [tuple, list],
        "flip": _FRACTION,
        "strength": [Interval(Real, 0, 1.25, closed="both")],
        "grayscale": _FRACTION,
        "blur": [StrOptions({"auto"}), "boolean"],
    }

    kind = "images"

    def __init__(
        self,
        crop_scale: tuple[float, float] = (0.2, 1.0),
        flip: float = 0.5,
        strength: float = 0.5,
        grayscale: float = 0.2,
        blur: bool | Literal["auto"] = "auto",
    ):
        self.crop_scale = crop_scale
        self.flip = flip
        self.strength = strength
        self.grayscale = grayscale
        self.blur = blur

    def validate(self) -> None:
        check_pair(self, "crop_scale", least=0, most=1)

    def check_kind(self, sample_shape: tuple, kind: Kind | None = None) -> None:
        """Raise ValueError unless samples are images with one or three channels."""
        super().check_kind(sample_shape, kind)
        for part in self.parts(sample_shape):
            part.check_kind(sample_shape, kind)

    def parts(self, sample_shape: tuple) -> tuple[Augmentation, ...]:
        """Return the tuple of augmentations that the recipe consists of for such images."""
        amount = 0.8 * self.strength
        parts: tuple[Augmentation, ...] = (
            RandomResizedCrop(scale=self.crop_scale),
            RandomFlip(horizontal=self.flip),
            ColorJitter(amount, amount, amount, hue=0.2 * self.strength, p=0.8),
            RandomGrayscale(self.grayscale),
        )
        large = min(sample_shape[-2:]) >= _LEAST_SIDE_FOR_BLUR
        if self.blur is True or (self.blur == "auto" and large):
            return (*parts, GaussianBlur())
        return parts

    def augment(self, batch: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Return `batch` augmented: a tensor of the same shape, see the base class."""
        check_batch(batch)
        return compose((self,), batch.shape[1:])(batch, generator)
