"""Augmentations of images (n_samples, channels, height, width), uint8 or floats in [0, 1]."""

import math
from numbers import Real
from typing import Literal

import torch
from torch import Tensor

from .._checks import FRACTION, Interval, Pair, parameter
from .._runtime import guarded
from ..kinds._base import Kind
from ._base import Augmentation, as_float, generator_for
from ._compose import ColorAugmentation, GeometricAugmentation, ImageAugmentation
from ._matrices import between, boxes, gaussians, jitters, rotations, uniform

_LEAST_SIDE_FOR_BLUR = 64
_SHARP = 1e4


class RandomAffine(GeometricAugmentation):
    """Rotate, shift, scale and shear each image by random amounts.

    All amounts are uniform in their ranges. The image is sheared and scaled, rotated about its
    centre and then shifted; interpolation is bilinear.

    Parameters
    ----------
    rotation : float, default=15
        Maximum angle of rotation in degrees, in [0, 180], in both directions.
    translate : float, default=0.1
        Maximum shift, in [0, 1], as a fraction of width and height.
    scale : tuple of two floats, default=(0.8, 1.2)
        Minimum and maximum scale factor, above 0.
    shear : float, default=15
        Maximum angle of shear along the horizontal axis in degrees, in [0, 90).
    p : float, default=1.0
        Probability, in [0, 1], that an image is changed.
    padding : {"zeros", "border", "reflection"}, default="border"
        The pixels outside the image: black, its border pixels or its mirror image.

    See Also
    --------
    RandomResizedCrop : Enlarges a random box of the image.
    RandomFlip : Flips the image.

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
        angle = sign[:, 0] * math.radians(self.rotation)
        shear = sign[:, 1] * math.radians(self.shear)
        return rotations(angle, shear, factor, sign[:, 2:] * self.translate, shape[1] / shape[0])


class RandomResizedCrop(GeometricAugmentation):
    """Cut a random box out of each image and enlarge it to the size of the image.

    The area of the box is a uniform fraction of the image. Its aspect ratio is log-uniform among
    the ratios at which a box of this area fits into the image; if there are none, the box is the
    largest one of the nearest ratio. Its position is uniform, not restricted to whole pixels, and
    always inside the image.

    Parameters
    ----------
    scale : tuple of two floats, default=(0.2, 1.0)
        Minimum and maximum area, in (0, 1], as a fraction of the image.
    ratio : tuple of two floats, default=(3 / 4, 4 / 3)
        Minimum and maximum ratio of width to height in pixels, above 0.

    See Also
    --------
    RandomAffine : Rotates, shifts, scales and shears.
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
    """Flip each image at random.

    Parameters
    ----------
    horizontal : float, default=0.5
        Probability, in [0, 1], of a left–right flip.
    vertical : float, default=0.0
        Probability, in [0, 1], of an upside-down flip.

    See Also
    --------
    RandomAffine : Rotates, shifts, scales and shears.

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


class ColorJitter(ColorAugmentation):
    """Change brightness, contrast, saturation and hue of each image by its own random amounts.

    Brightness multiplies all values, contrast their distance from the mean grey of the image,
    saturation their distance from the grey of the pixel, each by a factor uniform in
    ``[1 - a, 1 + a]``. Grey is 0.299 R + 0.587 G + 0.114 B. Hue rotates the chroma plane of the
    YIQ colour space, which keeps the grey of every pixel; it is the linear counterpart of a shift
    of the HSV hue: it equals the shift on average over all colours, but deviates by up to 40 % for
    single ones. The four maps of colours commute: their order does not matter, and values are
    clamped to [0, 1] only once, at the end. Saturation and hue do not change grey images (one
    channel). With any other number of channels, such as stains of a microscope, each channel
    is changed separately, as a grey image.

    Parameters
    ----------
    brightness, contrast, saturation : float, default=0.4
        Maximum deviation of the factor from 1, in [0, 1].
    hue : float, default=0.1
        Maximum angle, in [0, 0.5], as a fraction of a full turn, in both directions.
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

    brightness: float = parameter(FRACTION, default=0.4)
    contrast: float = parameter(FRACTION, default=0.4)
    saturation: float = parameter(FRACTION, default=0.4)
    hue: float = parameter([Interval(Real, 0, 0.5, closed="both")], default=0.1)
    p: float = parameter(FRACTION, default=0.8)

    def color_matrix(self, mean: Tensor, generator: torch.Generator) -> Tensor:
        """Draw the colour maps, (n, C, C + 1); see `ColorAugmentation`."""
        drawn = (uniform(len(mean), 1, generator) < self.p).to(mean.dtype)
        channels = mean.shape[1]
        if channels in (1, 3):
            return self._maps(mean, drawn, generator)
        each = mean.reshape(-1, 1), drawn.repeat_interleave(channels, dim=0)
        factors, offsets = self._maps(*each, generator).view(-1, channels, 2).unbind(dim=2)
        return torch.cat([factors.diag_embed(), offsets.unsqueeze(2)], dim=2)

    def _maps(self, mean: Tensor, drawn: Tensor, generator: torch.Generator) -> Tensor:
        """Draw the maps of grey or colour images, of which only the drawn ones change."""
        u = uniform(len(mean), 4, generator).to(mean.dtype)
        brightness, contrast, saturation, hue = ((u * 2 - 1) * drawn).unbind(dim=1)
        brightness, contrast = 1 + self.brightness * brightness, 1 + self.contrast * contrast
        saturation, hue = 1 + self.saturation * saturation, 2 * math.pi * self.hue * hue
        return jitters(brightness, contrast, saturation, hue, mean)


