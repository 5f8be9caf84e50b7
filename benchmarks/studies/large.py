"""More samples than 5,000: what they gain at about the same number of steps.

    python -m benchmarks.studies.large  # Fashion-MNIST and CIFAR-10
    python -m benchmarks.studies.large --sets vectors graphs  # made, for time and memory

The default embedder is fitted to `n` samples without labels, for the epochs of
``max_epochs="auto"`` or those given as ``n:epochs``. The columns are those of worth.py, with
labels for 4,000 of the samples, and a ridge classifier that knows the labels of all. The vectors
have 64 numbers, the graphs are like molecules.
"""

from __future__ import annotations

import os
import resource
from time import process_time

import numpy as np
import torch
from sklearn.linear_model import RidgeClassifierCV
from sklearn.preprocessing import StandardScaler

from benchmarks._made_graphs import made_graphs
from benchmarks._protocol import SETS, judged
from benchmarks._results import Table, make_parser
from skcontrast import ContrastiveEmbedder

RUNS = {
    "Fashion-MNIST": ("4000", "60000"),
    "CIFAR-10": ("5000", "50000", "50000:25"),
    "vectors": ("1000000",),
    "graphs": ("40000",),
}
N_LABELED, N_TEST = 4000, 3000


def ridge(H, y, H_test, y_test):
    """Return the accuracy of a ridge classifier with all labels."""
    scaler = StandardScaler().fit(H)
    classifier = RidgeClassifierCV(np.logspace(0, 5, 11)).fit(scaler.transform(H), y)
    return classifier.score(scaler.transform(H_test), y_test)


def samples(name, n, args):
    """Return X, y or None, and where the samples to test on begin."""
    if name in SETS:
        return SETS[name](args)
    if name == "graphs":
        return *made_graphs("molecules", n + N_TEST), n
    X = np.random.default_rng(0).normal(size=(n + N_TEST, 64))
    return X.astype(np.float32), None, n


def run(name, n, epochs, args, seed=0):
    """Return the columns of a fit."""
    X, y, n_train = samples(name, n, args)
    rng = np.random.default_rng(seed)
    train = rng.choice(n_train, n, replace=False)
    test = n_train + rng.choice(len(X) - n_train, N_TEST, replace=False)
    start = process_time()
    embedder = ContrastiveEmbedder(max_epochs=epochs, random_state=seed, device="cpu")
    embedder.fit(X[train])
    H, H_test = embedder.transform(X[train]), embedder.transform(X[test])
    row = row_of(n, embedder, (process_time() - start) / 60)
    if y is None:
        return row
    known = slice(N_LABELED)
    row |= judged(H[known], y[train][known], H_test, y[test], seed, scale=True)
    return {**row, "ridge, all labels": ridge(H, y[train], H_test, y[test])}


def row_of(n, embedder, minutes):
    """Return the columns that every fit has."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {"n": n, "epochs": embedder.n_epochs_, "CPU min": minutes, "peak, GiB": peak}


def main():
    """Print a table for each set."""
    parser = make_parser(__doc__)
    parser.add_argument("--sets", nargs="+", default=list(RUNS)[:2], choices=list(RUNS))
    parser.add_argument("--runs", nargs="+", help="n or n:epochs; those of the set if left out")
    args = parser.parse_args()
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "2")))
    for name in args.sets:
        with Table(f"large: {name}", args, ratios=[], labels=2) as table:
            for given in args.runs or RUNS[name]:
                n, _, epochs = given.partition(":")
                table.add(run(name, int(n), int(epochs) if epochs else "auto", args))


if __name__ == "__main__":
    main()
