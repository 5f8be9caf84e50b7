"""Time and memory against the size of everything.

    OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE python -m benchmarks.speed.growth
    python -m benchmarks.speed.growth --largest 100 --rounds 2  # a rehearsal: small sizes only

The first table has a row for each size of each axis. Seconds are those of a training step; of an
epoch or a call where the axis is the number of samples: medians over rounds in which the sizes of
an axis take turns in one process. Memory is the most by which resident memory of a process of its
own grows, after a fit of 100 samples, with the data, the network and two steps (Linux only), and
at least 1 MiB, since less is hidden by what the first fit has freed. The exponent is the slope
between the two largest sizes on a log-log plot: 1 is proportional. `--largest` leaves sizes out.

Kernels: CPU milliseconds that MiniRocket takes for a series, 2,016 features, noise.
"""

from __future__ import annotations

import multiprocessing
from math import log
from statistics import median
from time import process_time

import numpy as np
import torch

from benchmarks._results import Table, make_parser
from benchmarks.speed._bench import in_turn, peak_memory, stopped
from skcontrast import ContrastiveClassifier, ContrastiveEmbedder
from skcontrast.augmentation import GaussianNoise
from skcontrast.encoders import GIN, MLP, ConvNet, SeriesNet
from skcontrast.features import MiniRocket, PatchDictionary, WeisfeilerLehman
from skcontrast.frameworks import InfoGraph, MoCo
from skcontrast.graphs import PackedGraphs
from skcontrast.graphs._packed import Topology
from skcontrast.losses import SupCon

WIDTH = 64  # of the projection
SHAPES = [(1000, 1, 128), (200, 1, 1000), (50, 12, 1000), (50, 1, 5000), (20, 12, 5000)]


# The axes: each returns a function that takes a step, or an epoch


def vectors(n, d=64):
    """Return random vectors."""
    return np.random.default_rng(0).standard_normal((n, d), dtype=np.float32)


def embedder(batch, **kwargs):
    """Return an embedder of vectors."""
    given = {"encoder": MLP(widths=(64,)), "augmentation": GaussianNoise(), "device": "cpu"}
    return ContrastiveEmbedder(**{**given, **kwargs}, batch_size=batch, random_state=0)


def samples(n):
    """An epoch by the number of samples."""
    X = vectors(n)
    return lambda: embedder(256, max_epochs=1).fit(X)


def batch(n):
    """A step by the size of the batch."""
    return stopped(embedder(n), vectors(n)).step


def columns(d):
    """A step by the number of columns of X."""
    return stopped(embedder(256), vectors(256, d)).step


def queue(n):
    """A step of MoCo by the length of its queue."""
    fit = stopped(embedder(64, framework=MoCo(queue_size=n)), vectors(n, 16))
    keys = fit.net.criterion_.queue
    keys.push(torch.randn_like(keys.keys), torch.arange(len(keys.keys)))
    return fit.step


def classes(n):
    """A step of SupCon by the number of classes."""
    y = np.arange(1024) % n
    return stopped(embedder(1024, loss=SupCon()), vectors(1024), y).step


def random_graphs(n, nodes):
    """Return random graphs with two edges for each node, in both directions."""
    rng, first = np.random.default_rng(0), nodes * np.arange(n)[:, None]
    edges = np.stack([(rng.integers(0, nodes, (n, 2 * nodes)) + first).ravel() for _ in range(2)])
    edges = torch.from_numpy(np.concatenate([edges, edges[::-1]], 1))
    attributes = torch.from_numpy(rng.normal(size=(n * nodes, 8))).float()
    return PackedGraphs(Topology.from_edges(edges, torch.arange(n + 1) * nodes, True), attributes)


def graphs(nodes):
    """A step of InfoGraph by the nodes of a graph, 16 graphs."""
    of_graphs = {"encoder": GIN(width=32), "framework": InfoGraph(), "augmentation": None}
    return stopped(embedder(16, **of_graphs), random_graphs(16, nodes)).step


def channels(n):
    """A step by the channels of images of 16 × 16 pixels, 64 of them."""
    X = np.random.default_rng(0).random((64, n, 16, 16), dtype=np.float32)
    of_images = {"encoder": ConvNet(widths=(16, 32)), "augmentation": None}
    return stopped(embedder(64, **of_images), X).step


def times_of_a_series(n):
    """A step by the length of series of three channels, 32 of them."""
    X = np.random.default_rng(0).standard_normal((32, 3, n), dtype=np.float32)
    return stopped(embedder(32, encoder=SeriesNet(), augmentation=None), X).step


def transform(n):
    """Embedding vectors by the default, by their number."""
    fitted, X = embedder(256, encoder=None, max_epochs=1).fit(vectors(1000)), vectors(n)
    return lambda: fitted.transform(X)


