"""A look at a few samples while the network trains: are they still told apart."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import torch
from skorch.callbacks import Callback

from .._network._inference import encode_batches
from .._warnings import CollapseWarning, warn
from ..metrics import effective_rank

# Samples that are looked at.
_SAMPLES = 128
# A representation has collapsed if its effective rank is below this, and has halved.
_LOWEST_RANK = 2.0


class CollapseCheck(Callback):
    """Warns if the representation collapses, after epochs 1, 2, 4, 8, … and the last.

    The effective rank of the representations of some samples of the first batch is compared with
    that before the training, since one feature, two samples or many equal ones have a low rank by
    themselves.
    """

    def on_train_begin(self, net: Any, **kwargs: Any) -> None:
        """Forget the samples of an earlier fit."""
        self.rows_, self.rank_, self._samples = None, np.nan, None

    def on_batch_begin(self, net: Any, batch: Any = None, **kwargs: Any) -> None:
        """Take some samples of the first batch before the network has learned from them."""
        if self.rows_ is not None:
            return
        n = min(len(batch.x), _SAMPLES)
        self.rows_ = batch.rows[:n].cpu()
        self._samples = batch.x[torch.arange(n, device=batch.x.device)]
        if net.max_epochs > 1 or _is_due(net):
            self.rank_ = _rank(net, self._samples)

    def on_epoch_end(self, net: Any, dataset_train: Any = None, **kwargs: Any) -> None:
        """Warn, once, if the rank is low now and was not before."""
        if not (self.rank_ >= 1 and _is_due(net)):
            return
        if self._samples is None:  # the fit was resumed
            with _undisturbed(net):
                (self._samples,) = dataset_train.source.batches([self.rows_], seed=0)
        rank = _rank(net, self._samples)
        if rank < min(_LOWEST_RANK, self.rank_ / 2):
            if net.plan.world is None or net.plan.world.rank == 0:
                _warn(len(net.history), rank, self.rank_)
            self.rank_ = np.nan

    def on_train_end(self, net: Any, **kwargs: Any) -> None:
        """Let go of the samples."""
        self._samples = None


def _is_due(net: Any) -> bool:
    """Return whether the number of the epoch is a power of 2, or the epoch the last."""
    epoch = len(net.history)
    return epoch & (epoch - 1) == 0 or net.is_last_epoch


def _undisturbed(net: Any) -> AbstractContextManager[None]:
    """Return a context that leaves the random numbers of the training as they are."""
    if not net.plan.seeds_layers:
        return nullcontext()
    device = net.plan.device
    is_cpu = device.type == "cpu"
    return torch.random.fork_rng(
        [] if is_cpu else [device], device_type="cuda" if is_cpu else device.type
    )


def _rank(net: Any, samples: Any) -> float:
    """Return the effective rank of representations, NaN if they are not finite."""
    # A module may draw random numbers even in inference mode.
    with _undisturbed(net):
        h = encode_batches(net.module_.encoder, [samples]).cpu().numpy()
    net.module_.train()
    return effective_rank(h) if np.isfinite(h).all() else np.nan


def _warn(epoch: int, rank: float, before: float) -> None:
    warn(
        f"The representation has collapsed in or before epoch {epoch}: nearly all samples are "
        f"alike (effective rank {rank:.1f}, {before:.1f} before training). Lower 'lr' or "
        "'weight_decay', use a different 'optimizer' or batch norm in 'encoder'.",
        CollapseWarning,
    )
