"""What to label, and what to do with five labels a class: the recipes of the guide.

    python -m benchmarks.studies.few_label_recipes  # what to do with them, on digits
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
column "cross-validated" is the score that the search reports, from the labeled samples alone. A
seed draws the split, the labels, the weights and the views.

The rows "trained on ..." say what the embedder has seen, never with labels: the training images,
these and the test images, or the labeled images alone, as in a Pipeline without `FrozenEstimator`.
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
from benchmarks._protocol import draw_labels, load_vectors
from benchmarks._results import Table, make_parser, means, spread
from benchmarks._series_sets import load_series
from skcontrast import ContrastiveEmbedder, rows_to_label
from skcontrast.features import PartialWhitening

SAMPLES = {
    "digits": lambda: (load_digits().images, load_digits().target),
    "wine": lambda: load_wine(return_X_y=True),
    "breast cancer": lambda: load_breast_cancer(return_X_y=True),
    "Fashion-MNIST": lambda: load_images("Fashion-MNIST")[:2],
}


def flat(X):
    """Return images as vectors."""
    return X.reshape(len(X), -1)


def representations(X_train, X_test, labeled, seed, epochs):
    """Yield the name of each row and a function from images to vectors."""
    params = {"random_state": seed} | ({"max_epochs": epochs} if epochs else {})
    yield "raw pixels", flat
    untrained = {**params, "max_epochs": 1, "lr": 1e-12}
    yield "untrained", ContrastiveEmbedder(**untrained).fit(X_train).transform
    seen = {"training": X_train, "training and test": np.concatenate([X_train, X_test])}
    for name, X in {**seen, "labeled": X_train[labeled]}.items():
        yield f"trained on {name} images", ContrastiveEmbedder(**params).fit(X).transform


def accuracies(H_train, few, H_test, y_test):
    """Return the accuracy of each recipe, and what the search reports."""
    labeled = few >= 0
    classifier = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
    search = GridSearchCV(classifier, {"logisticregression__C": [0.01, 0.1, 1.0, 10.0]}, cv=5)
    spreading = LabelSpreading(kernel="knn", n_neighbors=10)
    fitted = {
        "C = 1": classifier.fit(H_train[labeled], few[labeled]),
        "C searched": search.fit(H_train[labeled], few[labeled]),
        "self-training": SelfTrainingClassifier(classifier, threshold=0.9).fit(H_train, few),
        "label spreading": make_pipeline(StandardScaler(), spreading).fit(H_train, few),
    }
    scores = {name: model.score(H_test, y_test) for name, model in fitted.items()}
    return {**scores, "cross-validated": float(search.best_score_)}


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
                table.add({"set": Path(name).stem, "labels a class": a_class, **figures})


def main():
    """Train and print one row per representation, or per set."""
    options = {"per_class": [1, 2, 5], "n_labels": 5, "epochs": int, "seeds": 5}
    parser = make_parser(__doc__, **options)
    parser.add_argument("--rows", nargs="+", help=f"files of vectors, or of {', '.join(SAMPLES)}")
    args = parser.parse_args()
    if args.rows:
        compare_choices(args)
        return
    scores: dict[str, list] = {}
    for seed in range(args.seeds):
        X_train, X_test, y_train, y_test = train_test_split(
            *SAMPLES["digits"](), stratify=SAMPLES["digits"]()[1], random_state=seed
        )
        few = draw_labels(y_train, args.n_labels, seed)
        labeled = np.flatnonzero(few >= 0)
        for name, embed in representations(X_train, X_test, labeled, seed, args.epochs):
            found = accuracies(embed(X_train), few, embed(X_test), y_test)
            scores.setdefault(name, []).append(found)
    with Table("digits", args, ratios=("C = 1",), digits=4) as table:
        for name, rows in scores.items():
            table.add({"representation": name, **means(rows)})


if __name__ == "__main__":
    main()
