"""Fashion-MNIST and CIFAR-10, from files or from OpenML.

``--data-home`` or the environment variable ``SKCONTRAST_BENCHMARK_DATA`` names a folder of files;
without it, the sets are downloaded once from OpenML. ``fashion_mnist.npz`` holds ``X_train``,
``y_train``, ``X_test`` and ``y_test``. ``cifar10_batch_1.npz`` to ``_5`` and ``cifar10_test.npz``,
102 MB in all, hold the classes ``y`` and ``d``, uint8 of shape (3, n, 32, 32): the planes G,
R − G and B − G, differenced along both sides modulo 256.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import numpy as np
from sklearn.datasets import fetch_openml

FOLDER = "SKCONTRAST_BENCHMARK_DATA"
# name: (name on OpenML, shape of an image, size of the training set)
SETS = {
    "Fashion-MNIST": ("Fashion-MNIST", (28, 28), 60_000),
    "CIFAR-10": ("CIFAR_10", (3, 32, 32), 50_000),
}


@cache
def load_images(name, data_home=None):
    """Return X_train, y_train, X_test, y_test; images are uint8, (n, 28, 28) or (n, 3, 32, 32)."""
    folder = data_home or os.environ.get(FOLDER)
    if folder is None:
        name, shape, n_train = SETS[name]
        X, y = fetch_openml(name, version=1, return_X_y=True, as_frame=False)
        X, y = X.astype(np.uint8).reshape(-1, *shape), y.astype(int)
        return X[:n_train], y[:n_train], X[n_train:], y[n_train:]
    if name == "CIFAR-10":
        return _cifar(Path(folder))
    with np.load(Path(folder, "fashion_mnist.npz")) as file:
        X_train, y_train, X_test, y_test = (
            file[key] for key in ("X_train", "y_train", "X_test", "y_test")
        )
    return X_train, y_train.astype(int), X_test, y_test.astype(int)


def _cifar(folder):
    """Return the same for CIFAR-10 in a folder."""
    parts = []
    for name in (*(f"batch_{k}" for k in range(1, 6)), "test"):
        with np.load(folder / f"cifar10_{name}.npz") as file:
            sums = np.cumsum(np.cumsum(file["d"], axis=2, dtype=np.uint8), axis=3, dtype=np.uint8)
            green, red, blue = sums[0], sums[1] + sums[0], sums[2] + sums[0]
            parts.append((np.stack([red, green, blue], axis=1), file["y"].astype(int)))
    X, y = (np.concatenate(arrays) for arrays in zip(*parts[:5], strict=True))
    return X, y, *parts[5]
