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
turn within one process, after a batch of each to warm up; the ratio is the median over rounds.
"""

from __future__ import annotations

from statistics import median
from time import perf_counter

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from benchmarks._results import Table, make_parser
from benchmarks.speed._bench import lightly_ntxent, nt_xent, ratios
from benchmarks.speed.augmentation import simclr_kornia
from skcontrast import ContrastiveEmbedder
from skcontrast.augmentation import SimCLRAugmentation
from skcontrast.encoders import ResNet
from skcontrast.encoders._build import build_encoder
from skcontrast.encoders._projection import projection_head

BATCH = 250


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
        self.step(next(iter(batches())))

    def now(self):
        """Return the time, once the device has done its work."""
        if self.args.device == "cuda":
            torch.cuda.synchronize()
        return perf_counter()

    def epoch(self):
        """Train for an epoch and return the seconds that it takes."""
        start = self.now()
        for images in self.batches():
            self.step(images)
        return self.now() - start

    def step(self, images):
        """Train on a batch."""
        views = torch.cat([self.draw(images), self.draw(images)])
        views = ((views - 0.5) / 0.29).contiguous(memory_format=self.layout)
        in_bf16 = self.args.precision == "bf16"
        with torch.autocast(self.args.device, torch.bfloat16, enabled=in_bf16):
            z = self.network(views)
        self.optimizer.zero_grad()
        self.loss(*z.float().chunk(2)).backward()
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


def main():
    """Run the comparisons."""
    options = {"images": 2000, "width": 64, "rounds": 3, "workers": 2, "channels_last": False}
    args = make_parser(__doc__, **options, device="cpu", precision="float32").parse_args()
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


if __name__ == "__main__":
    main()
