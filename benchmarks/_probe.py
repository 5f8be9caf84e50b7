"""How good is a representation: a linear probe with all labels, or with a few per class."""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler


def linear_probe(train, y_train, test, y_test, *, scale=True):
    """Return the test accuracy of a logistic regression, standardised or not, on all labels."""
    probe = make_pipeline(
        StandardScaler() if scale else "passthrough", LogisticRegression(max_iter=2000)
    )
    return probe.fit(train, y_train).score(test, y_test)


def few_rows(y, n_labels, seed):
    """Return `n_labels` random rows of each class."""
    rng = np.random.default_rng(seed)
    drawn = [rng.choice(np.flatnonzero(y == k), n_labels, replace=False) for k in np.unique(y)]
    return np.concatenate(drawn)


def few_label_probe(train, y_train, test, y_test, n_labels, n_draws=10, seed=0, *, scale=True):
    """Return the test accuracies with `n_labels` random labels per class, one per draw."""
    accuracies = []
    for draw in range(n_draws):
        rows = few_rows(y_train, n_labels, seed + draw)
        accuracies.append(linear_probe(train[rows], y_train[rows], test, y_test, scale=scale))
    return np.array(accuracies)


def neighbour_probe(train, y_train, test, y_test, n_neighbors=20):
    """Return the test accuracy of the nearest neighbours by cosine."""
    knn = KNeighborsClassifier(n_neighbors, metric="cosine")
    return knn.fit(train, y_train).score(test, y_test)
