"""What an embedding is worth: the default embedder against everything that costs less.

    python -m benchmarks.studies.worth  # digits and small tables
    python -m benchmarks.studies.worth --sets digits --temperature 0.2 --epochs 60
    python -m benchmarks.studies.worth --sets Fashion-MNIST --n 4000
    python -m benchmarks.studies.worth --sets CIFAR-10 --n 5000 --epochs 50
    python -m benchmarks.studies.worth --sets PTC_MR ENZYMES --data-home FOLDER
    python -m benchmarks.studies.worth --sets molecules HAR_part --n 1200 --data-home FOLDER

Rows that learn nothing: the data as they are, standardised, their principal components, UMAP where
umap-learn is installed, the bag of labels or degrees of a graph, histograms of oriented gradients
where scikit-image is installed (4×4 pixels to a cell, 2×2 cells to a block), patches of images,
random kernels of series, profiles and colours of graphs, and the default with its first weights.
"learned" is the learned part of the default. A denoising autoencoder of images and vectors has the
encoder and the views of the default embedder and a linear decoder. Then come the default embedder
(``ContrastiveEmbedder(random_state=seed)``), the same with other losses, and the oracles, which
have all labels. For a few labels in fit see few_labels.py.

Columns: accuracy on test data of a logistic regression on standardised features with 1, 5 and 20
labels a class, of 20 neighbours (Euclidean, features as they are), of 20 neighbours by cosine in
half whitened features, of the regression with all labels, and of a ridge classifier with all
labels, its penalty by leave-one-out; the normalised mutual information of k-means and the classes;
CPU minutes of training and embedding. Principal components and UMAP are not standardised. A seed
sets the split, the labels, the weights and the views, for all rows alike. p is that of a paired
t-test over the seeds, between the five-label accuracies of the row and of the default. The gap
closed is the part of the way from the default to Supervised that a row goes, where that is longer
than .005.
"""

from __future__ import annotations

import importlib.util
import os
from time import process_time

import numpy as np
import torch
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.decomposition import PCA
from sklearn.linear_model import RidgeClassifierCV
from sklearn.metrics import normalized_mutual_info_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from torch import nn

from benchmarks._graph_sets import load_graphs
from benchmarks._image_sets import load_images
from benchmarks._made_graphs import MADE, made_graphs
from benchmarks._results import Table, make_parser, spread
from benchmarks._series_sets import load_series
from benchmarks.studies.graph_table import bag
from skcontrast import ContrastiveEmbedder
from skcontrast._fit._settings import automatic_epochs
from skcontrast.augmentation import compose
from skcontrast.estimation import tau_plus_from_labels
from skcontrast.features import (
    GraphProfile,
    MiniRocket,
    PartialWhitening,
    PatchDictionary,
    WeisfeilerLehman,
)
from skcontrast.kinds import Series
from skcontrast.losses import (
    BCL,
    DCL,
    HCL,
    PUCL,
    Ring,
    SoftRing,
    SoftSupCon,
    SupCon,
    Supervised,
)
from skcontrast.metrics import compare_paired, few_label_accuracy, knn_accuracy, linear_probe
from skcontrast.similarity import Cosine

GRAPHS = ("PTC_MR", "ENZYMES", "DD", "REDDIT-BINARY")
SERIES = ("HAR_part", "ECG5000", "FacesUCR")
TABLES = {"iris": load_iris, "wine": load_wine, "breast cancer": load_breast_cancer}
LABELS = (1, 5, 20)
FEW, ORACLE = "5 labels", "Supervised (all labels)"
PLAIN = ("as they are", "standardised", "PCA", "UMAP")


def oriented_gradients(X):
    """Return histograms of oriented gradients of images (n, channels, height, width)."""
    from skimage.feature import hog

    cells = {"pixels_per_cell": (4, 4), "cells_per_block": (2, 2)}
    return np.stack([hog(x, channel_axis=0, **cells) for x in X]).astype(np.float32)


