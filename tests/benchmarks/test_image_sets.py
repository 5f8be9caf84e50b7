"""The image sets of the benchmarks, from a folder of files."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import _image_sets
from benchmarks._image_sets import load_images


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv(_image_sets.FOLDER, str(tmp_path))
    load_images.cache_clear()
    yield tmp_path
    load_images.cache_clear()


def test_fashion_mnist_is_as_it_was_stored(folder):
    stored = {"X_train": np.arange(12, dtype=np.uint8).reshape(3, 2, 2), "y_train": [0, 1, 2]}
    stored |= {"X_test": np.ones((1, 2, 2), dtype=np.uint8), "y_test": [9]}
    np.savez(folder / "fashion_mnist.npz", **stored)
    for loaded, array in zip(load_images("Fashion-MNIST"), stored.values(), strict=True):
        np.testing.assert_array_equal(loaded, array)


def test_cifar_is_decoded_from_differences(folder):
    X = np.random.default_rng(0).integers(0, 256, (12, 3, 32, 32), dtype=np.uint8)
    red, green, blue = X.transpose(1, 0, 2, 3)
    planes = np.stack([green, red - green, blue - green])
    differences = np.diff(np.diff(planes, axis=2, prepend=0), axis=3, prepend=0)
    for k, name in enumerate([*(f"batch_{k}" for k in range(1, 6)), "test"]):
        rows = slice(2 * k, 2 * k + 2)
        coded = {"d": differences[:, rows].astype(np.uint8), "y": np.arange(12)[rows]}
        np.savez(folder / f"cifar10_{name}.npz", **coded)
    X_train, y_train, X_test, y_test = load_images("CIFAR-10")
    np.testing.assert_array_equal(np.concatenate([X_train, X_test]), X)
    assert [*y_train, *y_test] == list(range(12)) and len(X_train) == 10
