"""The momentum encoder: a copy of the network that follows it slowly."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import get_ema_multi_avg_fn

from ._base import FitContext

BATCH_NORM = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)


class MomentumNetwork(nn.Module):
    r"""A copy of the trained network that follows it as a moving average, without gradient.

    After every step, each number of the copy moves towards the network's,
    :math:`\theta_k \leftarrow m\,\theta_k + (1 - m)\,\theta`: the parameters and the running
    statistics of batch normalisation. The copy runs in inference mode, with these statistics, so
    its output for a sample does not depend on the other samples of the batch.

    Parameters
    ----------
    context : FitContext
        Its ``module`` is copied and followed.
    momentum : float
        m in [0, 1].

    See Also
    --------
    MoCo : Encodes its keys with a momentum network.
    KeyQueue : Keeps keys of earlier batches.
    Session : Holds a momentum network during a fit and has an example with one.
    """

    def __init__(self, context: FitContext, momentum: float):
        super().__init__()
        self.network = copy.deepcopy(context.module).requires_grad_(False).eval()
        # In tuples, so that they are not registered: both belong to the fit.
        self.followed, self.call = (context.module,), (context.prepare(self.network),)
        self.average = get_ema_multi_avg_fn(momentum)
        self.has_statistics = False

    def train(self, mode: bool = True) -> MomentumNetwork:
        """Stay in inference mode, whatever `mode` is."""
        return super().train(False)

    @torch.no_grad()
    def forward(self, x: Any) -> Tensor:
        """Encode x of shape (n, ...); return shape (n, width), float32.

        In each step, call this before the network that is trained: the first call may set the
        running statistics of both.
        """
        if not self.has_statistics:
            self._take_first_statistics(x)
            self.has_statistics = True
        return self.call[0](x).float()

    @torch.no_grad()
    def follow(self) -> None:
        """Move towards the network; call this after each step of the optimizer."""
        (followed,) = self.followed
        mine, theirs = (net.state_dict(keep_vars=True) for net in (self.network, followed))
        # By identity: a tensor that two layers share has two names but must move only once.
        pairs = {id(t): (t, theirs[k]) for k, t in mine.items() if isinstance(t, torch.Tensor)}
        averaged = [pair for pair in pairs.values() if pair[0].is_floating_point()]
        self.average(*map(list, zip(*averaged, strict=True)), None)
        for counted, count in pairs.values():
            if not counted.is_floating_point():
                counted.copy_(count)

    def _take_first_statistics(self, x: Any) -> None:
        """Set the running statistics of layers that have none yet, in both networks, from x.

        A moving average would take long to forget the zeros and ones that they start from. Frozen
        layers, which the network runs in inference mode, keep theirs.
        """
        (followed,) = self.followed
        pairs = zip(self.network.modules(), followed.modules(), strict=True)
        new: list[tuple[Any, Any]] = [
            (mine, theirs)
            for mine, theirs in pairs
            if isinstance(mine, BATCH_NORM)
            and theirs.training
            and mine.track_running_stats
            and not mine.num_batches_tracked
        ]
        if not new:
            return
        # With a momentum of 1 the running statistics become those of this batch.
        momenta = [mine.momentum for mine, _ in new]
        for mine, _ in new:
            mine.train().momentum = 1.0
        self.call[0](x)
        for (mine, theirs), momentum in zip(new, momenta, strict=True):
            mine.eval().momentum = momentum
            theirs.running_mean.copy_(mine.running_mean)
            theirs.running_var.copy_(mine.running_var)
