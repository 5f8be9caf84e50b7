"""What it gains to know which samples belong together, without knowing their classes.

    python -m benchmarks.studies.groups  # digits
    python -m benchmarks.studies.groups --sets CIFAR-10 --n 2500 --epochs 25

The samples of each class are divided at random into `--parts` groups, so that 1 / parts of the
pairs of a class are known to belong together; nothing says which groups are of one class. They go
to ``fit(X, groups=groups)``, as "neutral" or as "positive". Alongside stand raw data,
the untrained encoder, the default embedder and the oracles that know all classes. All are judged
as in worth.py.

    python -m benchmarks.studies.groups --pairs digits vectors.npz

Vectors, and pairs of rows of one class: each sample is in one pair. A file holds `X_train`,
`y_train`, `X_test` and `y_test`; digits are divided into halves. Baselines that know the pairs are
whitened by the differences within pairs (RCA). Three labels of each class teach a logistic
regression on rows of length 1, five draws; retrieval is the share of the right class among the
five training samples with the highest cosine.
"""

from __future__ import annotations

from pathlib import Path
from time import process_time

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import normalize

from benchmarks._protocol import (
    FEW,
    SETS,
    judged,
    load_vectors,
    plain,
    row_of,
    split,
    use_threads,
)
from benchmarks._results import Table, make_parser, spread
from benchmarks._rows import ORACLE, ORACLES
from skcontrast import ContrastiveEmbedder
from skcontrast.similarity import Cosine

GROUPED = {"groups, neutral": "neutral", "groups, positive": "positive"}
ROWS = ("raw", "untrained", "default", *GROUPED, *ORACLES)


def draw_groups(y, parts, seed):
    """Divide each class at random into groups of the same size, up to one sample."""
    rng, groups = np.random.default_rng(seed), np.empty(len(y), dtype=int)
    for place, k in enumerate(np.unique(y)):
        rows = rng.permutation(np.flatnonzero(y == k))
        groups[rows] = place * parts + np.arange(len(rows)) % parts
    return groups


def embeddings(row, X, y, X_test, seed, args):
    """Return the representations of the samples to learn from and to test on."""
    given = {"random_state": seed, "device": "cpu"}
    if args.epochs:
        given["max_epochs"] = args.epochs
    if row == "untrained":
        given |= {"max_epochs": 1, "lr": 1e-12}
    embedder = ContrastiveEmbedder(**given, loss=ORACLES.get(row))
    if row in GROUPED:
        embedder.set_params(same_group=GROUPED[row])
        embedder.fit(X, groups=draw_groups(y, args.parts, seed))
    else:
        embedder.fit(X, y)
    return embedder.transform(X), embedder.transform(X_test)


def run(row, X, y, test, args, seed):
    """Return the columns of a row for a seed."""
    train, held_out = split(y, test, args.n, seed)
    if row == "raw":
        H, H_test = plain(row, X, train, held_out, seed)
    else:
        H, H_test = embeddings(row, X[train], y[train], X[held_out], seed, args)
    return judged(H, y[train], H_test, y[held_out], seed, scale=True)


def whitened(V, groups, V_test):
    """Return vectors whitened by the differences within pairs, shrunk by a tenth."""
    order = np.argsort(groups, kind="stable")
    order = order[groups[order] >= 0]
    D = V[order[::2]] - V[order[1::2]]
    scatter = D.T @ D / len(D)
    scatter += 0.1 * np.trace(scatter) / len(scatter) * np.eye(len(scatter))
    values, axes = np.linalg.eigh(scatter)
    return V @ (axes / np.sqrt(values)), V_test @ (axes / np.sqrt(values))


def of_pairs(**params):
    """Return a function that embeds vectors by their pairs."""

    def embed(V, groups, V_test):
        embedder = ContrastiveEmbedder(same_group="positive", random_state=0, **params)
        embedder.fit(V, groups=groups)
        return embedder.transform(V), embedder.transform(V_test)

    return embed


BY_PAIRS = {
    "unchanged": lambda V, groups, V_test: (V, V_test),
    "whitened by pairs": whitened,
    "embedder": of_pairs(),
    "embedder, temperature 0.1": of_pairs(similarity=Cosine(0.1)),
}


def vectors(name):
    """Return vectors and classes to learn from, and to judge by."""
    if not name.endswith(".npz"):
        V, y = load_digits(return_X_y=True)
        V, V_test, y, y_test = train_test_split(V, y, test_size=0.5, stratify=y, random_state=0)
        return V, y, V_test, y_test
    return load_vectors(name)


def paired(y, seed):
    """Return groups of two samples of one class, −1 for one that is left over."""
    rng, groups, n = np.random.default_rng(seed), np.full(len(y), -1), 0
    for k in np.unique(y):
        rows = rng.permutation(np.flatnonzero(y == k))
        rows = rows[: len(rows) // 2 * 2].reshape(-1, 2)
        groups[rows] = n + np.arange(len(rows))[:, None]
        n += len(rows)
    return groups


def judged_vectors(V, y, V_test, y_test):
    """Return the accuracy of three labels per class, and the precision of five neighbours."""
    V, V_test = normalize(V), normalize(V_test)
    found = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        drawn = [rng.choice(np.flatnonzero(y == k), 3, replace=False) for k in np.unique(y)]
        rows = np.concatenate(drawn)
        model = LogisticRegression(C=10, max_iter=2000).fit(V[rows], y[rows])
        found.append(model.score(V_test, y_test))
    nearest = np.argsort(-V_test @ V.T, axis=1)[:, :5]
    return {"3 labels": spread(found), "5 nearest": np.mean(y[nearest] == y_test[:, None])}


def compare_pairs(args):
    """Print a table of the sets of vectors."""
    with Table("pairs", args, labels=2, ratios=["3 labels", "5 nearest"]) as table:
        for name in args.pairs:
            V, y, V_test, y_test = vectors(name)
            groups = paired(y, seed=0)
            for row, embed in BY_PAIRS.items():
                start = process_time()
                H, H_test = embed(V, groups, V_test)
                seconds = process_time() - start
                scores = judged_vectors(H, y, H_test, y_test)
                set_of = f"{Path(name).stem}, {groups.max() + 1} pairs"
                table.add({"set": set_of, "vectors": row, **scores, "CPU, s": round(seconds)})


def main():
    """Print a table for each set, or one for sets of vectors with pairs."""
    options = {"sets": ["digits"], "rows": ROWS, "parts": 5, "n": 2500, "epochs": int}
    parser = make_parser(__doc__, **options, seeds=5)
    parser.add_argument("--pairs", nargs="+", help="digits, or files of vectors")
    args = parser.parse_args()
    use_threads()
    if args.pairs:
        compare_pairs(args)
        return
    for name in args.sets:
        X, y, test = SETS[name](args)
        found = {
            row: [run(row, X, y, test, args, seed) for seed in range(args.seeds)]
            for row in args.rows
        }
        title = f"{name}, {args.n:,}" if isinstance(test, int) else name
        with Table(title, args, ratios=[FEW, "20-NN", "linear"]) as table:
            for row, runs in found.items():
                table.add(row_of(row, runs, found.get("default"), found.get(ORACLE)))


if __name__ == "__main__":
    main()
