"""MoCo: the negatives are keys of a momentum encoder, in a queue."""

from __future__ import annotations

import copy
from typing import Any, Literal, cast

import torch
from torch import Tensor, nn

from .._checks import FRACTION, POSITIVE_INT, parameter
from .._data._batches import Batch, Metadata
from .._objective._contrast import Contrast, pairs_with
from .._runtime import guarded
from ..similarity import Similarity
from ._base import FitContext, Framework, Session, state_of

_LARGEST_AUTO = 65536
BATCH_NORM = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)


class MoCo(Framework):
    r"""Momentum contrast: the negatives are keys of earlier batches, kept in a queue.

    The first view of each sample is encoded by the network and is an anchor, the query. The other
    views are encoded by a momentum encoder and are its positives, the keys [1]_. The momentum
    encoder is a copy of the encoder and the projection head that has no gradient and follows them
    after every step,

    .. math:: \theta_k \leftarrow m\,\theta_k + (1 - m)\,\theta_q.

    Then the keys enter a queue and the oldest leave it. The candidate negatives of an anchor are
    the keys in the queue, as they were when they were pushed, except the earlier keys of the
    anchor's own sample. If there are none, the oldest keys are excluded instead, so that
    all anchors have N = ``queue_size`` minus the keys of one sample.

    The queue starts empty, and N grows with it. In the first step, when the queue is empty, the
    negatives are the keys of the other samples of the batch. The queue stores labels, for
    losses that use them, such as ``Supervised`` and ``SupCon``.

    When ``partial_fit`` or a fit with ``warm_start`` gets the same samples and labels again, the
    queue continues unchanged. With other samples, such as the next part of a stream, the queue
    keeps its keys as negatives, without classes and groups, and grows by the number of new
    samples, up to `queue_size`.

    A key does not depend on the other samples of its batch: batch normalisation in the momentum
    encoder uses running statistics, which follow those of the network with the same momentum
    [2]_. With batch statistics, a query and its key would share information about their batch, by
    which the network could identify the positive. The original avoids this by shuffling samples
    among several GPUs, which is impossible on one device.

    Parameters
    ----------
    queue_size : int or "auto", default="auto"
        Maximum number of keys in the queue, at least the keys of two samples; "auto" is 65,536 as
        in [1]_. A queue has at most one visit of each sample of X.
    momentum : float, default=0.999
        m in [0, 1]: 0 copies the network after every step, 1 never changes the copy. The
        momentum encoder is an average over about the last 1/(1 − m) steps: in a fit of a few
        hundred steps, choose 0.9 to 0.99.
    symmetric : bool, default=False
        Whether every view is an anchor, with the keys of the other views as its positives. All
        views then have keys in the queue. A step takes twice as long and is more effective.

    See Also
    --------
    SimCLR : All negatives come from the batch; no second network.
    CMC : The negatives come from a memory bank; the positives are another modality of the sample.
    KeyQueue : The queue, for custom frameworks.
    MomentumNetwork : The momentum encoder, for custom frameworks.

    References
    ----------
    .. [1] K. He, H. Fan, Y. Wu, S. Xie, R. Girshick, "Momentum Contrast for Unsupervised Visual
       Representation Learning", CVPR 2020.
    .. [2] Z. Cai, A. Ravichandran, S. Maji, C. Fowlkes, Z. Tu, S. Soatto, "Exponential Moving
       Average Normalization for Self-supervised and Semi-supervised Learning", CVPR 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from skcontrast import ContrastiveEmbedder
    >>> from skcontrast.frameworks import MoCo
    >>> from skcontrast.losses import PUCL
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> moco = MoCo(queue_size=64, momentum=0.99)
    >>> embedder = ContrastiveEmbedder(framework=moco, loss=PUCL(), max_epochs=2, random_state=0)
    >>> embedder.fit_transform(X).shape
    (100, 128)
    """

    queue_size: int | Literal["auto"] = parameter([*POSITIVE_INT, {"auto"}], default="auto")
    momentum: float = parameter(FRACTION, default=0.999)
    symmetric: bool = parameter(["boolean"], default=False)

    remembers_samples = True

    def start(self, context: FitContext) -> Session:
        """Return a session with a momentum encoder and a queue.

        Raises
        ------
        ValueError
            If `queue_size` is less than the keys of two samples, or the queue does not fit into
            the memory.
        """
        return _MoCoSession(self, context)


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
        # In tuples, so that they are not registered: they belong to the fit.
        self.followed, self.call = (context.module,), (context.prepare(self.network),)
        self.momentum, self.has_statistics = momentum, False

    def train(self, mode: bool = True) -> MomentumNetwork:
        """Stay in inference mode, for any `mode`."""
        return super().train(False)

    @torch.no_grad()
    def forward(self, x: Any) -> Tensor:
        """Encode x of shape (n, ...); return shape (n, width), float32.

        In each step, call this before the trained network: the first call may set the running
        statistics of both.
        """
        if not self.has_statistics:
            self._take_first_statistics(x)
            self.has_statistics = True
        return self.call[0](x).float()

    @torch.no_grad()
    def follow(self) -> None:
        """Update the moving average; call this after each step of the optimizer."""
        (followed,) = self.followed
        # A tensor that two layers share is listed once.
        both = ([*net.parameters(), *net.buffers()] for net in (self.network, followed))
        for mine, theirs in zip(*both, strict=True):
            if mine.is_floating_point():
                mine.lerp_(theirs, 1 - self.momentum)
            else:
                mine.copy_(theirs)

    def _take_first_statistics(self, x: Any) -> None:
        """Initialise the running statistics of both networks from x, if they have none yet.

        Otherwise the moving average would forget the initial zeros and ones only slowly. Frozen
        layers, which run in inference mode, keep theirs.
        """
        (followed,) = self.followed
        pairs = zip(self.network.modules(), followed.modules(), strict=True)
        new: list[Any] = [pair for pair in pairs if _lack_statistics(*pair)]
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


