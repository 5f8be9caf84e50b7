"""With 5 labels per class: what to run, and what it gives, for a set of each kind of data.

    SKCONTRAST_BENCHMARK_DATA=FOLDER python -m benchmarks.studies.five_labels
    python -m benchmarks.studies.five_labels --report --save

A seed sets the split, the labels and the weights, for all columns alike. Test samples are not
trained on. Columns are accuracies on them:

- "raw": a logistic regression on pixels (photographs: 32 × 32), values, or how often each label
  of a node occurs;
- "without training": the best of a logistic regression and of label spreading (7 neighbours) on
  the raw numbers and on each kind of features, of photographs those of the frozen network; with
  groups, also a regression whose labels are copied to their groups. It is chosen by the test
  accuracy, the mean over the seeds, which favours this column;
- "embedding": a logistic regression on the embedding of the classifier;
- "classifier": `ContrastiveClassifier` with its defaults, on ``Pretrained(network)`` for
  photographs, and with ``fit(..., groups=groups)``; it predicts each new sample alone.

The interval is that of the classifier less the best other column. "CPU min" is of ``fit`` of the
classifier, which includes the training. Each row is stored when it is measured, in
results/five_labels.jsonl, and skipped afterwards.
"""

from __future__ import annotations

import datetime
import json
import os
import warnings
from functools import partial
from itertools import product
from pathlib import Path
from time import process_time
from types import SimpleNamespace

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import FunctionTransformer
from sklearn.semi_supervised import LabelSpreading

from benchmarks import _protocol
from benchmarks._image_sets import FOLDER
from benchmarks._photographs import load as load_photographs
from benchmarks._photographs import pretrained_encoder, some_of_each
from benchmarks._results import Table, commit, make_parser, paired, spread
from benchmarks.studies import metadata
from benchmarks.studies.classifier import scaled
from benchmarks.studies.gap_closed import stored
from skcontrast import ContrastiveClassifier, ContrastiveEmbedder, GroupWhitening, ViewWhitening
from skcontrast.features import (
    Frozen,
    GraphProfile,
    MiniRocket,
    OrientedGradients,
    PartialWhitening,
    PatchDictionary,
    WeisfeilerLehman,
)

RESULTS = Path(__file__).parent / "results" / "five_labels.jsonl"
N_SEEDS, N_LABELS, MOST_TRAINED = 3, 5, 2000
RAW, FREE, EMBEDDING, CLASSIFIER = "raw", "without training", "embedding", "classifier"
MINUTES = "CPU min"
# Their columns are standardised; others are divided by one number.
STANDARDISED = (RAW, "HOG", "patches", "MiniRocket", "profile", "WL")
_PATCHES, _ROCKET = PatchDictionary(random_state=0), MiniRocket(random_state=0)
FEATURES = {
    "images": {
        "HOG": OrientedGradients(),
        "patches": _PATCHES,
        "whitened patches": ViewWhitening(_PATCHES, random_state=0),
    },
    "photographs": {},
    "series": {
        "MiniRocket": _ROCKET,
        "whitened MiniRocket": ViewWhitening(_ROCKET, random_state=0),
    },
    "vectors": {"one scale": FunctionTransformer(), "half whitened": PartialWhitening()},
    "graphs": {
        "profile": GraphProfile(),
        "WL": WeisfeilerLehman(),
        "whitened profile": ViewWhitening(GraphProfile(), random_state=0),
    },
}


def data_of_protocol(name, seed):
    """Return training and test samples, their classes, and the arguments of fit."""
    X, y, test = _protocol.SETS[name](SimpleNamespace(data_home=None))
    train, test = _protocol.split(y, test, MOST_TRAINED, seed)
    return X[train], y[train], X[test], y[test], {}


def photographs(name, seed):
    """Return the same of photographs of 224 pixels, 800 to train on."""
    X, y, X_test, y_test = load_photographs(name, 224)
    X, y = np.concatenate([X, X_test]), np.concatenate([y, y_test])
    return *split_in_two(X, y, 800, seed), {}


def vectors(name, seed):
    """Return the same of vectors of a language model, as many to train on as the file has."""
    X, y, X_test, y_test = _protocol.load_vectors(Path(os.environ[FOLDER], "text", f"{name}.npz"))
    X, y = np.concatenate([X, X_test]), np.concatenate([y, y_test])
    return *split_in_two(X, y, len(X) - len(X_test), seed), {}


def split_in_two(X, y, n, seed):
    """Return X_train, y_train, X_test, y_test."""
    X, X_test, y, y_test = train_test_split(X, y, train_size=n, stratify=y, random_state=seed)
    return X, y, X_test, y_test


def with_groups(name, seed):
    """Return the same of vectors with groups; no group is in both parts."""
    X, y, groups, X_test, y_test, _ = metadata.load(name, Path(os.environ[FOLDER]), seed)
    return X, y, X_test, y_test, {"groups": groups}


def features_of(kind, X, fit_arguments):
    """Return fitted training-free features by name, of a kind of data."""
    for name, features in FEATURES[kind].items():
        yield name, clone(features).fit(X)
    if kind == "photographs":
        yield "frozen network", Frozen(pretrained_encoder("lite0")).fit(X)
    if fit_arguments:
        yield "group whitening", GroupWhitening().fit(X, **fit_arguments)


