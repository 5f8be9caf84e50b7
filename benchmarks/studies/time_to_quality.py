"""Time to quality: the accuracy of the default embedder and of baselines against CPU minutes.

    pip install kornia pytorch-metric-learning umap-learn scikit-image torch_geometric
    python -m benchmarks.studies.time_to_quality
    python -m benchmarks.studies.time_to_quality --sets CIFAR-10 --n 5000
    python -m benchmarks.studies.time_to_quality --sets molecules HAR_part --data-home FOLDER
    OMP_NUM_THREADS=2 python -m benchmarks.studies.time_to_quality --rows untrained default

Every fit is trained from the start for its number of epochs, with its own schedule of the learning
rate, and judged as in worth.py. The minutes, of the CPU and on the clock, are those of training
and of embedding training and test samples. Baselines: training-free baselines, UMAP, an
autoencoder with the network and the views of the embedder, a map in two dimensions by the recipe
of t-SimCNE (its similarity; encoder, views and steps of the embedder), and the training loop that
a script would have: for images kornia's views, a DataLoader, a convolutional network and the loss
of pytorch-metric-learning, for graphs InfoGraph by PyTorch Geometric. Each row is a single seed.
"""

from __future__ import annotations

from argparse import Namespace
from functools import partial
from time import perf_counter, process_time

from benchmarks._protocol import SETS, is_scaled, judged, split, use_threads
from benchmarks._results import Table, make_parser
from benchmarks._rows import fits, represented
from benchmarks.speed.peers_end_to_end import by_embedder, graph_loop, image_peers, unlearned
from skcontrast.graphs import PackedGraphs
from skcontrast.similarity import Cauchy

MAP, IMAGES, GRAPHS = "t-SimCNE", "kornia, pytorch-metric-learning", "PyG, InfoGraph"
EPOCHS = {
    "default": (3, 12, 25, 50, 100),
    "autoencoder": (25,),
    MAP: (25,),
    IMAGES: (3, 12),
    GRAPHS: (3, 12, 50),
}
UNTRAINED = ("raw", "UMAP", "HOG", "patches", "kernels", "profile", "colours", "untrained")
ROWS = {row: EPOCHS.get(row, (None,)) for row in (*UNTRAINED, *EPOCHS)}
QUALITY = ["5 labels", "20-NN", "20-NN, half whitened", "linear"]


def peer(row, X):
    """Return what embeds by a peer, None where that is not for X or a package is missing."""
    if isinstance(X, PackedGraphs):
        return graph_loop(X) if row == GRAPHS else None
    if X.ndim != 4 or row == GRAPHS:
        return None
    if row == MAP:
        return by_embedder(n_components=2, similarity=Cauchy())
    return image_peers(X)[row]


def embedding(row, X, y):
    """Return what embeds as a row does, None where it cannot be had."""
    if row in (MAP, IMAGES, GRAPHS):
        return peer(row, X)
    if row == "UMAP":
        return unlearned(row)  # compiled before its time is taken
    own = partial(represented, row, X, y)
    return (lambda X, *given: own(*given)[:2]) if fits(row, X) else None


def main():
    """Print a table for each set."""
    options = {"sets": ["Fashion-MNIST"], "rows": ROWS, "data_home": str, "n": 4000}
    args = make_parser(__doc__, **options, seed=0).parse_args()
    n_threads = use_threads()
    for name in args.sets:
        X, y, test = SETS[name](args)
        rows = split(y, test, args.n, args.seed)
        title = f"time: {name}" + (f", {n_threads} threads" if n_threads > 1 else "")
        with Table(title, args, ratios=QUALITY, labels=2) as table:
            for row in args.rows:
                embed = embedding(row, X, y)
                for n_epochs in ROWS[row] if embed is not None else ():
                    given = Namespace(epochs=n_epochs, temperature=None)
                    wall, cpu = perf_counter(), process_time()
                    H, H_test = embed(X, *rows, given, args.seed)
                    wall, cpu = perf_counter() - wall, process_time() - cpu
                    data = H, y[rows[0]], H_test, y[rows[1]]
                    found = judged(*data, args.seed, scale=row != MAP and is_scaled(row))
                    minutes = {"CPU min": cpu / 60, "min": wall / 60}
                    quality = {column: found[column] for column in QUALITY}
                    table.add({"row": row, "epochs": n_epochs, **minutes, **quality})


if __name__ == "__main__":
    main()