def _lack_statistics(mine: Any, theirs: Any) -> bool:
    """Return whether layers that are trained normalise by statistics and have seen no batch."""
    has_some = isinstance(mine, BATCH_NORM) and mine.track_running_stats
    return bool(theirs.training and has_some and not mine.num_batches_tracked)


class KeyQueue(nn.Module):
    """The keys of the most recent samples, first in, first out.

    A slot holds all keys of a sample in a step, its row number in X and its class. An epoch visits
    every sample once, so a queue with at most one slot per sample has at most one earlier visit
    of a sample.

    Parameters
    ----------
    n_slots : int
        Number of slots, the maximum number of samples in the queue.
    n_keys : int
        Keys per sample.
    width : int
        Width of a key.
    n_samples : int
        Number of samples in X.

    Attributes
    ----------
    keys : Tensor of shape (n_slots, n_keys, width)
        Outputs of the network.
    rows, labels : Tensor of shape (n_slots,), dtype int64
        Row numbers in X and classes; −1 where unknown. `FitContext.groups_of` returns the groups
        of rows.
    n_seen : int
        Number of samples pushed so far; the next one goes to slot ``n_seen % n_slots``.

    See Also
    --------
    MoCo : Draws its candidates from a queue.
    MomentumNetwork : The network that encodes the keys of MoCo.
    Session : Holds a queue during a fit.

    Examples
    --------
    A queue of two slots, after three samples:

    >>> import torch
    >>> from skcontrast.frameworks import KeyQueue
    >>> queue = KeyQueue(n_slots=2, n_keys=1, width=2, n_samples=10)
    >>> keys = torch.tensor([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
    >>> queue.push(keys[:, None], rows=torch.tensor([7, 2, 5]))
    >>> len(queue)
    2
    >>> held, labels = queue.filled()
    >>> held
    tensor([[4., 5.],
            [2., 3.]])

    Sample 5 has its own key in row 0, which is not a negative for it:

    >>> queue.excluded(torch.tensor([5]))
    tensor([[0]])
    """

    keys: Tensor
    rows: Tensor
    labels: Tensor
    _pushed: Tensor

    @guarded()
    def __init__(self, n_slots: int, n_keys: int, width: int, n_samples: int):
        super().__init__()
        self.n_slots, self.n_seen = n_slots, 0
        self.register_buffer("keys", torch.zeros(n_slots, n_keys, width))
        self.register_buffer("rows", torch.full((n_slots,), -1))
        self.register_buffer("labels", torch.full((n_slots,), -1))
        # For each sample of X, the value of n_seen at its last visit; row −1 is the last entry.
        self.register_buffer("_pushed", torch.full((n_samples + 1,), -1), persistent=False)

    def __len__(self) -> int:
        """Return the number of samples in the queue."""
        return min(self.n_seen, self.n_slots)

    def filled(self) -> tuple[Tensor, Tensor]:
        """Return the keys in the queue and their labels.

        Returns
        -------
        keys : Tensor of shape (n, width)
            n = ``len(self) * n_keys`` keys; the keys of one sample are consecutive.
        labels : Tensor of shape (n,), dtype int64
            Their classes, −1 where unknown.
        """
        labels = self.labels[: len(self)].repeat_interleave(self.keys.shape[1])
        return self.keys[: len(self)].flatten(0, 1), labels

    def excluded(self, rows: Tensor) -> Tensor:
        """Return the indices of keys that must be excluded for each sample.

        These are older keys of the sample. If there are none, they are the keys of the oldest
        sample, so that all samples have the same number of negatives.

        Parameters
        ----------
        rows : Tensor of shape (n,), dtype int64
            Row numbers of the samples in X.

        Returns
        -------
        own : Tensor of shape (n, n_keys), dtype int64
            Rows of the keys that `filled` returns.
        """
        slots = self._pushed[rows].clamp_min(self.n_seen - len(self)) % self.n_slots
        n_keys = self.keys.shape[1]
        return slots[:, None] * n_keys + torch.arange(n_keys, device=rows.device)

    @torch.no_grad()
    def push(self, keys: Tensor, rows: Tensor, labels: Tensor | None = None) -> None:
        """Add the keys of samples; in a full queue, they replace the oldest.

        Parameters
        ----------
        keys : Tensor of shape (n, n_keys, width)
            The new keys.
        rows : Tensor of shape (n,), dtype int64
            Row numbers of their samples in X, all different; −1 for samples that are not in X.
        labels : Tensor of shape (n,), dtype int64, default=None
            Classes, −1 where unknown.
        """
        times = torch.arange(self.n_seen, self.n_seen + len(keys), device=rows.device)
        self._pushed[rows] = times
        kept = slice(max(0, len(keys) - self.n_slots), None)
        slots = times[kept] % self.n_slots
        self.keys[slots] = keys[kept].to(self.keys.dtype)
        self.rows[slots] = rows[kept]
        self.labels[slots] = -1 if labels is None else labels[kept]
        self.n_seen += len(keys)

    def get_extra_state(self) -> int:
        """Return the non-tensor state, `n_seen`."""
        return self.n_seen

    def set_extra_state(self, n_seen: int) -> None:
        """Load the non-tensor state, after the tensors."""
        self.n_seen = n_seen
        times = self._oldest_first()
        rows = self.rows[times % self.n_slots] % len(self._pushed)
        self._pushed.fill_(-1).scatter_reduce_(0, rows, times, "amax")

    def _oldest_first(self) -> Tensor:
        """Return the values of `n_seen` at which the samples in the queue were pushed."""
        return torch.arange(self.n_seen - len(self), self.n_seen, device=self.rows.device)

    def continued(self, most_slots: int) -> KeyQueue:
        """Return a queue for the next fit, with the keys of this one.

        It has a slot for each sample of X and for each unknown sample, up to `most_slots`. Only
        the newest visit of a sample of X is kept.
        """
        times = self._oldest_first()
        slots, n_samples = times % self.n_slots, len(self._pushed) - 1
        rows = self.rows[slots]
        is_unknown = rows < 0
        is_kept = is_unknown | (self._pushed[rows] == times)
        n_slots = min(most_slots, n_samples + int(is_unknown.sum()))
        if n_slots == self.n_slots and is_kept.all():
            return self
        slots = slots[is_kept][-n_slots:]
        _, n_keys, width = self.keys.shape
        queue = KeyQueue(n_slots, n_keys, width, n_samples).to(self.keys.device)
        queue.push(self.keys[slots], self.rows[slots], self.labels[slots])
        return queue