WIDE = {
    "HOG": FunctionTransformer(oriented_gradients),
    "patches": PatchDictionary(random_state=0),
    "kernels": MiniRocket(random_state=0),
    "profile": GraphProfile(),
    "colours": WeisfeilerLehman(),
}
# The wide features of samples by their number of dimensions; None of graphs.
WIDE_OF = {2: (), 3: ("kernels",), 4: ("HOG", "patches"), None: ("profile", "colours")}


def losses(tau_plus):
    """Return the losses without labels, at the prior of the classes."""
    return {
        "DCL": DCL(tau_plus),
        "HCL": HCL(tau_plus, beta=0.5),
        "PUCL": PUCL(tau_plus, c=0.1),
        "BCL": BCL(0.9, tau_plus),
        "SoftRing, k = 4": SoftRing(4.0, tau_plus),
        "Ring(1, τ⁺)": Ring(1.0, tau_plus),
        "SoftSupCon": SoftSupCon(tau_plus=tau_plus),
    }


ORACLES = {ORACLE: Supervised(), "SupCon (all labels)": SupCon()}
LEARNED = "learned"
ROWS = [*PLAIN, *WIDE, "untrained", "autoencoder", "default", *losses(0.1), *ORACLES]


def digits(args, *, flat=False):
    """Return the digits, with intensities in [0, 1]."""
    X, y = load_digits(return_X_y=True)
    X = (X / 16).astype(np.float32)
    return (X if flat else X.reshape(-1, 1, 8, 8)), y, 0.25


def fashion(args):
    """Return all of Fashion-MNIST, and where its test set begins."""
    X_train, y_train, X_test, y_test = load_images("Fashion-MNIST")
    X = np.concatenate([X_train, X_test])[:, None]
    return X, np.concatenate([y_train, y_test]), len(X_train)


def cifar(args):
    """Return all of CIFAR-10, and where its test set begins."""
    X_train, y_train, X_test, y_test = load_images("CIFAR-10")
    return np.concatenate([X_train, X_test]), np.concatenate([y_train, y_test]), len(X_train)


def table(load):
    """Return a function that returns a table of scikit-learn, half of it to test on."""

    def loaded(args):
        X, y = load(return_X_y=True)
        return X.astype(np.float32), y, 0.5

    return loaded


def graphs(name):
    """Return a function that returns a set of graphs, half of it to test on."""

    def loaded(args):
        X, y = load_graphs(name, args.data_home)
        return X, y, 0.5

    return loaded


def made(name):
    """Return a function that returns twice `n` made graphs, half of them to test on."""

    def loaded(args):
        X, y = made_graphs(name, 2 * args.n)
        return X, y, 0.5

    return loaded


def series(name):
    """Return a function that returns a set of series, half of it to test on."""

    def loaded(args):
        X, y, _ = load_series(name, args.data_home)
        return X, y, 0.5

    return loaded


SETS = {
    "digits": digits,
    "digits as vectors": lambda args: digits(args, flat=True),
    **{name: table(load) for name, load in TABLES.items()},
    "Fashion-MNIST": fashion,
    "CIFAR-10": cifar,
    **{name: graphs(name) for name in GRAPHS},
    **{name: made(name) for name in MADE},
    **{name: series(name) for name in SERIES},
}


def split(y, test, n, seed):
    """Return the rows to train on and to test on.

    Where a test set of its own begins at row `test`, those are `n` and 3,000 random ones;
    otherwise `test` is a share, and the split is stratified.
    """
    if isinstance(test, float):
        rows = np.arange(len(y))
        return train_test_split(rows, stratify=y, random_state=seed, test_size=test)
    rng = np.random.default_rng(seed)
    drawn = rng.choice(test, n, replace=False)
    return drawn, test + rng.choice(len(y) - test, 3000, replace=False)


def numbers(X, rows):
    """Return what needs no learning: pixels, features, or how often each node label occurs."""
    if isinstance(X, np.ndarray):
        flat = X[rows].reshape(len(rows), -1)
        return flat / np.float32(255) if X.dtype == np.uint8 else np.nan_to_num(flat)
    return np.log1p(bag(X))[rows]


