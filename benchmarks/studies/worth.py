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
have all labels.

Columns: accuracy on test data of a logistic regression on standardised features with 1, 5 and 20
labels a class, of 20 neighbours (Euclidean, features as they are), of 20 neighbours by cosine in
half whitened features, of the regression with all labels, and of a ridge classifier with all
labels, its penalty by leave-one-out; the normalised mutual information of k-means and the classes;
CPU minutes of training and embedding. Principal components and UMAP are not standardised. A seed
sets the split, the labels, the weights and the views, for all rows alike. p is that of a paired
t-test over the seeds, between the five-label accuracies of the row and of the default, or of the
first row where the default is left out. The gap closed is the part of the way from the default to
Supervised that a row goes, where that is longer than .005.
"""

from __future__ import annotations

import importlib.util
from time import process_time

import numpy as np
import torch
from sklearn.base import clone
from sklearn.preprocessing import FunctionTransformer
from torch import nn

from benchmarks._protocol import (
    FEW,
    SETS,
    TABLES,
    is_scaled,
    judged,
    learned_width,
    plain,
    row_of,
    split,
    use_threads,
)
from benchmarks._results import Table, make_parser
from skcontrast import ContrastiveEmbedder
from skcontrast._fit._settings import automatic_epochs
from skcontrast.augmentation import compose
from skcontrast.estimation import tau_plus_from_labels
from skcontrast.features import (
    GraphProfile,
    MiniRocket,
    PatchDictionary,
    WeisfeilerLehman,
)
from skcontrast.kinds import Series
from skcontrast.losses import (
    BCL,
    DCL,
    HCL,
    PUCL,
    SINCERE,
    Ring,
    SoftRing,
    SoftSupCon,
    SupCon,
    Supervised,
)
from skcontrast.similarity import Cosine

ORACLE = "Supervised (all labels)"
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


ORACLES = {
    ORACLE: Supervised(),
    "SupCon (all labels)": SupCon(),
    "SINCERE (all labels)": SINCERE(),
}
LEARNED = "learned"
ROWS = [*PLAIN, *WIDE, "untrained", "autoencoder", "default", *losses(0.1), *ORACLES]


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


def main():
    """Print a table for each set."""
    options = {"data_home": str, "n": 4000, "epochs": int, "temperature": float, "seeds": 10}
    parser = make_parser(__doc__, **options)
    default_sets = ["digits", "digits as vectors", *TABLES]
    parser.add_argument("--sets", nargs="+", default=default_sets, choices=list(SETS))
    parser.add_argument("--rows", nargs="+", default=ROWS, choices=ROWS)
    args = parser.parse_args()
    use_threads()
    for name in args.sets:
        X, y, test = SETS[name](args)
        rows = [row for row in args.rows if fits(row, X)]
        found = {}
        for row in rows:
            runs = [run(row, X, y, test, args, seed) for seed in range(args.seeds)]
            found |= {part: [one[part] for one in runs] for part in runs[0]}
        title = f"{name}, {args.n:,}" if isinstance(test, int) else name
        title += f", temperature {args.temperature}" if args.temperature else ""
        reference = found.get("default", next(iter(found.values())))
        with Table(title, args, ratios=[FEW, "20-NN", "linear"], packages=["umap-learn"]) as table:
            for row, runs in found.items():
                table.add(row_of(row, runs, reference, found.get(ORACLE)))


if __name__ == "__main__":
    main()
