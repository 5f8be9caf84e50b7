"""STL-10: photographs, few of them with labels."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from .._arguments import checked
from ._archives import RemoteTar, provide_tar
from ._fetch import LOADER, RemoteFile, check_connection, choose_subset, folder_of
from ._image_files import check_labels, map_columns, read_bytes

__all__ = ["fetch_stl10"]

_IMAGE = 3 * 96 * 96
_MOST = {"train": 5_000, "test": 8_000, "unlabeled": 100_000}

STL10 = RemoteTar(
    RemoteFile(
        "stl10_binary.tar.gz",
        (
            "http://ai.stanford.edu/~acoates/stl10/stl10_binary.tar.gz",
            "https://cs.stanford.edu/~acoates/stl10/stl10_binary.tar.gz",
        ),
        "f31fd99273a1acb8609c8db427cebb1de3f71de77758cdc0e22956e1289b9866",
        2_640_397_119,
    ),
    "stl10_binary",
    {
        **{f"{part}_X.bin": most * _IMAGE for part, most in _MOST.items()},
        **{f"{part}_y.bin": _MOST[part] for part in ("train", "test")},
        "fold_indices.txt": 2**20,
    },
)

_CLASSES = ["airplane", "bird", "car", "cat", "deer", "dog", "horse", "monkey", "ship", "truck"]
_SUBSETS = {
    "train": ["train"],
    "test": ["test"],
    "unlabeled": ["unlabeled"],
    "train+unlabeled": ["train", "unlabeled"],
    "all": ["train", "test", "unlabeled"],
}


@checked(**LOADER)
def fetch_stl10(
    *,
    subset: str = "train",
    data_home: str | PathLike | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
    as_memmap: bool = False,
    n_retries: int = 3,
    delay: float = 1.0,
    timeout: float = 60.0,
    verbose: bool | int = True,
) -> Any:
    """Load STL-10: 113,000 colour photographs of 96×96 pixels, 100,000 of them without labels.

    The set [1]_ was made for learning from few labels: 500 images for training in each of ten
    classes, in ten predefined folds of 100, and many unlabeled images that also show other
    things. The binary version is downloaded once, 2.6 GB from ``ai.stanford.edu``, compared with
    its SHA-256 and unpacked to ``stl10/stl10_binary`` in `data_home`, which then takes 3.1 GB,
    and 5.8 GB in between. You can also store the archive, ``stl10_binary.tar.gz``, in the folder
    ``stl10`` yourself, or the folder that it unpacks to. Files of the same form with fewer images
    are read too.

    Parameters
    ----------
    subset : {"train", "test", "unlabeled", "train+unlabeled", "all"}, default="train"
        The 5,000 images for training, the 8,000 for testing, the 100,000 without labels, the
        first and the third, or all three, in this order.
    data_home : str or path-like, default=None
        Folder of all data sets; None is scikit-learn's, see
        :func:`sklearn.datasets.get_data_home`.
    download_if_missing : bool, default=True
        If False, a set that is not in `data_home` is an error.
    return_X_y : bool, default=False
        If True, return ``(data, target)`` only.
    as_memmap : bool, default=False
        If True, `data` is a memory map, read batch by batch where it does not fit into memory;
        `subset` must then be a single one. As an array, the unlabeled images take 2.8 GB.
    n_retries : int, default=3
        How often a failed or cut connection is tried again, at least 0.
    delay : float, default=1.0
        Seconds between attempts, at least 0.
    timeout : float, default=60.0
        Seconds, more than 0, within which the server has to answer, and to send each further
        64 kB.
    verbose : bool or int, default=True
        Whether a progress bar shows a download that takes more than a second.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        With the following attributes.

        data : ndarray or memmap of shape (n_samples, 3, 96, 96), dtype uint8
            The images, as an embedder takes them: red, green and blue, 0 to 255.
        target : ndarray of shape (n_samples,), dtype int64
            The class of each image, 0 to 9, and −1 for images without labels.
        target_names : ndarray of shape (10,)
            The names of the classes.
        folds : list of 10 ndarrays
            If `subset` is ``"train"`` and ``fold_indices.txt`` is there: the rows that each
            predefined fold trains a classifier on.
        DESCR : str
            A description of the set and its origin.
    (data, target) : tuple if `return_X_y` is True
        The first two of these.

    Raises
    ------
    OSError
        If the set is missing and cannot or must not be downloaded, or its files are damaged.
        A download that fails, or has the wrong SHA-256, leaves nothing behind.
    ValueError
        If a parameter is out of its range.

    See Also
    --------
    fetch_cifar10 : Smaller photographs in similar classes, all of them with labels.

    References
    ----------
    .. [1] A. Coates, H. Lee, A. Y. Ng, "An analysis of single-layer networks in unsupervised
       feature learning", AISTATS 2011. https://cs.stanford.edu/~acoates/stl10

    Examples
    --------
    A set of one's own in the form of STL-10, a black and a white image without labels:

    >>> import pathlib, tempfile
    >>> from skcontrast.datasets import fetch_stl10
    >>> home = tempfile.TemporaryDirectory()
    >>> folder = pathlib.Path(home.name, "stl10", "stl10_binary")
    >>> folder.mkdir(parents=True)
    >>> _ = folder.joinpath("unlabeled_X.bin").write_bytes(bytes(27648) + b"\\xff" * 27648)
    >>> X, y = fetch_stl10(subset="unlabeled", data_home=home.name, return_X_y=True)
    >>> X.shape, X[:, 0, 0, 0].tolist(), y.tolist()
    ((2, 3, 96, 96), [0, 255], [-1, -1])
    >>> home.cleanup()
    """
    connection = check_connection("fetch_stl10", n_retries, delay, timeout, verbose)
    parts = choose_subset("fetch_stl10", subset, _SUBSETS)
    if as_memmap and len(parts) > 1:
        raise ValueError(
            f"The 'as_memmap' parameter of fetch_stl10 needs a subset of one file: 'train', "
            f"'test' or 'unlabeled', got {subset!r}."
        )
    needed = [f"{part}_X.bin" for part in parts]
    needed += [f"{part}_y.bin" for part in parts if part != "unlabeled"]
    home = folder_of(data_home, "stl10")
    folder = provide_tar(STL10, home, needed, connection, download_if_missing)
    images = [map_columns(folder / f"{part}_X.bin", _MOST[part]) for part in parts]
    data = images[0] if as_memmap else _joined(images)
    target = np.concatenate(
        [_read_labels(folder, part, len(some)) for part, some in zip(parts, images, strict=True)]
    )
    if return_X_y:
        return data, target
    descr = (
        f"STL-10: {len(data)} colour images of 96×96 pixels in 10 classes; subset {subset!r}.\n"
        "From https://cs.stanford.edu/~acoates/stl10; please cite A. Coates, H. Lee and\n"
        "A. Y. Ng, An analysis of single-layer networks in unsupervised feature learning, 2011."
    )
    bunch = Bunch(data=data, target=target, target_names=np.array(_CLASSES), DESCR=descr)
    if subset == "train" and (folder / "fold_indices.txt").is_file():
        bunch.folds = _read_folds(folder / "fold_indices.txt", len(data))
    return bunch


def _joined(images: list[NDArray[np.uint8]]) -> NDArray[np.uint8]:
    """Return memory maps as one array, which is all the memory that this takes."""
    n_images = sum(map(len, images))
    return np.concatenate(images, out=np.empty((n_images, 3, 96, 96), dtype=np.uint8))


def _read_labels(folder: Path, part: str, n_images: int) -> NDArray[np.int64]:
    """Return the classes, which the file counts from 1; −1 if there are none."""
    if part == "unlabeled":
        return np.full(n_images, -1)
    path = folder / f"{part}_y.bin"
    stored = read_bytes(path, _MOST[part]).astype(np.int64)
    return check_labels(path, stored - 1, len(_CLASSES), n_images)


def _read_folds(path: Path, n_images: int) -> list[NDArray[np.int64]]:
    """Return the rows of each fold: a line of numbers, counted from 0."""
    lines = read_bytes(path, 2**20).tobytes().decode("ascii", "replace").splitlines()
    folds = [np.array([int(k) if k.isdigit() else -1 for k in line.split()]) for line in lines]
    if any(len(fold) and not (fold.min() >= 0 and fold.max() < n_images) for fold in folds):
        raise OSError(f"{path} cannot be read: it names images that do not exist.")
    return folds
