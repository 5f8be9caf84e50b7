"""Principal components given to an embedder, which standardises its columns, hence whitens them.

    python -m benchmarks.studies.components FOLDER  # which holds text/ and metadata/
    python -m benchmarks.studies.components FOLDER --report

Accuracy of ten draws of 20 labels per class, or a third of a class if it is smaller, by a logistic
regression on the embedding of 600 rows or half of a set at most, judged on as many others. The
embedder is the default, 40 epochs. Its input:

- "raw": the columns; those of tables are standardised before principal components are taken;
- "components": principal components, 50 at most or all of them (the column "n");
- "kept": the same, divided by one number, with ``kind=Vectors(standardize=False)``.

"ratio" is that of the standard deviations of the first and the last component. On the sets of
TUNED, the rule of the warning (`skcontrast.kinds`) was chosen, the others confirm it. "warns" are
the inputs for which it warns: components of the training rows, of other rows by the same map, and
raw columns.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from benchmarks._image_sets import load_images
from benchmarks._photographs import some_of_each
from benchmarks.studies.gap_closed import stored
from benchmarks.studies.metadata import linear
from skcontrast import ContrastiveEmbedder
from skcontrast.kinds import Vectors

RESULTS = Path(__file__).parent / "results" / "components.jsonl"
TUNED = ("digits", "wine", "Fashion-MNIST", "docstrings", "har_time")
CONFIRMING = ("breast cancer", "banking77", "debian", "vowels", "enzymes")
SETS = (*TUNED, *CONFIRMING)
TABLES = {"wine": load_wine, "breast cancer": load_breast_cancer}
N_SEEDS, N_LABELS, MOST_ROWS, N_COMPONENTS, N_EPOCHS = 2, 20, 600, 50, 40


def load(name, folder, seed):
    """Return X, y of training and test rows."""
    is_table = name in TABLES or name in ("vowels", "har_time", "enzymes")
    if name in TABLES:
        X, y = TABLES[name](return_X_y=True)
    elif name == "digits":
        X, y = load_digits(return_X_y=True)
    elif name == "Fashion-MNIST":
        X, y = load_images(name)[:2]
    elif name == "banking77":
        with np.load(folder / "text" / "banking77_minilm.npz") as file:
            X, y = (np.concatenate([file[f"{a}_train"], file[f"{a}_test"]]) for a in "Xy")
            X, y = X[y < 20], y[y < 20]
    else:
        with np.load(folder / "metadata" / f"{name}.npz") as file:
            X, y = file["X"], file["y"]
    y, rows = np.unique(y, return_inverse=True)[1], np.random.default_rng(seed).permutation(len(X))
    half = min(MOST_ROWS, len(X) // 2)
    parts = [X[r].reshape(half, -1).astype(np.float64) for r in (rows[:half], rows[half:][:half])]
    if is_table:
        scaler = StandardScaler().fit(parts[0])
        parts = [scaler.transform(part) for part in parts]
    return parts[0], y[rows[:half]], parts[1], y[rows[half:][:half]]


def accuracy(data, seed, **parameters):
    """Return the mean accuracy by few labels."""
    X, y, X_test, y_test = data
    embedder = ContrastiveEmbedder(max_epochs=N_EPOCHS, random_state=seed, **parameters).fit(X)
    H, H_test = embedder.transform(X), embedder.transform(X_test)
    scores = []
    for draw in range(10):
        rows = some_of_each(y, min(N_LABELS, max(np.bincount(y).min() // 3, 1)), draw)
        codes = np.full(len(y), -1)
        codes[rows] = y[rows]
        scores.append(linear(H, codes, H_test, y_test))
    return round(float(np.mean(scores)), 4)


def warns(X):
    """Return whether X is reported as principal components."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        Vectors().check_unusual(X, is_declared=False)
    return len(found)


def measured(data, seed):
    """Yield rows for raw columns and for few or all principal components."""
    X, y, X_test, y_test = data
    raw = accuracy(data, seed)
    for most in (N_COMPONENTS, min(X.shape) - 1):
        pca = PCA(min(most, *X.shape), random_state=0).fit(X)
        P, P_test = pca.transform(X), pca.transform(X_test)
        deviation = P.std(0)
        kept = (P / P.std(), y, P_test / P.std(), y_test)
        yield {
            "n": P.shape[1],
            "ratio": float(f"{deviation[0] / deviation[-1]:.3g}"),
            "raw": raw,
            "components": accuracy((P, y, P_test, y_test), seed),
            "kept": accuracy(kept, seed, kind=Vectors(standardize=False)),
            "warns": [warns(one) for one in (P, P_test, X)],
        }


def report(rows):
    """Print accuracies of raw columns, and differences from them."""
    print("| set | n | ratio | seeds | raw | components | kept | warns |")
    for name, n in dict.fromkeys((row["set"], row["n"]) for row in rows):
        some = [row for row in rows if (row["set"], row["n"]) == (name, n)]
        cells = []
        for method in ("components", "kept"):
            cells.append(f"{np.mean([row[method] - row['raw'] for row in some]):+.3f}")
        ratio, raw = (np.mean([row[key] for row in some]) for key in ("ratio", "raw"))
        found = ", ".join(map(str, np.sum([row["warns"] for row in some], 0)))
        print(
            f"| {name} | {n} | {ratio:.3g} | {len(some)} | {raw:.3f} |",
            " | ".join(cells),
            f"| {found} |",
        )


def main():
    """Measure the rows that are missing, or report those that are stored."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--sets", nargs="*", default=SETS)
    parser.add_argument("--rows", type=Path, default=RESULTS, help="file of the rows")
    args = parser.parse_args()
    if args.report:
        report(stored(args.rows))
        return
    torch.set_num_threads(1)
    done = {(row["set"], row["seed"]) for row in stored(args.rows)}
    for seed in range(N_SEEDS):
        for name in args.sets:
            if (name, seed) in done:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for row in measured(load(name, args.folder, seed), seed):
                    row = {"set": name, "seed": seed, **row}
                    with args.rows.open("a") as file:
                        file.write(json.dumps(row) + "\n")
                    print("|", " | ".join(map(str, row.values())), "|", flush=True)


if __name__ == "__main__":
    main()
