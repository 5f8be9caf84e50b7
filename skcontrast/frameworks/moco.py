"""MoCo: keys of a momentum encoder, kept in a queue, are the negatives."""

from __future__ import annotations

import warnings
from numbers import Integral, Real

import torch

from .._data._memory import check_memory
from .._objective._functional import Contrast
from .._parameters import Interval, StrOptions
from ._base import Framework, Session
from ._momentum import MomentumNetwork
from ._queue import KeyQueue

__all__ = ["MoCo"]

_LARGEST_AUTO = 65536


class MoCo(Framework):
    r"""Momentum contrast: the negatives are keys of earlier batches, kept in a queue.

    The first view of each sample is encoded by the network and is an anchor, the query; the other
    views are encoded by a momentum encoder and are its positives, the keys [1]_. The momentum
    encoder is a copy of encoder and projection head without a gradient, that follows them after
    every step,

    .. math:: \theta_k \leftarrow m\,\theta_k + (1 - m)\,\theta_q.

    Then the keys enter a queue and the oldest leave it. The candidate negatives of an anchor are
    the keys in the queue, as they were when they came, N = ``queue_size`` minus the keys that one
    sample gets in a step: keys that the anchor's own sample got earlier are excluded, and for an
    anchor that has none the oldest are instead, so that N is the same for all.

    The queue starts empty, and N is what it holds. In the first step, in which it holds nothing,
    the negatives are the keys of the other samples of the batch. It carries labels, so that
    ``Supervised`` and ``SupCon`` see the classes of its entries.

    Keys depend on no other sample of their batch: batch normalisation in the momentum encoder
    uses running statistics, which follow those of the network with the same momentum [2]_. With
    statistics of the batch, a query and its key would have a trace of their batch in common that
    the older keys do not have, by which they could be told apart. The original shuffles the
    samples among several GPUs against that, which one device cannot do.

    Parameters
    ----------
    queue_size : int or "auto", default="auto"
        The most keys in the queue, at least those of two samples. "auto" is 65,536 as in [1]_, or
        one visit of every sample where that is less. A larger number than that is reduced to it,
        with a warning.
    momentum : float, default=0.999
        m in [0, 1]: 0 copies the network after every step, 1 keeps the copy as it began. The
        momentum encoder is an average over about the last 1/(1 − m) steps: in a fit of a few
        hundred steps choose 0.9 to 0.99.
    symmetric : bool, default=False
        Whether every view is an anchor, with the keys of the other views as its positives. All
        views then have keys in the queue. Costs twice as much, and learns more from a step.
    in_batch : bool, default=False
        Whether the keys of the other samples of the batch are candidates beside the queue.

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

    _parameter_constraints: dict = {
        "queue_size": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "momentum": [Interval(Real, 0, 1, closed="both")],
        "symmetric": ["boolean"],
        "in_batch": ["boolean"],
    }

    draws_random_numbers = False

    def __init__(self, queue_size="auto", momentum=0.999, symmetric=False, in_batch=False):
        self.queue_size = queue_size
        self.momentum = momentum
        self.symmetric = symmetric
        self.in_batch = in_batch

    def start(self, fit):
        """Return a session with a momentum encoder and a queue.

        Raises
        ------
        ValueError
            If `queue_size` is less than the keys of two samples, or exceeds the memory.
        """
        return _MoCoSession(self, fit)

    def _n_slots(self, n_keys, fit):
        """Return how many samples the queue holds."""
        wanted = _LARGEST_AUTO if self.queue_size == "auto" else self.queue_size
        most = fit.n_samples * n_keys
        if wanted < 2 * n_keys:
            raise ValueError(
                f"The 'queue_size' parameter of MoCo must be at least {2 * n_keys}, the keys of "
                f"two samples, got {wanted}."
            )
        if wanted > most and self.queue_size != "auto":
            warnings.warn(
                f"The 'queue_size' parameter of MoCo is {wanted}, but {fit.n_samples} samples "
                f"have {most} keys: the queue holds {most}.",
                UserWarning,
                stacklevel=2,
            )
        n_slots = min(wanted, most) // n_keys
        check_memory(
            n_slots * n_keys * fit.width, fit.device, "The 'queue_size' parameter of MoCo"
        )
        return n_slots


class _MoCoSession(Session):
    """A momentum encoder and a queue of its keys."""

    def __init__(self, framework, fit):
        super().__init__(fit)
        self.symmetric, self.in_batch = framework.symmetric, framework.in_batch
        n_keys = fit.n_views if self.symmetric else fit.n_views - 1
        n_slots = framework._n_slots(n_keys, fit)
        self.momentum_network = MomentumNetwork(fit, framework.momentum)
        self.queue = KeyQueue(n_slots, n_keys, fit.width, fit.n_samples)

    def contrast(self, views, similarity, batch):
        """Contrast queries with their keys and with the queue."""
        queries, keyed = (views, views) if self.symmetric else (views[:1], views[1:])
        keys = self.momentum_network(torch.cat(keyed)).unflatten(0, (len(keyed), -1))
        z = self.fit.network(torch.cat(queries)).float().unflatten(0, (len(queries), -1))
        self.new = keys.transpose(0, 1), batch.rows, batch.labels
        anchors, targets = similarity.embed(z), similarity.embed(keys)
        candidates, excluded, candidate_labels = self._candidates(targets, similarity, batch)
        weights = batch.anchor_weights(z)
        return Contrast(
            anchors.flatten(0, 1),
            candidates,
            self._positives(anchors, targets, similarity),
            excluded.repeat(len(queries), 1),
            None if weights is None else weights.flatten(),
            None if batch.labels is None else batch.labels.repeat(len(queries)),
            None if batch.labels is None else candidate_labels,
        )

    def _positives(self, anchors, targets, similarity):
        """Return the scores of the anchors, view by view, with keys of other views."""
        rows = [
            [similarity.pairs(u, key) for w, key in enumerate(targets) if not self._is_own(v, w)]
            for v, u in enumerate(anchors)
        ]
        return torch.cat([torch.stack(row, 1) for row in rows])

    def _is_own(self, query, key):
        return self.symmetric and query == key

    def _candidates(self, targets, similarity, batch):
        """Return candidates (n, k), of each sample the excluded ones, and labels (n,)."""
        parts = []
        if self.in_batch or not len(self.queue):
            n_keys, n = targets.shape[:2]
            own = torch.arange(n_keys * n, device=targets.device).view(n, n_keys)
            labels = None if batch.labels is None else batch.labels.repeat_interleave(n_keys)
            parts.append((targets.transpose(0, 1).flatten(0, 1), own, labels))
        if len(self.queue):
            keys, labels = self.queue.filled()
            own = self.queue.own(batch.rows) + sum(len(keys) for keys, _, _ in parts)
            parts.append((similarity.embed(keys), own, labels))
        keys, own, labels = zip(*parts, strict=True)
        if len(parts) == 1:
            return keys[0], own[0], labels[0]
        return torch.cat(keys), torch.cat(own, 1), None if labels[0] is None else torch.cat(labels)

    def update(self):
        """Let the momentum encoder follow, and the keys of the step into the queue."""
        self.momentum_network.follow()
        self.queue.push(*self.new)

    def resume(self, state, same_samples):
        """Go on with the momentum encoder and, where keys per sample are as many, the queue."""
        prefix = "momentum_network."
        self.momentum_network.load_state_dict(
            {k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)}
        )
        old = {k.removeprefix("queue."): v for k, v in state.items() if k.startswith("queue.")}
        if old["keys"].shape[1:] == self.queue.keys.shape[1:]:
            self.queue.resume(
                old["keys"], old["rows"], old["labels"], old["_extra_state"], same_samples
            )
