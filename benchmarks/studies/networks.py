"""Cheaper networks beside the default one: the same accuracy in less time?

    OMP_NUM_THREADS=1 python -m benchmarks.studies.networks --sets digits
    OMP_NUM_THREADS=1 python -m benchmarks.studies.networks --sets Fashion-MNIST --epochs 25

Each row is a fit of the default embedder with another encoder of images: other widths, fewer
blocks, depthwise convolutions, or a first convolution with stride 2. Columns as in worth.py; p is
that of a paired t-test over the seeds between the five-label accuracies of the row and of the
default, and the time is relative to that of the default, seed by seed.
"""

from __future__ import annotations

import os
from statistics import median
from time import process_time

import torch
from torch import nn

from benchmarks._results import Table, make_parser
from benchmarks.studies.worth import FEW, digits, fashion, judged, p_value, row_of, split
from skcontrast import ContrastiveEmbedder
from skcontrast.encoders import ConvNet


class Depthwise(ConvNet):
    """The same blocks, each but the first a depthwise convolution and a 1×1 one."""

    def _block(self, channels, width):
        if channels <= 3:
            yield from super()._block(channels, width)
            return
        yield nn.Conv2d(channels, channels, 3, padding=1, groups=channels, bias=False)
        yield nn.Conv2d(channels, width, 1, bias=False)
        yield nn.BatchNorm2d(width)
        yield nn.ReLU(inplace=True)


class Strided(ConvNet):
    """The same blocks, the first of which halves the image instead of a pooling after it."""

    def build(self, sample_shape, n_components=None):
        """Return a network with a first convolution of stride 2."""
        network = super().build(sample_shape, n_components)
        network[0].stride = 2, 2
        del network[3]
        return network


NETWORKS = {
    "digits": {
        "default, (32, 64)": ConvNet(),
        "(16, 32)": ConvNet((16, 32)),
        "(16, 64)": ConvNet((16, 64)),
        "one block, (64,)": ConvNet((64,)),
        "one block, (32,), grid 4": ConvNet((32,), pool_size=4),
        "depthwise": Depthwise((32, 64)),
        "stride 2": Strided((32, 64)),
    },
    "Fashion-MNIST": {
        "default, (32, 64, 128)": ConvNet(),
        "(16, 32, 128)": ConvNet((16, 32, 128)),
        "(16, 64, 128)": ConvNet((16, 64, 128)),
        "(24, 48, 96)": ConvNet((24, 48, 96)),
        "two blocks, (32, 128)": ConvNet((32, 128)),
        "depthwise": Depthwise((32, 64, 128)),
        "stride 2": Strided((32, 64, 128)),
    },
}
SETS = {"digits": digits, "Fashion-MNIST": fashion}


def run(encoder, X, y, test, args, seed):
    """Return the columns of a row for a seed, and the CPU minutes of fit and transform."""
    train, test = split(y, test, args.n, seed)
    given = {"max_epochs": args.epochs} if args.epochs else {}
    start = process_time()
    embedder = ContrastiveEmbedder(encoder, random_state=seed, device="cpu", **given).fit(X[train])
    H, H_test = embedder.transform(X[train]), embedder.transform(X[test])
    minutes = (process_time() - start) / 60
    return {**judged(H, y[train], H_test, y[test], seed, scale=True), "CPU min": minutes}


def main():
    """Print a table for each set."""
    parser = make_parser(__doc__)
    parser.add_argument("--sets", nargs="+", default=["digits"], choices=list(SETS))
    parser.add_argument("--rows", nargs="+", help="all if left out; the first is the default")
    parser.add_argument("--n", type=int, default=2000, help="images to train on")
    parser.add_argument("--epochs", type=int, help="those of the embedder if left out")
    parser.add_argument("--seeds", type=int, default=5)
    args = parser.parse_args()
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "2")))
    for name in args.sets:
        X, y, test = SETS[name](args)
        rows = {row: NETWORKS[name][row] for row in args.rows or NETWORKS[name]}
        # A seed at a time, so that a change of the machine's speed meets all rows.
        found = {row: [] for row in rows}
        for seed in range(args.seeds):
            for row, encoder in rows.items():
                found[row].append(run(encoder, X, y, test, args, seed))
                print(f"  {row}, seed {seed}: {found[row][-1]}", flush=True)
        default = next(iter(found.values()))
        with Table(name, args, ratios=[FEW, "20-NN", "linear", "time"]) as table:
            for row, runs in found.items():
                times = [a["CPU min"] / b["CPU min"] for a, b in zip(runs, default, strict=True)]
                line = row_of(row, runs, None, None)
                if runs is not default:
                    line["p"] = p_value([a[FEW] for a in runs], [b[FEW] for b in default])
                table.add({**line, "time": median(times)})


if __name__ == "__main__":
    main()
