"""Maps in the plane that a network has learned, beside UMAP, t-SNE and principal components.

    pip install umap-learn
    python -m benchmarks.studies.maps
    python -m benchmarks.studies.maps --sets Fashion-MNIST --n 2000

An embedder is trained as in the guide, then its encoder further with ``similarity=Cauchy()`` and a
head of two outputs. All rows see the training samples without labels. "15-NN" is the accuracy in
the plane on samples that were not used, which t-SNE cannot place; "15-NN, own" on the training
samples, each by its neighbours. Trustworthiness of the training samples is that of scikit-learn,
against the neighbours in the data as they are.
"""

from __future__ import annotations

import importlib.util
from time import process_time

import numpy as np
import torch
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE, trustworthiness
from sklearn.neighbors import KNeighborsClassifier

from benchmarks._protocol import SETS, split, use_threads
from benchmarks._results import Table, make_parser, means
from skcontrast import ContrastiveEmbedder
from skcontrast.similarity import Cauchy

N_NEIGHBORS = 15


def learned(X, X_test, args, seed):
    """Return the embedding of both parts, the map of both, and the CPU minutes up to each."""
    start = process_time()
    given = {"random_state": seed, "device": "cpu"}
    embedder = ContrastiveEmbedder(max_epochs=args.epochs, **given).fit(X)
    H = embedder.transform(X), embedder.transform(X_test)
    first = process_time() - start
    mapper = ContrastiveEmbedder(
        embedder.encoder_,
        similarity=Cauchy(),
        projection_dim=2,
        output="projection",
        max_epochs=args.map_epochs,
        lr=1e-2,
        **given,
    ).fit(X)
    return H, (mapper.transform(X), mapper.transform(X_test)), first, process_time() - start


def umap(H, H_test, seed):
    """Return the plane of UMAP."""
    from umap import UMAP

    n_threads = torch.get_num_threads()
    reducer = UMAP(random_state=seed, n_jobs=1).fit(H)
    planes = reducer.embedding_, reducer.transform(H_test)
    torch.set_num_threads(n_threads)
    return planes


def pca(H, H_test, seed):
    """Return two principal components."""
    reducer = PCA(2, random_state=seed).fit(H)
    return reducer.transform(H), reducer.transform(H_test)


def tsne(H, H_test, seed):
    """Return the plane of t-SNE, which has no place for other samples."""
    return TSNE(random_state=seed, n_jobs=1).fit_transform(H), None


HAS_UMAP = importlib.util.find_spec("umap") is not None
REDUCERS = {"PCA": pca, **({"UMAP": umap} if HAS_UMAP else {}), "t-SNE": tsne}


def judged(planes, flat, y, y_test, minutes):
    """Return the columns of a map."""
    plane, other = planes
    own = KNeighborsClassifier(N_NEIGHBORS).fit(plane, y)
    near = own.kneighbors(return_distance=False)
    votes = np.array([np.bincount(y[rows]).argmax() for rows in near])
    return {
        "15-NN": None if other is None else own.score(other, y_test),
        "15-NN, own": np.mean(votes == y),
        "trustworthiness": trustworthiness(flat, plane, n_neighbors=N_NEIGHBORS),
        "CPU min": minutes,
    }


def run(X, y, test, args, seed):
    """Return the columns of all rows for a seed."""
    train, held_out = split(y, test, args.n, seed)
    X, X_test, y, y_test = X[train], X[held_out], y[train], y[held_out]
    flat, flat_test = X.reshape(len(X), -1) / 1.0, X_test.reshape(len(X_test), -1) / 1.0
    H, plane, first, minutes = learned(X, X_test, args, seed)
    found = {"Cauchy": judged(plane, flat, y, y_test, minutes / 60)}
    for of, data, spent in (("data", (flat, flat_test), 0), ("embedding", H, first)):
        for name, reduce in REDUCERS.items():
            start = process_time()
            planes = reduce(*data, seed)
            spent_here = (spent + process_time() - start) / 60
            found[f"{name} of the {of}"] = judged(planes, flat, y, y_test, spent_here)
    return found


def main():
    """Print a table for each set."""
    sets = {"digits": "digits", "Fashion-MNIST": "Fashion-MNIST", "HAR": "HAR_part"}
    options = {"n": 2000, "data_home": str, "epochs": 30, "map_epochs": 150, "seeds": 3}
    args = make_parser(__doc__, sets=sets, **options).parse_args()
    use_threads()
    for name in args.sets:
        X, y, test = SETS[sets[name]](args)
        found = [run(X, y, test, args, seed) for seed in range(args.seeds)]
        with Table(f"maps: {name}", args, ratios=["15-NN"], packages=["umap-learn"]) as table:
            for row in found[0]:
                table.add({"row": row, **means([one[row] for one in found])})


if __name__ == "__main__":
    main()