def score(n):
    """The score without labels by the number of vectors."""
    fitted, X = embedder(256, max_epochs=1).fit(vectors(1000)), vectors(n)
    return lambda: fitted.score(X)


def classifier(n):
    """A fit of a classifier of one epoch, 1 % of the vectors labeled, by their number."""
    X = vectors(n)
    y = np.where(np.arange(n) % 100 == 0, (X[:, 0] > 0).astype(int), -1)
    model = ContrastiveClassifier(embedder(256, max_epochs=1), random_state=0)
    return lambda: model.fit(X, y)


def patches(n):
    """The dictionary of patches and its codes, by the number of images of 16 × 16 pixels."""
    X = np.random.default_rng(0).integers(0, 256, (n, 16, 16), dtype=np.uint8)
    features = PatchDictionary(n_patches=64, random_state=0)
    return lambda: features.fit_transform(X)


def kernels(n):
    """Random kernels by the number of series of 100 times."""
    X = np.random.default_rng(0).standard_normal((n, 1, 100), dtype=np.float32)
    features = MiniRocket(random_state=0)
    return lambda: features.fit_transform(X)


def colours(n):
    """Counts of colours by the number of graphs of 20 nodes."""
    X, features = random_graphs(n, 20), WeisfeilerLehman()
    return lambda: features.fit_transform(X)


THOUSANDS = [10**k for k in range(3, 6)]
AXES = {
    "samples": (samples, THOUSANDS),
    "batch": (batch, [2**k for k in range(6, 15, 2)]),
    "columns": (columns, [2**k for k in range(4, 15, 2)]),
    "queue": (queue, [2**k for k in range(8, 19, 2)]),
    "classes": (classes, [2, 10, 100, 1000]),
    "nodes of a graph": (graphs, [2**k for k in range(4, 13, 2)]),
    "channels": (channels, [2**k for k in range(0, 9, 2)]),
    "times of a series": (times_of_a_series, [2**k for k in range(5, 12, 2)]),
    "transform": (transform, THOUSANDS),
    "score": (score, THOUSANDS),
    "classifier": (classifier, THOUSANDS),
    "patches": (patches, THOUSANDS[:2]),
    "kernels": (kernels, THOUSANDS[:2]),
    "colours": (colours, THOUSANDS[:2]),
}


def memory(make, size):
    """Return the MiB by which a process grows that makes something and runs it twice."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_send_memory, args=(theirs, make, size))
    process.start()
    theirs.close()  # so that a process that dies is an error here
    mib = ours.recv()
    process.join()
    return max(mib, 1.0)


def _send_memory(pipe, make, size):
    def run():
        call = make(size)
        call(), call()

    samples(100)()  # pages that a forked process gets as it runs at all are not counted
    pipe.send(peak_memory(run))


def add_axis(table, name, args):
    """Add a row for each size of an axis, smallest first."""
    make, sizes = AXES[name]
    sizes = [size for size in sizes if size <= args.largest or size in sizes[:2]]
    mib = {size: memory(make, size) for size in sizes}
    seconds = in_turn({size: make(size) for size in sizes}, args.rounds)
    times = {size: median(of) for size, of in seconds.items()}
    for k, size in enumerate(sizes):
        slopes = {"exponent of time": None, "exponent of memory": None}
        if k == len(sizes) - 1:
            slopes = {
                f"exponent of {what}": slope(figures, *sizes[-2:])
                for what, figures in (("time", times), ("memory", mib))
            }
        row = {"axis": name, "size": size, "ms": 1e3 * times[size], "MiB": mib[size]}
        table.add({**row, **slopes})


def slope(figures, small, large):
    """Return the slope on a log-log plot between two sizes."""
    return log(figures[large] / figures[small]) / log(large / small)


def kernel_time(shape, rounds):
    """Return the median of the CPU milliseconds that kernels take for a series of a shape."""
    X = np.random.default_rng(0).standard_normal(shape, dtype=np.float32)
    features, seconds = MiniRocket(2016, random_state=0).fit(X), []
    for _ in range(rounds + 1):
        start = process_time()
        features.transform(X)
        seconds.append(process_time() - start)
    return 1e3 * median(seconds[1:]) / len(X)


def main():
    """Measure the tables that are asked for."""
    options = {"tables": ["axes", "kernels"], "axes": AXES, "largest": 10**9, "rounds": 9}
    args = make_parser(__doc__, **options, threads=1).parse_args()
    torch.set_num_threads(args.threads)
    if "axes" in args.tables:
        with Table("axes", args, labels=2, ratios=["exponent of time"]) as table:
            for name in args.axes:
                add_axis(table, name, args)
    if "kernels" in args.tables:
        with Table("kernels", args, ratios=[]) as table:
            for shape in SHAPES:
                ms = kernel_time(shape, args.rounds)
                table.add({"series": f"{shape[1]} × {shape[2]}", "ms": ms})


if __name__ == "__main__":
    main()
