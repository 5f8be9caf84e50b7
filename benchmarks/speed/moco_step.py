"""A training step of MoCo with a long queue beside one of SimCLR with the same batch.

    OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE python -m benchmarks.speed.moco_step --batch 64

All train ResNet-18 on the same random uint8 images 32×32, with the views of SimCLR. The steps
are those of `fit`: each is taken from a fit that a callback stops before its first step, with its
batches, optimizer and loss, and with a queue that is filled with random keys. "the two products"
are those that the queue adds: the scores of the batch with all keys, and the gradient of the
anchors. Steps are timed in turn within one process; ratios are medians over the rounds. The last
line is the step of MoCo without the two products, relative to that of SimCLR: at most 1.3 is the
aim.
"""

from __future__ import annotations

from statistics import median

import numpy as np
import torch

from benchmarks._results import Table, make_parser
from benchmarks.speed._bench import in_turn, ratios, stopped
from skcontrast import ContrastiveEmbedder
from skcontrast.augmentation import SimCLRAugmentation
from skcontrast.encoders import ResNet
from skcontrast.frameworks import MoCo, SimCLR

WIDTH = 64  # of the projection
PRODUCTS = "the two products"


def before_first_step(framework, X, args):
    """Return the net of a fit before its first step, with a full queue if it has one."""
    embedder = ContrastiveEmbedder(
        encoder=ResNet(width=args.width),
        framework=framework,
        augmentation=SimCLRAugmentation(),
        projection_dim=WIDTH,
        batch_size=args.batch,
        precision=args.precision,
        device=args.device,
        random_state=0,
    )
    fit = stopped(embedder, X)
    session = fit.net.criterion_
    if isinstance(framework, MoCo):
        n_slots, n_keys, width = session.queue.keys.shape
        keys = torch.randn(n_slots, n_keys, width, device=args.device)
        session.queue.push(keys, torch.arange(n_slots, device=args.device))
        assert len(session.queue) == n_slots
    return fit


def two_products(args):
    """Return a function that computes the products of a batch with the queue."""
    anchors = torch.randn(args.batch, WIDTH, device=args.device)
    keys = torch.randn(args.queue, WIDTH, device=args.device)
    gradient = torch.randn(args.batch, args.queue, device=args.device)

    def products():
        return anchors @ keys.T, gradient @ keys

    return products


def main():
    """Time the steps."""
    options = {"batch": 256, "queue": 65536, "width": 64, "rounds": 10}
    args = make_parser(__doc__, **options, device="cpu", precision="float32").parse_args()
    shape = args.queue, 3, 32, 32
    X = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    frameworks = {
        "SimCLR": SimCLR(),
        "MoCo": MoCo(queue_size=args.queue),
        "MoCo, symmetric": MoCo(queue_size=args.queue, symmetric=True),
    }
    contestants = {name: before_first_step(f, X, args).step for name, f in frameworks.items()}
    contestants[PRODUCTS] = two_products(args)
    seconds = in_turn(contestants, args.rounds)
    relative = ratios(seconds, to="SimCLR")
    with Table("step", args, ratios=["ratio"]) as table:
        for name, times in seconds.items():
            table.add({"a step": name, "ms": 1e3 * median(times), "ratio": relative[name]})
        without = [a - b for a, b in zip(seconds["MoCo"], seconds[PRODUCTS], strict=False)]
        rest = ratios({"MoCo": without, "SimCLR": seconds["SimCLR"]}, to="SimCLR")["MoCo"]
        table.add({"a step": f"MoCo without {PRODUCTS}", "ms": None, "ratio": rest})


if __name__ == "__main__":
    main()
