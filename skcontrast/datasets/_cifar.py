"""CIFAR-10 and CIFAR-100: small colour photographs."""

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
from ._image_files import check_labels, read_bytes, read_records

__all__ = ["fetch_cifar10", "fetch_cifar100"]

_SITE = "https://www.cs.toronto.edu/~kriz"
_BATCH = 10_000

CIFAR10 = RemoteTar(
    RemoteFile(
        "cifar-10-binary.tar.gz",
        (f"{_SITE}/cifar-10-binary.tar.gz",),
        "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
        170_052_171,
    ),
    "cifar-10-batches-bin",
    {
        file: _BATCH * 3073
        for file in (*(f"data_batch_{k}.bin" for k in range(1, 6)), "test_batch.bin")
    },
)
CIFAR100 = RemoteTar(
    RemoteFile(
        "cifar-100-binary.tar.gz",
        (f"{_SITE}/cifar-100-binary.tar.gz",),
        "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec",
        168_513_733,
    ),
    "cifar-100-binary",
    {
        "train.bin": 5 * _BATCH * 3074,
        "test.bin": _BATCH * 3074,
        "fine_label_names.txt": 2**16,
        "coarse_label_names.txt": 2**16,
    },
)

_CLASSES = [
    "airplane",
    "automobile",
    "bird",
    "cat",
    "deer",
    "dog",
    "frog",
    "horse",
    "ship",
    "truck",
]


@checked(**LOADER)
def fetch_cifar10(
    *,
    subset: str = "train",
    data_home: str | PathLike | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
    n_retries: int = 3,
    delay: float = 1.0,
    timeout: float = 60.0,
    verbose: bool | int = True,
) -> Any:
    """Load CIFAR-10: 60,000 colour photographs of 32×32 pixels, in ten classes.

    The binary version of the set [1]_ is downloaded once, 170 MB from ``www.cs.toronto.edu``,
    compared with its SHA-256 and unpacked to ``cifar10/cifar-10-batches-bin`` in `data_home`.
    You can also store the archive, ``cifar-10-binary.tar.gz``, in the folder ``cifar10`` yourself,
    or the folder that it unpacks to. Files of the same form with fewer images are read too.

    Parameters
    ----------
    subset : {"train", "test", "all"}, default="train"
        The 50,000 images for training, the 10,000 for testing, or both, in this order.
    data_home : str or path-like, default=None
        Folder of all data sets; None is scikit-learn's, see
        :func:`sklearn.datasets.get_data_home`.
    download_if_missing : bool, default=True
        If False, a set that is not in `data_home` is an error.
    return_X_y : bool, default=False
        If True, return ``(data, target)`` only.
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

        data : ndarray of shape (n_samples, 3, 32, 32), dtype uint8
            The images, as an embedder takes them: red, green and blue, 0 to 255.
        target : ndarray of shape (n_samples,), dtype int64
            The class of each image: 0 to 9.
        target_names : ndarray of shape (10,)
            The names of the classes.
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
    fetch_cifar100 : The same number of images, in a hundred classes.
    fetch_stl10 : Larger photographs, most of them without labels.

    References
    ----------
    .. [1] A. Krizhevsky, "Learning multiple layers of features from tiny images", technical
       report, University of Toronto, 2009. https://www.cs.toronto.edu/~kriz/cifar.html

    Examples
    --------
    A set of one's own in the form of CIFAR-10, of two black images for testing, a truck and an
    airplane:

    >>> import pathlib, tempfile
    >>> from skcontrast.datasets import fetch_cifar10
    >>> home = tempfile.TemporaryDirectory()
    >>> folder = pathlib.Path(home.name, "cifar10", "cifar-10-batches-bin")
    >>> folder.mkdir(parents=True)
    >>> _ = folder.joinpath("test_batch.bin").write_bytes(b"\\x09" + bytes(3072) + bytes(3073))
    >>> data = fetch_cifar10(subset="test", data_home=home.name)
    >>> data.data.shape, data.target_names[data.target].tolist()
    ((2, 3, 32, 32), ['truck', 'airplane'])
    >>> home.cleanup()
    """
    connection = check_connection("fetch_cifar10", n_retries, delay, timeout, verbose)
    files = choose_subset("fetch_cifar10", subset, _parts(*CIFAR10.members))
    home = folder_of(data_home, "cifar10")
    folder = provide_tar(CIFAR10, home, files, connection, download_if_missing)
    labels, images = _read(folder, files, 1, (10,), _BATCH)
    if return_X_y:
        return images, labels[0]
    descr = _describe("CIFAR-10", len(images), "10 classes", subset)
    return Bunch(data=images, target=labels[0], target_names=np.array(_CLASSES), DESCR=descr)


