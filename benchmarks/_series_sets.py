"""Sets of the UCR and UEA archives and HAR, from a folder of files.

The folder is ``series`` in that of ``--data-home`` or of the environment variable
``SKCONTRAST_BENCHMARK_DATA``, or that folder itself. ``NAME.npz`` holds ``X_train``, ``y_train``,
``X_test`` and ``y_test``, or ``X`` and ``y``; series have shape (n, channels, times), and NaN
follows the end of shorter ones.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from benchmarks._image_sets import FOLDER


def load_series(name, data_home=None):
    """Return the series of a set, float32 (n, channels, times), their classes 0, 1, … and how
    many come first as the train part of the file.
    """
    with np.load(_path(name, data_home)) as file:
        parts = [(file[f"X{part}"], file[f"y{part}"]) for part in _parts(file)]
    longest = max(X.shape[2] for X, _ in parts)
    X = np.concatenate([_padded(X.astype(np.float32), longest) for X, _ in parts])
    y = np.unique(np.concatenate([y for _, y in parts]), return_inverse=True)[1]
    return X, y, len(parts[0][0])


def _path(name, data_home):
    """Return where the file of a set is."""
    folder = data_home or os.environ.get(FOLDER)
    if folder is None:
        raise SystemExit(f"Pass --data-home or set {FOLDER}: the folder of NAME.npz.")
    places = [Path(folder, "series", f"{name}.npz"), Path(folder, f"{name}.npz")]
    return next((place for place in places if place.is_file()), places[0])


def _parts(file):
    return ("_train", "_test") if "X_train" in file else ("",)


def _padded(X, longest):
    """Return series of one length, with NaN behind their ends."""
    gap = longest - X.shape[2]
    return np.pad(X, ((0, 0), (0, 0), (0, gap)), constant_values=np.nan)
