"""An epoch of SimCLR: fit beside hand-written loops with kornia and lightly.

    OMP_WAIT_POLICY=PASSIVE python -m benchmarks.speed.end_to_end
    python -m benchmarks.speed.end_to_end --device cuda --precision bf16 --images 50000 --rounds 10

All train ResNet-18 of skcontrast.encoders with the same projection head and Adam on the same
random uint8 images 32×32, in batches of 250, with two views by the recipe of SimCLR (crop, flip,
colour jitter, grayscale):

- "skcontrast": an epoch of ContrastiveEmbedder, its own ``dur``, at the precision given;
- "skcontrast, precision='auto'": the same with what fit chooses by itself;
- "kornia, plain NT-Xent": a DataLoader with workers that collates uint8 images, kornia on whole
  batches (crops by resampling, its fastest way here), NT-Xent by ``F.cross_entropy``;
- "kornia, lightly": the same with lightly's NTXentLoss.

So what differs is the loading, the views, the loss and the loop, and the memory format of images,
which fit chooses; `--channels-last` gives it to the hand-written loops too. Epochs are timed in
turn within one process, after a batch of each to warm up; the ratio is the median over rounds. The
second table times the stages of an epoch one by one, waiting for the GPU in between, with the
pieces that each contestant is made of in one and the same loop: forward and backward of network
and loss, with the optimizer's step in the network's.
"""

from __future__ import annotations

import collections
import contextlib
from statistics import median
from time import perf_counter

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from benchmarks._results import Table, make_parser
from benchmarks.speed._bench import lightly_ntxent, nt_xent, ratios
from benchmarks.speed.augmentation import simclr_kornia, simclr_skcontrast
from skcontrast import ContrastiveEmbedder, contrastive_loss
from skcontrast.augmentation import SimCLRAugmentation
from skcontrast.encoders import ResNet
from skcontrast.encoders._build import build_encoder
from skcontrast.encoders._projection import projection_head

BATCH = 250
STAGES = ("loading", "augmentation", "network", "loss")


class Loop:
    """A training loop as a script would have it; `epoch` returns its seconds."""

    def __init__(self, batches, draw, loss, args):
        self.batches, self.draw, self.loss, self.args = batches, draw, loss, args
        encoder, width = build_encoder(ResNet(width=args.width), (3, 32, 32))
        self.network = nn.Sequential(encoder, projection_head(width, 64)).to(args.device)
        self.layout = torch.channels_last if args.channels_last else torch.contiguous_format
        self.network.to(memory_format=self.layout)
        parameters = self.network.parameters()
        self.optimizer = torch.optim.Adam(parameters, lr=1e-3, weight_decay=1e-6, fused=True)
        self.stages = None
        self.step(next(iter(batches())))

    @contextlib.contextmanager
    def stage(self, name):
        """Add the time of a block to its stage, if stages are timed."""
        start = self.now() if self.stages is not None else 0
        yield
        if self.stages is not None:
            self.stages[name] += self.now() - start

    def now(self):
        """Return the time, once the device has done its work."""
        if self.args.device == "cuda":
            torch.cuda.synchronize()
        return perf_counter()

    def epoch(self):
        """Train for an epoch and return the seconds that it takes."""
        start = self.now()
        batches = iter(self.batches())
        while True:
            with self.stage("loading"):
                images = next(batches, None)
            if images is None:
                return self.now() - start
            self.step(images)

    def step(self, images):
        """Train on a batch."""
        with self.stage("augmentation"):
            views = torch.cat([self.draw(images), self.draw(images)])
        autocast = torch.autocast(
            self.args.device, torch.bfloat16, enabled=self.args.precision == "bf16"
        )
        with self.stage("network"), autocast:
            views = ((views - 0.5) / 0.29).contiguous(memory_format=self.layout)
            z = self.network(views)
        with self.stage("loss"):
            leaf = z.detach().float().requires_grad_()
            value = self.loss(*leaf.chunk(2))
            value.backward()
        with self.stage("network"):
            self.optimizer.zero_grad()
            z.backward(leaf.grad.to(z.dtype))
            self.optimizer.step()


def loader(X, args):
    """Return a function that yields batches from a DataLoader with workers."""
    workers = args.workers
    batches = DataLoader(
        TensorDataset(torch.from_numpy(X)),
        BATCH,
        shuffle=True,
        num_workers=workers,
        persistent_workers=workers > 0,
        pin_memory=args.device == "cuda",
    )
    return lambda: (images.to(args.device, non_blocking=True) for (images,) in batches)


def resident(X, args):
    """Return a function that yields batches of images that lie on the device, as fit does."""
    images = torch.from_numpy(X).to(args.device)
    return lambda: (images[rows] for rows in torch.randperm(len(X)).to(args.device).split(BATCH))


def by_fit(X, precision, args):
    """Return a function that trains for an epoch and returns its seconds; one batch is done."""
    embedder = ContrastiveEmbedder(
        encoder=ResNet(width=args.width),
        augmentation=SimCLRAugmentation(),
        batch_size=BATCH,
        device=args.device,
        precision=precision,
        random_state=0,
    )
    embedder.partial_fit(X[:BATCH])
    return lambda: embedder.partial_fit(X).history_[-1, "dur"]


def stages(loop):
    """Return the seconds of the stages of an epoch by name, and their shares."""
    loop.stages = collections.Counter()
    loop.epoch()
    total = sum(loop.stages.values())
    shares = {f"{stage}, share": loop.stages[stage] / total for stage in STAGES}
    return {**{f"{stage}, s": loop.stages[stage] for stage in STAGES}, **shares}


def main():
    """Run the comparisons."""
    parser = make_parser(__doc__)
    parser.add_argument("--images", type=int, default=2000)
    parser.add_argument("--width", type=int, default=64, help="of the network's first stage")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", choices=("float32", "bf16"), default="float32")
    parser.add_argument("--channels-last", action="store_true")
    args = parser.parse_args()
    shape = args.images, 3, 32, 32
    X = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    loops = {}
    kornia, lightly = simclr_kornia(32, "resample"), lightly_ntxent()
    if kornia is not None:
        loops["kornia, plain NT-Xent"] = Loop(loader(X, args), kornia, nt_xent, args)
        if lightly is not None:
            loops["kornia, lightly"] = Loop(loader(X, args), kornia, lightly, args)
    epochs = {
        "skcontrast": by_fit(X, args.precision, args),
        "skcontrast, precision='auto'": by_fit(X, "auto", args),
        **{name: loop.epoch for name, loop in loops.items()},
    }
    seconds = {name: [] for name in epochs}
    for k in range(args.rounds):
        for name in sorted(epochs, reverse=k % 2):
            seconds[name].append(epochs[name]())
    relative = ratios(seconds, to="skcontrast")
    packages = ["kornia", "lightly"]
    with Table("epoch", args, packages=packages, ratios=["ratio"]) as table:
        for name in epochs:
            middle = median(seconds[name])
            rate = round(args.images / middle)
            table.add({"": name, "s": middle, "ratio": relative[name], "images/s": rate})
    draw = simclr_skcontrast(32, args.device)
    loops = {"skcontrast": Loop(resident(X, args), draw, contrastive_loss, args), **loops}
    shares = [f"{stage}, share" for stage in STAGES]
    with Table("stages", args, packages=packages, ratios=shares) as table:
        for name, loop in loops.items():
            table.add({"": name, **stages(loop)})


if __name__ == "__main__":
    main()