@checked(**LOADER)
def fetch_cifar100(
    *,
    subset: str = "train",
    data_home: str | PathLike | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
    n_retries: int = 3,
    delay: float = 1.0,
    timeout: float = 60.0,
    verbose: bool | int = True,
) -> Any:
    """Load CIFAR-100: 60,000 colour photographs of 32×32 pixels, in a hundred classes.

    The binary version of the set [1]_ is downloaded once, 169 MB from ``www.cs.toronto.edu``,
    compared with its SHA-256 and unpacked to ``cifar100/cifar-100-binary`` in `data_home`. You
    can also store the archive, ``cifar-100-binary.tar.gz``, in the folder ``cifar100`` yourself,
    or the folder that it unpacks to. Files of the same form with fewer images are read too.

    Parameters
    ----------
    subset : {"train", "test", "all"}, default="train"
        The 50,000 images for training, the 10,000 for testing, or both, in this order.
    data_home : str or path-like, default=None
        Folder of all data sets; None is scikit-learn's, see
        :func:`sklearn.datasets.get_data_home`.
    download_if_missing : bool, default=True
        If False, a set that is not in `data_home` is an error.
    return_X_y : bool, default=False
        If True, return ``(data, target)`` only.
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

        data : ndarray of shape (n_samples, 3, 32, 32), dtype uint8
            The images, as an embedder takes them: red, green and blue, 0 to 255.
        target : ndarray of shape (n_samples,), dtype int64
            The class of each image: 0 to 99.
        target_names : ndarray of shape (100,)
            The names of the classes.
        coarse_target : ndarray of shape (n_samples,), dtype int64
            The superclass of each image: 0 to 19.
        coarse_target_names : ndarray of shape (20,)
            The names of the superclasses.
        DESCR : str
            A description of the set and its origin.
    (data, target) : tuple if `return_X_y` is True
        The first two of these.

    Raises
    ------
    OSError, ValueError
        As in :func:`fetch_cifar10`.

    See Also
    --------
    fetch_cifar10 : The same number of images, in ten classes.

    References
    ----------
    .. [1] A. Krizhevsky, "Learning multiple layers of features from tiny images", technical
       report, University of Toronto, 2009. https://www.cs.toronto.edu/~kriz/cifar.html

    Examples
    --------
    A set of one's own in the form of CIFAR-100, of one black image:

    >>> import pathlib, tempfile
    >>> from skcontrast.datasets import fetch_cifar100
    >>> home = tempfile.TemporaryDirectory()
    >>> folder = pathlib.Path(home.name, "cifar100", "cifar-100-binary")
    >>> folder.mkdir(parents=True)
    >>> _ = folder.joinpath("test.bin").write_bytes(b"\\x01\\x02" + bytes(3072))
    >>> _ = folder.joinpath("fine_label_names.txt").write_text("apple\\naquarium_fish\\nbaby\\n")
    >>> _ = folder.joinpath("coarse_label_names.txt").write_text("aquatic_mammals\\nfish\\n")
    >>> data = fetch_cifar100(subset="test", data_home=home.name)
    >>> data.target_names[data.target].item(), data.coarse_target_names[data.coarse_target].item()
    ('baby', 'fish')
    >>> home.cleanup()
    """
    connection = check_connection("fetch_cifar100", n_retries, delay, timeout, verbose)
    files = choose_subset("fetch_cifar100", subset, _parts("train.bin", "test.bin"))
    texts = ["coarse_label_names.txt", "fine_label_names.txt"]
    home = folder_of(data_home, "cifar100")
    folder = provide_tar(CIFAR100, home, [*files, *texts], connection, download_if_missing)
    names = [_read_names(folder / text) for text in texts]
    n_classes = tuple(map(len, names))
    labels, images = _read(folder, files, 2, n_classes, 5 * _BATCH)
    if return_X_y:
        return images, labels[1]
    classes = f"{n_classes[1]} classes and {n_classes[0]} superclasses"
    return Bunch(
        data=images,
        target=labels[1],
        target_names=names[1],
        coarse_target=labels[0],
        coarse_target_names=names[0],
        DESCR=_describe("CIFAR-100", len(images), classes, subset),
    )


def _parts(*files: str) -> dict[str, list[str]]:
    """Return the files of each subset; the last one is for testing."""
    return {"train": [*files[:-1]], "test": [files[-1]], "all": [*files]}


def _read(
    folder: Path, files: list[str], n_labels: int, n_classes: tuple[int, ...], most: int
) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Return labels (n_labels, n) and images (n, 3, 32, 32) of several files."""
    labels, images = [], []
    for file in files:
        path = folder / file
        columns, some = read_records(path, n_labels, most)
        labels.append(
            np.stack(
                [
                    check_labels(path, column, k, len(some))
                    for column, k in zip(columns.T, n_classes, strict=True)
                ]
            )
        )
        images.append(some)
    return np.concatenate(labels, axis=1), np.concatenate(images)


def _read_names(path: Path) -> NDArray[np.str_]:
    """Return the lines of a small file."""
    return np.array(read_bytes(path, 2**16).tobytes().decode("utf-8", "replace").split())


def _describe(name: str, n_images: int, classes: str, subset: str) -> str:
    return (
        f"{name}: {n_images} colour images of 32×32 pixels in {classes}; subset {subset!r}.\n"
        f"From {_SITE}/cifar.html; please cite A. Krizhevsky, Learning multiple layers of\n"
        "features from tiny images, 2009."
    )
