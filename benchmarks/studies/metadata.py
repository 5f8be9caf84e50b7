"""Groups that share a class: what `ContrastiveClassifier` makes of metadata, 5 labels a class.

    python -m benchmarks.studies.metadata FOLDER  # which holds the .npz of metadata/
    python -m benchmarks.studies.metadata FOLDER --report

No group is both in the training and in the test set. Of at most 800 training rows, 5 per class
have labels, drawn at random. Rows, with ``LogisticRegression`` unless it is a classifier of
skcontrast:

- "raw": the vectors; "input and L": with `GroupWhitening` as a second block;
- "copied": the vectors, where each label is given to all rows of its group, unchecked;
- "classifier": `ContrastiveClassifier` without groups; "groups": with groups, also for the
  embedder. The following have this embedder;
- "5 pairs" and "no minimum": labels spread with this many pairs of labels in groups, instead of by
  the interval of their agreement;
- "G alone": "no minimum" without the block of `GroupWhitening`;
- "pooled": of "no minimum", predictions pooled over the groups of the test set;
- "all labels" and "all, L": "raw" and "input and L" with all labels of the training rows;
- "10-NN": ten neighbours by cosine, with all labels, of the vectors, of L and of the embedder that
  "classifier" trains.

Sets of `_metadata_sets` need the packages of its networks. ``NAME, network`` are images, and a
frozen `Pretrained` network in `ContrastiveClassifier`, with three seeds: "raw" are its features,
"no block" is "groups" without `GroupWhitening`, "own lengths" with rows of its output that are not
normalised.

Each row is stored when it is measured, in results/metadata.jsonl, and skipped afterwards.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path
from unittest.mock import patch

import numpy as np
import torch
from scipy.stats import t as student
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler, normalize

from benchmarks._photographs import pretrained_encoder
from benchmarks._protocol import remembering
from benchmarks.studies._metadata_sets import own_set
from benchmarks.studies.gap_closed import stored
from skcontrast import ContrastiveClassifier, ContrastiveEmbedder, GroupWhitening
from skcontrast.features import Raw
from skcontrast.metrics import GroupAgreement

IS_KNOWN = GroupAgreement.is_known
RESULTS = Path(__file__).parent / "results" / "metadata.jsonl"
SETS = ("docstrings", "debian", "vowels", "har_time", "enzymes")
QUADRANTS = ("textures", "satellite")
OWN = ("characters", "code", "library", "steel")
NETWORKS = ("textures, network", "satellite, network", "steel, network")
ALL = (*SETS, *QUADRANTS, *OWN)
# What a method is compared with, if it is not "raw", and columns that are no methods.
BASES = {"all labels": "all labels", "all, L": "all labels", "10-NN": "10-NN"}
BASES |= {"10-NN, L": "10-NN", "10-NN, embedder": "10-NN"}
NO_METHODS = ("set", "seed", "agreement", "pairs")
N_SEEDS, N_NETWORK_SEEDS, N_LABELS, MOST_TRAINED, MOST_JUDGED = 5, 3, 5, 800, 600


def load(name, folder, seed):
    """Return X, y and groups of training and test rows; whole units are in either."""
    if name in SETS:
        with np.load(folder / "metadata" / f"{name}.npz") as file:
            X, y, g = file["X"].astype(np.float32), file["y"], file["g"]
            units = file.get("split", g)
            is_table = "tab" in file
    else:
        X, y, g = own_set(name)
        units, is_table = g, False
    rng = np.random.default_rng(seed)
    y, g, units = (np.unique(values, return_inverse=True)[1] for values in (y, g, units))
    order = rng.permutation(units.max() + 1)
    is_test = np.isin(units, order[: len(order) // 3])
    # whole groups, at most as many rows as are trained on
    order = rng.permutation(g.max() + 1)[g]
    train = np.argsort(np.where(is_test, len(order), order), kind="stable")
    train = train[: min(MOST_TRAINED, (~is_test).sum())]
    test = rng.permutation(np.flatnonzero(is_test))[:MOST_JUDGED]
    if is_table:
        X = StandardScaler().fit(X[train]).transform(X).clip(-8, 8).astype(np.float32)
    return X[train], y[train], g[train], X[test], y[test], g[test]


def scaled(H, H_test):
    """Return both centred, with rows of root mean square norm 10."""
    mean, unit = H.mean(0), np.sqrt(((H - H.mean(0)) ** 2).sum(1).mean()) / 10
    return (H - mean) / unit, (H_test - mean) / unit


def linear(H, codes, H_test, y_test):
    """Return the accuracy of a logistic regression on the rows of known class."""
    H, H_test = scaled(H, H_test)
    known = codes >= 0
    model = LogisticRegression(max_iter=1000).fit(H[known], codes[known])
    return model.score(H_test, y_test)


def nearest(H, y, H_test, y_test):
    """Return the accuracy of ten neighbours by cosine, which have all labels."""
    mean = H.mean(0)
    return KNeighborsClassifier(10, metric="cosine").fit(H - mean, y).score(H_test - mean, y_test)


def copied(codes, g):
    """Return classes where each label is given to its group."""
    codes = codes.copy()
    for group in np.unique(g[codes >= 0]):
        rows = g == group
        majority = np.bincount(codes[rows & (codes >= 0)]).argmax()
        codes[rows & (codes < 0)] = majority
    return codes


def few_labels(y, seed):
    """Return y with −1 for all but some of each class."""
    rng = np.random.default_rng(seed)
    few = [rng.permutation(np.flatnonzero(y == k))[:N_LABELS] for k in np.unique(y)]
    codes = np.full(len(y), -1)
    codes[np.concatenate(few)] = y[np.concatenate(few)]
    return codes


def measured_network(data, seed):
    """Return the accuracies by method of a frozen network on images."""
    X, y, g, X_test, y_test, _ = data
    codes, encoder = few_labels(y, seed), pretrained_encoder("lite0", adapt=False)
    embedder = remembering(ContrastiveEmbedder(encoder, random_state=seed).fit(X))
    row = {"raw": linear(embedder.transform(X), codes, embedder.transform(X_test), y_test)}
    model = ContrastiveClassifier(embedder, random_state=seed)
    row["classifier"] = model.fit(X, codes).score(X_test, y_test)
    row["groups"] = model.fit(X, codes, groups=g).score(X_test, y_test)
    row["agreement"], _, row["pairs"] = model.group_agreement_
    with patch("skcontrast._blocks.normalize", lambda H: H):
        row["own lengths"] = model.fit(X, codes, groups=g).score(X_test, y_test)
    alone = ContrastiveClassifier(embedder, blocks=[], random_state=seed)
    row["no block"] = alone.fit(X, codes, groups=g).score(X_test, y_test)
    return {k: round(float(v), 4) for k, v in row.items()}


def measured(data, seed):
    """Return the accuracies by method."""
    X, y, g, X_test, y_test, g_test = data
    codes = few_labels(y, seed)
    L = GroupWhitening().fit(X, groups=g)
    both = [np.hstack([normalize(x - X.mean(0)), normalize(L.transform(x))]) for x in (X, X_test)]
    row = {
        "raw": linear(X, codes, X_test, y_test),
        "input and L": linear(both[0], codes, both[1], y_test),
        "copied": linear(X, copied(codes, g), X_test, y_test),
        "all labels": linear(X, y, X_test, y_test),
        "all, L": linear(both[0], y, both[1], y_test),
        "10-NN": nearest(X, y, X_test, y_test),
        "10-NN, L": nearest(L.transform(X), y, L.transform(X_test), y_test),
    }
    plain = ContrastiveClassifier(random_state=seed).fit(X, codes)
    row["classifier"] = plain.score(X_test, y_test)
    H, H_test = plain.embedder_.transform(X), plain.embedder_.transform(X_test)
    row["10-NN, embedder"] = nearest(H, y, H_test, y_test)
    model = ContrastiveClassifier(random_state=seed).fit(X, codes, groups=g)
    row["groups"], agreement = model.score(X_test, y_test), model.group_agreement_
    row |= {"agreement": agreement.value, "pairs": agreement.n_pairs}
    same = ContrastiveClassifier(FrozenEstimator(model.embedder_), random_state=seed)
    try:
        GroupAgreement.is_known = property(lambda agreement: agreement.n_pairs >= 5)
        row["5 pairs"] = same.fit(X, codes, groups=g).score(X_test, y_test)
        GroupAgreement.is_known = property(lambda agreement: True)
        row["no minimum"] = same.fit(X, codes, groups=g).score(X_test, y_test)
        groups = {} if agreement.is_low else {"groups": g_test}
        row["pooled"] = (same.predict(X_test, **groups) == y_test).mean()
        alone = clone(same).set_params(blocks=[Raw()]).fit(X, codes, groups=g)
        row["G alone"] = alone.score(X_test, y_test)
    finally:
        GroupAgreement.is_known = IS_KNOWN
    return {k: round(float(v), 4) for k, v in row.items()}


def report(rows, base="raw"):
    """Print accuracies of one method, and differences of others from it, with 95 % intervals."""
    rows = [row for row in rows if base in row]
    columns = dict.fromkeys(k for row in rows for k in row)
    methods = [k for k in columns if BASES.get(k, "raw") == base and k not in NO_METHODS]
    print("| set | pairs |", " | ".join(methods), "|")
    names = [name for name in dict.fromkeys(row["set"] for row in rows) if name not in OWN]
    means = {"mean of these": names, "mean of those without a part": OWN}
    for name in (*names, "mean of these", *OWN, "mean of those without a part"):
        some = [row for row in rows if row["set"] in means.get(name, [name])]
        if not some:
            continue
        cells = []
        for method in methods:
            by_set = {}
            for row in some:
                gain = row[method] - (row[base] if method != base else 0)
                by_set.setdefault(row["set"], []).append(gain)
            gains = [np.mean(v) for v in by_set.values()] if name in means else by_set[name]
            if method == base:
                cells.append(f"{np.mean(gains):.3f}")
                continue
            cells.append(f"{np.mean(gains):+.3f}")
            if len(gains) > 1:
                quantile = student.ppf(0.975, len(gains) - 1)
                cells[-1] += f" ± {quantile * np.std(gains, ddof=1) / len(gains) ** 0.5:.3f}"
        print(f"| {name} | {np.mean([r['pairs'] for r in some]):.1f} |", " | ".join(cells), "|")


def main():
    """Measure the rows that are missing, or report those that are stored."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--sets", nargs="*", default=[*ALL, *NETWORKS])
    parser.add_argument("--rows", type=Path, default=RESULTS, help="file of the rows")
    args = parser.parse_args()
    rows = stored(args.rows)
    if args.report:
        for base in ("raw", "all labels", "10-NN"):
            report([row for row in rows if row["set"] in ALL], base)
        report([row for row in rows if row["set"] in NETWORKS])
        return
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    done = {(row["set"], row["seed"]) for row in rows}
    for seed in range(N_SEEDS):
        for name in args.sets:
            is_network = name in NETWORKS
            if (name, seed) in done or (is_network and seed >= N_NETWORK_SEEDS):
                continue
            measure = measured_network if is_network else measured
            row = {"set": name, "seed": seed, **measure(load(name, args.folder, seed), seed)}
            with args.rows.open("a") as file:
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
            print("|", " | ".join(map(str, row.values())), "|", flush=True)


if __name__ == "__main__":
    main()
