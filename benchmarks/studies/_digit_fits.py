"""Embedders of the digits, each probed once: settings, their accuracies and paired tests.

A fit is known by its setting. Figures are kept in a file if one is named, so that tables share
fits, and a run that was cut off continues where it ended.
"""

from __future__ import annotations

import json
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from benchmarks._results import paired, spread
from skcontrast import ContrastiveEmbedder
from skcontrast.augmentation import ColorJitter, RandomAffine
from skcontrast.losses import InfoNCE
from skcontrast.metrics import few_label_accuracy, knn_accuracy
from skcontrast.similarity import Cosine

PROBES = ("5 labels", "20-NN")
RAW, UNTRAINED = "raw pixels", "untrained"
# Digits that are confused with each other; seed k takes the first ones of row k modulo 5.
ALIKE = ((3, 8, 9, 5, 2), (4, 9, 7, 1, 8), (1, 8, 2, 9, 4), (5, 9, 3, 8, 1), (2, 1, 3, 8, 7))
N_FEW_CLASSES = 260


class Setting(NamedTuple):
    """What a fit depends on; `loss` is a Loss, `RAW` or `UNTRAINED`."""

    loss: Any
    temperature: float = 0.2
    batch_size: int = 128
    epochs: int = 24
    n_classes: int | None = None
    with_y: bool = False
    seed: int = 0


@cache
def split(seed, n_classes=None):
    """Return X_train, y_train, X_test, y_test: all digits, or few classes of fewer samples.

    With `n_classes` given, 260 training images are spread over this number of classes; all test
    images of these classes are kept.
    """
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(
        X.reshape(-1, 8, 8), y, test_size=0.25, stratify=y, random_state=seed
    )
    if n_classes is None:
        return X_train, y_train, X_test, y_test
    classes = range(10) if n_classes == 10 else ALIKE[seed % len(ALIKE)][:n_classes]
    each = N_FEW_CLASSES // n_classes
    rows = np.concatenate([np.flatnonzero(y_train == k)[:each] for k in classes])
    kept = np.isin(y_test, list(classes))
    return X_train[rows], y_train[rows], X_test[kept], y_test[kept]


def make_embedder(setting):
    """Return the embedder of a setting.

    One that does not train sees one epoch at a learning rate of nothing: batch normalisation gets
    its statistics, weights stay.
    """
    trains = setting.loss != UNTRAINED
    return ContrastiveEmbedder(
        augmentation=[RandomAffine(), ColorJitter(0.6, 0.6, 0, 0)],
        loss=setting.loss if trains else InfoNCE(),
        similarity=Cosine(setting.temperature),
        batch_size=setting.batch_size,
        max_epochs=setting.epochs if trains else 1,
        lr=1e-3 if trains else 1e-12,
        device="cpu",
        random_state=setting.seed,
    )


def probes(train, y_train, test, y_test):
    """Return the accuracy with 5 labels per class, a mean of 10 draws, and of 20 neighbours."""
    data = train, y_train, test, y_test
    return [float(few_label_accuracy(*data, n_labels=5).mean()), knn_accuracy(*data)]


def accuracies(setting):
    """Return both accuracies on the test images after a fit."""
    X_train, y_train, X_test, y_test = split(setting.seed, setting.n_classes)
    if setting.loss == RAW:
        train, test = (X.reshape(len(X), -1) for X in (X_train, X_test))
        return probes(train, y_train, test, y_test)
    embedder = make_embedder(setting).fit(X_train, y_train if setting.with_y else None)
    return embedding_probes(embedder, (X_train, y_train, X_test, y_test))


def embedding_probes(embedder, data):
    """Return the probes of the embedding of a split."""
    X_train, y_train, X_test, y_test = data
    return probes(embedder.transform(X_train), y_train, embedder.transform(X_test), y_test)


class Figures:
    """Figures by key, computed once and kept in a file of lines of JSON, if there is one."""

    def __init__(self, path=None):
        self.path = None if path is None else Path(path)
        lines = self.path.read_text().splitlines() if self.path and self.path.exists() else []
        self.known = dict(json.loads(line) for line in lines)

    def get(self, key, compute):
        """Return the figures of a key, computing them if they are not known."""
        if key not in self.known:
            self.known[key] = compute()
            if self.path is not None:
                with self.path.open("a") as file:
                    file.write(json.dumps([key, self.known[key]]) + "\n")
        return self.known[key]

    def over(self, key, compute, n_seeds):
        """Return the figures by seed of what a function of the seed computes, as an array."""
        return np.array(
            [self.get(f"{key} {seed}", partial(compute, seed)) for seed in range(n_seeds)]
        )

    def of(self, setting, n_seeds):
        """Return the accuracies of a setting with every seed, shape (n_seeds, 2)."""
        settings = [setting._replace(seed=seed) for seed in range(n_seeds)]
        return np.array([self.get(repr(one), lambda one=one: accuracies(one)) for one in settings])


def differences(scores, reference, names):
    """Return the columns Δ, its 95 % interval, p of the paired t-test, and n, the seeds.

    Parameters
    ----------
    scores, reference : ndarray of shape (n_seeds, n_names)
        Accuracies with the same seeds. If `reference` is None the columns are empty.
    names : sequence of str
        The accuracies.
    """
    row = {}
    for i, name in enumerate(names):
        ours, theirs = scores[:, i], None if reference is None else reference[:, i]
        row[f"Δ {name}"] = None if theirs is None else f"{(ours - theirs).mean():+.3f}"
        found = paired(ours, theirs, name)
        p = found[f"p, {name}"]
        row |= found | {f"p, {name}": p and ("< .001" if p < 0.001 else f"{p:.3f}")}
    return row


def cells(scores, reference=None, names=PROBES):
    """Return the columns of a row: accuracies, and differences from a reference if there is one.

    Parameters
    ----------
    scores : ndarray of shape (n_seeds, n_names)
        Accuracies.
    reference : ndarray of shape (n_seeds, n_names), default=None
        Accuracies with the same seeds.
    names : sequence of str, default=PROBES
        The accuracies.
    """
    means = {name: spread(scores[:, i].tolist()) for i, name in enumerate(names)}
    return means | differences(scores, reference, names)
