"""Graphs: what training adds to counting labels or degrees, with few labels and for neighbours.

    python -m benchmarks.studies.graph_counting  # fetched once
    python -m benchmarks.studies.graph_counting --data-home DIR --sets ENZYMES --seeds 5

The rows are a bag of the labels, or where there are none the degrees, of the nodes, as counts and
as logarithms of counts (numerical attributes are summed likewise); the encoder with its first
weights, once without its input and with plain sums, once as by default; and the default embedder,
``ContrastiveEmbedder(random_state=seed).fit(X)``. It is fitted on all graphs without labels. The
columns are accuracies in percent: of a standardised logistic regression with 5, 10 and 20 random
labels per class, on all other graphs (`--draws` draws), and of 20 nearest neighbours among
standardised representations by 10-fold cross-validation. A figure is the mean over the seeds,
which change weights, draws and folds.
"""

from __future__ import annotations

from time import process_time

import numpy as np
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks._graph_sets import load_graphs
from benchmarks._results import Table, make_parser, spread
from skcontrast import ContrastiveEmbedder
from skcontrast.encoders import GIN
from skcontrast.graphs import NodeFeatures
from skcontrast.graphs._sums import graph_sum
from skcontrast.metrics import linear_probe

SETS = ["PTC_MR", "ENZYMES", "DD", "REDDIT-BINARY"]
UNTRAINED = {"lr": 1e-12, "max_epochs": 1}
ROWS = {
    "bag": None,
    "bag, log": None,
    "untrained, sums of layers": {"encoder": GIN(pooling="sum", readout_input=False), **UNTRAINED},
    "untrained": UNTRAINED,
    "trained": {},
}
N_LABELS = (5, 10, 20)


def represented(row, graphs, seed):
    """Return the representation of a row."""
    if ROWS[row] is not None:
        return ContrastiveEmbedder(**ROWS[row], random_state=seed).fit_transform(graphs)
    batch = NodeFeatures().fit(graphs).to_tensor(graphs, "cpu")
    sums = graph_sum(batch.x, batch.topology).numpy()
    return sums if row == "bag" else np.sign(sums) * np.log1p(np.abs(sums))


def few_labels(H, y, n_labels, draws, seed):
    """Return the accuracy on the unlabeled graphs, mean over draws of the labeled ones."""
    accuracies = []
    for draw in range(draws):
        rng = np.random.default_rng([seed, draw])
        order = rng.permutation(len(y))
        few = np.concatenate([order[y[order] == k][:n_labels] for k in np.unique(y)])
        rest = np.setdiff1d(order, few)
        accuracies.append(linear_probe(H[few], y[few], H[rest], y[rest]))
    return np.mean(accuracies)


def scores(H, y, draws, seed):
    """Return the accuracies of a representation in percent, by column."""
    neighbours = make_pipeline(StandardScaler(), KNeighborsClassifier(20))
    folds = StratifiedKFold(10, shuffle=True, random_state=seed)
    found = {f"{n} labels": few_labels(H, y, n, draws, seed) for n in N_LABELS}
    found["20-NN"] = cross_val_score(neighbours, H, y, cv=folds).mean()
    return {name: 100 * value for name, value in found.items()}


def main():
    """Print a table per dataset."""
    parser = make_parser(__doc__)
    parser.add_argument("--data-home", help="directory of the datasets; else they are fetched")
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--rows", nargs="+", default=list(ROWS), choices=list(ROWS))
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    for name in args.sets:
        graphs, y = load_graphs(name, args.data_home)
        with Table(name, args, digits=1) as table:
            for row in args.rows:
                start, by_seed = process_time(), []
                for seed in range(args.seeds):
                    H = represented(row, graphs, seed)
                    by_seed.append(scores(H, y, args.draws, seed))
                columns = {c: spread([s[c] for s in by_seed]) for c in by_seed[0]}
                table.add({"row": row, **columns, "CPU, s": (process_time() - start) / args.seeds})


if __name__ == "__main__":
    main()
