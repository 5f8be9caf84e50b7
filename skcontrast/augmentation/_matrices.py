"""Affine maps, one per image: of coordinates and of colours.

A map ``A`` of shape (n, k, k + 1) sends x to ``A[:, :, :k] @ x + A[:, :, k]``. Coordinates are
those of ``torch.nn.functional.grid_sample`` with ``align_corners=False``: x to the right and y
downwards, from -1 to 1 between the outer edges of the image. A coordinate map sends a point of
the output to the point of the input that it shows.
"""

from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor

GRAY_WEIGHTS = (0.299, 0.587, 0.114)
_YIQ = (GRAY_WEIGHTS, (0.595716, -0.274453, -0.321263), (0.211456, -0.522591, 0.311135))


def uniform(n: int, k: int, generator: torch.Generator) -> Tensor:
    """Return uniform draws from [0, 1), (n, k) in float32, on the device of the generator."""
    return torch.rand(n, k, generator=generator, device=generator.device)


def between(u: Tensor, bounds: tuple[float, float]) -> Tensor:
    """Map uniform draws `u` from [0, 1) to the interval ``bounds = (low, high)``."""
    low, high = bounds
    return u * (high - low) + low


def after(outer: Tensor, inner: Tensor) -> Tensor:
    """Return the map that applies `inner` first and `outer` to its result.

    Parameters
    ----------
    outer, inner : Tensor of shape (n, k, k + 1)
    """
    product = torch.bmm(outer[:, :, :-1], inner)
    product[:, :, -1].add_(outer[:, :, -1])
    return product


def apply(maps: Tensor, points: Tensor) -> Tensor:
    """Apply maps (n, k, k + 1) to one point per map (n, k)."""
    return torch.baddbmm(maps[:, :, -1:], maps[:, :, :-1], points.unsqueeze(2)).squeeze(2)


def rotations(angle: Tensor, shear: Tensor, scale: Tensor, shift: Tensor, aspect: float) -> Tensor:
    """Return the coordinate maps that shear, scale, rotate and then shift images.

    Angles are true angles between pixels, also in images that are not square.

    Parameters
    ----------
    angle : Tensor of shape (n,)
        Counter-clockwise rotation, in radians.
    shear : Tensor of shape (n,)
        Shear angle along the horizontal axis, in radians.
    scale : Tensor of shape (n,)
        Scale factor, above 0.
    shift : Tensor of shape (n, 2)
        Shift to the right and downwards, as a fraction of the width and of the height.
    aspect : float
        Width over height.

    Returns
    -------
    maps : Tensor of shape (n, 2, 3)
    """
    cos, sin, slope = torch.cos(angle) / scale, torch.sin(angle) / scale, torch.tan(shear)
    entries = (cos - slope * sin, (sin + slope * cos) / -aspect, sin * aspect, cos)
    linear = torch.stack(entries, dim=1).view(-1, 2, 2)
    return torch.cat([linear, linear @ shift.mul(-2).unsqueeze(2)], dim=2)


def boxes(sides: Tensor, centres: Tensor) -> Tensor:
    """Return the coordinate maps that enlarge a box of the input to the whole output.

    Parameters
    ----------
    sides : Tensor of shape (n, 2)
        Width and height as fractions of the image; negative ones flip the box.
    centres : Tensor of shape (n, 2)
        Centres of the boxes, in normalised coordinates.
    """
    return torch.cat([torch.diag_embed(sides), centres.unsqueeze(2)], dim=2)


def warp(images: Tensor, maps: Tensor, padding: str) -> Tensor:
    """Interpolate each image bilinearly at the points of its coordinate map.

    Parameters
    ----------
    images : Tensor of shape (n, C, H, W)
    maps : Tensor of shape (n, 2, 3)
    padding : {"zeros", "border", "reflection"}
        The values outside the image.
    """
    n, _, height, width = images.shape
    # Coordinates as two planes: grid_sample reads them without re-ordering, unlike affine_grid's.
    planes = maps.to(images.dtype) @ _pixel_centres(height, width, images.dtype, images.device)
    grid = planes.view(n, 2, height, width).permute(0, 2, 3, 1)
    return F.grid_sample(images, grid, padding_mode=padding, align_corners=False)


