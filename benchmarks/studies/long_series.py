"""Long series, made by formulas: electrocardiograms of 12 × 5,000 and vibrations of 1 × 20,000.

    OMP_NUM_THREADS=1 python -m benchmarks.studies.long_series
    python -m benchmarks.studies.long_series --sets vibration --epochs 100

Electrocardiograms, ten seconds at 500 Hz: normal, irregular beats without a P wave, a raised ST
segment, a wide QRS complex; leads mix three waves at random, and a baseline wanders. Vibrations of
a bearing, 1.7 seconds at 12 kHz: none, or damage whose blows recur at one of three rates, and ring
at some 3 kHz below noise. Half of 320 series train, without labels, the others test. One seed.

Columns: accuracy of a logistic regression with 5 and 20 labels per class, mean of ten draws; CPU
seconds of training, and of embedding all. Rows: averages of ten steps, standardised; then the
blocks of one default embedder, and all of it.
"""

from __future__ import annotations

from time import process_time

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from benchmarks._results import Table, make_parser
from skcontrast import ContrastiveEmbedder

LABELS = (5, 20)
N_CLASSES, N = 4, 320


def hill(t, at, width):
    """Return a hill of height 1."""
    return np.exp(-0.5 * ((t - at) / width) ** 2)


def beats(t, rng, kind):
    """Return the waves P, QRS and T of ten seconds of beats."""
    waves, at, pause = np.zeros((3, len(t))), rng.uniform(0, 1), 60 / rng.uniform(55, 95)
    width = 0.026 if kind == 3 else 0.012
    while at < t[-1]:
        waves[0] += 0.15 * hill(t, at - 0.16, 0.025) * (kind != 1)
        waves[1] += hill(t, at, width) - 0.3 * hill(t, at + 2.5 * width, width)
        waves[2] += 0.3 * hill(t, at + 0.28, 0.05) + 0.25 * hill(t, at + 0.14, 0.06) * (kind == 2)
        at += pause * (1 + (rng.uniform(-0.3, 0.3) if kind == 1 else 0.02 * rng.normal()))
    return waves


def electrocardiograms(rng):
    """Return series (320, 12, 5000) and their classes."""
    t, leads, y = np.arange(5000) / 500, rng.normal(size=(12, 3)), np.arange(N) % N_CLASSES
    X = np.empty((N, 12, len(t)), np.float32)
    for x, kind in zip(X, y, strict=True):
        x[:] = leads * (1 + 0.3 * rng.normal(size=leads.shape)) @ beats(t, rng, kind)
        phase = rng.uniform(0.1, 0.4) * t + rng.uniform(size=(12, 1))
        x += 0.05 * rng.normal(size=x.shape) + 0.3 * np.sin(2 * np.pi * phase)
    return X, y


def vibrations(rng):
    """Return series (320, 1, 20000) and their classes."""
    t, y = np.arange(20_000) / 12_000, np.arange(N) % N_CLASSES
    ringing = np.arange(200) / 12_000
    X = np.empty((N, 1, len(t)), np.float32)
    for x, kind in zip(X, y, strict=True):
        turns, blows = rng.uniform(27, 33), np.zeros(len(t))
        if kind:
            gaps = (1 + 0.01 * rng.normal(size=400)) / ((3.58, 5.41, 4.7)[kind - 1] * turns)
            at = rng.uniform(0, 0.01) + gaps.cumsum()
            blows[(at[at < t[-1]] * 12_000).astype(int)] = 0.35
            if kind == 2:  # the inner ring turns through the load
                blows *= 1 + 0.8 * np.sin(2 * np.pi * turns * t)
        ring = np.exp(-800 * ringing) * np.sin(2 * np.pi * rng.uniform(2800, 3400) * ringing)
        x[0] = 0.3 * np.sin(2 * np.pi * turns * t) + np.convolve(blows, ring)[: len(t)]
        x += 0.25 * rng.normal(size=x.shape)
    return X, y


SETS = {"electrocardiogram": electrocardiograms, "vibration": vibrations}


def accuracies(H, y):
    """Return the accuracy with few labels of the first half, on the second."""
    n, rng, found = N // 2, np.random.default_rng(1), {}
    for m in LABELS:
        of_draws = []
        for _ in range(10):
            rows = [rng.permutation(np.flatnonzero(y[:n] == c))[:m] for c in range(N_CLASSES)]
            rows = np.concatenate(rows)
            probe = LogisticRegression(max_iter=1000).fit(H[rows], y[rows])
            of_draws.append(probe.score(H[n:], y[n:]))
        found[f"{m} labels"] = float(np.mean(of_draws))
    return found


def add_set(table, name, epochs):
    """Add the rows of a set."""
    X, y = SETS[name](np.random.default_rng(0))
    averages = X.reshape(N, -1, 10).mean(2)
    averages = StandardScaler().fit(averages[: N // 2]).transform(averages)
    start = process_time()
    embedder = ContrastiveEmbedder(max_epochs=epochs, random_state=0).fit(X[: N // 2])
    middle = process_time()
    H = embedder.transform(X)
    seconds = {"fit, s": middle - start, "transform, s": process_time() - middle}
    width = H.shape[1] - 2016
    blocks = {"averages": averages, "learned": H[:, :width], "kernels": H[:, width:]}
    for row, block in blocks.items():
        table.add({"set": name, "row": row, **accuracies(block, y)} | dict.fromkeys(seconds))
    table.add({"set": name, "row": "default", **accuracies(H, y), **seconds})


def main():
    """Measure the sets that are asked for."""
    args = make_parser(__doc__, sets=SETS, epochs=30).parse_args()
    torch.set_num_threads(1)
    ratios = [f"{m} labels" for m in LABELS]
    with Table("long series", args, labels=2, ratios=ratios) as table:
        for name in args.sets:
            add_set(table, name, args.epochs)


if __name__ == "__main__":
    main()
