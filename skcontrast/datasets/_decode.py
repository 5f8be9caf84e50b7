"""From an image file to an array of one size."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_GRAPHICS = (".bmp", ".gif", ".pbm", ".pgm", ".png", ".pnm", ".ppm")
_PHOTOGRAPHS = (".avif", ".jp2", ".jpeg", ".jpg", ".tif", ".tiff", ".webp")
SUFFIXES = frozenset(_GRAPHICS + _PHOTOGRAPHS)
# No format that calls another program, such as EPS.
_FORMATS = ("AVIF", "BMP", "GIF", "JPEG", "JPEG2000", "PNG", "PPM", "TIFF", "WEBP")


def require_pillow() -> None:
    """Raise ImportError, with what to install, if Pillow is missing."""
    try:
        import PIL  # noqa: F401
    except ImportError as error:
        raise ImportError("ImageFolder needs Pillow: pip install 'skcontrast[images]'") from error


def read_image(path: Path, size: tuple[int, int], mode: str, resize: str) -> NDArray[np.uint8]:
    """Return an image (channels, height, width), upright and of a size, or raise OSError."""
    from PIL import Image, ImageOps

    Image.init()
    try:
        if path.exists() and not path.is_file():
            raise ValueError("it is not a file")
        # Not every build of Pillow knows every format.
        with Image.open(path, formats=[name for name in _FORMATS if name in Image.OPEN]) as image:
            # A JPEG file is decoded to half, a quarter or an eighth if that is still large enough.
            image.draft(None, (2 * max(size),) * 2)
            depth_16 = image.mode.startswith("I;16") or (
                image.mode == "I" and image.format in ("PNG", "PPM")
            )
            if math.prod(image.size) > (Image.MAX_IMAGE_PIXELS or math.inf):
                raise ValueError(
                    f"it has {image.width} × {image.height} pixels, which exceeds the limit "
                    "PIL.Image.MAX_IMAGE_PIXELS"
                )
            # In place, because a copy would double the memory.
            ImageOps.exif_transpose(image, in_place=True)
            pixels = np.array(_resized(_plain(image, mode, depth_16), size, resize))
    # Decoders raise all kinds of errors for damaged files.
    except Exception as error:
        raise OSError(f"{path} cannot be read as an image: {error}") from error
    return np.ascontiguousarray(pixels.reshape(*size, -1).transpose(2, 0, 1))


def _plain(image: Any, mode: str, depth_16: bool) -> Any:
    """Return an image of 8 bits in a mode, on white where it is transparent."""
    from PIL import Image

    if depth_16:
        wide = np.asarray(image).astype(np.int64)
        image = Image.fromarray(((wide + 128) // 257).astype(np.uint8))
    elif image.mode in ("I", "F"):
        raise ValueError("32-bit images have no defined white level")
    if image.mode in ("LA", "La", "PA", "RGBA", "RGBa") or "transparency" in image.info:
        image = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
    return image if image.mode == mode else image.convert(mode)


def _resized(image: Any, size: tuple[int, int], resize: str) -> Any:
    """Return an image of a size (height, width)."""
    from PIL import Image, ImageOps

    wanted, method = size[::-1], Image.Resampling.BILINEAR
    if resize == "crop":
        return ImageOps.fit(image, wanted, method)
    if resize == "pad":
        return ImageOps.pad(image, wanted, method)
    return image.resize(wanted, method)
