"""A training step on one CPU thread next to several, and the work at which they pay.

    OMP_WAIT_POLICY=PASSIVE python -m benchmarks.speed.threads
    python -m benchmarks.speed.threads --busy 2  # with two processes that compute
    OMP_WAIT_POLICY=PASSIVE python -m benchmarks.speed.threads --threads 2 4 8 16

Work is the number of multiplications of the encoder's forward pass of a batch. Steps on one thread
and on several are timed in turn within one process; "faster" is the median over rounds of the time
on one thread, divided by that on several.
"""

from __future__ import annotations

import multiprocessing
import os
from statistics import median

import numpy as np
import torch
from torch.utils.flop_counter import FlopCounterMode

from benchmarks._results import Table, make_parser
from benchmarks.speed._bench import in_turn, ratios, stopped
from skcontrast import ContrastiveEmbedder
from skcontrast.encoders import MLP, ResNet

BATCH = 128


def images(side, channels=1):
    """Return random images of bytes."""
    shape = (BATCH, channels, side, side)
    return np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)


def numbers(*shape):
    """Return random numbers."""
    return np.random.default_rng(0).standard_normal((BATCH, *shape), dtype=np.float32)


CASES = {
    "vectors of 64 features": (lambda: numbers(64), {}),
    "vectors of 561 features": (lambda: numbers(561), {}),
    "vectors of 384 features, MLP of 2 × 2048": (
        lambda: numbers(384),
        {"encoder": MLP(widths=(2048, 2048))},
    ),
    "images of 8 × 8": (lambda: images(8), {}),
    "images of 16 × 16": (lambda: images(16), {}),
    "images of 28 × 28": (lambda: images(28), {}),
    "images of 3 × 32 × 32": (lambda: images(32, 3), {}),
    "images of 3 × 64 × 64": (lambda: images(64, 3), {}),
    "images of 3 × 96 × 96": (lambda: images(96, 3), {}),
    "photographs of 3 × 32 × 32, ResNet": (lambda: images(32, 3), {"encoder": ResNet()}),
    "series of 1 × 60 steps": (lambda: numbers(1, 60), {}),
    "series of 3 × 64 steps": (lambda: numbers(3, 64), {}),
    "series of 1 × 500 steps": (lambda: numbers(1, 500), {}),
}


def compute():
    """Multiply matrices for ever, on one thread."""
    torch.set_num_threads(1)
    matrix = torch.zeros(500, 500)
    while True:
        matrix @ matrix


def steps(fit, threads):
    """Return functions that take three steps on each number of threads."""

    def on(n):
        def run():
            torch.set_num_threads(n)
            for _ in range(3):
                fit.step()

        return run

    return {str(n): on(n) for n in threads}


def work(fit):
    """Return the multiplications of the encoder for a batch."""
    samples = fit.net.sampler_.source.take(torch.arange(2))
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        fit.net.module_.encoder(samples)
    return counter.get_total_flops() / 4 * BATCH


def main():
    """Time the steps of all cases."""
    options = {"rounds": 9, "busy": 0, "only": "", "threads": [torch.get_num_threads()]}
    args = make_parser(__doc__, **options).parse_args()
    others = [multiprocessing.Process(target=compute, daemon=True) for _ in range(args.busy)]
    for process in others:
        process.start()
    names = [f"{n} threads, faster" for n in args.threads]
    policy = os.environ.get("OMP_WAIT_POLICY", "default").lower()
    with Table(
        f"{policy} waiting, {args.busy} busy processes", args, ratios=names, digits=2
    ) as table:
        for data, (make, parameters) in CASES.items():
            if args.only not in data:
                continue
            embedder = ContrastiveEmbedder(
                **parameters, batch_size=BATCH, max_epochs=1, random_state=0, device="cpu"
            )
            fit = stopped(embedder, make())
            seconds = in_turn(steps(fit, [1, *args.threads]), args.rounds)
            relative = ratios(seconds, "1")
            cells = {"data": data, "billions of multiplications": work(fit) / 1e9}
            row = {**cells, "ms a step": median(seconds["1"]) / 3 * 1e3}
            faster = {f"{n} threads, faster": 1 / relative[str(n)] for n in args.threads}
            table.add({**row, **faster})


if __name__ == "__main__":
    main()
