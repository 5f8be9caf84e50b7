"""Time and memory against the size of everything.

    OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE python -m benchmarks.speed.growth
    python -m benchmarks.speed.growth --tables "memory map" --rows 100000 1000000 10000000
    python -m benchmarks.speed.growth --tables kernels --aeon PYTHON  # of an environment with aeon
    python -m benchmarks.speed.growth --largest 100 --rounds 2  # a rehearsal: small sizes only

The first table has a row for each size of each axis. Seconds are those of a training step; of an
epoch or a call where the axis is the number of samples: medians over rounds in which the sizes of
an axis take turns in one process. Memory is the most by which resident memory of a process of its
own grows, after a fit of 100 samples, with the data, the network and two steps (Linux only), and
at least 1 MiB, since less is hidden by what the first fit has freed. The exponent is the slope
between the two largest sizes on a log-log plot: 1 is proportional. `--largest` leaves sizes out.

The memory map: rows of 16 columns in a file, an epoch of `fit` in a process of its own. Its own
memory does not count pages of the file, which the system may drop; the samples are read batch by
batch at all sizes.

Kernels: CPU milliseconds that MiniRocket takes for a series, 2,016 features, noise, on one thread,
and those of aeon's, which is compiled by numba, in a process of its own.
"""

from __future__ import annotations

import json
import multiprocessing
import subprocess
import sys
import tempfile
from math import log
from pathlib import Path
from statistics import median

import numpy as np
import torch

from benchmarks._results import Table, make_parser
from benchmarks.speed._bench import (
    in_another_process,
    in_turn,
    memory_of_a_long_call,
    peak_memory,
    stopped,
)
from skcontrast import ContrastiveClassifier, ContrastiveEmbedder
from skcontrast.augmentation import GaussianNoise
from skcontrast.encoders import GIN, MLP, ConvNet, SeriesNet
from skcontrast.features import MiniRocket, PatchDictionary, WeisfeilerLehman
from skcontrast.frameworks import InfoGraph, MoCo
from skcontrast.graphs import PackedGraphs
from skcontrast.losses import SupCon

WIDTH = 64  # of the projection
COLUMNS = 16  # of the memory map


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
    edges = np.concatenate([edges, edges[::-1]], 1)
    attributes = rng.normal(size=(n * nodes, 8))
    return PackedGraphs.from_arrays(edges, np.arange(n + 1) * nodes, attributes)


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
    """Embedding vectors by the wide default, by their number."""
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


# The memory map


def fit_map(path):
    """Print what a fit of a memory map takes, in JSON."""
    X = np.load(path, mmap_mode="r")
    fitted = embedder(
        256, encoder=MLP(widths=(32,)), projection_dim=16, max_epochs=1, memory_budget=1e-5
    )
    fitted.fit(X[:100])  # what is imported late is no part of the fit
    own, _, seconds = memory_of_a_long_call(lambda: fitted.fit(X))
    found = {"s": seconds, "rows/s": len(X) / seconds, "own MiB": own}
    print(json.dumps({**found, "file, MiB": X.nbytes / 2**20}))


def write_map(path, rows):
    """Write random rows to a file, a part at a time."""
    rng = np.random.default_rng(0)
    file = np.lib.format.open_memmap(path, "w+", np.float32, (rows, COLUMNS))
    for start in range(0, rows, 2**18):
        part = file[start : start + 2**18]
        part[:] = rng.standard_normal(part.shape, dtype=np.float32)
    file.flush()


def add_map(table, rows):
    """Add the row of a memory map."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "X.npy"
        write_map(path, rows)
        found = json.loads(in_another_process("--fit-map", path))
    table.add({"rows": rows, **found})


# The kernels, and aeon's

SHAPES = [(1000, 1, 128), (200, 1, 1000), (50, 12, 1000), (50, 1, 5000), (20, 12, 5000)]


def kernel_time(python, package, shape, rounds):
    """Return CPU milliseconds for a series, measured by another process."""
    script = Path(__file__).with_name("_kernel_time.py")
    command = [python, str(script), package, json.dumps(shape), str(rounds)]
    return float(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)


def add_kernels(table, shape, args):
    """Add the row of series of a shape."""
    row = {"series": f"{shape[1]} × {shape[2]}"}
    row["ms"] = kernel_time(sys.executable, "skcontrast", shape, args.rounds)
    if args.aeon:
        row["aeon's ms"] = kernel_time(args.aeon, "aeon", shape, args.rounds)
        row["ratio"] = row["ms"] / row["aeon's ms"]
    table.add(row)


def main():
    """Measure the tables that are asked for."""
    parser = make_parser(__doc__)
    tables = ["axes", "memory map", "kernels"]
    parser.add_argument("--tables", nargs="+", default=tables, choices=tables)
    parser.add_argument("--axes", nargs="+", default=list(AXES), choices=list(AXES))
    parser.add_argument("--largest", type=int, default=10**9, help="size of any axis")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--rows", nargs="+", type=int, default=[10**5, 10**6])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--aeon", help="a Python that has aeon, for the kernels")
    parser.add_argument("--fit-map", help="a file, for the process that is measured")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    if args.fit_map:
        fit_map(args.fit_map)
        return
    if "axes" in args.tables:
        with Table("axes", args, labels=2, ratios=["exponent of time"]) as table:
            for name in args.axes:
                add_axis(table, name, args)
    if "memory map" in args.tables:
        with Table("memory map", args, ratios=["own MiB"], digits=1) as table:
            for rows in args.rows:
                add_map(table, rows)
    if "kernels" in args.tables:
        with Table("kernels", args, ratios=["ratio"]) as table:
            for shape in SHAPES:
                add_kernels(table, shape, args)


if __name__ == "__main__":
    main()
