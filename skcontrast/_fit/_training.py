"""The net of a fit: how it is made from the parameters, and what running it leaves behind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from skorch.callbacks import Callback, PrintLog
from torch import nn

from .._data._batches import TrainingSet
from ..callbacks import Evaluation
from ..optimizers import Optimizer
from ._checkpoint import LastEpoch
from ._estimated_parameters import AutoParameters
from ._label_spreading import LabelSpreader
from ._net import ContrastiveNet
from ._plan import Plan
from ._watch import ProgressBar


def make_net(
    network: nn.Module,
    plan: Plan,
    auto: AutoParameters,
    spreader: LabelSpreader,
    *,
    optimizer: Optimizer,
    lr: float,
    weight_decay: float,
    max_epochs: int,
    callbacks: Sequence[Callback | tuple[str, Callback]] | None,
    last_epoch: LastEpoch,
    verbose: int,
    as_estimator: Callable[[ContrastiveNet], Any],
) -> ContrastiveNet:
    """Return an initialised net that trains `network` in place.

    Parameters
    ----------
    network : Network
        What is trained.
    plan : Plan
        What a step needs to know.
    auto : AutoParameters
        The hyperparameters that are "auto".
    spreader : LabelSpreader
        Completes the labels.
    optimizer, lr, weight_decay : Optimizer, float, float
        The optimizer, and what its groups have unless they say otherwise.
    max_epochs : int
        Passes over the data.
    callbacks : list or None
        The user's callbacks.
    last_epoch : LastEpoch
        Keeps the state at the end of each epoch.
    verbose : int
        1 shows a progress bar.
    as_estimator : callable
        Takes the net and returns a fitted embedder, a copy of what it has learned so far.
    """
    named = [item if isinstance(item, tuple) else (None, item) for item in callbacks or ()]
    # Others may monitor the scores.
    named.sort(key=lambda item: not isinstance(item[1], Evaluation))
    prints = any(isinstance(callback, PrintLog) for _, callback in named)
    return ContrastiveNet(
        network,
        plan=plan,
        auto=auto,
        spreader=spreader,
        keeper=last_epoch,
        build_optimizer=partial(optimizer.build, lr=lr, weight_decay=weight_decay),
        as_estimator=as_estimator,
        lr=lr,
        max_epochs=max_epochs,
        device=plan.device,
        callbacks=[
            *(callback if name is None else (name, callback) for name, callback in named),
            *([ProgressBar()] if verbose else []),
        ],
        verbose=int(prints),  # PrintLog prints only if the net is verbose
    ).initialize()


def train(net: ContrastiveNet, training_set: TrainingSet, last_epoch: LastEpoch) -> bool:
    """Train, drop an epoch that was not finished, and return whether the user interrupted.

    A fit that its checkpoint says is finished is only restored.

    Raises
    ------
    KeyboardInterrupt
        If the user interrupts before any epoch is finished.
    """
    is_over = last_epoch.is_over(net, training_set)
    if not is_over:
        net.partial_fit(training_set)
    if len(net.history):
        for row in reversed(net.history):
            if row.pop("batches", None) is None:  # the last row of an earlier fit
                break
            row.update({k: float(v) for k, v in row.items() if isinstance(v, np.floating)})
        if "train_loss" not in net.history[-1]:
            del net.history[-1]
    if is_over:
        return False
    interrupted = net.interrupted_ or net.interrupt_.came
    if interrupted and not len(net.history):
        raise KeyboardInterrupt
    if not net.interrupted_:
        last_epoch.finish(net)
    return interrupted