def recolor(images: Tensor, maps: Tensor) -> Tensor:
    """Apply one colour map per image to all of its pixels and clamp to [0, 1].

    Parameters
    ----------
    images : Tensor of shape (n, C, H, W)
    maps : Tensor of shape (n, C, C + 1)
    """
    maps = maps.to(images.dtype)
    colors = torch.baddbmm(maps[:, :, -1:], maps[:, :, :-1], images.flatten(2))
    return colors.clamp_(0, 1).view(images.shape)


def jitters(
    brightness: Tensor, contrast: Tensor, saturation: Tensor, hue: Tensor, mean: Tensor
) -> Tensor:
    """Return the colour maps that change brightness, contrast, saturation and hue.

    With gray(x) the luma of a pixel (its value if there is one channel) and P x = x - gray(x),

    .. math:: x \\mapsto bc\\,\\bigl(\\mathrm{gray}(x) + s R_h P x\\bigr)
        + b\\,(1 - c)\\,\\mathrm{gray}(\\mathrm{mean})

    where R_h rotates the chroma plane of YIQ by the angle h. The four changes commute, so this
    is their product in any order.

    Parameters
    ----------
    brightness, contrast, saturation : Tensor of shape (n,)
        Factors, at least 0; 1 changes nothing.
    hue : Tensor of shape (n,)
        Angles, in radians.
    mean : Tensor of shape (n, C)
        Mean colour of each image, C = 1 or 3.

    Returns
    -------
    maps : Tensor of shape (n, C, C + 1)
    """
    n, channels = mean.shape
    chroma = torch.polar(saturation, hue)
    basis, weights = _color_basis(channels, mean.dtype, mean.device)
    scale = torch.stack([torch.ones_like(hue), chroma.real, chroma.imag], dim=1)
    linear = (scale * (brightness * contrast).unsqueeze(1)) @ basis
    offset = brightness * (1 - contrast) * (mean @ weights)
    last = offset.view(n, 1, 1).expand(n, channels, 1)
    return torch.cat([linear.view(n, channels, channels), last], dim=2)


def gaussians(precision: Tensor, size: int) -> Tensor:
    """Return smoothing matrices with Gaussian weights, normalised within the image.

    Parameters
    ----------
    precision : Tensor of shape (n,)
        ``1 / (2 sigma²)`` in pixels.
    size : int
        Number of pixels on the side.

    Returns
    -------
    weights : Tensor of shape (n, size, size)
        Rows sum to 1: the Gaussian ends at the edges of the image and where it is below 1e-12.
    """
    position = torch.arange(size, dtype=precision.dtype, device=precision.device)
    squares = (position.unsqueeze(0) - position.unsqueeze(1)).square_()
    weights = torch.softmax(-precision.view(-1, 1, 1) * squares, dim=2)
    # Products of smaller weights are subnormal numbers, which slow a matrix product down tenfold.
    return torch.threshold_(weights, 1e-12, 0.0)


@lru_cache(maxsize=32)
def _pixel_centres(height: int, width: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return the homogeneous coordinates of all pixel centres, a tensor (3, height * width)."""
    x = (torch.arange(width, dtype=dtype, device=device) * 2 + 1) / width - 1
    y = (torch.arange(height, dtype=dtype, device=device) * 2 + 1) / height - 1
    rows, columns = torch.meshgrid(y, x, indexing="ij")
    return torch.stack([columns, rows, torch.ones_like(rows)]).flatten(1)


@lru_cache(maxsize=32)
def _color_basis(channels: int, dtype: torch.dtype, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return the maps to grey, chroma and chroma rotated by 90°, (3, C²), and to luma, (C,)."""
    if channels == 1:
        basis = torch.eye(3, 1, dtype=dtype, device=device)
        return basis, basis[0]
    to_yiq = torch.tensor(_YIQ, dtype=torch.float64)
    gray = to_yiq[0].expand(3, 3)
    turn = torch.tensor([[0.0, 0, 0], [0, 0, 1], [0, -1, 0]], dtype=torch.float64)
    rotated = torch.linalg.solve(to_yiq, turn @ to_yiq)
    basis = torch.stack([gray, torch.eye(3, dtype=torch.float64) - gray, rotated]).flatten(1)
    return basis.to(device, dtype), to_yiq[0].to(device, dtype)
