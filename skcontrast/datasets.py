"""Folders of image files, and samples of several modalities."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch.utils.data import Dataset

from ._checks import POSITIVE_INT, Numbers, StrOptions
from ._checks._arguments import naming, validated
from ._data._modalities import Modalities, along_rows
from ._data._pictures import (
    DEFAULT_SIZE,
    SUFFIXES,
    check_pillow,
    existing_files,
    load_images,
    read_image,
)

__all__ = ["ImageFolder", "Modalities"]


class ImageFolder(Dataset):
    """The image files of a folder, of any sizes, as X of an embedder.

    Images are read on demand, rotated upright, and converted to one size and mode. `fit` of an
    embedder reads them once if they fit into memory in this size. Otherwise each epoch reads every
    file again, batch by batch, and ``n_workers=`` of the embedder reads ahead in threads.

    Subfolders are classes: pass `target` as y to use them. Hidden files and folders are ignored,
    and so are files without the suffix of an image: ``.avif``, ``.bmp``,
    ``.gif``, ``.jp2``, ``.jpeg``, ``.jpg``, ``.pbm``, ``.pgm``, ``.png``, ``.pnm``, ``.ppm``,
    ``.tif``, ``.tiff`` or ``.webp``. It needs Pillow: ``pip install 'skcontrast[images]'``.

    Parameters
    ----------
    folder : str or path-like
        The folder of the files, at any depth.
    size : int or (int, int), default=None
        The height and width of the images, at least 1; an int is both. None is 64, and as X of an
        embedder the `size` of its ``kind=``: 224 with ``Pretrained``.
    mode : {"RGB", "L"}, default="RGB"
        Three channels, or one grey channel.
    resize : {"crop", "pad", "stretch"}, default="crop"
        How images of another aspect ratio are resized. "crop" scales an image to cover the size,
        and crops it at the centre. "pad" scales it to fit, and pads both sides with black.
        "stretch" changes the aspect ratio.
    files : sequence of str or path-like, default=None
        The files, in this order, relative to `folder` or absolute; None is all of them, sorted.
    classes : sequence of str, default=None
        Names of subfolders in the order of `target`: for a test set, pass `target_names` of the
        training set. None is all first-level subfolders with images, sorted.

    Attributes
    ----------
    files : list of str
        The files, relative to `folder`, with slashes.
    target : ndarray of shape (n_samples,), dtype int64
        The class of each image: the index of its first-level subfolder, −1 if it is in none of
        `classes`.
    target_names : ndarray of shape (n_classes,)
        The names of the classes.
    shape : tuple of int
        ``(n_samples, 3, height, width)``, for "L" ``(n_samples, 1, height, width)``.

    Raises
    ------
    ImportError
        If Pillow is not installed.
    OSError
        If the folder, or one of `files`, does not exist, or, on reading, if a file is not an image
        or is damaged; the message names it.
    ValueError
        If there are no images, or a parameter is out of its range.

    See Also
    --------
    Modalities : Samples of several arrays.

    Notes
    -----
    An integer index returns an image, an ndarray of shape (channels, height, width) and dtype
    uint8. A slice, a mask or a list of integers returns an ImageFolder of these files, so that
    :func:`~sklearn.model_selection.train_test_split` and cross-validation read no image.

    The orientation in EXIF is applied. Transparent pixels become white. Images of 16 bits are
    rounded to 8; 32-bit images raise an error, because they have no defined maximum intensity.
    Only the first of several frames is read. Colour profiles are ignored.

    Examples
    --------
    Two files in a folder, one of them in a subfolder:

    >>> import pathlib, tempfile
    >>> from PIL import Image
    >>> from skcontrast.datasets import ImageFolder
    >>> home = tempfile.TemporaryDirectory()
    >>> folder = pathlib.Path(home.name)
    >>> (folder / "cats").mkdir()
    >>> Image.new("RGB", (60, 40), "red").save(folder / "cats" / "tom.png")
    >>> Image.linear_gradient("L").save(folder / "unknown.png")
    >>> images = ImageFolder(folder, size=32)
    >>> images.files, images.target.tolist(), images.shape
    (['cats/tom.png', 'unknown.png'], [0, -1], (2, 3, 32, 32))
    >>> images[0][:, 0, 0].tolist()
    [255, 0, 0]

    An embedder takes it as X, in fit and in transform:

    >>> from skcontrast import ContrastiveEmbedder
    >>> embedder = ContrastiveEmbedder(max_epochs=1, random_state=0).fit(images)
    >>> embedder.transform(images).shape[0]
    2
    >>> home.cleanup()
    """

    @validated(
        folder=[str, os.PathLike],
        size=[*POSITIVE_INT, Numbers(*POSITIVE_INT), None],
        files=[list, tuple, np.ndarray, None],
        classes=[list, tuple, np.ndarray, None],
        mode=[StrOptions({"RGB", "L"})],
        resize=[StrOptions({"crop", "pad", "stretch"})],
    )
    def __init__(
        self,
        folder: str | os.PathLike,
        size: int | tuple[int, int] | None = None,
        *,
        mode: str = "RGB",
        resize: str = "crop",
        files: Sequence[str | os.PathLike] | None = None,
        classes: Sequence[str] | None = None,
    ):
        check_pillow()
        self.folder = Path(folder).expanduser()
        with naming("size", "an int or (height, width)", size):
            height, width = np.broadcast_to(size or DEFAULT_SIZE, 2).tolist()
        self.size, self.has_default_size = (height, width), size is None
        self.mode, self.resize = mode, resize
        if not self.folder.is_dir():
            raise NotADirectoryError(f"{self.folder} is not a folder.")
        root = self.folder
        images = _walk(root) if files is None else existing_files(files, root)
        # Names are relative to the folder, so that it may be moved.
        paths = [path.relative_to(root) if path.is_relative_to(root) else path for path in images]
        self.files = [path.as_posix() for path in paths]
        if not self.files:
            raise ValueError(
                f"There are no images in the folder {self.folder}: no file ends with "
                f"{', '.join(sorted(SUFFIXES))}."
            )
        # The class is the subfolder, −1 without one or if it is not in `classes`.
        subfolders = [_subfolder(path) for path in paths]
        if classes is None:
            classes = sorted({subfolder for subfolder in subfolders if subfolder is not None})
        codes = {name: number for number, name in enumerate(map(str, classes))}
        self.target_names = np.array(list(codes), dtype=np.str_)
        self.target = np.array([codes.get(str(name), -1) for name in subfolders], dtype=np.int64)

    @property
    def shape(self) -> tuple[int, ...]:
        """``(n_samples, channels, height, width)``."""
        return (len(self.files), 3 if self.mode == "RGB" else 1, *self.size)

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, rows: Any) -> Any:
        rows = along_rows(rows, "ImageFolder")
        if isinstance(rows, list) and not rows:
            rows = slice(0)
        rows = np.arange(len(self))[rows]
        if rows.ndim == 0:
            return read_image(self.folder / self.files[rows], self.size, self.mode, self.resize)
        subset = copy.copy(self)
        subset.files, subset.target = [self.files[row] for row in rows], self.target[rows]
        return subset

    def __repr__(self) -> str:
        return (
            f"ImageFolder({str(self.folder)!r}, size={self.size}, mode={self.mode!r}, "
            f"resize={self.resize!r}): {len(self)} images in {len(self.target_names)} classes"
        )

    def load(self, *, out: NDArray | None = None, n_jobs: int | None = None) -> NDArray[np.uint8]:
        """Read all images, with a progress bar after ten seconds.

        Parameters
        ----------
        out : ndarray or memmap of shape (n_samples, channels, height, width), default=None
            The output array; None is a new array. A memory map, such as one of
            :func:`numpy.lib.format.open_memmap`, may exceed the memory.
        n_jobs : int, default=None
            Number of threads; None is 1 unless in a ``joblib.parallel_backend`` context, −1 is
            one per core.

        Returns
        -------
        images : ndarray of shape (n_samples, channels, height, width), dtype uint8
            The images; `out` if it was given.

        Raises
        ------
        OSError
            If a file is not an image or is damaged.
        ValueError
            If `out` has a different shape, or a dtype that does not hold 0 to 255.
        """
        images = np.empty(self.shape, dtype=np.uint8) if out is None else out
        return load_images(self, images, n_jobs, "ImageFolder")


def _walk(folder: Path, seen: set[Path] | None = None) -> Iterator[Path]:
    """Yield the images of a folder; within a class, links do not repeat a folder."""
    real = folder.resolve()
    if seen is not None:
        if real in seen:
            return
        seen.add(real)
    for path in sorted(folder.iterdir()):
        if path.name.startswith("."):
            continue
        if path.is_dir():
            yield from _walk(path, {real} if seen is None else seen)
        elif path.suffix.lower() in SUFFIXES:
            yield path


def _subfolder(path: Path) -> str | None:
    """Return the first-level subfolder of a file, or None."""
    inside = len(path.parts) > 1 and not path.is_absolute() and ".." not in path.parts
    return path.parts[0] if inside else None
