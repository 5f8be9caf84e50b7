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
- "pooled": of "no minimum", predictions pooled over the groups of the test set.

Each row is stored when it is measured, in results/metadata.jsonl, and skipped afterwards.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path

import numpy as np
import torch
from scipy.stats import t as student
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler, normalize

from benchmarks.studies.gap_closed import stored
from skcontrast import ContrastiveClassifier, GroupWhitening
from skcontrast._pseudo_labels import GroupAgreement
from skcontrast.features import Raw

IS_KNOWN = GroupAgreement.is_known
RESULTS = Path(__file__).parent / "results" / "metadata.jsonl"
SETS = ("docstrings", "debian", "vowels", "har_time", "enzymes")
N_SEEDS, N_LABELS, MOST_TRAINED, MOST_JUDGED = 5, 5, 800, 600


def load(name, folder, seed):
    """Return X, y and groups of training and test rows; whole units are in either."""
    with np.load(folder / "metadata" / f"{name}.npz") as file:
        X, y, g = file["X"].astype(np.float32), file["y"], file["g"]
        units = file.get("split", g)
        is_table = "tab" in file
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


def copied(codes, g):
    """Return classes where each label is given to its group."""
    codes = codes.copy()
    for group in np.unique(g[codes >= 0]):
        rows = g == group
        majority = np.bincount(codes[rows & (codes >= 0)]).argmax()
        codes[rows & (codes < 0)] = majority
    return codes


def measured(data, seed):
    """Return the accuracies by method."""
    X, y, g, X_test, y_test, g_test = data
    rng = np.random.default_rng(seed)
    few = [rng.permutation(np.flatnonzero(y == k))[:N_LABELS] for k in np.unique(y)]
    codes = np.full(len(y), -1)
    codes[np.concatenate(few)] = y[np.concatenate(few)]
    L = GroupWhitening().fit(X, groups=g)
    both = [np.hstack([normalize(x - X.mean(0)), normalize(L.transform(x))]) for x in (X, X_test)]
    row = {
        "raw": linear(X, codes, X_test, y_test),
        "input and L": linear(both[0], codes, both[1], y_test),
        "copied": linear(X, copied(codes, g), X_test, y_test),
    }
    plain = ContrastiveClassifier(random_state=seed).fit(X, codes)
    row["classifier"] = plain.score(X_test, y_test)
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


def report(rows):
    """Print accuracies of raw vectors and differences from them, with 95 % intervals."""
    methods = [k for k in rows[0] if k not in ("set", "seed", "agreement", "pairs")]
    print("| set | pairs |", " | ".join(methods), "|")
    for name in (*SETS, "mean of the sets"):
        some = [row for row in rows if name == row["set"]]
        cells = []
        for method in methods:
            if name == "mean of the sets":
                gains = [
                    np.mean([r[method] - r["raw"] for r in rows if r["set"] == one])
                    for one in SETS
                ]
            else:
                gains = [r[method] - r["raw"] for r in some]
            if method == "raw":
                cells.append(f"{np.mean([r['raw'] for r in some or rows]):.3f}")
                continue
            half = student.ppf(0.975, len(gains) - 1) * np.std(gains, ddof=1) / len(gains) ** 0.5
            cells.append(f"{np.mean(gains):+.3f} ± {half:.3f}")
        pairs = np.mean([r["pairs"] for r in some or rows])
        print(f"| {name} | {pairs:.1f} |", " | ".join(cells), "|")


def main():
    """Measure the rows that are missing, or report those that are stored."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--rows", type=Path, default=RESULTS, help="file of the rows")
    args = parser.parse_args()
    if args.report:
        report(stored(args.rows))
        return
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    done = {(row["set"], row["seed"]) for row in stored(args.rows)}
    for seed in range(N_SEEDS):
        for name in SETS:
            if (name, seed) in done:
                continue
            row = {"set": name, "seed": seed, **measured(load(name, args.folder, seed), seed)}
            with args.rows.open("a") as file:
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
            print("|", " | ".join(map(str, row.values())), "|", flush=True)


if __name__ == "__main__":
    main()
