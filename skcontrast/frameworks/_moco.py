"""MoCo: keys of a momentum encoder, kept in a queue, are the negatives."""

from __future__ import annotations

from typing import Any, Literal, cast

import torch
from torch import Tensor

from .._checks import FRACTION, POSITIVE_INT, StrOptions, parameter
from .._data._batches import Batch, Metadata
from .._objective._contrast import Contrast, pairs_with
from .._runtime._memory import check_memory
from ..similarity import Similarity
from ._base import FitContext, Framework, Session, state_of
from ._momentum import MomentumNetwork
from ._queue import KeyQueue

_LARGEST_AUTO = 65536


class MoCo(Framework):
    r"""Momentum contrast: the negatives are keys of earlier batches, kept in a queue.

    The first view of each sample is encoded by the network and is an anchor, the query. The other
    views are encoded by a momentum encoder and are its positives, the keys [1]_. The momentum
    encoder is a copy of the encoder and the projection head that has no gradient and follows them
    after every step,

    .. math:: \theta_k \leftarrow m\,\theta_k + (1 - m)\,\theta_q.

    Then the keys enter a queue and the oldest leave it. The candidate negatives of an anchor are
    the keys in the queue, as they were when they were pushed, except the earlier keys of the
    anchor's own sample. If it has none in the queue, the oldest keys are excluded instead, so that
    all anchors have N = ``queue_size`` minus the keys of one sample.

    The queue starts empty, and N grows with it. In the first step, when the queue is empty, the
    negatives are the keys of the other samples of the batch. The queue stores labels, so that
    ``Supervised`` and ``SupCon`` know the classes of its keys.

    When ``partial_fit`` or a fit with ``warm_start`` gets the same samples and labels again, the
    queue continues unchanged. When it gets others, such as the next part of a long stream, the
    queue keeps its keys as negatives for everyone, without their classes and groups, and grows by
    the number of new samples, up to `queue_size`. So it may be longer than a single part.

    A key does not depend on the other samples of its batch: batch normalisation in the momentum
    encoder uses running statistics, which follow those of the network with the same momentum
    [2]_. With batch statistics, a query and its key would share a trace of their batch that the
    older keys lack, and the network could recognise the positive by it. The original avoids this
    by shuffling the samples among several GPUs, which is impossible on one device.

    Parameters
    ----------
    queue_size : int or "auto", default="auto"
        The most keys in the queue, at least the keys of two samples; "auto" is 65,536 as in [1]_.
        A queue never holds two visits of a sample, so that it has at most as many keys as there
        are views with keys in X, and in ``partial_fit`` in all parts so far.
    momentum : float, default=0.999
        m in [0, 1]: 0 copies the network after every step, 1 never changes the copy. The
        momentum encoder is an average over about the last 1/(1 − m) steps: in a fit of a few
        hundred steps, choose 0.9 to 0.99.
    symmetric : bool, default=False
        Whether every view is an anchor, with the keys of the other views as its positives. All
        views then have keys in the queue. A step costs twice as much and learns more.

    See Also
    --------
    SimCLR : All negatives come from the batch; no second network.
    CMC : The negatives come from a memory bank; the positives are a different part of the sample.
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
    (100, 133)
    """

    queue_size: int | Literal["auto"] = parameter(
        [*POSITIVE_INT, StrOptions({"auto"})], default="auto"
    )
    momentum: float = parameter(FRACTION, default=0.999)
    symmetric: bool = parameter(["boolean"], default=False)

    draws_random_numbers = False
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


