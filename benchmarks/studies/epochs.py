"""How many steps the default embedder needs, by kind and number of samples.

    python -m benchmarks.studies.epochs FOLDER  # of fashion_mnist.npz, series/, text/, tu_*.npz
    python -m benchmarks.studies.epochs FOLDER --report

`ContrastiveEmbedder(max_epochs=…)` with nothing else chosen, trained from the start for each
number of steps, and judged on held-out samples by 5 and 20 labels per class, neighbours and a
linear probe. The sets of `TUNED` may choose a rule, those of `CONFIRMED` only confirm it. Each row
is stored when it is measured, in results/epochs.jsonl, and skipped when the script runs again.
"""

from __future__ import annotations

import argparse
from argparse import Namespace
from itertools import product
from pathlib import Path
from time import process_time

import numpy as np
from scipy.stats import t as student

from benchmarks._protocol import SETS, judged, series, split
from benchmarks.studies.gap_closed import run, stored
from skcontrast import ContrastiveEmbedder

RESULTS = Path(__file__).parent / "results" / "epochs.jsonl"
NAMES = ("set", "samples", "steps", "seed")
COLUMNS = ("5 labels", "20 labels", "20-NN", "linear")
TUNED = ("digits as vectors", "digits", "ENZYMES", "TwoPatterns", "Fashion-MNIST")
CONFIRMED = ("banking77", "PTC_MR", "FacesUCR", "HAR_part", "CIFAR-10")
# Of each number of samples: half of today's steps, and today's.
STEPS = {1000: (400, 800), 4000: (1600, 3200), 250: (400, 800)}
N_SEEDS, BATCH = 3, 128


def banking(args):
    """Return the vectors of questions to a bank by a language model, half of them to test on."""
    with np.load(args.data_home / "text" / "banking77_minilm.npz") as file:
        parts = [file[key] for key in file.files if key.startswith("X")]
        classes = [file[key] for key in file.files if key.startswith("y")]
    return np.concatenate(parts).astype(np.float32), np.concatenate(classes), 0.5


LOADERS = SETS | {"TwoPatterns": series("TwoPatterns"), "banking77": banking}


def cells(args):
    """Yield each row that is not yet stored, as it is measured."""
    done = {tuple(row[name] for name in NAMES) for row in stored(args.rows)}
    for n, seed, name in product(STEPS, range(N_SEEDS), TUNED + CONFIRMED):
        X, y, test = LOADERS[name](Namespace(data_home=args.folder, n=n))
        rows, others = split(y, test, n, seed)
        if len(rows) < min(n, 1500) and (len(rows) < n // 2 or n > 250):
            continue
        others = others[:3000]
        for steps in STEPS[n]:
            key = (name, n, steps, seed)
            if key in done:
                continue
            begin, epochs = process_time(), round(steps / -(-len(rows) // BATCH))
            embedder = ContrastiveEmbedder(max_epochs=epochs, random_state=seed, device="cpu")
            H, H_test = embedder.fit(X[rows]).transform(X[rows]), embedder.transform(X[others])
            seconds = process_time() - begin
            found = judged(H, y[rows], H_test, y[others], seed, scale=True, quick=True)
            row = dict(zip(NAMES, key, strict=True)) | {k: found.get(k) for k in COLUMNS}
            yield row | {"CPU s": round(seconds, 1)}


def report(rows):
    """Print the gain of twice the steps, with 95 % intervals over seeds."""
    print("| set | samples | steps |", " | ".join(COLUMNS), "|")
    by = {}
    for row in rows:
        by.setdefault((row["set"], row["samples"]), {}).setdefault(row["seed"], []).append(row)
    for (name, n), seeds in by.items():
        pairs = [
            sorted(pair, key=lambda r: r["steps"]) for pair in seeds.values() if len(pair) > 1
        ]
        texts = [name, f"{n:,}", " → ".join(f"{row['steps']:,}" for row in pairs[0])]
        for column in COLUMNS if pairs else ():
            if pairs[0][0][column] is None:
                texts.append("–")
                continue
            gains = np.array([pair[-1][column] - pair[0][column] for pair in pairs])
            half = np.nan
            if len(gains) > 1:
                half = student.ppf(0.975, len(gains) - 1) * gains.std(ddof=1) / len(gains) ** 0.5
            best = np.mean([pair[-1][column] for pair in pairs])
            texts.append(f"{best:.3f} {gains.mean():+.3f} ± {half:.3f}")
        print("|", " | ".join(texts), "|")


def main():
    """Measure the rows that are missing, or report those that are stored."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    run(parser, RESULTS, cells, report)


if __name__ == "__main__":
    main()
