"""How accurate, how sure, which next: what `ContrastiveClassifier` says of itself.

    SKCONTRAST_BENCHMARK_DATA=FOLDER python -m benchmarks.studies.trust
    SKCONTRAST_BENCHMARK_DATA=FOLDER python -m benchmarks.studies.trust --next
    python -m benchmarks.studies.trust --report

The sets had no part in the choice of the methods. An embedder is trained for 30 epochs on at most
1,000 samples without labels (photographs have frozen features of EfficientNet-lite0, 160 pixels);
the blocks are those of ``ContrastiveClassifier``. `rows_to_label` chooses 30, 50 or 100 samples
to label, with five seeds, and the accuracy on the others is compared with `accuracy_`.

With ``--next``, 20 samples have labels, and three rounds of 10 follow: at random, by coverage, and
by coverage weighted with `uncertainty_`. Accuracy is that on a third of the samples that is
neither trained on nor labeled ("new"), and that on the unlabeled samples of `fit` ("pool").

Each row is stored when it is measured, in results/trust.jsonl, and skipped afterwards.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path

import numpy as np
import torch
from scipy.stats import t as student
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import log_loss, roc_auc_score

from benchmarks._graph_sets import load_graphs
from benchmarks._image_sets import load_images
from benchmarks._photographs import load as load_photographs
from benchmarks._photographs import pretrained_encoder
from benchmarks._protocol import remembering
from benchmarks._series_sets import load_series
from benchmarks.studies.gap_closed import stored
from skcontrast import ContrastiveClassifier, ContrastiveEmbedder, rows_to_label

RESULTS = Path(__file__).parent / "results" / "trust.jsonl"
SERIES = ("SyntheticControl", "CBF", "ECG5000", "MedicalImages")
GRAPHS = ("PTC_MR", "DD")
PHOTOGRAPHS = ("neu", "dtd10", "trashnet")
SETS = (*SERIES, *GRAPHS, *PHOTOGRAPHS, "Fashion-MNIST")
LABELS, MOST, N_SEEDS, N_BINS = (30, 50, 100), 1000, 5, 10
START, ROUND, ROUNDS = 20, 10, 3


def load(name):
    """Return at most 1,000 samples of a set, and their classes 0, 1, …"""
    if name in SERIES:
        X, y, _ = load_series(name)
    elif name in GRAPHS:
        X, y = load_graphs(name)
    elif name in PHOTOGRAPHS:
        X, y, *_ = load_photographs(name, 160)
    else:
        X, y, *_ = load_images(name)
    rows = np.random.default_rng(1).permutation(len(y))[:MOST]
    rows = torch.from_numpy(rows) if name in GRAPHS else rows
    return X[rows], np.unique(y[np.asarray(rows)], return_inverse=True)[1]


def embedder_of(name):
    """Return an embedder that is not fitted."""
    if name in PHOTOGRAPHS:
        return ContrastiveEmbedder(pretrained_encoder("lite0", adapt=False), random_state=0)
    return ContrastiveEmbedder(max_epochs=30, random_state=0, device="cpu")


def classifier_of(X, name):
    """Return a function that fits a classifier, and the embedding that labels are chosen by.

    The embedder and the other blocks are fitted once, because they use no labels.
    """
    embedder = FrozenEstimator(remembering(embedder_of(name).fit(X)))
    some = np.where(np.arange(len(X)) < 4, np.arange(len(X)) % 2, -1)
    first = ContrastiveClassifier(embedder, pseudo_labels=False, random_state=0).fit(X, some)
    blocks = [FrozenEstimator(remembering(block)) for block in first.transformers_]

    def fitted(known):
        return ContrastiveClassifier(embedder, blocks=blocks, random_state=0).fit(X, known)

    return fitted, embedder.transform(X)


def calibration_error(probabilities, y):
    """Return the mean difference of confidence and accuracy in ten bins of equal size."""
    top, hit = probabilities.max(1), probabilities.argmax(1) == y
    bins = np.array_split(np.argsort(top), N_BINS)
    return float(sum(len(b) * abs(top[b].mean() - hit[b].mean()) for b in bins) / len(y))


def trust_rows(name):
    """Yield the rows of a set."""
    X, y = load(name)
    fitted, H = classifier_of(X, name)
    for n in LABELS:
        for seed in range(N_SEEDS):
            known = np.full(len(y), -1)
            rows = rows_to_label(H, n, random_state=seed)
            known[rows] = y[rows]
            model, free = fitted(known), known < 0
            if model.accuracy_ is None:
                yield {"labels": n, "seed": seed, "estimate": None}
                continue
            calibrated = model.predict_proba(X)
            model.temperature_ = 1.0
            plain, truth = model.predict_proba(X), np.searchsorted(model.classes_, y)
            seen = free & np.isin(y, model.classes_)
            right = (model.classes_[plain.argmax(1)] == y)[free]
            row = {"labels": n, "seed": seed, "classes": len(np.unique(y))}
            row |= {"accuracy": right.mean(), "estimate": model.accuracy_.value}
            row |= {"low": model.accuracy_.low, "high": model.accuracy_.high}
            for kind, P in (("plain", plain), ("calibrated", calibrated)):
                error = calibration_error(P[free], np.where(seen, truth, -1)[free])
                loss = log_loss(truth[seen], P[seen], labels=np.arange(P.shape[1]))
                row |= {f"ECE, {kind}": error, f"log loss, {kind}": loss}
            top = np.sort(plain, 1)
            scores = {"margin": top[:, -2] - top[:, -1], "uncertainty": model.uncertainty_}
            scores["top, calibrated"] = -calibrated.max(1)
            for score, values in scores.items():
                row[f"AUC, {score}"] = roc_auc_score(~right, values[free])
            yield {k: round(float(v), 4) if isinstance(v, float) else v for k, v in row.items()}


def next_rows(name):
    """Yield the rows of rounds of labels."""
    X, y = load(name)
    n_train = 2 * len(y) // 3
    train = torch.arange(n_train) if name in GRAPHS else np.arange(n_train)
    rest = torch.arange(n_train, len(y)) if name in GRAPHS else np.arange(n_train, len(y))
    X, X_new = X[train], X[rest]  # known to `remembering`
    fitted, H = classifier_of(X, name)
    for seed in range(N_SEEDS):
        rng = np.random.default_rng(seed)
        first = rows_to_label(H, START, random_state=seed)
        for method in ("random", "coverage", "coverage × uncertainty"):
            known = np.full(n_train, -1)
            known[first] = y[first]
            for n in range(START, START + ROUND * ROUNDS + 1, ROUND):
                model, free = fitted(known), known < 0
                row = {"labels": n, "seed": seed, "method": method}
                row["new"] = round(model.score(X_new, y[n_train:]), 4)
                row["pool"] = round((model.predict(X) == y[:n_train])[free].mean(), 4)
                yield row
                if method == "random":
                    rows = rng.choice(np.flatnonzero(free), ROUND, replace=False)
                else:
                    weights = model.uncertainty_ if "uncertainty" in method else None
                    Z = model.transform(X)
                    rows = rows_to_label(Z, ROUND, known, uncertainty=weights, random_state=seed)
                known[rows] = y[rows]


def interval(values):
    """Return the mean of a list and half of its 95 % interval as text."""
    half = student.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / len(values) ** 0.5
    return f"{np.mean(values):.3f} ± {half:.3f}"


def report(rows):
    """Print the tables; intervals are over the sets."""
    trust = [row for row in rows if row["study"] == "trust" and row["estimate"] is not None]
    columns = ("ECE, plain", "ECE, calibrated", "log loss, plain", "log loss, calibrated")
    columns += tuple(k for k in trust[0] if k.startswith("AUC"))
    print("| set | labels | accuracy | estimate | error | covered |", " | ".join(columns), "|")
    for n in LABELS:
        errors = []
        for name in (*SETS, "all"):
            some = [r for r in trust if r["labels"] == n and name in (r["set"], "all")]
            if not some:
                continue
            error = np.mean([abs(r["estimate"] - r["accuracy"]) for r in some])
            covered = np.mean([r["low"] <= r["accuracy"] <= r["high"] for r in some])
            errors.append(error)
            means = [np.mean([r[c] for r in some]) for c in ("accuracy", "estimate")]
            cells = [*means, error, covered, *(np.mean([r[c] for r in some]) for c in columns)]
            print(f"| {name} | {n} |", " | ".join(f"{cell:.3f}" for cell in cells), "|")
    rounds = {}
    for row in rows:
        if row["study"] == "next":
            key = row["set"], row["labels"], row["seed"]
            rounds.setdefault(key, {})[row["method"]] = row
    for measure in ("new", "pool"):
        for method in ("coverage", "coverage × uncertainty"):
            for n in range(START + ROUND, START + ROUND * ROUNDS + 1, ROUND):
                gains = {}
                for (name, labels, _), by in rounds.items():
                    if labels == n and len(by) == 3:
                        gain = by[method][measure] - by["random"][measure]
                        gains.setdefault(name, []).append(gain)
                if len(gains) > 1:
                    means = {name: np.mean(values) for name, values in gains.items()}
                    each = ", ".join(f"{name} {mean:+.3f}" for name, mean in means.items())
                    print(f"{measure}, {n} labels, {method} − random:", end=" ")
                    print(f"{interval(list(means.values()))} ({each})")


def main():
    """Measure the sets that are missing, or report those that are stored."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--next", action="store_true", help="rounds of labels")
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--rows", type=Path, default=RESULTS, help="file of the rows")
    args = parser.parse_args()
    if args.report:
        report(stored(args.rows))
        return
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    study, measure = ("next", next_rows) if args.next else ("trust", trust_rows)
    done = {row["set"] for row in stored(args.rows) if row["study"] == study}
    for name in SETS:
        if name not in done:
            rows = [{"study": study, "set": name, **row} for row in measure(name)]
            with args.rows.open("a") as file:
                file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
            print(f"| {name} | {len(rows)} rows |", flush=True)


if __name__ == "__main__":
    main()
