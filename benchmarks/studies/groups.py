"""What it gains to know which samples belong together, without knowing their classes.

    python -m benchmarks.studies.groups  # digits
    python -m benchmarks.studies.groups --sets CIFAR-10 --n 2500 --epochs 25

The samples of each class are divided at random into `--parts` groups, so that 1 / parts of the
pairs of a class are known to belong together; nothing says which groups are of one class. They go
to ``fit(X, groups=groups)``, as "neutral" or as "positive". Alongside stand the data as they are,
the untrained encoder, the default embedder and the oracles that know all classes. All are judged
as in worth.py.
"""

from __future__ import annotations

import os

import numpy as np
import torch

from benchmarks._protocol import FEW, SETS, judged, plain, row_of, split
from benchmarks._results import Table, make_parser
from benchmarks.studies.worth import ORACLE, ORACLES
from skcontrast import ContrastiveEmbedder

GROUPED = {"groups, neutral": "neutral", "groups, positive": "positive"}
ROWS = ("as they are", "untrained", "default", *GROUPED, *ORACLES)


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
    if row == "as they are":
        H, H_test = plain(row, X, train, held_out, seed)
    else:
        H, H_test = embeddings(row, X[train], y[train], X[held_out], seed, args)
    found = judged(H, y[train], H_test, y[held_out], seed, scale=True)
    print(seed, row, {name: round(value, 3) for name, value in found.items()}, flush=True)
    return found


def main():
    """Print a table for each set."""
    parser = make_parser(__doc__)
    parser.add_argument("--sets", nargs="+", default=["digits"], choices=list(SETS))
    parser.add_argument("--rows", nargs="+", default=ROWS, choices=ROWS)
    parser.add_argument("--parts", type=int, default=5, help="groups in each class")
    parser.add_argument("--n", type=int, default=2500, help="images to train on")
    parser.add_argument("--epochs", type=int, help="those of the embedder if left out")
    parser.add_argument("--seeds", type=int, default=5)
    args = parser.parse_args()
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "2")))
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
