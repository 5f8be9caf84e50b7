"""What to label, and what to do with five labels per class: the recipes of the guide.

    python -m benchmarks.studies.few_label_recipes  # what to do with them, on digits
    python -m benchmarks.studies.few_label_recipes --sets CIFAR-10 --n 2500 --n-labels 20
    python -m benchmarks.studies.few_label_recipes --rows digits wine "breast cancer"

With `--rows` it compares ways to choose the rows that get a label, for embeddings of half of a
set: at random, the same number of each class, which needs to know the classes, `rows_to_label`,
the same in two rounds of half the labels each, and where scikit-activeml is installed, its
TypiClust and CoreSet. The score is that of a logistic regression on the other half. A name that
ends in `.npz` is a file of vectors, `X_train`, `y_train`, `X_test`, `y_test`, taken as they are;
any other name is a set of series, see `benchmarks/_series_sets.py`.

What follows is about the first table.

Every row is a representation of the images, every column a way to a classifier: logistic
regression at C = 1 on standardised features, the same with C chosen by cross-validation on the
labeled samples, scikit-learn's `SelfTrainingClassifier` around it, and `LabelSpreading`. The
column "cross-validated" is the score that the search reports, from the labeled samples alone;
neighbours know all labels. A seed draws the split, the labels, the weights and the views. Interval
and p are those of the difference from "no labels in fit" by logistic regression.

The embedder has seen the training images, without labels where the row does not say otherwise;
these and the test images; or the labeled images alone, as in a Pipeline without `FrozenEstimator`.
"Few labels" in `fit` are those that the classifier has.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

from benchmarks._image_sets import load_images
from benchmarks._protocol import SETS, draw_labels, load_vectors, split
from benchmarks._results import Table, make_parser, means, paired, spread
from benchmarks._series_sets import load_series
from skcontrast import ContrastiveEmbedder, rows_to_label
from skcontrast.features import PartialWhitening
from skcontrast.losses import SemiSupCon, SupCon
from skcontrast.metrics import knn_accuracy

LOGISTIC, NO_LABELS = "logistic regression", "no labels in fit"
EMBEDDINGS = [
    "raw",
    "untrained",
    NO_LABELS,
    "training and test images",
    "labeled images alone",
    "SemiSupCon, few labels",
    "SupCon, few labels",
    "SupCon, all labels",
]

SAMPLES = {
    "digits": lambda: (load_digits().images, load_digits().target),
    "wine": lambda: load_wine(return_X_y=True),
    "breast cancer": lambda: load_breast_cancer(return_X_y=True),
    "Fashion-MNIST": lambda: load_images("Fashion-MNIST")[:2],
}


def flat(X):
    """Return images as vectors."""
    return X.reshape(len(X), -1)


def trained(X, X_test, y, few):
    """Return what the embedder of a row sees in `fit`: samples, classes and the loss."""
    return {
        NO_LABELS: (X, None, None),
        "training and test images": (np.concatenate([X, X_test]), None, None),
        "labeled images alone": (X[few >= 0], None, None),
        "SemiSupCon, few labels": (X, few, SemiSupCon()),
        "SupCon, few labels": (X, few, SupCon()),
        "SupCon, all labels": (X, y, SupCon()),
    }


def embed(row, X, X_test, y, few, params):
    """Return the training and the test images as a row has them, as vectors."""
    if row == "raw":
        return flat(X), flat(X_test)
    if row == "untrained":
        embedder = ContrastiveEmbedder(**{**params, "max_epochs": 1, "lr": 1e-12}).fit(X)
    else:
        seen, classes, loss = trained(X, X_test, y, few)[row]
        embedder = ContrastiveEmbedder(loss=loss, **params).fit(seen, classes)
    return embedder.transform(X), embedder.transform(X_test)


def accuracies(H_train, y_train, few, H_test, y_test):
    """Return the accuracy of each recipe, what the search reports, and that of neighbours."""
    labeled = few >= 0
    classifier = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
    search = GridSearchCV(classifier, {"logisticregression__C": [0.01, 0.1, 1.0, 10.0]}, cv=5)
    spreading = LabelSpreading(kernel="knn", n_neighbors=10)
    fitted = {
        LOGISTIC: classifier.fit(H_train[labeled], few[labeled]),
        "C searched": search.fit(H_train[labeled], few[labeled]),
        "self-training": SelfTrainingClassifier(classifier, threshold=0.9).fit(H_train, few),
        "label spreading": make_pipeline(StandardScaler(), spreading).fit(H_train, few),
    }
    scores = {name: model.score(H_test, y_test) for name, model in fitted.items()}
    neighbours = knn_accuracy(H_train, y_train, H_test, y_test)
    return {**scores, "cross-validated": float(search.best_score_), "20-NN": neighbours}


def embedded(name, epochs):
    """Return embeddings and classes of the samples to choose from, and of those to judge by."""
    if name.endswith(".npz"):
        return load_vectors(name)
    samples = SAMPLES[name]() if name in SAMPLES else load_series(name)[:2]
    samples = [part[:4000] for part in samples]
    X, X_test, y, y_test = train_test_split(*samples, test_size=0.5, random_state=0)
    embedder = ContrastiveEmbedder(max_epochs=epochs or "auto", random_state=0).fit(X)
    return embedder.transform(X), y, embedder.transform(X_test), y_test


def of_each_class(H, y, n, seed):
    """Return n rows, the same number of each class."""
    few = draw_labels(y, n // len(np.unique(y)), seed)
    return np.flatnonzero(few >= 0)


def in_two_rounds(H, y, n, seed):
    """Return n rows, the second half chosen when the labels of the first are known."""
    first = rows_to_label(H, n // 2, random_state=seed)
    known = np.full(len(y), -1)
    known[first] = y[first]
    return np.concatenate([first, rows_to_label(H, n - n // 2, known, random_state=seed)])


def by_activeml(name):
    """Return a function that chooses rows by a strategy of scikit-activeml."""

    def choose(H, y, n, seed):
        from skactiveml import pool

        strategy = getattr(pool, name)(missing_label=-1, random_state=seed)
        Z = PartialWhitening(64, random_state=seed).fit_transform(H)
        unit = Z / np.linalg.norm(Z, axis=1, keepdims=True)
        return strategy.query(unit, np.full(len(H), -1), batch_size=n)

    return choose


CHOICES = {
    "at random": lambda H, y, n, seed: np.random.default_rng(seed).choice(
        len(H), n, replace=False
    ),
    "of each class": of_each_class,
    "rows_to_label": lambda H, y, n, seed: rows_to_label(H, n, random_state=seed),
    "in two rounds": in_two_rounds,
    "TypiClust": by_activeml("TypiClust"),
    "CoreSet": by_activeml("CoreSet"),
}


def accuracy(rows, y, H, H_test, y_test):
    """Return the accuracy that the labels of some rows give, also if they are all of one class."""
    if len(np.unique(y[rows])) == 1:
        return float(np.mean(y_test == y[rows[0]]))
    return LogisticRegression(max_iter=500).fit(H[rows], y[rows]).score(H_test, y_test)


def compare_choices(args):
    """Print one row per set and number of labels."""
    has_activeml = importlib.util.find_spec("skactiveml")
    names = list(CHOICES)[: None if has_activeml else -2]
    name = "series" if set(args.rows).isdisjoint(SAMPLES) else "rows"
    with Table(name, args, labels=2, packages=("scikit-activeml",)) as table:
        for name in args.rows:
            H, y, H_test, y_test = embedded(name, args.epochs)
            scaler, n_classes = StandardScaler().fit(H), len(np.unique(y))
            judged = y, scaler.transform(H), scaler.transform(H_test), y_test
            for a_class in args.per_class:
                figures = {}
                for choice in names:
                    seeds = range(args.seeds * (4 if choice == "at random" else 1))
                    rows = [CHOICES[choice](H, y, a_class * n_classes, seed) for seed in seeds]
                    figures[choice] = spread([accuracy(r, *judged) for r in rows])
                table.add({"set": Path(name).stem, "labels per class": a_class, **figures})


def compare_recipes(args):
    """Print a table for each set, with one row per representation."""
    for name in args.sets:
        X, y, test = SETS[name](args)
        found = {row: [] for row in args.embeddings}
        for seed in range(args.seeds):
            params = {"random_state": seed, "max_epochs": args.epochs or "auto"}
            train, held_out = split(y, test, args.n, seed)
            few = draw_labels(y[train], args.n_labels, seed)
            for row in args.embeddings:
                H, H_test = embed(row, X[train], X[held_out], y[train], few, params)
                found[row].append(accuracies(H, y[train], few, H_test, y[held_out]))
        scores = {row: [one[LOGISTIC] for one in runs] for row, runs in found.items()}
        title = f"{name}, {args.n:,}" if isinstance(test, int) else name
        with Table(title, args, ratios=(LOGISTIC, "20-NN")) as table:
            for row, runs in found.items():
                difference = paired(scores[row], scores.get(NO_LABELS))
                table.add({"representation": row, **means(runs), **difference})


def main():
    """Train and print one row per representation, or per set."""
    options = {"sets": ["digits"], "embeddings": EMBEDDINGS, "n": 2500, "n_labels": 5}
    options |= {"per_class": [1, 2, 5], "epochs": int, "seeds": 5, "data_home": str}
    parser = make_parser(__doc__, **options)
    parser.add_argument("--rows", nargs="+", help=f"files of vectors, or of {', '.join(SAMPLES)}")
    args = parser.parse_args()
    if args.rows:
        compare_choices(args)
    else:
        compare_recipes(args)


if __name__ == "__main__":
    main()
