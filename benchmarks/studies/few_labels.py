"""Few labels, in fit or only in the classifier: the same ones, judged on held-out data.

    python -m benchmarks.studies.few_labels  # digits
    python -m benchmarks.studies.few_labels --data Fashion-MNIST --epochs 25 --seeds 3

Every row is an embedding of the training samples by which a standardised logistic regression
learns from a few labels of each class. In rows with "few labels", `fit` gets these labels too, and
−1 for all other samples; with "all labels" it gets all, as a ceiling. A seed draws the split, the
labels, the weights and the views. Differences are from the label-free embedding of the same seed,
with the p-value of a paired t-test over the seeds.
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from benchmarks._image_sets import SETS, load_images
from benchmarks._results import Table, make_parser, paired, spread
from skcontrast import ContrastiveEmbedder
from skcontrast.losses import InfoNCE, SemiSupCon, SupCon, Supervised
from skcontrast.metrics import knn_accuracy, linear_probe

BASE = "no labels in fit"
# row: (loss, the labels that fit gets)
ROWS = {
    BASE: (InfoNCE(), None),
    "SemiSupCon, few labels": (SemiSupCon(), "few"),
    "SupCon, few labels": (SupCon(), "few"),
    "Supervised, few labels": (Supervised(), "few"),
    "SupCon, all labels": (SupCon(), "all"),
}


def split(name, n_train, seed):
    """Return X_train, y_train, X_test, y_test."""
    if name is None:
        X, y = load_digits(return_X_y=True)
        X_train, X_test, y_train, y_test = train_test_split(
            X.reshape(-1, 8, 8), y, stratify=y, random_state=seed
        )
        return X_train, y_train, X_test, y_test
    data = load_images(name)
    rows = np.random.default_rng(seed).choice(len(data[0]), n_train, replace=False)
    return data[0][rows], data[1][rows], *data[2:]


def draw_labels(y, n, seed):
    """Return the classes of n samples of each class, −1 for all other samples."""
    rng, few = np.random.default_rng(seed), np.full(len(y), -1)
    for k in np.unique(y):
        few[rng.choice(np.flatnonzero(y == k), n, replace=False)] = k
    return few


def judge(train, y_train, few, test, y_test):
    """Return the accuracies with the few labels, and of 20 neighbours with all labels."""
    train, test = train.reshape(len(train), -1), test.reshape(len(test), -1)
    known = few >= 0
    accuracy = linear_probe(train[known], few[known], test, y_test)
    return accuracy, knn_accuracy(train, y_train, test, y_test)


def embeddings(data, few, rows, seed, args):
    """Yield the name of each row, and the embedded training and test samples."""
    X_train, y_train, X_test, _ = data
    yield "raw", X_train, X_test
    params = {"random_state": seed, "device": args.device}
    if args.epochs:
        params["max_epochs"] = args.epochs
    untrained = ContrastiveEmbedder(**{**params, "max_epochs": 1, "lr": 1e-12}).fit(X_train)
    yield "untrained", untrained.transform(X_train), untrained.transform(X_test)
    for name in rows:
        loss, labels = ROWS[name]
        embedder = ContrastiveEmbedder(loss=loss, **params)
        embedder.fit(X_train, {None: None, "few": few, "all": y_train}[labels])
        yield name, embedder.transform(X_train), embedder.transform(X_test)


def row(name, scores, base):
    """Return a row of the table from the scores of the seeds, shape (n_seeds, 2)."""
    probes = {"few labels": scores[:, 0], "20-NN, all labels": scores[:, 1]}
    figures = {probe: spread(values.tolist()) for probe, values in probes.items()}
    return {
        "embedding": name,
        **figures,
        "difference": float((scores - base)[:, 0].mean()),
        **paired(scores[:, 0], base[:, 0]),
    }


def main():
    """Train and print one row per embedding."""
    parser = make_parser(__doc__)
    parser.add_argument("--data", choices=SETS, help="digits if absent")
    parser.add_argument("--table", default="digits", help="name under which --save stores it")
    parser.add_argument("--n-train", type=int, default=4000, help="images drawn from the set")
    parser.add_argument("--n-labels", type=int, default=5, help="labels of each class")
    parser.add_argument("--rows", nargs="*", default=list(ROWS), choices=list(ROWS))
    parser.add_argument("--epochs", type=int, help="those of the embedder if left out")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--seeds", type=int, default=5)
    args = parser.parse_args()
    scores: dict[str, list] = {}
    for seed in range(args.seeds):
        data = split(args.data, args.n_train, seed)
        few = draw_labels(data[1], args.n_labels, seed)
        for name, train, test in embeddings(data, few, args.rows, seed, args):
            scores.setdefault(name, []).append(judge(train, data[1], few, test, data[3]))
            print(seed, name, *np.round(scores[name][-1], 4), flush=True)
    scores = {name: np.array(values) for name, values in scores.items()}
    with Table(args.table, args, ratios=("few labels",), digits=4) as table:
        for name, values in scores.items():
            table.add(row(name, values, scores.get(BASE, values)))


if __name__ == "__main__":
    main()
