"""ContrastiveClassifier on Fashion-MNIST: six labels a class among 3,060 images, in one object.

    python -m benchmarks.studies.classifier

Rows share an embedder where they can: 30 epochs without labels, which the classifier chooses by
itself. Accuracy on 2,000 test images, one column for each split, and the CPU seconds of the first,
the embedder included. Label spreading is also tried on the pixels.

    python -m benchmarks.studies.classifier --draws 10

What guesses gain, on four sets with one embedder each, as the classifier makes it by itself: means
of so many draws of the labels, from the rows to learn from.
"""

from __future__ import annotations

import os
from time import process_time

import numpy as np
import torch
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

from benchmarks._image_sets import load_images
from benchmarks._protocol import draw_labels
from benchmarks._results import Table, make_parser, paired, spread
from skcontrast import ContrastiveClassifier

N_TRAIN, N_LABELS, N_TEST = 3060, 6, 2000
SPREADING = LabelSpreading("knn", n_neighbors=10)


def split(seed):
    """Return X, y with −1 where unknown, and X and y to test on."""
    X, y, X_test, y_test = load_images("Fashion-MNIST")
    rng = np.random.default_rng(seed)
    rows = rng.choice(len(X), N_TRAIN, replace=False)
    test = rng.choice(len(X_test), N_TEST, replace=False)
    known = np.concatenate([np.flatnonzero(y[rows] == k)[:N_LABELS] for k in range(10)])
    few = np.full(N_TRAIN, -1)
    few[known] = y[rows][known]
    return X[rows][:, None], few, X_test[test][:, None], y_test[test]


def run(seed):
    """Return accuracy and CPU seconds of each row."""
    X, few, X_test, y_test = split(seed)
    found, start = {}, process_time()

    def note(name, score, since):
        found[name] = score, process_time() - since

    alone = ContrastiveClassifier(guess=False, random_state=seed).fit(X, few)
    note("logistic regression on the embedding", alone.score(X_test, y_test), start)
    shared = process_time() - start
    embedder, known = alone.embedder_, few >= 0
    H, H_test = alone.transform(X), alone.transform(X_test)
    linear = LogisticRegression(max_iter=1000)
    rivals = {
        "the default, with guesses": ContrastiveClassifier(embedder, random_state=seed),
        "label spreading on the embedding": SPREADING,
        "self-training on the embedding": SelfTrainingClassifier(
            LogisticRegression(max_iter=1000)
        ),
    }
    for name, model in rivals.items():
        begin = process_time() - shared
        own = isinstance(model, ContrastiveClassifier)
        A, B = (X, X_test) if own else (H, H_test)
        note(name, model.fit(A, few).score(B, y_test), begin)
    begin = process_time()
    with_labels = ContrastiveClassifier(use_labels=True, guess=False, random_state=seed)
    note("use_labels=True, no guesses", with_labels.fit(X, few).score(X_test, y_test), begin)
    flat, flat_test = X.reshape(len(X), -1) / 255, X_test.reshape(len(X_test), -1) / 255
    begin = process_time()
    note("label spreading on the pixels", SPREADING.fit(flat, few).score(flat_test, y_test), begin)
    begin = process_time()
    plain = make_pipeline(StandardScaler(), linear)
    plain.fit(flat[known], few[known])
    note("logistic regression on the pixels", plain.score(flat_test, y_test), begin)
    return found


def images(n_train, n_test):
    """Return Fashion-MNIST, cut and divided."""
    X, y, X_test, y_test = load_images("Fashion-MNIST")
    return X[:n_train], X_test[:n_test], y[:n_train], y_test[:n_test]


def parted(X, y):
    """Return samples and classes, three quarters of them to learn from."""
    return train_test_split(X, y, stratify=y, random_state=0)


# Samples, and how many labels there are of each class.
DRAWN = {
    "digits": (lambda: parted(load_digits().images, load_digits().target), 5),
    "wine": (lambda: parted(*load_wine(return_X_y=True)), 3),
    "breast cancer": (lambda: parted(*load_breast_cancer(return_X_y=True)), 5),
    "Fashion-MNIST": (lambda: images(N_TRAIN, N_TEST), 6),
}


def compare_draws(args):
    """Print the table of several draws of the labels."""
    with Table("classifier: draws", args) as table:
        for name, (load, n_labels) in DRAWN.items():
            X, X_test, y, y_test = load()
            few = draw_labels(y, n_labels, 0)
            embedder = ContrastiveClassifier(guess=False, random_state=0).fit(X, few).embedder_
            found = {"known alone": [], "with guesses": []}
            for seed in range(args.draws):
                few = draw_labels(y, n_labels, seed)
                for row, guess in zip(found, (False, True), strict=True):
                    model = ContrastiveClassifier(embedder, guess=guess, random_state=seed)
                    found[row].append(model.fit(X, few).score(X_test, y_test))
            scores = {row: spread(values) for row, values in found.items()}
            differences = paired(found["with guesses"], found["known alone"])
            table.add({"set": f"{name}, {n_labels} a class", **scores, **differences})


def main():
    """Print the table."""
    parser = make_parser(__doc__)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--draws", type=int, help="draws of the labels on four sets")
    args = parser.parse_args()
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "2")))
    if args.draws:
        compare_draws(args)
        return
    runs = [run(seed) for seed in range(args.seeds)]
    with Table("classifier: Fashion-MNIST", args, ratios=[]) as table:
        for row in runs[0]:
            scores = {f"split {k + 1}": one[row][0] for k, one in enumerate(runs)}
            table.add({"row": row, **scores, "CPU s": runs[0][row][1]})


if __name__ == "__main__":
    main()