def plain(name, X, train, test, seed):
    """Return representations that no encoder has made."""
    A, B = numbers(X, train), numbers(X, test)
    if name == "as they are":
        return A, B
    scaler = StandardScaler().fit(A)
    A, B = scaler.transform(A), scaler.transform(B)
    if name == "standardised":
        return A, B
    reducer = PCA(min(64, *A.shape), random_state=seed)
    if name == "UMAP":
        from umap import UMAP

        reducer = UMAP(n_components=min(10, A.shape[1]), random_state=seed, n_jobs=1)
    return reducer.fit_transform(A), reducer.transform(B)


def autoencoded(embedder, X, epochs, seed):
    """Train the encoder of an embedder to undo its augmentations, through a linear decoder."""
    encoder, samples = embedder.encoder_.train(), torch.from_numpy(X)
    views = compose(embedder.augmentation_, samples.shape[1:])
    target = encoder[0](samples).flatten(1)
    torch.manual_seed(seed)
    decoder = nn.Linear(encoder(samples[:2]).shape[1], target.shape[1])
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-3)
    generator = torch.Generator().manual_seed(seed)
    for _ in range(epochs):
        for rows in torch.randperm(len(samples), generator=generator).split(128):
            decoded_views = decoder(encoder(views(samples[rows], generator)))
            loss = nn.functional.mse_loss(decoded_views, target[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return embedder


def judged(H, y, H_test, y_test, seed, *, scale):
    """Return the columns of a representation."""
    found = {}
    data = H, y, H_test, y_test
    least = np.unique(y, return_counts=True)[1].min()
    for k in LABELS:
        if k <= least:
            name = f"{k} label" + "s" * (k > 1)
            few = few_label_accuracy(*data, n_labels=k, random_state=100 * seed, scale=scale)
            found[name] = few.mean()
    found["20-NN"] = knn_accuracy(*data, metric="euclidean")
    whitening = PartialWhitening(random_state=0).fit(H)
    halves = whitening.transform(H), y, whitening.transform(H_test), y_test
    found["20-NN, half whitened"] = knn_accuracy(*halves, metric="cosine")
    found["linear"] = linear_probe(*data, scale=scale)
    ridge = RidgeClassifierCV(np.logspace(0, 5, 11))
    ridge = make_pipeline(StandardScaler(), ridge) if scale else ridge
    found["ridge"] = ridge.fit(H, y).score(H_test, y_test)
    clusters = KMeans(len(np.unique(y)), n_init=3, random_state=seed).fit_predict(H_test)
    found["NMI"] = normalized_mutual_info_score(y_test, clusters)
    return found


def fits(row, X):
    """Return whether a row can be had for such samples."""
    if row == "UMAP":
        return importlib.util.find_spec("umap") is not None
    if row == "HOG" and importlib.util.find_spec("skimage") is None:
        return False
    n_dims = X.ndim if isinstance(X, np.ndarray) else None
    return row in WIDE_OF[n_dims] if row in WIDE else row != "autoencoder" or n_dims in (2, 4)


def learned(name, X, y, args, seed):
    """Return the fitted embedder of a row that is trained once."""
    given = {"random_state": seed, "device": "cpu"}
    if isinstance(X, np.ndarray) and X.ndim == 3:
        given["kind"] = Series()
    if args.epochs:
        given["max_epochs"] = args.epochs
    if args.temperature:
        given["similarity"] = Cosine(args.temperature)
    if name in ("untrained", "autoencoder"):
        embedder = ContrastiveEmbedder(**{**given, "max_epochs": 1, "lr": 1e-12}).fit(X)
        epochs = args.epochs or automatic_epochs(len(X), 128)
        return embedder if name == "untrained" else autoencoded(embedder, X, epochs, seed)
    own = {"default": None, **losses(tau_plus_from_labels(y).value), **ORACLES}
    return ContrastiveEmbedder(**given, loss=own[name]).fit(X, y)


def represented(name, X, y, train, test, args, seed):
    """Return the training and the test part as a row has them, and of an embedder the width of
    what is learned, or None.
    """
    if name in WIDE:
        features = clone(WIDE[name]).fit(X[train])
        return features.transform(X[train]), features.transform(X[test])
    if name in PLAIN:
        n_threads = torch.get_num_threads()
        found = plain(name, X, train, test, seed)
        torch.set_num_threads(n_threads)  # UMAP takes all cores, and leaves it so
        return found
    embedder = learned(name, X[train], y[train], args, seed)
    return embedder.transform(X[train]), embedder.transform(X[test]), learned_width(embedder)


def run(name, X, y, test, args, seed):
    """Return the columns of a row for a seed; of the default, those of its learned part, too."""
    train, test = split(y, test, args.n, seed)
    start = process_time()
    H, H_test, *width = represented(name, X, y, train, test, args, seed)
    minutes = (process_time() - start) / 60
    parts = {name: (H, H_test)}
    if name == "default" and width != [None]:
        parts = {LEARNED: (H[:, : width[0]], H_test[:, : width[0]]), **parts}
    return {
        part: {
            **judged(some, y[train], some_test, y[test], seed, scale=is_scaled(name)),
            "CPU min": minutes,
        }
        for part, (some, some_test) in parts.items()
    }


def is_scaled(name):
    """Return whether probes of a row standardise it."""
    return name not in ("PCA", "UMAP")


def learned_width(embedder):
    """Return how many columns of the representation are learned, which come first."""
    widths = [getattr(part, "learned_width", None) for part in embedder.encoder_.modules()]
    return next((width for width in widths if width is not None), None)


def p_value(ours, theirs):
    """Return the p-value of a paired t-test, None where the differences do not vary."""
    has_spread = len(ours) > 1 and np.ptp(np.subtract(ours, theirs)) > 1e-9
    return compare_paired(ours, theirs).p_t if has_spread else None


def row_of(name, runs, default, oracle):
    """Return a row of the table: means over the seeds, and how it compares."""
    row = {"row": name}
    for column in runs[0]:
        values = [one[column] for one in runs]
        row[column] = spread(values) if len(values) > 1 else values[0]
    if default is not None and runs is not default:
        ours, theirs = ([one[FEW] for one in some] for some in (runs, default))
        row["p"] = p_value(ours, theirs)
        gap = 0 if oracle is None else np.mean([one[FEW] for one in oracle]) - np.mean(theirs)
        row["gap closed"] = (np.mean(ours) - np.mean(theirs)) / gap if gap > 0.005 else None
    return row


def main():
    """Print a table for each set."""
    parser = make_parser(__doc__)
    default_sets = ["digits", "digits as vectors", *TABLES]
    parser.add_argument("--sets", nargs="+", default=default_sets, choices=list(SETS))
    parser.add_argument("--rows", nargs="+", default=ROWS, choices=ROWS)
    parser.add_argument("--data-home", help="folder of the sets of graphs and series")
    parser.add_argument("--n", type=int, default=4000, help="images or made graphs to train on")
    parser.add_argument("--epochs", type=int, help="those of the embedder if left out")
    parser.add_argument("--temperature", type=float, help="that of the embedder if left out")
    parser.add_argument("--seeds", type=int, default=10)
    args = parser.parse_args()
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "2")))
    for name in args.sets:
        X, y, test = SETS[name](args)
        rows = [row for row in args.rows if fits(row, X)]
        found = {}
        for row in rows:
            runs = [run(row, X, y, test, args, seed) for seed in range(args.seeds)]
            found |= {part: [one[part] for one in runs] for part in runs[0]}
        title = f"{name}, {args.n:,}" if isinstance(test, int) else name
        title += f", temperature {args.temperature}" if args.temperature else ""
        with Table(title, args, ratios=[FEW, "20-NN", "linear"], packages=["umap-learn"]) as table:
            for row, runs in found.items():
                table.add(row_of(row, runs, found.get("default"), found.get(ORACLE)))


if __name__ == "__main__":
    main()
