"""How many steps the default embedder and classifier need, by kind and number of samples.

    python -m benchmarks.studies.epochs FOLDER  # of fashion_mnist.npz, series/, text/, tu_*.npz
    python -m benchmarks.studies.epochs FOLDER --report

`ContrastiveEmbedder(max_epochs=…)` with nothing else chosen, trained from the start for each
number of steps, and judged on held-out samples by 5 and 20 labels per class, neighbours, a linear
probe and, with 5 labels, `ContrastiveClassifier`. The sets of `TUNED` may choose a rule, those of
`CONFIRMED` only confirm it. Each row is stored when it is measured, in results/epochs.jsonl, and
skipped when the script runs again.
"""

from __future__ import annotations

import argparse
from argparse import Namespace
from itertools import pairwise, product
from pathlib import Path
from time import process_time
from unittest.mock import patch

import numpy as np
from sklearn.frozen import FrozenEstimator

from benchmarks._protocol import SETS, draw_labels, judged, remembering, series, split
from benchmarks.studies.gap_closed import run, stored
from benchmarks.studies.vectors import gain
from skcontrast import ContrastiveClassifier, ContrastiveEmbedder, _pseudo_labels

RESULTS = Path(__file__).parent / "results" / "epochs.jsonl"
NAMES = ("set", "samples", "steps", "seed")
COLUMNS = ("5 labels", "20 labels", "20-NN", "linear", "classifier")
TUNED = ("digits as vectors", "digits", "ENZYMES", "TwoPatterns", "Fashion-MNIST")
CONFIRMED = ("banking77", "PTC_MR", "FacesUCR", "HAR_part", "CIFAR-10")
# Of each number of samples: fractions and multiples of the default.
STEPS = {1000: (400, 800, 1600), 250: (400, 800, 1600), 4000: (800, 1600, 3200)}
N_SEEDS, BATCH, N_DRAWS = 3, 128, 3


def banking(args):
    """Return the vectors of questions to a bank by a language model, half of them to test on."""
    with np.load(args.data_home / "text" / "banking77_minilm.npz") as file:
        parts = [file[key] for key in file.files if key.startswith("X")]
        classes = [file[key] for key in file.files if key.startswith("y")]
    return np.concatenate(parts).astype(np.float32), np.concatenate(classes), 0.5


LOADERS = SETS | {"TwoPatterns": series("TwoPatterns"), "banking77": banking}


def classified(embedder, X, y, X_test, y_test, seed):
    """Return the mean accuracy of the classifier with five labels per class, or None."""
    if np.unique(y, return_counts=True)[1].min() < 5:
        return None
    frozen, scores = FrozenEstimator(remembering(embedder)), []
    for draw in range(N_DRAWS):
        model = ContrastiveClassifier(frozen, random_state=seed)
        with patch.object(_pseudo_labels, "_MOST_LABELS", 0):  # no estimate, which takes time
            model.fit(X, draw_labels(y, 5, 100 * seed + draw))
        scores.append(model.score(X_test, y_test))
    return float(np.mean(scores))


def cells(args):
    """Yield each row that is not yet stored, as it is measured."""
    done = {tuple(row[name] for name in NAMES) for row in stored(args.rows)}
    for seed, n, name in product(range(N_SEEDS), STEPS, TUNED + CONFIRMED):
        X, y, test = LOADERS[name](Namespace(data_home=args.folder, n=n))
        rows, others = split(y, test, n, seed)
        if len(rows) < min(n, 1500) and (len(rows) < n // 2 or n > 250):
            continue
        others = others[:3000]
        X, y, X_test, y_test = X[rows], y[rows], X[others], y[others]
        for steps in STEPS[n]:
            key = (name, n, steps, seed)
            if key in done:
                continue
            begin, epochs = process_time(), round(steps / -(-len(rows) // BATCH))
            embedder = ContrastiveEmbedder(max_epochs=epochs, random_state=seed, device="cpu")
            H, H_test = embedder.fit(X).transform(X), embedder.transform(X_test)
            seconds = process_time() - begin
            found = judged(H, y, H_test, y_test, seed, scale=True, quick=True)
            found["classifier"] = classified(embedder, X, y, X_test, y_test, seed)
            row = dict(zip(NAMES, key, strict=True)) | {k: found.get(k) for k in COLUMNS}
            yield row | {"CPU s": round(seconds, 1)}


def report(rows):
    """Print the gains of more steps, with 95 % intervals over seeds or, of all, the sets."""
    by = {tuple(row[name] for name in NAMES): row for row in rows}
    print("| set | samples | steps | seeds |", " | ".join(COLUMNS), "|")
    for n, names in product(STEPS, (TUNED, CONFIRMED)):
        for pair in pairwise(STEPS[n]):
            means = {column: [] for column in COLUMNS}
            for name in names:
                pairs = [[by.get((name, n, s, seed)) for s in pair] for seed in range(N_SEEDS)]
                pairs = [(a, b) for a, b in pairs if a and b]
                if not pairs:
                    continue
                texts = []
                for column in COLUMNS:
                    some = [(a[column], b[column]) for a, b in pairs if a[column] is not None]
                    gains = [b - a for a, b in some]
                    if some:
                        means[column].append(np.mean(gains))
                        best = np.mean([b for _, b in some])
                    texts.append(f"{best:.3f} {gain(gains)}" if some else "–")
                print(f"| {name} | {n:,} | {pair[0]:,} → {pair[1]:,} | {len(pairs)} |", end=" ")
                print(" | ".join(texts), "|")
            title = f"mean, {'choice' if names is TUNED else 'confirmation'}"
            if means["linear"]:
                print(f"| {title} | {n:,} | {pair[0]:,} → {pair[1]:,} | |", end=" ")
                print(" | ".join(map(gain, means.values())), "|")


def main():
    """Measure the rows that are missing, or report those that are stored."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    run(parser, RESULTS, cells, report)


if __name__ == "__main__":
    main()
