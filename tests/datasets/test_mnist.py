"""fetch_mnist and fetch_fashion_mnist."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
import pytest

from skcontrast.datasets import fetch_fashion_mnist, fetch_mnist, mnist
from tests.datasets.common import idx, remote_file, status

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, size=(7, 28, 28), dtype=np.uint8)
LABELS = np.array([3, 1, 4, 1, 5, 9, 2], dtype=np.uint8)
FILES = {
    "train-images-idx3-ubyte": idx(IMAGES[:4]),
    "train-labels-idx1-ubyte": idx(LABELS[:4]),
    "t10k-images-idx3-ubyte": idx(IMAGES[4:]),
    "t10k-labels-idx1-ubyte": idx(LABELS[4:]),
}
LOADERS = [fetch_mnist, fetch_fashion_mnist]
SUBSETS = [("train", slice(4)), ("test", slice(4, 7)), ("all", slice(7))]


@pytest.fixture
def site(server, monkeypatch):
    """The server as the site of both sets."""
    remotes = {
        f"{name}.gz": remote_file(server, f"{name}.gz", gzip.compress(content, mtime=0))
        for name, content in FILES.items()
    }
    monkeypatch.setattr(mnist, "MNIST", remotes)
    monkeypatch.setattr(mnist, "FASHION_MNIST", remotes)
    return server


def folder_of(home, fetch):
    return home / fetch.__name__.removeprefix("fetch_")


@pytest.mark.parametrize("fetch", LOADERS)
@pytest.mark.parametrize(("subset", "rows"), SUBSETS)
def test_sets_are_downloaded_once_and_read(site, home, fetch, subset, rows):
    data = fetch(subset=subset, data_home=home)
    np.testing.assert_array_equal(data.data, IMAGES[rows])
    np.testing.assert_array_equal(data.target, LABELS[rows])
    assert data.data.dtype == np.uint8 and data.target.dtype == np.int64
    assert data.target_names[9] == ("9" if fetch is fetch_mnist else "Ankle boot")
    assert f"{len(data.data)} grey images" in data.DESCR
    X, y = fetch(subset=subset, data_home=home, return_X_y=True, download_if_missing=False)
    np.testing.assert_array_equal(X, data.data)
    np.testing.assert_array_equal(y, data.target)
    assert len(site.asked) == (4 if subset == "all" else 2)
    assert {file.name for file in folder_of(home, fetch).iterdir()} == set(site.asked)


@pytest.mark.parametrize("fetch", LOADERS)
def test_files_that_are_not_compressed_are_read_without_a_checksum(home, fetch):
    folder = folder_of(home, fetch)
    folder.mkdir(parents=True)
    for name, content in FILES.items():
        (folder / name).write_bytes(content)
    X, y = fetch(subset="all", data_home=home, download_if_missing=False, return_X_y=True)
    np.testing.assert_array_equal(X, IMAGES)
    np.testing.assert_array_equal(y, LABELS)


def test_the_two_sets_lie_in_folders_of_their_own(site, home):
    fetch_mnist(data_home=home)
    with pytest.raises(OSError, match=r"fashion_mnist.*train-images-idx3-ubyte.gz not found"):
        fetch_fashion_mnist(data_home=home, download_if_missing=False)


def test_a_changed_file_is_refused_at_each_reading(site, home):
    fetch_mnist(data_home=home)
    path = home / "mnist" / "train-labels-idx1-ubyte.gz"
    path.write_bytes(gzip.compress(idx(LABELS[:4][::-1])))
    with pytest.raises(OSError, match=r"train-labels-idx1-ubyte.gz has the SHA-256 .* Remove it"):
        fetch_mnist(data_home=home)


def test_a_file_that_fails_leaves_the_others(site, home):
    content = site.files["train-labels-idx1-ubyte.gz"]
    site.files["train-labels-idx1-ubyte.gz"] = status(404)
    with pytest.raises(OSError, match=r"train-labels-idx1-ubyte.gz cannot be downloaded"):
        fetch_mnist(data_home=home)
    site.files["train-labels-idx1-ubyte.gz"] = content
    assert len(fetch_mnist(data_home=home).data) == 4
    assert site.asked.count("train-images-idx3-ubyte.gz") == 1


@pytest.mark.parametrize("fetch", LOADERS)
def test_a_server_that_sends_nothing_is_given_up(site, home, fetch):
    site.files["train-images-idx3-ubyte.gz"] = site.hang
    with pytest.raises(OSError, match=r"train-images-idx3-ubyte.gz .*did not answer.* in 0.2 s"):
        fetch(data_home=home, timeout=0.2, n_retries=0)
    assert not list(folder_of(home, fetch).iterdir())


def test_images_and_labels_must_agree(home):
    folder = home / "mnist"
    folder.mkdir(parents=True)
    (folder / "t10k-images-idx3-ubyte").write_bytes(FILES["t10k-images-idx3-ubyte"])
    (folder / "t10k-labels-idx1-ubyte").write_bytes(idx(LABELS))
    with pytest.raises(OSError, match=r"t10k-labels-idx1-ubyte .* 7 labels for 3 images"):
        fetch_mnist(subset="test", data_home=home)


@pytest.mark.parametrize("fetch", LOADERS)
def test_parameters_are_checked_before_the_download(site, home, fetch):
    for parameter, value in {"subset": "unlabeled", "timeout": -1.0}.items():
        with pytest.raises(ValueError, match=f"The '{parameter}' parameter of {fetch.__name__}"):
            fetch(data_home=home, **{parameter: value})
    assert not site.asked and not home.exists()


def test_the_real_fashion_mnist_is_read(home):
    path = Path(os.environ.get("SKCONTRAST_DATA", "")) / "fashion_mnist.npz"
    if not path.exists():
        pytest.skip("SKCONTRAST_DATA names no folder with fashion_mnist.npz")
    folder = home / "fashion_mnist"
    folder.mkdir(parents=True)
    with np.load(path, allow_pickle=False) as stored:
        arrays = dict(stored)
    for part, subset in {"train": "train", "t10k": "test"}.items():
        X, y = arrays[f"X_{subset}"], arrays[f"y_{subset}"]
        (folder / f"{part}-images-idx3-ubyte").write_bytes(idx(X))
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(idx(y.astype(np.uint8)))
        images, classes = fetch_fashion_mnist(subset=subset, data_home=home, return_X_y=True)
        np.testing.assert_array_equal(images, X)
        np.testing.assert_array_equal(classes, y)