class RandomGrayscale(ColorAugmentation):
    """Replace each image, with probability `p`, by its grey 0.299 R + 0.587 G + 0.114 B.

    All three channels get the same value; grey images (one channel) do not change.

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

    p: float = parameter(FRACTION, default=0.2)

    def check_kind(self, sample_shape: tuple, kind: Kind | None = None) -> None:
        """Raise ValueError unless samples are images with one or three channels."""
        super().check_kind(sample_shape, kind)
        channels = (1, *sample_shape)[-3]
        if channels not in (1, 3):
            raise ValueError(
                f"RandomGrayscale expects images with 1 or 3 channels, got {channels} in X: leave "
                "it out, or pass augmentation=[RandomResizedCrop(), RandomFlip(), ColorJitter()]."
            )

    def color_matrix(self, mean: Tensor, generator: torch.Generator) -> Tensor:
        """Draw the colour maps, (n, C, C + 1); see `ColorAugmentation`."""
        kept = (uniform(len(mean), 1, generator)[:, 0] >= self.p).to(mean.dtype)
        factor = torch.ones_like(kept)
        return jitters(factor, factor, kept, torch.zeros_like(kept), mean)


class GaussianBlur(Augmentation):
    """Blur each image with a Gaussian of a random width, drawn for each image.

    Every pixel becomes the mean of its row and column neighbours with weights
    :math:`\\exp(-d^2 / 2\\sigma^2)`, normalised within the image. The weights are applied as one
    matrix per side, without cutting off the Gaussian inside the image.

    Parameters
    ----------
    sigma : tuple of two floats, default=(0.1, 2.0)
        Minimum and maximum standard deviation in pixels, above 0; uniform in between.
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

    sigma: tuple[float, float] = parameter([Pair()], default=(0.1, 2.0))
    p: float = parameter(FRACTION, default=0.5)

    kind = "images"

    @guarded(gradients=False)
    def augment(self, batch: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Return `batch` blurred: a tensor of the same shape, see the base class."""
        batch = as_float(batch)
        self.check_kind(batch.shape[1:])
        n, *_, height, width = batch.shape
        u = uniform(n, 2, generator_for(batch, generator))
        precision = between(u[:, 0], self.sigma).square().mul(2).reciprocal()
        precision = torch.where(u[:, 1] < self.p, precision.clamp(max=_SHARP), _SHARP)
        precision = precision.to(batch.dtype)
        rows = gaussians(precision, height)
        columns = rows if width == height else gaussians(precision, width)
        blurred = torch.bmm(batch.reshape(n, -1, width), columns.mT)
        blurred = rows.unsqueeze(1) @ blurred.view(n, -1, height, width)
        return blurred.view(batch.shape)


class SimCLRAugmentation(ImageAugmentation):
    """The augmentations of SimCLR: crop, flip, colour jitter, grayscale and blur.

    The recipe of [1]_: :class:`RandomResizedCrop`, :class:`RandomFlip`, :class:`ColorJitter` with
    probability 0.8 and amounts (0.8, 0.8, 0.8, 0.2) times `strength`, :class:`RandomGrayscale`
    and, on large images, :class:`GaussianBlur` with probability 0.5. Grey images (one channel)
    only change in brightness and contrast.

    Parameters
    ----------
    crop_scale : tuple of two floats, default=(0.2, 1.0)
        Minimum and maximum area of the crop, in (0, 1], as a fraction of the image.
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

    crop_scale: tuple[float, float] = parameter([Pair(most=1)], default=(0.2, 1.0))
    flip: float = parameter(FRACTION, default=0.5)
    strength: float = parameter([Interval(Real, 0, 1.25, closed="both")], default=0.5)
    grayscale: float = parameter(FRACTION, default=0.2)
    blur: bool | Literal["auto"] = parameter([{"auto"}, "boolean"], default="auto")

    def check_kind(self, sample_shape: tuple, kind: Kind | None = None) -> None:
        """Raise ValueError unless samples are images with one or three channels."""
        super().check_kind(sample_shape, kind)
        for step in self.expand(sample_shape):
            step.check_kind(sample_shape, kind)

    def expand(self, sample_shape: tuple) -> tuple[Augmentation, ...]:
        """Return the augmentations of the recipe for images of this shape."""
        amount = 0.8 * self.strength
        moves = RandomResizedCrop(scale=self.crop_scale), RandomFlip(horizontal=self.flip)
        jitter = ColorJitter(amount, amount, amount, hue=0.2 * self.strength, p=0.8)
        is_large = min(sample_shape[-2:]) >= _LEAST_SIDE_FOR_BLUR
        is_blurred = is_large if self.blur == "auto" else self.blur
        blur = (GaussianBlur(),) if is_blurred else ()
        return (*moves, jitter, RandomGrayscale(self.grayscale), *blur)
