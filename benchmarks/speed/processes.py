"""Several processes that train one network: the time of a step, and what of it is communication.

    OMP_NUM_THREADS=1 python -m benchmarks.speed.processes --batches 128 1024 4096 --save

Each row is one fit, by as many processes as it says, of images of three channels and 16 × 16
pixels, which a network without batch normalisation embeds. Each process has one thread, or a GPU
with `--device cuda`. "s a step" is the median of the steps after the first two, "CPU s a step"
what the first process computes in them; "communication" is the share of the time of these steps
that it spends in all_reduce, where it also waits for the others.
"""

from __future__ import annotations

import multiprocessing
import socket
from concurrent.futures import ProcessPoolExecutor
from statistics import median
from time import perf_counter, process_time

import numpy as np
import torch
import torch.distributed as dist
from skorch.callbacks import Callback

from benchmarks._results import Table, make_parser
from skcontrast import ContrastiveEmbedder
from skcontrast.encoders import ConvNet

WIDTHS = (16, 32)
WARM_UP = 2


class Clock(Callback):
    """Notes when steps end, and how long each was in all_reduce."""

    def on_train_begin(self, net, **kwargs):
        self.ends, self.computed, self.waits, self.now = [], [], [], 0.0

    def on_batch_end(self, net, **kwargs):
        self.ends.append(perf_counter())
        self.computed.append(process_time())
        self.waits.append(self.now)
        self.now = 0.0

    def timed(self, function):
        """Return a function that adds its time to that of the step."""

        def call(tensor):
            start = perf_counter()
            function(tensor)
            if tensor.is_cuda:
                torch.cuda.synchronize()
            self.now += perf_counter() - start

        return call


def fit(rank, size, port, batch, steps, device):
    """Fit in one of several processes; return seconds and CPU seconds a step, share of waiting."""
    torch.set_num_threads(1)
    clock = Clock()
    if size > 1:
        if device == "cuda":
            torch.cuda.set_device(rank)
        backend = "nccl" if device == "cuda" else "gloo"
        dist.init_process_group(
            backend, init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=size
        )
        dist.all_reduce = clock.timed(dist.all_reduce)
    n = batch * (steps + WARM_UP)
    X = np.random.default_rng(0).integers(0, 256, (n, 3, 16, 16), np.uint8)
    ContrastiveEmbedder(
        ConvNet(widths=WIDTHS, batch_norm=False),
        batch_size=batch,
        max_epochs=1,
        precision="float32",
        device=device,
        callbacks=[clock],
        random_state=0,
    ).fit(X)
    times, computed = (np.diff(ends)[WARM_UP - 1 :] for ends in (clock.ends, clock.computed))
    return median(times), median(computed), sum(clock.waits[WARM_UP:]) / times.sum()


def row(size, batch, steps, device):
    """Return a row of the table."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(size, mp_context=context) as pool:
        ranks = [pool.submit(fit, k, size, port, batch, steps, device) for k in range(size)]
        (seconds, computed, waiting), *_ = (rank.result() for rank in ranks)
    return {
        "batch": batch,
        "processes": size,
        "s a step": seconds,
        "CPU s a step": computed,
        "communication": waiting,
    }


def main():
    """Print or store the table."""
    options = {"batches": [128, 512, 4096], "sizes": [1, 2], "steps": 4, "device": "cpu"}
    args = make_parser(__doc__, **options).parse_args()
    with Table("processes", args, labels=2, ratios=("communication",)) as table:
        for batch in args.batches:
            for size in args.sizes:
                table.add(row(size, batch, args.steps, args.device))


if __name__ == "__main__":
    main()
