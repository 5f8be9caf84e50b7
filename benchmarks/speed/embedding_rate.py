"""How many samples `transform` embeds per second on one core, to compute the cost of many.

    OMP_WAIT_POLICY=PASSIVE python -m benchmarks.speed.embedding_rate

One thread, random numbers as samples; the rate is the median of rounds, by the time of the
processor, which other programs on the machine change little. Files have to be read as well: one
row has paths of JPEG files of 640 × 480 pixels. 100 million samples take 100,000,000 / rate / 3600
hours of a core.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from benchmarks._photographs import pretrained_network
from benchmarks._results import Table, make_parser
from benchmarks.speed._bench import in_turn
from skcontrast import ContrastiveEmbedder
from skcontrast.encoders import Pretrained, ResNet
from skcontrast.kinds import Images

# Names by encoder, pixels of a side, and samples that are timed together.
IMAGES = [
    ("default", 32, 256),
    ("default", 96, 128),
    ("ResNet", 32, 128),
    ("EfficientNet-lite0", 96, 128),
    ("EfficientNet-lite0", 224, 32),
]
N_VECTORS = 100_000


def encoder_of(name):
    """Return the encoder by its name in the table."""
    if name == "ResNet":
        return ResNet()
    if name == "default":
        return None
    return Pretrained(pretrained_network("lite0"), mean=0.5, std=0.5)


def photographs(folder, n):
    """Return the paths of JPEG files of 640 × 480 pixels, of smooth noise."""
    rng = np.random.default_rng(0)
    paths = [Path(folder, f"{k}.jpg") for k in range(n)]
    for path in paths:
        small = Image.fromarray(rng.integers(0, 256, (48, 64, 3), dtype=np.uint8))
        small.resize((640, 480)).save(path, quality=90)
    return paths


def cases(folder):
    """Yield labels, embedders and samples to fit and to transform."""
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(N_VECTORS, 64)).astype(np.float32)
    yield ("64 numbers", "default"), ContrastiveEmbedder(), vectors
    for name, side, n in IMAGES:
        X = rng.integers(0, 256, (n, 3, side, side), dtype=np.uint8)
        yield (f"{side} × {side} pixels", name), ContrastiveEmbedder(encoder_of(name)), X
    name, side, n = IMAGES[3]
    files = ContrastiveEmbedder(encoder_of(name), kind=Images(size=side))
    yield (f"files, {side} × {side} pixels", name), files, photographs(folder, n)


def main():
    """Print the rates."""
    args = make_parser(__doc__, rounds=3).parse_args()
    torch.set_num_threads(1)
    with (
        tempfile.TemporaryDirectory() as folder,
        Table("rate", args, labels=2, ratios=(), digits=0) as table,
    ):
        for (data, name), embedder, X in cases(folder):
            embedder.set_params(max_epochs=1, batch_size=16, device="cpu", random_state=0)
            embedder.fit(X[:16])
            call = {"transform": lambda embedder=embedder, X=X: embedder.transform(X)}
            seconds = statistics.median(in_turn(call, args.rounds, time.process_time)["transform"])
            table.add({"samples": data, "encoder": name, "samples/s": len(X) / seconds})


if __name__ == "__main__":
    main()
