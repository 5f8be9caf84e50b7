"""What a GPU gives: its tests, speed and memory, and trainings on CIFAR-10, piece by piece.

    python -m benchmarks.speed.gpu --out figures --device cpu --toy  # all pieces, small, minutes

    GPU="python -m benchmarks.speed.gpu --out figures --budget 540"
    $GPU --pieces tests step loss train --runs InfoNCE
    $GPU --pieces train epoch transform --runs InfoNCE
    $GPU --pieces train negatives summary

Every row is stored in ``OUT/gpu.json`` as it comes. A call makes the rows that are missing, in the
order of their worth, until its budget of seconds is spent, and prints what it had no time for;
the same call again continues there. A training that is stopped leaves a checkpoint of about 130 MB
in the folder `--state`, from which the next call resumes. `summary` sets the figures next to the
goals. ``cp OUT/gpu.json benchmarks/speed/results/`` makes them stored results. The pieces:

- tests: ``pytest -m gpu``;
- loss: forward and backward of losses by batch size, next to NT-Xent by ``F.cross_entropy``,
  pytorch-metric-learning and lightly, where these are installed;
- step, epoch: SimCLR with ResNet-18: a step, the network alone, the views, the loss; whole epochs
  of `fit` on 50,000 images;
- transform: rows per second and memory;
- train: CIFAR-10 with InfoNCE and others, judged by k-NN accuracy and by the linear probe;
- negatives: losses next to each other at N = 30 to 510, with fewer images and epochs.

All pieces need what skcontrast depends on, and `tests` needs pytest. For a machine without a
package index, gather the wheels of what it lacks, and of skcontrast itself, whose version the
checkpoints hold, and install them there::

    python -m pip download --no-deps --only-binary=:all: -d wheels skorch pytorch-metric-learning
    python -m pip wheel --no-deps --no-build-isolation -w wheels .

    python -m pip install --no-index --no-deps --target site wheels/*.whl
    export PYTHONPATH=.:site

The environment variable ``SKCONTRAST_BENCHMARK_DATA`` names a folder with CIFAR-10, see
_image_sets.py, 102 MB in all; where fewer can be sent at a time, send them in two halves.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from math import inf
from pathlib import Path

from benchmarks._results import make_parser
from benchmarks.speed._campaign import Campaign
from benchmarks.speed._gpu_speed import epoch, loss, step, transform
from benchmarks.speed._gpu_training import TRAININGS, negatives, train

ROOT = Path(__file__).parents[2]


def tests(campaign):
    """The tests that need a GPU."""
    with campaign.table("tests") as table:
        table.row({"tests": "pytest -m gpu"}, run_tests)


def run_tests():
    """Return how many tests passed and failed, and print what failed."""
    command = [sys.executable, "-m", "pytest", "-m", "gpu", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "tests/test_gpu.py"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    print(done.stdout[-6000:], done.stderr[-2000:])
    *_, last = done.stdout.strip().splitlines() or [""]
    counts = {word: int(number) for number, word in re.findall(r"(\d+) (\w+)", last)}
    return {what: counts.get(what, 0) for what in ("passed", "failed", "errors", "skipped")}


def summary(campaign):
    """The goals, and what was measured."""

    def found(table, column, **labels):
        rows = [row for row in campaign.rows(table) if labels.items() <= row.items()]
        return rows[0].get(column) if rows else None

    tested = found("tests", "passed")
    of_epoch, alone = (found("epoch", "images/s", B=512), found("step", "network, ms", B=512))
    whole = of_epoch * alone / 512e3 if of_epoch and alone else None
    info = {"training": "InfoNCE", "epochs": 200}
    figures = (
        ("step, of the encoder-only rate", ">=", 0.9, found("step", RATE, B=512)),
        ("epoch of fit, of the encoder-only rate", ">=", 0.9, whole),
        ("loss, share of a step at B = 4,096", "<=", 0.05, found("step", SHARE, B=4096)),
        ("200 epochs, minutes", "<=", 9.0, found("train", "min", **info)),
        ("neighbours", ">=", 0.86, found("train", "20-NN", **info)),
        ("linear probe", ">=", 0.90, found("train", "linear", **info)),
        ("GPU tests that fail", "<=", 0, found("tests", "failed") if tested else None),
    )
    with campaign.table("goals") as table:
        table.content["rows"] = []
        for name, sign, goal, figure in figures:
            reached = figure is not None and (figure >= goal if sign == ">=" else figure <= goal)
            word = "not measured" if figure is None else "yes" if reached else "no"
            row = {"goal": f"{sign} {goal}", "measured": figure, "reached": word}
            table.row({"what": name}, dict, row, needs=-inf)


RATE, SHARE = "of the encoder-only rate", "loss, share"
IN_ORDER = (tests, step, loss, epoch, transform, train, negatives, summary)
PIECES = {piece.__name__: piece for piece in IN_ORDER}


def main():
    """Run the pieces, and say what is left."""
    options = {"pieces": PIECES, "out": "figures", "state": str, "budget": 1e9, "toy": False}
    options |= {"device": "cuda", "commit": str, "runs": TRAININGS, "epochs": 200, "batch": 512}
    options |= {"lr": 0.06, "temperature": 0.2}
    options |= {"short_epochs": 20, "short_images": 10000}
    args = make_parser(__doc__, **options).parse_args()
    # In the background of a shell, Ctrl-C is ignored, by which trainings end in time.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    args.state = args.state or Path(args.out) / "checkpoints"
    campaign = Campaign(args, "gpu.json")
    for name in args.pieces:
        PIECES[name](campaign)
    left = campaign.left and ["no time for:", *campaign.left]
    print("", *(left or ["nothing is left"]), sep="\n")


if __name__ == "__main__":
    main()
