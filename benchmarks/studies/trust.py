"""How accurate, how sure, which next: what `ContrastiveClassifier` says of itself.

    SKCONTRAST_BENCHMARK_DATA=FOLDER python -m benchmarks.studies.trust
    SKCONTRAST_BENCHMARK_DATA=FOLDER python -m benchmarks.studies.trust --study next
    python -m benchmarks.studies.trust --report

The sets had no part in the choice of the methods. An embedder is trained for 30 epochs on at most
1,000 samples without labels (photographs have frozen features of EfficientNet-lite0, 160 pixels);
the blocks are those of ``ContrastiveClassifier``. `rows_to_label` chooses 30, 50 or 100 samples
to label, with five seeds, and the accuracy on the others is compared with `accuracy_`.

Of the study "next", 20 samples have labels, and three rounds of 10 follow: at random, by coverage,
and by coverage weighted with `uncertainty_`. Accuracy is that on a third of the samples that is
neither trained on nor labeled ("new"), and that on the unlabeled samples of `fit` ("pool").

The study "choose" is between the default embedder and a smaller encoder, or another temperature:
by `accuracy_`, by five folds, or without labels, by `ContrastiveEmbedder.score`. It has vectors,
graphs and frozen features of photographs, as vectors; at most 750 samples. The default embedding
chooses the rows to label. Samples that a fold leaves out stay in the fit without label. Errors of
both estimates are those of the default. "Folds" is also the temperature of least log loss in the
folds, and "mean" that of the mean of its logarithm and of that of `temperature_`.

Each row is stored when it is measured, in results/trust.jsonl, and skipped afterwards.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path
from unittest.mock import patch

import numpy as np
import torch
from scipy.optimize import minimize_scalar
from scipy.special import logit
from scipy.stats import t as student
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import KFold

from benchmarks._graph_sets import load_graphs
from benchmarks._image_sets import load_images
from benchmarks._photographs import load as load_photographs
from benchmarks._photographs import pretrained_encoder
from benchmarks._protocol import remembering
from benchmarks._series_sets import load_series
from benchmarks.studies.gap_closed import stored
from benchmarks.studies.vectors import load as load_vectors
from skcontrast import (
    ContrastiveClassifier,
    ContrastiveEmbedder,
    LabeledFolds,
    _pseudo_labels,
    rows_to_label,
)
from skcontrast.encoders import GIN, MLP
from skcontrast.metrics._estimated import accuracy_from_logit
from skcontrast.similarity import Cosine

RESULTS = Path(__file__).parent / "results" / "trust.jsonl"
SERIES = ("SyntheticControl", "CBF", "ECG5000", "MedicalImages")
GRAPHS = ("PTC_MR", "DD")
PHOTOGRAPHS = ("neu", "dtd10", "trashnet")
SETS = (*SERIES, *GRAPHS, *PHOTOGRAPHS, "Fashion-MNIST")
CHOICES = (
    "penbased", "spambase", "magic", "sonar", "enzymes", "debian", "texture", "vowels",
    "docstrings", "PTC_MR", "neu", "trashnet",
)  # fmt: skip
LABELS, MOST, N_SEEDS, N_BINS, EPOCHS = (30, 50, 100), 1000, 5, 10, 30
# Of the choices: labels, seeds, and the largest number of samples of a fit.
FEW, N_DRAWS, N_CHOSEN = (30, 50), 3, 750
DECISIONS, METHODS = ("encoder", "temperature"), ("estimate", "folds", "views", "default")
START, ROUND, ROUNDS = 20, 10, 3


def load(name):
    """Return at most 1,000 samples of a set, and their classes 0, 1, …"""
    if name in SERIES:
        X, y, _ = load_series(name)
    elif name in GRAPHS:
        X, y = load_graphs(name)
    elif name in PHOTOGRAPHS:
        X, y, *_ = load_photographs(name, 160)
    elif name in CHOICES:
        X, y = load_vectors(name)
    else:
        X, y, *_ = load_images(name)
    rows = np.random.default_rng(1).permutation(len(y))[:MOST]
    rows = rows if isinstance(X, np.ndarray) else torch.from_numpy(rows)
    return X[rows], np.unique(y[np.asarray(rows)], return_inverse=True)[1]


def embedder_of(name):
    """Return an embedder that is not fitted."""
    if name in PHOTOGRAPHS:
        return ContrastiveEmbedder(pretrained_encoder("lite0", adapt=False), random_state=0)
    return ContrastiveEmbedder(max_epochs=EPOCHS, random_state=0, device="cpu")


def classifier_of(X, embedder, blocks=None):
    """Return a function that fits a classifier, and the embedding that labels are chosen by.

    The embedder and the other blocks are fitted once, because they use no labels.
    """
    embedder = FrozenEstimator(remembering(embedder.fit(X)))
    some = np.where(np.arange(len(X)) < 4, np.arange(len(X)) % 2, -1)
    first = ContrastiveClassifier(embedder, blocks=blocks, pseudo_labels=False, random_state=0)
    first.fit(X, some)
    blocks = blocks or [FrozenEstimator(remembering(block)) for block in first.transformers_]

    def fitted(known):
        return ContrastiveClassifier(embedder, blocks=blocks, random_state=0).fit(X, known)

    return fitted, embedder.transform(X)


def labeled(H, y, n, seed):
    """Return the classes of n chosen rows, −1 for the others."""
    known = np.full(len(y), -1)
    rows = rows_to_label(H, n, random_state=seed)
    known[rows] = y[rows]
    return known


def rounded(row):
    """Return a row with four decimal places."""
    return {k: round(float(v), 4) if isinstance(v, float) else v for k, v in row.items()}


def calibration_error(probabilities, y):
    """Return the mean difference of confidence and accuracy in ten bins of equal size."""
    top, hit = probabilities.max(1), probabilities.argmax(1) == y
    bins = np.array_split(np.argsort(top), N_BINS)
    return float(sum(len(b) * abs(top[b].mean() - hit[b].mean()) for b in bins) / len(y))


def trust_rows(name):
    """Yield the rows of a set."""
    X, y = load(name)
    fitted, H = classifier_of(X, embedder_of(name))
    for n in LABELS:
        for seed in range(N_SEEDS):
            known = labeled(H, y, n, seed)
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
            yield rounded(row)


def next_rows(name):
    """Yield the rows of rounds of labels."""
    X, y = load(name)
    n_train = 2 * len(y) // 3
    train = torch.arange(n_train) if name in GRAPHS else np.arange(n_train)
    rest = torch.arange(n_train, len(y)) if name in GRAPHS else np.arange(n_train, len(y))
    X, X_new = X[train], X[rest]  # known to `remembering`
    fitted, H = classifier_of(X, embedder_of(name))
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


def cross_predicted(fitted, X, known):
    """Return the probabilities that five folds give to the classes of the labeled rows."""
    classes = np.unique(known[known >= 0])
    P = np.zeros((len(known), len(classes)))
    folds = KFold(5, shuffle=True, random_state=0)  # a class may have fewer than five labels
    for _, test in LabeledFolds(folds).split(X, known):
        with patch.object(_pseudo_labels, "_MOST_LABELS", 0):  # no estimate, which takes time
            model = fitted(np.where(np.isin(np.arange(len(known)), test), -1, known))
        P[np.ix_(test, np.searchsorted(classes, model.classes_))] = model.predict_proba(X)[test]
    return P[known >= 0]


def at_temperature(P, temperature):
    """Return probabilities whose logarithms are divided by a temperature."""
    P = np.maximum(P, 1e-12) ** (1 / temperature)
    return P / P.sum(1, keepdims=True)


def temperature_of(P, y):
    """Return the temperature of least log loss, without rows whose class is unknown."""
    some = np.flatnonzero(P[np.arange(len(y)), y] > 0)

    def loss(log):
        return -np.log(at_temperature(P[some], np.exp(log))[np.arange(len(some)), y[some]]).mean()

    return np.exp(minimize_scalar(loss, bounds=(-2.5, 2.5), method="bounded").x)


def calibrated(model, X, y, free, P, codes):
    """Return calibration error and log loss with the temperatures of the estimate and of folds."""
    own, model.temperature_ = model.temperature_, 1.0
    plain, by_folds = model.predict_proba(X), temperature_of(P, codes)
    truth, seen = np.searchsorted(model.classes_, y), free & np.isin(y, model.classes_)
    temperatures = {"estimate": own, "folds": by_folds, "mean": np.sqrt(own * by_folds)}
    row = {}
    for kind, temperature in temperatures.items():
        P = at_temperature(plain, temperature)
        row[f"ECE, {kind}"] = calibration_error(P[free], np.where(seen, truth, -1)[free])
        loss = log_loss(truth[seen], P[seen], labels=np.arange(P.shape[1]))
        row[f"log loss, {kind}"] = loss
    return row


def choose_rows(name):
    """Yield the rows of the options."""
    X, y = load(name)
    if name in PHOTOGRAPHS:
        X = embedder_of(name).fit(X).transform(X)
    n = min(N_CHOSEN, len(y))
    X, y = X[:n] if isinstance(X, np.ndarray) else X[torch.arange(n)], y[:n]
    smaller, H, blocks = MLP((64,)) if isinstance(X, np.ndarray) else GIN(1), None, None
    options = {"encoder": smaller}, {"similarity": Cosine(0.1)}
    for option, params in zip(("default", *DECISIONS), ({}, *options), strict=True):
        embedder = ContrastiveEmbedder(max_epochs=EPOCHS, random_state=0, device="cpu", **params)
        fitted, embedding = classifier_of(X, embedder, blocks)
        H, views = embedding if H is None else H, embedder.score(X)
        for n_labels in FEW:
            for seed in range(N_DRAWS):
                known = labeled(H, y, n_labels, seed)
                model, free = fitted(known), known < 0
                blocks, estimate = model.transformers_, model.accuracy_
                P = cross_predicted(fitted, X, known)
                codes = np.searchsorted(model.classes_, known[~free])
                row = {"option": option, "labels": n_labels, "seed": seed}
                row["accuracy"] = np.mean((model.predict(X) == y)[free])
                row["estimate"] = None if estimate is None else estimate.value
                row["folds"] = np.mean(P.argmax(1) == codes)
                row["views"] = views
                if estimate is not None:
                    row |= calibrated(model, X, y, free, P, codes)
                yield rounded(row)


def interval(values):
    """Return the mean of a list and half of its 95 % interval as text."""
    half = student.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / len(values) ** 0.5
    return f"{np.mean(values):.3f} ± {half:.3f}"


def report_folds(rows):
    """Print the errors of both estimates of the default embedder, and calibration."""
    kinds = [f"{m}, {k}" for m in ("ECE", "log loss") for k in ("estimate", "folds", "mean")]
    heads = [
        "error of the estimate",
        "of five folds",
        "estimate − accuracy",
        "folds − accuracy",
        "covered",
    ]
    print("| labels | n |", " | ".join([*heads, *kinds]), "|")
    for n in FEW:
        some = [r for r in rows if r["option"] == "default" and r["labels"] == n]
        some = [r for r in some if r["estimate"] is not None]
        gaps = [[r[k] - r["accuracy"] for k in ("estimate", "folds")] for r in some]
        intervals = [accuracy_from_logit(logit(r["estimate"])) for r in some]
        pairs = zip(intervals, some, strict=True)
        covered = [[one.low <= r["accuracy"] <= one.high] for one, r in pairs]
        scores = [[r[k] for k in kinds] for r in some]
        values = np.hstack([np.abs(gaps), gaps, covered, scores]).astype(float)
        each = by_set(some, values).T
        print(f"| {n} | {len(each[0])} |", " | ".join(map(interval, each)), "|")


def by_set(rows, values):
    """Return the means of values over the rows of each set."""
    names = np.array([row["set"] for row in rows])
    return np.array([values[names == name].mean(0) for name in dict.fromkeys(names)])


def report_choices(rows):
    """Print the mean regrets, with intervals over the sets."""
    cells = {}
    for row in rows:
        cells.setdefault((row["set"], row["labels"], row["seed"]), {})[row["option"]] = row
    print("| decision | labels | n | difference |", " | ".join(METHODS), "|")
    for decision in (*DECISIONS, "all"):
        for n in (*FEW, "all"):
            found = []
            for (name, labels, _), by in cells.items():
                for option in by if n in (labels, "all") else ():
                    if option != "default" and decision in (option, "all"):
                        pair = by["default"], by[option]
                        if all(row["estimate"] is not None for row in pair):
                            found.append({"set": name, "regrets": regrets(*pair)})
            if len({row["set"] for row in found}) > 1:
                each = by_set(found, np.array([row["regrets"] for row in found]))
                means = " | ".join(map(interval, each.T))
                print(f"| {decision} | {n} | {len(each)} | {means} |")


def regrets(first, second):
    """Return the difference of two options, and what each method loses against the better."""
    loss = second["accuracy"] - first["accuracy"]
    chosen = [second[method] > first[method] for method in METHODS[:-1]]
    return [abs(loss), *(max(-loss if is_second else loss, 0) for is_second in (*chosen, False))]


def report(rows):
    """Print the tables; intervals are over the sets."""
    if choices := [row for row in rows if row["study"] == "choose"]:
        report_folds(choices)
        report_choices(choices)
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


STUDIES = {"trust": trust_rows, "next": next_rows, "choose": choose_rows}


def main():
    """Measure the sets that are missing, or report those that are stored."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--study", choices=STUDIES, nargs="+", default=["trust"])
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--sets", nargs="+", help="sets to measure")
    parser.add_argument("--rows", type=Path, default=RESULTS, help="file of the rows")
    args = parser.parse_args()
    if args.report:
        report(stored(args.rows))
        return
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    done = {(row["study"], row["set"]) for row in stored(args.rows)}
    for study in args.study:
        for name in args.sets or (CHOICES if study == "choose" else SETS):
            if (study, name) in done:
                continue
            rows = [{"study": study, "set": name, **row} for row in STUDIES[study](name)]
            with args.rows.open("a") as file:
                file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
            print(f"| {name} | {len(rows)} rows |", flush=True)


if __name__ == "__main__":
    main()
