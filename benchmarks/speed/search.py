"""Where a grid search over losses spends its time.

    OMP_WAIT_POLICY=PASSIVE python -m benchmarks.speed.search

`GridSearchCV` tries eight losses on two folds, without a refit: a Pipeline of an embedder and
logistic regression, whose BLAS has as many threads as torch. The time of a function is charged to
its part, less the time of other parts within it. A loss computes its gradient along with its
value, so "backward" is of the network alone. Seconds and shares are medians over the rounds.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import ExitStack
from functools import wraps
from statistics import median
from time import perf_counter
from unittest.mock import patch

import torch
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits

from benchmarks._results import Table, make_parser
from skcontrast import ContrastiveEmbedder, _inference
from skcontrast._fit import _fit, _net
from skcontrast._model._model import Model
from skcontrast._model._network import Network
from skcontrast.augmentation._compose import Composition
from skcontrast.kinds._images import ImageScaler
from skcontrast.losses import BCL, DCL, HCL, PUCL, InfoNCE, NonparametricBCL, Ring, SupCon

LOSSES = [InfoNCE(), DCL(), HCL(), BCL(), NonparametricBCL(), PUCL(), Ring(), SupCon()]
PARTS = {
    "reading and recognising X": ((_fit, "read_training_data"), (Model, "read")),
    "scaling": ((ImageScaler, "fit"), (ImageScaler, "to_tensor")),
    "building the network": ((_fit, "_model"),),
    "drawing views": ((Composition, "__call__"),),
    "network, forward": ((Network, "forward"), (_inference, "encode_batches")),
    "network, backward": ((torch.Tensor, "backward"),),
    "loss and its gradient": ((_net, "objective_value"),),
    "optimizer": ((torch.optim.Adam, "step"),),
    "the rest of training": ((_fit, "train"), (_net.ContrastiveNet, "train_step_single")),
    "classifier": ((LogisticRegression, "fit"), (LogisticRegression, "score")),
    "the rest": ((GridSearchCV, "fit"),),
}


def timed(function, part, seconds):
    """Return a function that adds to the seconds of a part, less those of parts within it."""

    @wraps(function)
    def run(*args, **kwargs):
        before, start = sum(seconds.values()), perf_counter()
        result = function(*args, **kwargs)
        seconds[part] += perf_counter() - start - (sum(seconds.values()) - before)
        return result

    return run


def main():
    """Search, and print a row for each part."""
    args = make_parser(__doc__, rounds=3, n=400, epochs=10, threads=1).parse_args()
    torch.set_num_threads(args.threads)
    X, y = (array[: args.n] for array in load_digits(return_X_y=True))
    embedder = ContrastiveEmbedder(max_epochs=args.epochs, random_state=0, device="cpu")
    pipe = make_pipeline(embedder, LogisticRegression(max_iter=1000))
    losses = {"contrastiveembedder__loss": LOSSES}
    search = GridSearchCV(pipe, losses, cv=2, refit=False, error_score="raise")
    rounds = [defaultdict(float) for _ in range(args.rounds + 1)]  # the first one warms up
    title = "parts" if args.threads == 1 else f"parts, {args.threads} threads"
    with threadpool_limits(args.threads), Table(title, args, ratios=["share"]) as table:
        for seconds in rounds:
            with ExitStack() as patches:
                for part, functions in PARTS.items():
                    for owner, name in functions:
                        function = timed(getattr(owner, name), part, seconds)
                        patches.enter_context(patch.object(owner, name, function))
                search.fit(X.reshape(-1, 8, 8), y)
        for part in PARTS:
            share = median(one[part] / sum(one.values()) for one in rounds[1:])
            seconds = median(one[part] for one in rounds[1:])
            table.add({"part": part, "seconds": seconds, "share": share})


if __name__ == "__main__":
    main()
