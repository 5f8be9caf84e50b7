"""What to do with five labels a class: the recipes of the guide, judged on held-out digits.

    python -m benchmarks.studies.few_label_recipes

Every row is a representation of the images, every column a way to a classifier: logistic
regression at C = 1 on standardised features, the same with C chosen by cross-validation on the
labeled samples, scikit-learn's `SelfTrainingClassifier` around it, and `LabelSpreading`. The
column "cross-validated" is the score that the search reports, from the labeled samples alone. A
seed draws the split, the labels, the weights and the views.

The rows "trained on ..." say what the embedder has seen, never with labels: the training images,
these and the test images, or the labeled images alone, as in a Pipeline without `FrozenEstimator`.
"""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

from benchmarks._results import Table, make_parser, spread
from benchmarks.studies.few_labels import draw_labels, split
from skcontrast import ContrastiveEmbedder


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


def main():
    """Train and print one row per representation."""
    parser = make_parser(__doc__)
    parser.add_argument("--n-labels", type=int, default=5, help="labels of each class")
    parser.add_argument("--epochs", type=int, help="those of the embedder if left out")
    parser.add_argument("--seeds", type=int, default=5)
    args = parser.parse_args()
    scores: dict[str, list] = {}
    for seed in range(args.seeds):
        X_train, y_train, X_test, y_test = split(None, None, seed)
        few = draw_labels(y_train, args.n_labels, seed)
        labeled = np.flatnonzero(few >= 0)
        for name, embed in representations(X_train, X_test, labeled, seed, args.epochs):
            found = accuracies(embed(X_train), few, embed(X_test), y_test)
            scores.setdefault(name, []).append(found)
            print(seed, name, {key: round(value, 3) for key, value in found.items()}, flush=True)
    with Table("digits", args, ratios=("C = 1",), digits=4) as table:
        for name, rows in scores.items():
            figures = {key: spread([row[key] for row in rows]) for key in rows[0]}
            table.add({"representation": name, **figures})


if __name__ == "__main__":
    main()