def raw(X, kind):
    """Return the numbers of samples, of photographs the means of 7 × 7 pixels."""
    if kind == "photographs":
        X = X.reshape(*X.shape[:2], 32, 7, 32, 7).mean((3, 5), dtype=np.float32)
    return _protocol.numbers(X, np.arange(len(X)))


def linear(H, codes, H_test, y_test):
    """Return the accuracy of a logistic regression on the rows of known class."""
    known = codes >= 0
    return LogisticRegression(max_iter=1000).fit(H[known], codes[known]).score(H_test, y_test)


def measured(name, seed):
    """Return the accuracies of a set by method, and the CPU time of the classifier."""
    of_seed, kind = SETS[name]
    X, y, X_test, y_test, fit_arguments = of_seed(seed)
    codes = np.full(len(y), -1)
    rows = some_of_each(y, N_LABELS, seed)
    codes[rows] = y[rows]
    is_photograph = kind == "photographs"
    embedder = ContrastiveEmbedder(pretrained_encoder("lite0")) if is_photograph else None
    start = process_time()
    model = ContrastiveClassifier(embedder, random_state=seed).fit(X, codes, **fit_arguments)
    found = {MINUTES: (process_time() - start) / 60, CLASSIFIER: model.score(X_test, y_test)}
    parts = {RAW: (raw(X, kind), raw(X_test, kind))}
    for title, features in features_of(kind, X, fit_arguments):
        parts[title] = features.transform(X), features.transform(X_test)
    parts[EMBEDDING] = model.embedder_.transform(X), model.embedder_.transform(X_test)
    for title, both in parts.items():
        H, H_test = scaled(*both, as_whole=title not in STANDARDISED)
        found[title] = linear(H, codes, H_test, y_test)
        if title != EMBEDDING:
            spreading = LabelSpreading(kernel="knn", n_neighbors=7).fit(H, codes)
            found[f"label spreading, {title}"] = spreading.score(H_test, y_test)
            if fit_arguments:
                copies = metadata.copied(codes, fit_arguments["groups"])
                found[f"copied labels, {title}"] = linear(H, copies, H_test, y_test)
    return {column: round(float(value), 4) for column, value in found.items()}


def row_of(name, runs):
    """Return the row of a set by the accuracies of its seeds."""
    of = {column: [run[column] for run in runs] for column in runs[0]}
    free = [column for column in of if column not in (CLASSIFIER, MINUTES, EMBEDDING)]
    best = max(free, key=lambda column: np.mean(of[column]))
    shown = {RAW: of[RAW], FREE: of[best], EMBEDDING: of[EMBEDDING], CLASSIFIER: of[CLASSIFIER]}
    other = max((RAW, FREE, EMBEDDING), key=lambda column: np.mean(shown[column]))
    row = {"data": name, **{column: spread(values) for column, values in shown.items()}}
    row |= {"gain": np.mean(shown[CLASSIFIER]) - np.mean(shown[other])}
    row |= paired(shown[CLASSIFIER], shown[other])
    best = best.replace("one scale", "raw, not standardised")
    return row | {"best of it": best, MINUTES: float(np.mean(of[MINUTES]))}


def table_of(path=RESULTS):
    """Return the rows of the table."""
    of = {}
    for row in stored(path):
        of.setdefault(row["set"], []).append(row["of"])
    return [row_of(name, of[name]) for name in SETS if name in of]


def report(args):
    """Print the table."""
    with Table("five labels", args) as table:
        dates = sorted({(row["date"], row["commit"]) for row in stored(args.rows)})
        for key, parts in zip(("date", "commit"), zip(*dates, strict=True), strict=True):
            table.content[key] = ", ".join(dict.fromkeys(parts))
        for row in table_of(args.rows):
            table.add(row)


SETS = {
    "digits, 8 × 8 images": (partial(data_of_protocol, "digits"), "images"),
    "breast cancer, vectors": (partial(data_of_protocol, "breast cancer"), "vectors"),
    "banking77, texts by MiniLM": (partial(vectors, "banking77_minilm"), "vectors"),
    "docstrings by MiniLM, with groups": (partial(with_groups, "docstrings"), "vectors"),
    "ENZYMES, graphs": (partial(data_of_protocol, "ENZYMES"), "graphs"),
    "FacesUCR, time series": (partial(data_of_protocol, "FacesUCR"), "series"),
    "textures, photographs": (partial(photographs, "textures"), "photographs"),
    "Fashion-MNIST, 28 × 28 images": (partial(data_of_protocol, "Fashion-MNIST"), "images"),
    "blood cells, photographs": (partial(photographs, "cells"), "photographs"),
}


def main():
    """Measure the rows that are missing, or report those that are stored."""
    parser = make_parser(__doc__, report=False)
    parser.add_argument("--rows", type=Path, default=RESULTS, help="file of the rows")
    args = parser.parse_args()
    _protocol.use_threads()
    if args.report:
        return report(args)
    warnings.simplefilter("ignore")
    done = {(row["set"], row["seed"]) for row in stored(args.rows)}
    for name, seed in product(SETS, range(N_SEEDS)):
        if (name, seed) not in done:
            row = {"set": name, "seed": seed, "of": measured(name, seed)}
            row |= {"commit": commit(), "date": datetime.date.today().isoformat()}
            with args.rows.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
            print("|", name, seed, row["of"], "|", flush=True)


if __name__ == "__main__":
    main()
