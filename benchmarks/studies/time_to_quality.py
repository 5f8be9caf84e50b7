"""Time to quality: the accuracy of the default embedder and of its rivals against CPU minutes.

    pip install kornia pytorch-metric-learning umap-learn
    python -m benchmarks.studies.time_to_quality
    python -m benchmarks.studies.time_to_quality --sets CIFAR-10 --n 5000

Every fit is trained from the start for its number of epochs, with its own schedule of the learning
rate, and judged as in worth.py. The minutes are those of training and of embedding training and
test images. Rivals: what needs no training, UMAP, an autoencoder with the network and the views of
the embedder, and the training loop that a script would have: kornia's views, a DataLoader, a
convolutional network and the loss of pytorch-metric-learning. Each row is a single seed.
"""

from __future__ import annotations

import os
from argparse import Namespace
from functools import partial
from time import process_time

import torch

from benchmarks._results import Table, make_parser
from benchmarks.speed.peers_end_to_end import IMAGES, image_peers
from benchmarks.studies.worth import SETS, fits, judged, run, split

LOOP = "kornia, pytorch-metric-learning"
EPOCHS = {
    "default": (3, 12, 25, 50, 100),
    "autoencoder": (25,),
    LOOP: (25,),
}
ROWS = [(row, None) for row in ("as they are", "UMAP", "HOG", "patches", "untrained")]
ROWS += [(row, n_epochs) for row, numbers in EPOCHS.items() for n_epochs in numbers]
QUALITY = ["5 labels", "20-NN", "20-NN, half whitened", "linear"]


def loop(X, y, test, args, seed):
    """Return the columns of the training loop of a script, None where a package is missing."""
    embed = image_peers(X)[LOOP]
    if embed is None:
        return None
    rows = split(y, test, args.n, seed)
    start = process_time()
    H, H_test = embed(X, *rows, args, seed)
    minutes = (process_time() - start) / 60
    return {**judged(H, y[rows[0]], H_test, y[rows[1]], seed, scale=True), "CPU min": minutes}


def columns_of(row, X, y, test, args, seed):
    """Return the columns of a row, None where a package is missing."""
    return (loop if row == LOOP else partial(run, row))(X, y, test, args, seed)


def main():
    """Print a table for each set."""
    parser = make_parser(__doc__)
    parser.add_argument("--sets", nargs="+", default=["Fashion-MNIST"], choices=IMAGES)
    parser.add_argument("--n", type=int, default=4000, help="images to train on")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "2")))
    for name in args.sets:
        X, y, test = SETS[name](args)
        with Table(f"time: {name}", args, ratios=QUALITY, labels=2) as table:
            for row, n_epochs in ROWS:
                given = Namespace(epochs=n_epochs, n=args.n, temperature=None)
                found = columns_of(row, X, y, test, given, args.seed) if fits(row, X) else None
                if found is not None:
                    kept = {column: found[column] for column in ("CPU min", *QUALITY)}
                    table.add({"row": row, "epochs": n_epochs, **kept})


if __name__ == "__main__":
    main()
