"""Graphs: what the default embedding is worth against all training-free baselines.

    python -m benchmarks.studies.graph_worth  # sets that are made
    python -m benchmarks.studies.graph_worth --sets PTC_MR ENZYMES --data-home FOLDER

Rows: logarithms of the numbers of nodes and edges; the bag of node labels, or of degrees; the
profile; the colours of Weisfeiler and Lehman; the default with its first weights ("untrained") and
trained.

Every row is made from all graphs without their classes, and standardised by all of them. Columns:
accuracy of a logistic regression with 10 labels per class, ten draws from one half and tested on
the other; of an SVM with an RBF kernel, its C chosen by inner folds, on five folds. A seed sets
halves, draws, folds, weights and views, for all rows alike; the made sets, and the graphs of
larger ones, are drawn again for each.
"""

from __future__ import annotations

import numpy as np
import torch
from sklearn.model_selection import (
    GridSearchCV,
    StratifiedKFold,
    cross_val_score,
    train_test_split,
)
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from benchmarks._graph_sets import load_graphs
from benchmarks._protocol import bag
from benchmarks._results import Table, make_parser, means
from benchmarks._synthetic_graphs import MADE, made_graphs
from skcontrast import ContrastiveEmbedder
from skcontrast.features import GraphProfile, WeisfeilerLehman
from skcontrast.metrics import few_label_accuracy


def representations(graphs, epochs, seed):
    """Return the representation of each row, scaled."""
    sizes = np.log(np.c_[graphs.sizes, 1 + np.bincount(_owners(graphs), minlength=len(graphs))])
    start = ContrastiveEmbedder(random_state=seed, max_epochs=1, lr=1e-12).fit(graphs)
    embedder = ContrastiveEmbedder(random_state=seed, max_epochs=epochs or "auto").fit(graphs)
    found = {
        "size": sizes,
        "bag": np.log1p(bag(graphs)),
        "profile": GraphProfile().fit_transform(graphs),
        "colours": WeisfeilerLehman().fit_transform(graphs),
        "untrained": start.transform(graphs),
        "default": embedder.transform(graphs),
    }
    return {name: StandardScaler().fit_transform(H) for name, H in found.items()}


def _owners(graphs):
    """Return the graph of each edge."""
    return graphs.topology.graph_of_node[graphs.topology.sources].numpy()


def judged(H, y, seed):
    """Return the columns of a representation."""
    halves = train_test_split(np.arange(len(y)), stratify=y, test_size=0.5, random_state=seed)
    train, test = halves
    few = few_label_accuracy(
        H[train], y[train], H[test], y[test], n_labels=10, random_state=seed, scale=False
    )
    svm = GridSearchCV(SVC(), {"C": [0.1, 1, 10, 100]}, cv=3)
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    return {"10 labels": few.mean(), "SVM": cross_val_score(svm, H, y, cv=folds).mean()}


def main():
    """Print a table for each set."""
    options = {"sets": list(MADE), "data_home": str, "n": 600, "epochs": int, "seeds": 3}
    args = make_parser(__doc__, **options).parse_args()
    torch.set_num_threads(1)
    for name in args.sets:
        runs = {}
        for seed in range(args.seeds):
            if name in MADE:
                graphs, y = made_graphs(name, args.n, seed)
            else:
                graphs, y = load_graphs(name, args.data_home)
            rows = np.random.RandomState(seed).permutation(len(y))[: args.n]
            graphs, y = graphs[np.sort(rows)], np.asarray(y)[np.sort(rows)]
            for row, H in representations(graphs, args.epochs, seed).items():
                runs.setdefault(row, []).append(judged(H, y, seed))
        with Table(name, args) as table:
            for row, found in runs.items():
                table.add({"row": row, **means(found)})


if __name__ == "__main__":
    main()