class _MoCoSession(Session):
    """A momentum encoder and a queue of its keys."""

    def __init__(self, framework: MoCo, context: FitContext):
        super().__init__(context)
        self.symmetric = framework.symmetric
        self.momentum_network = MomentumNetwork(context, framework.momentum)
        n_keys = context.n_views if self.symmetric else context.n_views - 1
        wanted = _LARGEST_AUTO if framework.queue_size == "auto" else framework.queue_size
        if wanted < 2 * n_keys:
            raise ValueError(
                f"The 'queue_size' parameter of MoCo must be at least {2 * n_keys}, the keys of "
                f"two samples, got {wanted}."
            )
        # A slot holds the keys of all views of a sample.
        self.most_slots = wanted // n_keys
        n_slots = min(self.most_slots, context.n_samples)
        n_numbers = n_slots * n_keys * context.width
        check_memory(n_numbers, context.device, "The 'queue_size' parameter of MoCo")
        self.queue = KeyQueue(n_slots, n_keys, context.width, context.n_samples)

    def contrast(self, views: list[Any], similarity: Similarity, batch: Batch) -> Contrast:
        """Contrast queries with their keys and with the queue."""
        queries, keyed = (views, views) if self.symmetric else (views[:1], views[1:])
        # Keys come from the slowly following copy, without a gradient, queries from the network.
        keys = self.momentum_network(torch.cat(keyed)).unflatten(0, (len(keyed), -1))
        z = self.context.network(torch.cat(queries)).float().unflatten(0, (len(queries), -1))
        # The keys enter the queue after the step, so that no anchor meets its own there.
        self.new: Any = keys.transpose(0, 1), batch.rows, batch.labels
        anchors, targets = similarity.embed(z), similarity.embed(keys)
        candidates, excluded, known = self._candidates(targets, similarity, batch)
        of_anchors = batch.metadata(z)
        return Contrast(
            anchors=anchors.flatten(0, 1),
            candidates=candidates,
            positives=self._positives(anchors, targets, similarity),
            excluded=excluded.repeat(len(queries), 1),
            weights=of_anchors.weights,
            anchor_labels=of_anchors.labels,
            candidate_labels=None if batch.labels is None else known.labels,
            anchor_groups=of_anchors.groups,
            candidate_groups=known.groups,
        )

    def _positives(self, anchors: Tensor, targets: Tensor, similarity: Similarity) -> Tensor:
        """Return the scores of the anchors, view by view, with the keys of the other views."""
        found = []
        for v, u in enumerate(anchors):
            keys = [key for w, key in enumerate(targets) if not (self.symmetric and v == w)]
            found.append(pairs_with(u, keys, similarity))
        return torch.cat(found)

    def _candidates(
        self, targets: Tensor, similarity: Similarity, batch: Batch
    ) -> tuple[Tensor, Tensor, Metadata]:
        """Return candidates (m, k), excluded ones of samples (n, ·) and what is known of them."""
        n_keys, n = targets.shape[:2]
        if len(self.queue):
            keys, labels = self.queue.filled()
            groups = self.context.groups_of(self.queue.rows[: len(self.queue)])
            groups = None if groups is None else groups.repeat_interleave(n_keys)
            known = Metadata(labels, groups)
            return similarity.embed(keys), self.queue.own(cast(Tensor, batch.rows)), known
        own = torch.arange(n * n_keys, device=targets.device).view(n, n_keys)
        known = Metadata(batch.labels, batch.groups).take(own.flatten() // n_keys)
        return targets.transpose(0, 1).flatten(0, 1), own, known

    def update(self) -> None:
        """Move the momentum encoder towards the network and push the keys of the step."""
        self.momentum_network.follow()
        self.queue.push(*self.new)

    def resume(self, state: dict[str, Any], same_samples: bool) -> None:
        """Continue with the momentum encoder and, if keys per sample are as many, the queue."""
        self.momentum_network.load_state_dict(state_of("momentum_network", state))
        old = state_of("queue", state)
        n_slots, n_keys, width = old["keys"].shape
        if (n_keys, width) != self.queue.keys.shape[1:]:
            return
        if not same_samples:  # negatives of everyone, without classes and groups
            old |= {name: torch.full_like(old[name], -1) for name in ("rows", "labels")}
        queue = KeyQueue(n_slots, n_keys, width, self.context.n_samples).to(self.context.device)
        queue.load_state_dict(old)
        self.queue = queue.continued(self.most_slots)
