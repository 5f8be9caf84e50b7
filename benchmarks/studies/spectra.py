"""Spectra of coffee of three countries: as they are, corrected, and embedded.

    pip install chemotools
    OMP_NUM_THREADS=1 python -m benchmarks.studies.spectra

The 60 infrared spectra of 1,841 bands in the package chemotools, 40 to train without labels
and 20 to test. "Corrected" is each spectrum by its own mean and standard deviation (SNV), and its
first derivative by the filter of Savitzky and Golay over 11 bands; as a series, it has the second
one too, as channels. Accuracy of a logistic regression on standardised columns with three labels a
class, mean of ten draws in each of four splits, and CPU seconds for a split.
"""

from __future__ import annotations

from time import process_time

import numpy as np
import torch
from scipy.signal import savgol_filter
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from benchmarks._results import Table, make_parser, spread
from skcontrast import ContrastiveEmbedder
from skcontrast.features import MiniRocket

N_TRAIN, N_LABELS, N_SPLITS = 40, 3, 4


def load():
    """Return spectra (60, 1841) and countries as numbers."""
    from chemotools.datasets import load_coffee

    X, y = load_coffee()
    return np.asarray(X, dtype=float), np.unique(np.ravel(y), return_inverse=True)[1]


def corrected(X):
    """Return spectra, their first and their second derivative, (n, 3, n_bands)."""
    snv = (X - X.mean(1, keepdims=True)) / X.std(1, keepdims=True)
    return np.stack([savgol_filter(snv, 11, 2, deriv=k) for k in range(3)], axis=1)


def rows(X, epochs):
    """Return for each row its data, and a transformer or None."""
    series = corrected(X)
    embedder = ContrastiveEmbedder(max_epochs=epochs, random_state=0)
    unchanged = FunctionTransformer()
    return {
        "as they are": (X, unchanged),
        "corrected": (series[:, 1], unchanged),
        "corrected, MiniRocket": (series, MiniRocket(random_state=0)),
        "default, vectors as they are": (X, embedder),
        "default, vectors corrected": (series[:, 1], embedder),
        "default, series corrected": (series, embedder),
    }


def judge(X, y, transformer, seed):
    """Return the accuracy in one split."""
    rng, found = np.random.default_rng(seed), []
    order = rng.permutation(len(X))
    train, test = order[:N_TRAIN], order[N_TRAIN:]
    H = transformer.fit(X[train]).transform(X)
    for _ in range(10):
        few = [rng.permutation(train[y[train] == c])[:N_LABELS] for c in np.unique(y)]
        few = np.concatenate(few)
        probe = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
        found.append(probe.fit(H[few], y[few]).score(H[test], y[test]))
    return float(np.mean(found))


def main():
    """Measure all rows."""
    parser = make_parser(__doc__)
    parser.add_argument("--epochs", type=int, default=60)
    args = parser.parse_args()
    torch.set_num_threads(1)
    X, y = load()
    with Table("coffee", args, packages=["chemotools"], ratios=["3 labels"]) as table:
        for name, (data, transformer) in rows(X, args.epochs).items():
            start = process_time()
            found = [judge(data, y, transformer, seed) for seed in range(N_SPLITS)]
            seconds = (process_time() - start) / N_SPLITS
            table.add({"row": name, "3 labels": spread(found), "CPU s": seconds})


if __name__ == "__main__":
    main()
