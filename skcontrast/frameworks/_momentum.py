"""The momentum encoder: a copy of the network that follows it slowly."""

from __future__ import annotations

import copy

import torch
from torch import nn
from torch.optim.swa_utils import get_ema_multi_avg_fn

_BATCH_NORM = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)


class MomentumNetwork(nn.Module):
    r"""A copy of the trained network that follows it as a moving average, without gradient.

    After every step, each number of the copy moves towards the network's,
    :math:`\theta_k \leftarrow m\,\theta_k + (1 - m)\,\theta`: the parameters, and the running
    statistics of batch normalisation with them. The copy runs in inference mode, with these
    statistics. So what it makes of a sample depends on no other sample of the batch.

    Parameters
    ----------
    fit : FitContext
        Its ``module`` is copied and followed.
    momentum : float
        m in [0, 1].
    """

    def __init__(self, fit, momentum):
        super().__init__()
        self.network = copy.deepcopy(fit.module).requires_grad_(False).eval()
        self.followed, self.call = (fit.module,), (fit.prepare(self.network),)
        self.average = get_ema_multi_avg_fn(momentum)
        self.has_statistics = False

    def train(self, mode=True):
        """Stay in inference mode."""
        return super().train(False)

    @torch.no_grad()
    def forward(self, x):
        """Encode x of shape (n, ...); return shape (n, width), float32.

        In a step, call this before the network itself is called: the first call may set the
        running statistics of both.
        """
        if not self.has_statistics:
            self._take_first_statistics(x)
            self.has_statistics = True
        return self.call[0](x).float()

    @torch.no_grad()
    def follow(self):
        """Move towards the network."""
        (followed,) = self.followed
        mine, theirs = (net.state_dict(keep_vars=True) for net in (self.network, followed))
        # By identity: what two layers share has two names and is to move once.
        pairs = {id(t): (t, theirs[k]) for k, t in mine.items() if isinstance(t, torch.Tensor)}
        averaged = [pair for pair in pairs.values() if pair[0].is_floating_point()]
        self.average(*map(list, zip(*averaged, strict=True)), None)
        for counted, count in pairs.values():
            if not counted.is_floating_point():
                counted.copy_(count)

    def _take_first_statistics(self, x):
        """Take the statistics of a first batch where a layer has seen none, in both networks.

        A moving average would be long in forgetting the zeros and ones that they start from.
        """
        (followed,) = self.followed
        pairs = zip(self.network.modules(), followed.modules(), strict=True)
        new = [
            (mine, theirs)
            for mine, theirs in pairs
            if isinstance(mine, _BATCH_NORM)
            and mine.track_running_stats
            and not mine.num_batches_tracked
        ]
        if not new:
            return
        momenta = [mine.momentum for mine, _ in new]
        for mine, _ in new:
            mine.train().momentum = 1.0
        self.call[0](x)
        for (mine, theirs), momentum in zip(new, momenta, strict=True):
            mine.eval().momentum = momentum
            theirs.running_mean.copy_(mine.running_mean)
            theirs.running_var.copy_(mine.running_var)
