"""Reading of image files and images of Pillow as arrays."""

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path, PurePath
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from .._warnings import progress

# How the names of image files end.
_ENDINGS = ".avif .bmp .gif .jp2 .jpeg .jpg .pbm .pgm .png .pnm .ppm .tif .tiff .webp"
SUFFIXES = frozenset(_ENDINGS.split())
# Without formats that run another program, such as EPS.
_FORMATS = ("AVIF", "BMP", "GIF", "JPEG", "JPEG2000", "PNG", "PPM", "TIFF", "WEBP")
# Height and width of images from files, unless the user chooses.
DEFAULT_SIZE = 64


def check_pillow() -> None:
    """Raise ImportError if Pillow is not installed."""
    if find_spec("PIL") is None:
        raise ImportError("Image files need Pillow: pip install 'skcontrast[images]'.")


def names_image(item: Any) -> bool:
    """Return whether an item is a path or the name of an image file."""
    if not isinstance(item, str):
        return isinstance(item, PurePath)
    return PurePath(item).suffix.lower() in SUFFIXES


def is_picture(item: Any) -> bool:
    """Return whether an item is an image of Pillow."""
    return hasattr(item, "getbands")


def is_encoded(item: Any) -> bool:
    """Return whether an item is the content of an image file, also as Hugging Face stores it."""
    if not isinstance(item, Mapping):
        return isinstance(item, bytes)
    data = item.get("bytes", 0)
    return isinstance(data, bytes) or (data is None and isinstance(item.get("path"), str))


def _decoded(item: Any) -> Any:
    """Return an encoded image as an image of Pillow; other items unchanged."""
    if not is_encoded(item):
        return item
    from PIL import Image

    data = item["bytes"] if isinstance(item, Mapping) else item
    return Image.open(item["path"] if data is None else BytesIO(data), formats=_readable(Image))


def _readable(Image: Any) -> list[str]:
    """Return the formats of `_FORMATS` that this build of Pillow reads."""
    Image.init()
    return [name for name in _FORMATS if name in Image.OPEN]


def pictures_in(X: Any) -> Sequence[Any] | None:
    """Return X as a sequence of paths or of images of Pillow; None if it holds anything else.

    Parameters
    ----------
    X : object
        A list or a column, also of a table. Images may come with labels, as tuples.

    Raises
    ------
    TypeError, FileNotFoundError
        If some entries name image files, and others do not or do not exist.
    """
    items: Any = X
    if isinstance(X, np.ndarray) or hasattr(X, "to_numpy"):
        # A table of several columns is not copied.
        is_column = tuple(getattr(X, "shape", (0, 0))[1:]) in ((), (1,))
        column = X.to_numpy() if is_column and hasattr(X, "to_numpy") else X
        if not is_column or column.dtype.kind not in "OUT":
            return None
        items = column.ravel().tolist()
    if isinstance(items, str) or not isinstance(items, Sequence) or not len(items):
        return None
    # Missing paths are refused by their row.
    first = next((item for item in items if item is not None), None)
    first = first[0] if isinstance(first, tuple) and first else first
    if is_picture(first) or is_encoded(first):
        check_pillow()
        return items
    return existing_files(items) if names_image(first) else None


def existing_files(files: Sequence[Any], folder: Path | None = None) -> list[Path]:
    """Return paths, relative to a folder if there is one, or raise an error."""
    check_pillow()
    for row, file in enumerate(files):
        if not isinstance(file, (str, PurePath)):
            raise TypeError(f"X must hold paths of images, but item {row} is {file!r}: omit it.")
    paths = [Path(file) if folder is None else folder / file for file in files]
    if missing := [path for path in paths if not path.is_file()]:
        raise FileNotFoundError(
            f"{len(missing)} of {len(paths)} files do not exist, such as {missing[0]}."
        )
    return paths


def load_images(images: Any, out: NDArray, n_jobs: int | None, name: str) -> NDArray:
    """Read all images into an array, in threads, with a progress bar named `name`."""

    def read(row: int) -> None:
        out[row] = images[row]

    rows = progress(range(len(out)), name, unit="image")
    Parallel(n_jobs, prefer="threads")(delayed(read)(row) for row in rows)
    return out


def as_pixels(item: Any, size: int | None) -> Any:
    """Return an image as an array (channels, height, width) of uint8; other items unchanged.

    Parameters
    ----------
    item : object
        A path, or an image of Pillow.
    size : int or None
        The height and width, with three channels. With None, images of Pillow keep their size,
        and one channel if they are grey; files get the default size.
    """
    if names_image(item):
        return read_image(Path(item), (size or DEFAULT_SIZE,) * 2, "RGB", "crop")
    item = _decoded(item)
    if not is_picture(item):
        return item
    from PIL import ImageOps

    is_deep = _has_16_bits(item)
    is_grey = size is None and (is_deep or item.mode in ("1", "L", "LA", "La"))
    image = _in_8_bits(ImageOps.exif_transpose(item), "L" if is_grey else "RGB", is_deep)
    return _channels_first(image if size is None else _resized(image, (size, size), "crop"))


def read_image(path: Path, size: tuple[int, int], mode: str, resize: str) -> NDArray[np.uint8]:
    """Read an image file as an array (channels, height, width), upright, or raise OSError."""
    from PIL import Image, ImageOps

    try:
        with Image.open(path, formats=_readable(Image)) as image:
            # A JPEG file is decoded to half, a quarter or an eighth if that is still large enough.
            image.draft(None, (2 * max(size),) * 2)
            is_deep = _has_16_bits(image)
            # Without a copy, which would double the memory.
            ImageOps.exif_transpose(image, in_place=True)
            return _channels_first(_resized(_in_8_bits(image, mode, is_deep), size, resize))
    # Decoders raise all kinds of errors for damaged files.
    except Exception as error:
        raise OSError(f"{path} cannot be read as an image: {error}") from error


def _has_16_bits(image: Any) -> bool:
    is_wide = image.mode == "I" and image.format in ("PNG", "PPM")
    return is_wide or image.mode.startswith("I;16")


def _channels_first(image: Any) -> NDArray[np.uint8]:
    pixels = np.array(image)
    return np.ascontiguousarray(pixels.reshape(*pixels.shape[:2], -1).transpose(2, 0, 1))


def _in_8_bits(image: Any, mode: str, is_deep: bool) -> Any:
    """Return an image with 8 bits in a mode; transparent pixels become white."""
    from PIL import Image

    if is_deep:
        image = Image.fromarray(((np.asarray(image, np.int32) + 128) // 257).astype(np.uint8))
    elif image.mode in ("I", "F"):
        raise ValueError(
            "32-bit images have no defined white level. Read them as numbers, "
            "numpy.stack([numpy.asarray(PIL.Image.open(file)) for file in files])"
        )
    if image.mode in ("LA", "La", "PA", "RGBA", "RGBa") or "transparency" in image.info:
        image = image if image.mode == "RGBA" else image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
    return image if image.mode == mode else image.convert(mode)


def _resized(image: Any, size: tuple[int, int], resize: str) -> Any:
    """Return an image of a size (height, width)."""
    from PIL import Image, ImageOps

    wanted, method = size[::-1], Image.Resampling.BILINEAR
    if resize == "stretch":
        return image.resize(wanted, method)
    return (ImageOps.fit if resize == "crop" else ImageOps.pad)(image, wanted, method)
