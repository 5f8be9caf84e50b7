"""What studies share: sets, splits, what needs no encoder, judges and rows of tables."""

from __future__ import annotations

import os

import numpy as np
import torch
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.decomposition import PCA
from sklearn.linear_model import RidgeClassifierCV
from sklearn.metrics import normalized_mutual_info_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks._graph_sets import load_graphs
from benchmarks._image_sets import load_images
from benchmarks._results import means, paired
from benchmarks._series_sets import load_series
from benchmarks._synthetic_graphs import MADE, made_graphs
from skcontrast.encoders import GIN
from skcontrast.features import PartialWhitening
from skcontrast.graphs._features import NodeFeatures
from skcontrast.metrics import few_label_accuracy, knn_accuracy, linear_probe

GRAPHS = ("PTC_MR", "ENZYMES", "DD", "REDDIT-BINARY")
SERIES = ("HAR_part", "ECG5000", "FacesUCR")
TABLES = {"iris": load_iris, "wine": load_wine, "breast cancer": load_breast_cancer}
LABELS = (1, 5, 20)
FEW = "5 labels"
CONCATENATED = ("standardised blocks", "normalised blocks", "blocks of equal weight")


def use_threads():
    """Let torch have the threads that OMP_NUM_THREADS says, or two; return how many."""
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "2")))
    return torch.get_num_threads()


def remembering(model):
    """Let a fitted model transform each array once, and return it."""
    known, transform = {}, model.transform

    def remembered(X):
        if id(X) not in known:
            known[id(X)] = transform(X)
        return known[id(X)]

    model.transform = remembered
    return model


def digits(args, *, flat=False):
    """Return the digits, with intensities in [0, 1]."""
    X, y = load_digits(return_X_y=True)
    X = (X / 16).astype(np.float32)
    return (X if flat else X.reshape(-1, 1, 8, 8)), y, 0.25


def fashion(args):
    """Return all of Fashion-MNIST, and where its test set begins."""
    X_train, y_train, X_test, y_test = load_images("Fashion-MNIST", args.data_home)
    X = np.concatenate([X_train, X_test])[:, None]
    return X, np.concatenate([y_train, y_test]), len(X_train)


def cifar(args):
    """Return all of CIFAR-10, and where its test set begins."""
    X_train, y_train, X_test, y_test = load_images("CIFAR-10", args.data_home)
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
    """Return a function that returns twice `n` synthetic graphs, half of them to test on."""

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


def load_vectors(path):
    """Return X_train, y_train, X_test, y_test of a file of vectors."""
    with np.load(path) as file:
        X, X_test = (file[key].astype(np.float32) for key in ("X_train", "X_test"))
        return X, file["y_train"], X_test, file["y_test"]


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
    otherwise `test` is a share, the split is stratified, and `n` the most to train on.
    """
    if isinstance(test, float):
        rows = np.arange(len(y))
        train, others = train_test_split(rows, stratify=y, random_state=seed, test_size=test)
        return train[:n], others
    rng = np.random.default_rng(seed)
    drawn = rng.choice(test, n, replace=False)
    return drawn, test + rng.choice(len(y) - test, 3000, replace=False)


def draw_labels(y, n, seed):
    """Return the classes of n samples of each class, −1 for all other samples."""
    rng, few = np.random.default_rng(seed), np.full(len(y), -1)
    for k in np.unique(y):
        few[rng.choice(np.flatnonzero(y == k), n, replace=False)] = k
    return few


def numbers(X, rows):
    """Return what needs no learning: pixels, features, or how often each node label occurs."""
    if isinstance(X, np.ndarray):
        flat = X[rows].reshape(len(rows), -1)
        return flat / np.float32(255) if X.dtype == np.uint8 else np.nan_to_num(flat)
    return np.log1p(bag(X))[rows]


def plain(name, X, train, test, seed):
    """Return representations that no encoder has made."""
    A, B = numbers(X, train), numbers(X, test)
    if name == "raw":
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


def gin(n_layers=3, width=32):
    """Return the encoder of the protocol, which does not read out its input."""
    return GIN(n_layers, width, "sum", readout_input=False)


def bag(graphs):
    """Return how often each label, or degree, occurs in each graph, shape (n_graphs, n_codes)."""
    batch = NodeFeatures("auto", False).fit(graphs).to_tensor(graphs, "cpu")
    counts = np.zeros((len(graphs), batch.n_codes))
    np.add.at(counts, (batch.batch.numpy(), batch.codes.numpy()), 1)
    return counts


def judged(H, y, H_test, y_test, seed, *, scale, quick=False):
    """Return the columns of a representation; a quick judge leaves out those that take long."""
    found = {}
    data = H, y, H_test, y_test
    least = np.unique(y, return_counts=True)[1].min()
    for k in LABELS[quick:]:
        if k <= least:
            name = f"{k} label" + "s" * (k > 1)
            few = few_label_accuracy(*data, n_labels=k, random_state=100 * seed, scale=scale)
            found[name] = few.mean()
    found["20-NN"] = knn_accuracy(*data, metric="euclidean")
    whitening = PartialWhitening(random_state=0).fit(H)
    halves = whitening.transform(H), y, whitening.transform(H_test), y_test
    found["20-NN, half whitened"] = knn_accuracy(*halves, metric="cosine")
    found["linear"] = linear_probe(*data, scale=scale)
    if quick:
        return found
    ridge = RidgeClassifierCV(np.logspace(0, 5, 11))
    ridge = make_pipeline(StandardScaler(), ridge) if scale else ridge
    found["ridge"] = ridge.fit(H, y).score(H_test, y_test)
    clusters = KMeans(len(np.unique(y)), n_init=3, random_state=seed).fit_predict(H_test)
    found["NMI"] = normalized_mutual_info_score(y_test, clusters)
    return found


def is_scaled(name):
    """Return whether probes of a row standardise it."""
    return name not in ("PCA", "UMAP", "whitened", *CONCATENATED)


def row_of(name, runs, default, oracle):
    """Return a row of the table: means over the seeds, and how it compares."""
    row = {"row": name, **means(runs)}
    if default is not None and runs is not default and FEW in runs[0]:
        ours, theirs = ([one[FEW] for one in some] for some in (runs, default))
        row |= paired(ours, theirs)
        gap = 0 if oracle is None else np.mean([one[FEW] for one in oracle]) - np.mean(theirs)
        row["gap closed"] = (np.mean(ours) - np.mean(theirs)) / gap if gap > 0.005 else None
    return row
