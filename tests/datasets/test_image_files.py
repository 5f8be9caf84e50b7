"""IDX files, and the binary files of CIFAR and STL-10: what is read and what is refused."""

from __future__ import annotations

import gzip
import tracemalloc

import numpy as np
import pytest

from skcontrast.datasets._image_files import (
    check_labels,
    map_columns,
    read_bytes,
    read_idx,
    read_records,
)
from tests.datasets.common import idx

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, size=(5, 3, 4), dtype=np.uint8)


def written(folder, content, name="images-ubyte"):
    path = folder / name
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return path


# IDX


@pytest.mark.parametrize("name", ["images-ubyte", "images-ubyte.gz"])
@pytest.mark.parametrize("array", [IMAGES, IMAGES[0], IMAGES[0, 0]])
def test_idx_files_hold_arrays_of_any_dimension(tmp_path, array, name):
    read = read_idx(written(tmp_path, idx(array), name), array.shape[1:], most=5)
    assert read.dtype == np.uint8 and read.flags.writeable
    np.testing.assert_array_equal(read, array)


@pytest.mark.parametrize("name", ["images-ubyte", "images-ubyte.gz"])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not an IDX file"),
        (idx(IMAGES)[:7], "not an IDX file"),
        (b"\0\0\x0d\3" + idx(IMAGES)[4:], "not an IDX file of uint8 in 3"),
        (idx(IMAGES[0]), "not an IDX file of uint8 in 3"),
        (idx(IMAGES.transpose(0, 2, 1)), r"array of shape \(5, 4, 3\), not at most 5 items"),
        (idx(np.zeros((6, 3, 4), np.uint8)), r"array of shape \(6, 3, 4\)"),
        (idx(np.zeros((0, 3, 4), np.uint8)), r"array of shape \(0, 3, 4\)"),
        (idx(IMAGES)[:-1], "ends after 59 of 60 bytes"),
        (idx(IMAGES) + b"x", "more than the 60 bytes"),
    ],
)
def test_other_contents_are_named(tmp_path, content, message, name):
    path = written(tmp_path, content, name)
    with pytest.raises(OSError, match=rf"{name} cannot be read: .*({message}).* Remove it"):
        read_idx(path, (3, 4), most=5)


@pytest.mark.parametrize("damage", ["cut", "flipped", "checksum", "text"])
def test_damaged_gzip_files_are_refused(tmp_path, damage):
    content = bytearray(gzip.compress(idx(IMAGES)))
    if damage == "cut":
        del content[-20:]
    elif damage == "flipped":
        content[30:40] = bytes(255 - byte for byte in content[30:40])
    elif damage == "checksum":
        content[-8] ^= 1
    else:
        content = b"no archive"
    path = tmp_path / "images-ubyte.gz"
    path.write_bytes(content)
    with pytest.raises(OSError, match=r"images-ubyte.gz cannot be read: "):
        read_idx(path, (3, 4), most=5)


def peak(function):
    """Return how many bytes a function that raises OSError takes."""
    tracemalloc.start()
    try:
        with pytest.raises(OSError, match="cannot be read"):
            function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_absurd_counts_and_bombs_take_no_memory(tmp_path):
    claim = b"\0\0\x08\3" + b"\xff" * 12
    assert peak(lambda: read_idx(written(tmp_path, claim), (3, 4), most=5)) < 2**20
    bomb = written(tmp_path, idx(IMAGES) + bytes(2**28), "bomb.gz")
    assert peak(lambda: read_idx(bomb, (3, 4), most=5)) < 2**20
    sparse = tmp_path / "sparse.bin"
    with sparse.open("wb") as file:
        file.truncate(3073 * 2**30)
    assert peak(lambda: read_records(sparse, 1, most=10_000)) < 2**20
    assert peak(lambda: map_columns(sparse, most=10_000)) < 2**20
    assert peak(lambda: read_bytes(sparse, most=10_000)) < 2**20


# CIFAR and STL-10


@pytest.mark.parametrize("n_labels", [1, 2])
def test_records_are_labels_and_planes(tmp_path, n_labels):
    labels = RNG.integers(0, 10, size=(4, n_labels), dtype=np.uint8)
    images = RNG.integers(0, 256, size=(4, 3, 32, 32), dtype=np.uint8)
    content = b"".join(
        bytes([*label, *image[0].ravel(), *image[1].ravel(), *image[2].ravel()])
        for label, image in zip(labels, images, strict=True)
    )
    read = read_records(written(tmp_path, content), n_labels, most=4)
    np.testing.assert_array_equal(read[0], labels)
    np.testing.assert_array_equal(read[1], images)


def test_columns_become_rows(tmp_path):
    images = RNG.integers(0, 256, size=(3, 3, 96, 96), dtype=np.uint8)
    content = b"".join(plane.tobytes(order="F") for image in images for plane in image)
    read = map_columns(written(tmp_path, content), 3)
    np.testing.assert_array_equal(read, images)
    assert isinstance(read, np.memmap) and not read.flags.writeable


@pytest.mark.parametrize("n_bytes", [0, 3072, 3073 * 2 + 1, 3073 * 4])
def test_files_of_another_size_are_named(tmp_path, n_bytes):
    path = written(tmp_path, bytes(n_bytes))
    with pytest.raises(OSError, match=f"has {n_bytes} bytes, not 3073 for each of 1 to 3 items"):
        read_records(path, 1, most=3)


def test_labels_fit_the_classes_and_the_images(tmp_path):
    labels = np.array([0, 2, 1], dtype=np.uint8)
    checked = check_labels(tmp_path / "y.bin", labels, 3, 3)
    assert checked.dtype == np.int64 and checked.tolist() == [0, 2, 1]
    with pytest.raises(OSError, match=r"y.bin cannot be read: .* none of the 2 classes"):
        check_labels(tmp_path / "y.bin", labels, 2, 3)
    with pytest.raises(OSError, match="none of the 2 classes"):
        check_labels(tmp_path / "y.bin", labels.astype(int) - 1, 2, 3)
    with pytest.raises(OSError, match="3 labels for 4 images"):
        check_labels(tmp_path / "y.bin", labels, 3, 4)
