"""fetch_stl10."""

from __future__ import annotations

import numpy as np
import pytest

from skcontrast.datasets import fetch_stl10, stl10
from tests.common import small_images
from tests.datasets.common import remote_file, tarred

RNG = np.random.default_rng(0)
PIXELS = RNG.integers(0, 256, size=(9, 3, 96, 96), dtype=np.uint8)
ROWS = {"train": slice(4), "test": slice(4, 6), "unlabeled": slice(6, 9)}
CLASSES = {"train": [0, 9, 3, 3], "test": [5, 0], "unlabeled": [-1, -1, -1]}


def columns(images):
    return images.transpose(0, 1, 3, 2).tobytes()


FILES = {f"{part}_X.bin": columns(PIXELS[rows]) for part, rows in ROWS.items()} | {
    "train_y.bin": bytes(k + 1 for k in CLASSES["train"]),
    "test_y.bin": bytes(k + 1 for k in CLASSES["test"]),
    "fold_indices.txt": b"0 2 \n1 3 \n",
    "class_names.txt": b"airplane\n",
}


@pytest.fixture
def site(server, monkeypatch):
    """The server as the site of the set."""
    remote = remote_file(server, "stl10_binary.tar.gz", tarred("stl10_binary", FILES))
    monkeypatch.setattr(stl10, "STL10", stl10.STL10._replace(remote=remote))
    return server


@pytest.mark.parametrize(
    ("subset", "parts"),
    [
        ("train", ["train"]),
        ("test", ["test"]),
        ("unlabeled", ["unlabeled"]),
        ("train+unlabeled", ["train", "unlabeled"]),
        ("all", ["train", "test", "unlabeled"]),
    ],
)
def test_the_set_is_downloaded_once_and_read(site, home, subset, parts):
    data = fetch_stl10(subset=subset, data_home=home)
    np.testing.assert_array_equal(data.data, np.concatenate([PIXELS[ROWS[p]] for p in parts]))
    assert data.target.tolist() == [y for part in parts for y in CLASSES[part]]
    assert data.data.flags.c_contiguous and data.data.flags.writeable
    assert data.data.dtype == np.uint8 and data.target.dtype == np.int64
    assert data.target_names.tolist()[::9] == ["airplane", "truck"]
    assert f"{len(data.data)} colour images" in data.DESCR
    assert ("folds" in data) == (subset == "train")
    X, y = fetch_stl10(subset=subset, data_home=home, return_X_y=True, download_if_missing=False)
    np.testing.assert_array_equal(X, data.data)
    np.testing.assert_array_equal(y, data.target)
    assert site.asked == ["stl10_binary.tar.gz"]


def test_folds_are_rows_of_the_training_set(site, home):
    assert [fold.tolist() for fold in fetch_stl10(data_home=home).folds] == [[0, 2], [1, 3]]
    path = home / "stl10" / "stl10_binary" / "fold_indices.txt"
    for text in ("0 4", "x", "-1", "0.5"):
        path.write_text(text)
        with pytest.raises(OSError, match=r"fold_indices.txt cannot be read"):
            fetch_stl10(data_home=home)
    path.unlink()
    assert "folds" not in fetch_stl10(data_home=home)


def test_a_memory_map_is_read_as_the_array_is(site, home):
    X = fetch_stl10(subset="unlabeled", data_home=home, as_memmap=True).data
    assert isinstance(X, np.memmap)
    np.testing.assert_array_equal(X, PIXELS[6:])


def test_an_embedder_reads_a_memory_map_batch_by_batch_with_the_same_result(site, home):
    mapped, array = (
        fetch_stl10(subset="train", data_home=home, as_memmap=as_memmap).data
        for as_memmap in (True, False)
    )
    streamed = small_images(max_epochs=1, memory_budget=1e-6).fit(mapped)
    np.testing.assert_array_equal(
        streamed.transform(mapped), small_images(max_epochs=1).fit(array).transform(array)
    )


def test_a_memory_map_is_of_one_file(site, home):
    with pytest.raises(ValueError, match="'as_memmap' parameter of fetch_stl10 needs a subset of"):
        fetch_stl10(subset="all", data_home=home, as_memmap=True)
    assert not site.asked


def test_classes_count_from_one(site, home):
    fetch_stl10(data_home=home)
    for content in (bytes(4), bytes([1, 2, 3, 11])):
        (home / "stl10" / "stl10_binary" / "train_y.bin").write_bytes(content)
        with pytest.raises(OSError, match=r"train_y.bin .* none of the 10 classes"):
            fetch_stl10(data_home=home)


def test_parameters_are_checked_before_the_download(site, home):
    for parameter, value in {"subset": "labeled", "delay": -1.0}.items():
        with pytest.raises(ValueError, match=f"The '{parameter}' parameter of fetch_stl10"):
            fetch_stl10(data_home=home, **{parameter: value})
    assert not site.asked and not home.exists()
