"""MNIST and Fashion-MNIST: small grey images."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from .._arguments import checked
from ._fetch import (
    LOADER,
    Connection,
    RemoteFile,
    check_connection,
    choose_subset,
    download,
    folder_of,
    verify,
)
from ._image_files import check_labels, read_idx

__all__ = ["fetch_fashion_mnist", "fetch_mnist"]

_FILES = (
    "train-images-idx3-ubyte.gz",
    "train-labels-idx1-ubyte.gz",
    "t10k-images-idx3-ubyte.gz",
    "t10k-labels-idx1-ubyte.gz",
)
_MOST = {"train": 60_000, "t10k": 10_000}
_SUBSETS = {"train": ["train"], "test": ["t10k"], "all": ["train", "t10k"]}


def _remote_files(
    sites: tuple[str, ...], sizes: tuple[int, ...], sums: tuple[str, ...]
) -> dict[str, RemoteFile]:
    """Return the four files of a set by name."""
    return {
        name: RemoteFile(name, [f"{site}/{name}" for site in sites], sha256, size)
        for name, size, sha256 in zip(_FILES, sizes, sums, strict=True)
    }


MNIST = _remote_files(
    (
        "https://ossci-datasets.s3.amazonaws.com/mnist",
        "https://storage.googleapis.com/cvdf-datasets/mnist",
    ),
    (9_912_422, 28_881, 1_648_877, 4_542),
    (
        "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
        "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
    ),
)
FASHION_MNIST = _remote_files(
    (
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
        "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion",
    ),
    (26_421_880, 29_515, 4_422_102, 5_148),
    (
        "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
        "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
        "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
        "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
    ),
)

_DIGITS = [str(digit) for digit in range(10)]
_CLOTHES = [
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
]


@checked(**LOADER)
def fetch_mnist(
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
    """Load MNIST: 70,000 handwritten digits of 28×28 pixels.

    The four files of the set [1]_ are downloaded once, 12 MB in all, from the copies of PyTorch
    (``ossci-datasets.s3.amazonaws.com``) or of the Common Visual Data Foundation
    (``storage.googleapis.com``), since the site of the authors no longer offers them. They are
    compared with their SHA-256 at each reading. You can also store them in the folder ``mnist``
    of `data_home` yourself, as ``train-images-idx3-ubyte.gz`` and so on, or without ``.gz``, then
    also with fewer images and without a checksum.

    Parameters
    ----------
    subset : {"train", "test", "all"}, default="train"
        The 60,000 images for training, the 10,000 for testing, or both, in this order.
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

        data : ndarray of shape (n_samples, 28, 28), dtype uint8
            The images, as an embedder takes them: 0 is paper, 255 is ink.
        target : ndarray of shape (n_samples,), dtype int64
            The class of each image: 0 to 9.
        target_names : ndarray of shape (10,)
            The digits.
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
    fetch_fashion_mnist : Clothes in the same form, which are harder to tell apart.
    sklearn.datasets.load_digits : Digits of 8×8 pixels, without a download.

    References
    ----------
    .. [1] Y. LeCun, L. Bottou, Y. Bengio, P. Haffner, "Gradient-based learning applied to
       document recognition", Proceedings of the IEEE 86(11), 1998.
       http://yann.lecun.com/exdb/mnist

    Examples
    --------
    A set of one's own in the form of MNIST, of one black image, as IDX files:

    >>> import pathlib, tempfile
    >>> from skcontrast.datasets import fetch_mnist
    >>> home = tempfile.TemporaryDirectory()
    >>> folder = pathlib.Path(home.name, "mnist")
    >>> folder.mkdir()
    >>> header = bytes([0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 28, 0, 0, 0, 28])
    >>> _ = folder.joinpath("t10k-images-idx3-ubyte").write_bytes(header + bytes(28 * 28))
    >>> header = bytes([0, 0, 8, 1, 0, 0, 0, 1])
    >>> _ = folder.joinpath("t10k-labels-idx1-ubyte").write_bytes(header + bytes([8]))
    >>> data = fetch_mnist(subset="test", data_home=home.name)
    >>> data.data.shape, data.target_names[data.target].item()
    ((1, 28, 28), '8')
    >>> home.cleanup()
    """
    connection = check_connection("fetch_mnist", n_retries, delay, timeout, verbose)
    parts = choose_subset("fetch_mnist", subset, _SUBSETS)
    home = folder_of(data_home, "mnist")
    data, target = _read(MNIST, home, parts, connection, download_if_missing)
    if return_X_y:
        return data, target
    descr = (
        f"MNIST: {len(data)} grey images of 28×28 pixels in 10 classes; subset {subset!r}.\n"
        "From http://yann.lecun.com/exdb/mnist; please cite Y. LeCun, L. Bottou, Y. Bengio and\n"
        "P. Haffner, Gradient-based learning applied to document recognition, 1998."
    )
    return Bunch(data=data, target=target, target_names=np.array(_DIGITS), DESCR=descr)


@checked(**LOADER)
def fetch_fashion_mnist(
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
    """Load Fashion-MNIST: 70,000 images of clothes of 28×28 pixels.

    The four files of the set [1]_ are downloaded once, 31 MB in all, from the storage or the
    repository of Zalando Research, and compared with their SHA-256 at each reading. You can also
    store them in the folder ``fashion_mnist`` of `data_home` yourself, as
    ``train-images-idx3-ubyte.gz`` and so on, or without ``.gz``, then also with fewer images and
    without a checksum. The set has the MIT licence, © 2017 Zalando SE.

    Parameters
    ----------
    subset : {"train", "test", "all"}, default="train"
        The 60,000 images for training, the 10,000 for testing, or both, in this order.
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

        data : ndarray of shape (n_samples, 28, 28), dtype uint8
            The images, as an embedder takes them: 0 is the background.
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
    fetch_mnist : Handwritten digits in the same form.

    References
    ----------
    .. [1] H. Xiao, K. Rasul, R. Vollgraf, "Fashion-MNIST: a novel image dataset for benchmarking
       machine learning algorithms", 2017. https://arxiv.org/abs/1708.07747

    Examples
    --------
    A set of one's own in the form of Fashion-MNIST, of one black image, as IDX files:

    >>> import pathlib, tempfile
    >>> from skcontrast.datasets import fetch_fashion_mnist
    >>> home = tempfile.TemporaryDirectory()
    >>> folder = pathlib.Path(home.name, "fashion_mnist")
    >>> folder.mkdir()
    >>> header = bytes([0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 28, 0, 0, 0, 28])
    >>> _ = folder.joinpath("t10k-images-idx3-ubyte").write_bytes(header + bytes(28 * 28))
    >>> header = bytes([0, 0, 8, 1, 0, 0, 0, 1])
    >>> _ = folder.joinpath("t10k-labels-idx1-ubyte").write_bytes(header + bytes([8]))
    >>> data = fetch_fashion_mnist(subset="test", data_home=home.name)
    >>> data.data.shape, data.target_names[data.target].item()
    ((1, 28, 28), 'Bag')
    >>> home.cleanup()
    """
    connection = check_connection("fetch_fashion_mnist", n_retries, delay, timeout, verbose)
    parts = choose_subset("fetch_fashion_mnist", subset, _SUBSETS)
    home = folder_of(data_home, "fashion_mnist")
    data, target = _read(FASHION_MNIST, home, parts, connection, download_if_missing)
    if return_X_y:
        return data, target
    descr = (
        f"Fashion-MNIST: {len(data)} grey images of 28×28 pixels in 10 classes; subset "
        f"{subset!r}.\n"
        "From https://github.com/zalandoresearch/fashion-mnist, MIT licence, © 2017 Zalando SE;\n"
        "please cite H. Xiao, K. Rasul and R. Vollgraf, Fashion-MNIST, arXiv:1708.07747, 2017."
    )
    return Bunch(data=data, target=target, target_names=np.array(_CLOTHES), DESCR=descr)


def _read(
    remotes: dict[str, RemoteFile],
    home: Path,
    parts: list[str],
    connection: Connection,
    download_if_missing: bool,
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the images and the classes of the parts of a set."""
    images, labels = [], []
    for part in parts:
        names = [name for name in _FILES if name.startswith(part)]
        paths = [_provide(remotes[name], home, connection, download_if_missing) for name in names]
        images.append(read_idx(paths[0], (28, 28), _MOST[part]))
        stored = read_idx(paths[1], (), _MOST[part])
        labels.append(check_labels(paths[1], stored, 10, len(images[-1])))
    return np.concatenate(images), np.concatenate(labels)


def _provide(
    remote: RemoteFile, home: Path, connection: Connection, download_if_missing: bool
) -> Path:
    """Return the path of a file, downloaded if it is missing and verified if it is compressed."""
    path = home / remote.name
    if path.with_suffix("").is_file() and not path.exists():
        return path.with_suffix("")
    if path.exists():
        verify(path, remote.sha256)
    elif download_if_missing:
        download(remote, path, connection)
    else:
        raise OSError(
            f"{path} not found, nor {path.stem} next to it, and download_if_missing is False."
        )
    return path
