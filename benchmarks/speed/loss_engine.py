"""Losses, forward and backward, next to plain NT-Xent and the losses of other libraries.

    OMP_WAIT_POLICY=PASSIVE python -m benchmarks.speed.loss_engine
    OMP_WAIT_POLICY=PASSIVE python -m benchmarks.speed.loss_engine --memory

Two views of B samples, d = 128, float32, cosine scores at temperature 0.5, in-batch negatives.
Times are relative to NT-Xent written by hand with ``F.cross_entropy``, which holds all 2B × 2B
scores: medians over the rounds of one process, in which all take turns; on one thread those of the
processor, so that other programs do not count. The first table also has
the errors of value and gradient against the definition in float64, relative to the value and to
the largest entry of the gradient. `--memory` measures some losses in a process of their own: the
peak of resident memory beyond that after a small call, the time, and how both grow with B.
pytorch-metric-learning and lightly take part where they are installed, with the same loss.
"""

from __future__ import annotations

import argparse
import functools
from statistics import median
from time import perf_counter, process_time

import torch

from benchmarks._results import Table, make_parser
from benchmarks.speed._bench import (
    in_another_process,
    in_turn,
    lightly_ntxent,
    metric_learning,
    nt_xent,
    peak_memory,
    ratios,
    timed,
)
from skcontrast import contrastive_loss, losses
from skcontrast.similarity import Cosine
from tests.naive_losses import naive_loss

OURS = [
    "InfoNCE",
    "DCL",
    "HCL",
    "PUCL",
    "PositiveDebiased",
    "BCL",
    "NonparametricBCL",
    "Ring",
    "SoftRing",
    "SoftSupCon",
    "Supervised",
    "SupCon",
]
PLAIN = "plain NT-Xent"
ERRORS = "error of value, gradient"
PEERS = {
    "lightly NTXentLoss": lightly_ntxent,
    "PML SupConLoss": functools.partial(metric_learning, "SupConLoss"),
    "PML NTXentLoss": functools.partial(metric_learning, "NTXentLoss"),
}
# It makes a row of all negatives for every positive pair: 34 GB at B = 1024.
LARGEST = {"PML NTXentLoss": 256}


def make_problem(batch, dim, n_classes=10):
    """Return two views (2, batch, dim) and classes, as an encoder in training would give them."""
    generator = torch.Generator().manual_seed(0)
    views = torch.randn(2, batch, dim, generator=generator)
    y = torch.randint(n_classes, (batch,), generator=generator)
    centres = torch.randn(n_classes, dim, generator=generator)
    return views + 0.7 * centres[y] + torch.randn(batch, dim, generator=generator), y


def make_step(name, views, y):
    """Return a function that computes a loss and its gradient, or None where it cannot be."""
    if len(y) > LARGEST.get(name, len(y)):
        return None
    if name in OURS:
        loss = getattr(losses, name)()
        labels = y if loss.requires_y else None
        value = functools.partial(contrastive_loss, loss=loss, y=labels)
    else:
        value = nt_xent if name == PLAIN else PEERS[name]()
    if value is None:
        return None
    leaf = views.clone().requires_grad_()

    def step():
        leaf.grad = None
        result = value(leaf[0], leaf[1])
        result.backward()
        return result.detach(), leaf.grad

    return step


def errors(name, views, y, step):
    """Return the errors of value and gradient against the definition in float64."""
    value, gradient = step()
    loss = getattr(losses, name)() if name in OURS else losses.InfoNCE()
    leaf = views.double().requires_grad_()
    exact = naive_loss([leaf[0], leaf[1]], loss=loss, similarity=Cosine(), y=y)
    exact.backward()
    worst = (gradient - leaf.grad).abs().max() / leaf.grad.abs().max()
    return abs(value.item() / exact.item() - 1), worst.item()


def add_times(table, args):
    """Add time relative to plain NT-Xent for each loss and batch size, and the errors."""
    columns, plain = {}, {}
    clock = process_time if args.threads == 1 else perf_counter
    for batch in args.batches:
        problem = make_problem(batch, args.dim)
        steps = {name: make_step(name, *problem) for name in [PLAIN, *args.losses]}
        steps = {name: step for name, step in steps.items() if step is not None}
        seconds = in_turn(steps, max(3, args.rounds * 256 // batch), clock)
        columns[batch] = ratios(seconds, to=PLAIN)
        plain[f"B = {batch}"] = f"{median(seconds[PLAIN]) * 1e3:.1f} ms"
    table.add({"loss": f"{PLAIN}, absolute", **plain, ERRORS: None})
    views, y = make_problem(256, args.dim)
    for name in [PLAIN, *args.losses]:
        step = make_step(name, views, y)
        if step is None:
            print(f"{name} is not installed: skipped")
            continue
        cells = {f"B = {batch}": columns[batch].get(name) for batch in args.batches}
        wrong = "{:.0e}, {:.0e}".format(*errors(name, views, y, step))
        table.add({"loss": name, **cells, ERRORS: wrong})


def add_memory(table, args):
    """Add peak extra memory and time for each loss and batch size."""
    for name in [PLAIN, *args.losses]:
        for batch in args.batches:
            if name not in OURS and batch > 4096:
                continue
            options = ["--measure", name, "--batches", batch, "--dim", args.dim]
            printed = in_another_process(*options, "--threads", args.threads)
            if not printed:
                print(f"{name} is not installed: skipped")
                break
            mib, seconds = map(float, printed.split())
            table.add({"loss": name, "B": batch, "MiB": round(mib), "s": seconds})


def measure(name, batch, dim):
    """Print the memory in MiB and the seconds that a loss takes beyond a small call."""
    small = make_step(name, *make_problem(64, dim))
    if small is None:
        return
    small()
    step = make_step(name, *make_problem(batch, dim))
    seconds = []
    mib = peak_memory(lambda: seconds.append(timed(step)))
    print(mib, seconds[0])


def main():
    """Run the comparisons."""
    parser = make_parser(__doc__)
    parser.add_argument("--losses", nargs="+", default=[*OURS, *PEERS])
    parser.add_argument("--batches", nargs="+", type=int, help="default: 128 256 1024 4096")
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=40, help="at B = 256; fewer beyond")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--memory", action="store_true", help="at B = 4096, 8192, 32768")
    parser.add_argument("--measure", metavar="LOSS", help=argparse.SUPPRESS)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    if args.measure:
        measure(args.measure, args.batches[0], args.dim)
        return
    peers = "lightly", "pytorch-metric-learning"
    if args.memory:
        args.batches = args.batches or [4096, 8192, 32768]
        with Table("memory", args, packages=peers, ratios=["MiB"], labels=2) as table:
            add_memory(table, args)
    else:
        args.batches = args.batches or [128, 256, 1024, 4096]
        columns = [f"B = {batch}" for batch in args.batches]
        name = "time" if args.threads == 1 else f"time on {args.threads} threads"
        with Table(name, args, packages=peers, ratios=columns, digits=2) as table:
            add_times(table, args)


if __name__ == "__main__":
    main()