class _MoCoSession(Session):
    """A momentum encoder and a queue of its keys."""

    def __init__(self, framework: MoCo, context: FitContext):
        super().__init__(context)
        self.symmetric = framework.symmetric
        self.momentum_network = MomentumNetwork(context, framework.momentum)
        n_keys = context.n_views if self.symmetric else context.n_views - 1
        size = _LARGEST_AUTO if framework.queue_size == "auto" else framework.queue_size
        if size < 2 * n_keys:
            raise ValueError(
                f"The 'queue_size' parameter of MoCo must be at least {2 * n_keys}, the keys of "
                f"two samples, got {size}."
            )
        # A slot holds the keys of all views of a sample.
        self.most_slots = size // n_keys
        n_slots = min(self.most_slots, context.n_samples)
        self.queue = KeyQueue(n_slots, n_keys, context.width, context.n_samples)

    def contrast(self, views: list[Any], similarity: Similarity, batch: Batch) -> Contrast:
        """Contrast queries with their keys and with the queue."""
        queries, keyed = (views, views) if self.symmetric else (views[:1], views[1:])
        # Keys come from the momentum encoder, without a gradient, queries from the network.
        keys = self.momentum_network(torch.cat(keyed)).unflatten(0, (len(keyed), -1))
        z = self.context.network(torch.cat(queries)).float().unflatten(0, (len(queries), -1))
        # Keys enter the queue after the step.
        self.new: Any = keys.transpose(0, 1), batch.rows, batch.labels
        anchors, targets = similarity.embed(z), similarity.embed(keys)
        candidates, excluded, known = self._candidates(targets, similarity, batch)
        # An anchor has the keys of the other views of its sample.
        others = [
            [key for w, key in enumerate(targets) if not (self.symmetric and v == w)]
            for v in range(len(queries))
        ]
        positives = [pairs_with(*pair, similarity) for pair in zip(anchors, others, strict=True)]
        return Contrast(
            anchors=anchors.flatten(0, 1),
            candidates=candidates,
            positives=torch.cat(positives),
            excluded=excluded.repeat(len(queries), 1),
            **batch.metadata(z).of_anchors(known),
        )

    def _candidates(
        self, targets: Tensor, similarity: Similarity, batch: Batch
    ) -> tuple[Tensor, Tensor, Metadata]:
        """Return candidates (m, k), indices excluded for samples (n, ·), and metadata."""
        n_keys, n = targets.shape[:2]
        if len(self.queue):
            keys, labels = self.queue.filled()
            groups = self.context.groups_of(self.queue.rows[: len(self.queue)])
            groups = None if groups is None else groups.repeat_interleave(n_keys)
            known = Metadata(labels, groups)
            return similarity.embed(keys), self.queue.excluded(cast(Tensor, batch.rows)), known
        excluded = torch.arange(n * n_keys, device=targets.device).view(n, n_keys)
        known = Metadata(batch.labels, batch.groups).take(excluded.flatten() // n_keys)
        return targets.transpose(0, 1).flatten(0, 1), excluded, known

    def update(self) -> None:
        """Update the momentum encoder, and push the keys of the step."""
        self.momentum_network.follow()
        self.queue.push(*self.new)

    def resume(self, state: dict[str, Any], same_samples: bool) -> None:
        """Continue with the momentum encoder and, if the keys have the same shape, the queue."""
        self.momentum_network.load_state_dict(state_of("momentum_network", state))
        old = state_of("queue", state)
        n_slots, n_keys, width = old["keys"].shape
        if (n_keys, width) != self.queue.keys.shape[1:]:
            return
        if not same_samples:  # negatives without classes and groups
            old |= {name: torch.full_like(old[name], -1) for name in ("rows", "labels")}
        queue = KeyQueue(n_slots, n_keys, width, self.context.n_samples).to(self.context.device)
        queue.load_state_dict(old)
        self.queue = queue.continued(self.most_slots)
