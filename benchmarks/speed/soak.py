"""What remains after many fits, epochs, losses and files: memory, threads, descriptors, processes.

    OMP_WAIT_POLICY=PASSIVE python -m benchmarks.speed.soak --save

Each row is one process that does the same thing many times. Its resident memory is taken after a
tenth of the repetitions, when everything has been imported and the allocator has warmed up, after
half, and at the end. "kB each" is the growth of the second half per repetition, "more" what there
is at the end that was not there after a tenth: threads, file descriptors, child processes, and
files in /dev/shm. Linux only. `--share` is that of the repetitions; `--only` does the work of a
row here and prints what it counted.
"""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import tempfile

import networkx as nx
import numpy as np
import torch
from skorch.callbacks import Callback
from torch.utils.data import TensorDataset

import skcontrast
from benchmarks._results import Table, make_parser
from benchmarks.speed._bench import in_another_process, process_status
from benchmarks.speed.loss_engine import OURS
from skcontrast import ContrastiveEmbedder, contrastive_loss
from skcontrast.augmentation import GaussianNoise, RandomAffine
from skcontrast.encoders import GIN, MLP, ConvNet
from skcontrast.frameworks import CMC, InfoGraph, MoCo
from skcontrast.losses import BCL, Ring, SemiSupCon
from skcontrast.schedules import Auto
from skcontrast.similarity import VonMisesFisher

RNG = np.random.default_rng(0)
VECTORS = RNG.normal(size=(48, 6)).astype(np.float32)
IMAGES = RNG.integers(0, 255, size=(24, 3, 16, 16), dtype=np.uint8)
GRAPHS = [nx.gnp_random_graph(8, 0.4, seed=k) for k in range(24)]
LABELS = np.arange(48) % 3
SMALL = {"max_epochs": 2, "batch_size": 16, "projection_dim": 8, "random_state": 0}


def embedder(encoder=None, **parameters):
    """Return a small embedder."""
    return ContrastiveEmbedder(encoder or MLP(8), **{**SMALL, **parameters})


FITS = (
    lambda: embedder().fit(VECTORS),
    lambda: embedder(ConvNet((4,))).fit(IMAGES),
    lambda: embedder(GIN(8), framework=InfoGraph()).fit(GRAPHS),
    lambda: embedder(framework=MoCo(queue_size=32)).fit(VECTORS),
    lambda: embedder(framework=CMC()).fit(VECTORS),
    lambda: embedder(similarity=VonMisesFisher(), warm_start=True).fit(VECTORS).fit(VECTORS),
    lambda: embedder(loss=BCL(alpha=Auto(every=1), tau_plus=Auto(every=1))).fit(VECTORS, LABELS),
    lambda: embedder(loss=SemiSupCon()).fit(VECTORS, np.where(np.arange(48) < 9, LABELS, -1)),
    lambda: embedder(MLP(8, dropout=0.1), loss=Ring(), augmentation=GaussianNoise()).fit(VECTORS),
    lambda: embedder(ConvNet((4,)), augmentation=RandomAffine()).fit(IMAGES[:, 0]),
)
LOSSES = [getattr(skcontrast.losses, name)() for name in OURS]


def fits(k):
    """One fit, each time of the next of ten kinds, and what follows it."""
    found = FITS[k % len(FITS)]()
    assert found.n_epochs_ >= 2


def refused_fits(k):
    """A fit that fails: before, during or at the end of the training."""
    X = VECTORS.copy()
    if k % 2:
        X[0, 0] = np.nan
    try:
        embedder(lr=1e-3 if k % 2 else 1e30, optimizer="sgd").fit(X)
    except ValueError:
        return
    raise AssertionError("the fit was not refused")


def losses(k):
    """The value and the gradient of one loss, each time of the next."""
    z1, z2 = (torch.randn(16, 8, requires_grad=True) for _ in range(2))
    loss = LOSSES[k % len(LOSSES)]
    y = torch.arange(16) % 3 if loss.requires_y else None
    contrastive_loss(z1, z2, loss=loss, y=y).backward()


STREAMED, SAVED = embedder(), embedder().fit(VECTORS)
DATASET = TensorDataset(torch.from_numpy(VECTORS))


def files(k):
    """A fitted embedder, saved and loaded."""
    with tempfile.TemporaryDirectory() as folder:
        skcontrast.save(SAVED, f"{folder}/a.safetensors")
        skcontrast.load(f"{folder}/a.safetensors").transform(VECTORS)


WORK = {
    "fits, ten kinds": (fits, 500),
    "fits that are refused": (refused_fits, 500),
    "losses with gradients": (losses, 100_000),
    "partial_fit of one embedder": (lambda k: STREAMED.partial_fit(VECTORS), 2000),
    "fits with two threads that read": (lambda k: embedder(n_workers=2).fit(DATASET), 60),
    "save and load": (files, 500),
    "transform": (lambda k: SAVED.transform(VECTORS), 20_000),
}
EPOCHS = "epochs of one fit"


class Watch(Callback):
    """Counts what there is at the end of some epochs."""

    def __init__(self, at):
        self.at, self.seen = at, []

    def on_epoch_end(self, net, **kwargs):
        """Count at the end of the epochs that are asked for."""
        if len(net.history) in self.at:
            self.seen.append(census())


def census():
    """Return what this process holds: KiB, threads, descriptors, children, shared files."""
    gc.collect()
    return {
        "KiB": process_status("VmRSS"),
        "threads": process_status("Threads"),
        "descriptors": len(os.listdir("/proc/self/fd")),
        "processes": len(multiprocessing.active_children()),
        "shared files": len(os.listdir("/dev/shm")),
    }


def repeat(name, share):
    """Do one kind of work many times; return three counts and the number of repetitions."""
    torch.manual_seed(0)
    if name == EPOCHS:
        n = max(10, round(2000 * share))
        watch = Watch({n // 10, n // 2, n})
        embedder(max_epochs=n, callbacks=[watch]).fit(VECTORS)
        return watch.seen, n
    work, n = WORK[name]
    n = max(10, round(n * share))
    seen = []
    for k in range(n):
        work(k)
        if k + 1 in {n // 10, n // 2, n}:
            seen.append(census())
    return seen, n


def row(name, share):
    """Do the work in a process of its own, and return what it held as a row."""
    printed = in_another_process("--only", name, "--share", share)
    (early, middle, late), n = json.loads(printed)
    return {
        "repeated": name,
        "times": n,
        "MiB after a tenth": early["KiB"] / 1024,
        "half": middle["KiB"] / 1024,
        "the end": late["KiB"] / 1024,
        "kB each": (late["KiB"] - middle["KiB"]) * 1.024 / (n - n // 2),
        **{f"more {key}": late[key] - early[key] for key in early if key != "KiB"},
    }


def main():
    """Print or store the table."""
    args = make_parser(__doc__, share=1.0, only=str).parse_args()
    if args.only:
        print(json.dumps(repeat(args.only, args.share)))
        return
    with Table("soak", args, packages=("skorch",), ratios=(), digits=2) as table:
        for name in [*WORK, EPOCHS]:
            table.add(row(name, args.share))


if __name__ == "__main__":
    main()
