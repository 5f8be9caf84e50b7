"""MoCo: keys of a momentum encoder, kept in a queue, are the negatives."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, Literal

import torch
from torch import Tensor

from .._data._batches import Batch
from .._objective._contrast import Contrast
from .._parameters import Interval, StrOptions
from .._runtime._memory import check_memory
from .._warnings import warn
from ..similarity import Similarity
from ._base import FitContext, Framework, Session
from ._momentum import MomentumNetwork
from ._queue import KeyQueue

__all__ = ["MoCo"]

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
    negatives are the keys of the other samples of the batch. The queue stores labels and groups,
    so that ``Supervised`` and ``SupCon`` know the classes of its keys.

    ``partial_fit`` with a part of a long stream keeps the keys of the earlier parts, with their
    classes and groups, as negatives: the queue grows by the samples of each part, up to
    `queue_size`. If a part comes again, it is recognised, and the earlier keys of its own samples
    are excluded.

    A key does not depend on the other samples of its batch: batch normalisation in the momentum
    encoder uses running statistics, which follow those of the network with the same momentum
    [2]_. With batch statistics, a query and its key would share a trace of their batch that the
    older keys lack, and the network could recognise the positive by it. The original avoids this
    by shuffling the samples among several GPUs, which is impossible on one device.

    Parameters
    ----------
    queue_size : int or "auto", default="auto"
        The most keys in the queue, at least the keys of two samples. "auto" is 65,536 as in [1]_,
        or the keys of all samples if they are fewer. A number larger than the keys of all samples
        is reduced to it, in `fit` with a warning.
    momentum : float, default=0.999
        m in [0, 1]: 0 copies the network after every step, 1 never changes the copy. The
        momentum encoder is an average over about the last 1/(1 − m) steps: in a fit of a few
        hundred steps, choose 0.9 to 0.99.
    symmetric : bool, default=False
        Whether every view is an anchor, with the keys of the other views as its positives. All
        views then have keys in the queue. A step costs twice as much and learns more.
    in_batch : bool, default=False
        Whether the keys of the other samples of the batch are candidates besides the queue.

    See Also
    --------
    SimCLR : All negatives come from the batch; no second network.
    CMC : The negatives come from a memory bank; the positives are a different part of the sample.
    KeyQueue : The queue, for frameworks of one's own.
    MomentumNetwork : The momentum encoder, for frameworks of one's own.

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
    only_encodes_views = True

    def __init__(
        self,
        queue_size: int | Literal["auto"] = "auto",
        momentum: float = 0.999,
        symmetric: bool = False,
        in_batch: bool = False,
    ):
        self.queue_size = queue_size
        self.momentum = momentum
        self.symmetric = symmetric
        self.in_batch = in_batch

    def start(self, fit: FitContext) -> Session:
        """Return a session with a momentum encoder and a queue.

        Raises
        ------
        ValueError
            If `queue_size` is less than the keys of two samples, or the queue does not fit into
            the memory.
        """
        return _MoCoSession(self, fit)

    def _n_slots(self, n_keys: int, fit: FitContext, n_others: int = 0) -> int:
        """Return how many samples the queue has room for: of X, and others of earlier fits."""
        wanted = _LARGEST_AUTO if self.queue_size == "auto" else self.queue_size
        most = (fit.n_samples + n_others) * n_keys
        if wanted < 2 * n_keys:
            raise ValueError(
                f"The 'queue_size' parameter of MoCo must be at least {2 * n_keys}, the keys of "
                f"two samples, got {wanted}."
            )
        if wanted > most and self.queue_size != "auto" and not fit.is_part:
            warn(
                f"The 'queue_size' parameter of MoCo is {wanted}, but {fit.n_samples} samples "
                f"have {most} keys: the queue holds {most}."
            )
        largest = wanted if fit.is_part else min(wanted, most)
        check_memory(largest * fit.width, fit.device, "The 'queue_size' parameter of MoCo")
        return min(wanted, most) // n_keys


class _MoCoSession(Session):
    """A momentum encoder and a queue of its keys."""

    def __init__(self, framework: MoCo, fit: FitContext):
        super().__init__(fit)
        self.framework = framework
        self.symmetric, self.in_batch = framework.symmetric, framework.in_batch
        self.momentum_network = MomentumNetwork(fit, framework.momentum)
        self.queue = self._new_queue()

    def _new_queue(self, n_others: int = 0) -> KeyQueue:
        """Return an empty queue, with room for some samples that are not in X."""
        n_keys = self.fit.n_views if self.symmetric else self.fit.n_views - 1
        n_slots = self.framework._n_slots(n_keys, self.fit, n_others)
        return KeyQueue(n_slots, n_keys, self.fit.width, self.fit.n_samples, self.fit.first_id)

    def contrast(self, views: Sequence[Any], similarity: Similarity, batch: Batch) -> Contrast:
        """Contrast queries with their keys and with the queue."""
        queries, keyed = (views, views) if self.symmetric else (views[:1], views[1:])
        keys = self.momentum_network(torch.cat(keyed)).unflatten(0, (len(keyed), -1))
        z = self.fit.network(torch.cat(queries)).float().unflatten(0, (len(queries), -1))
        batch = batch._replace(labels=self.fit.class_ids(batch.labels))
        self.new = keys.transpose(0, 1), batch.rows, batch.labels, batch.groups
        anchors, targets = similarity.embed(z), similarity.embed(keys)
        candidates, excluded, labels, groups = self._candidates(targets, similarity, batch)
        weights = batch.anchor_weights(z)
        return Contrast(
            anchors.flatten(0, 1),
            candidates,
            self._positives(anchors, targets, similarity),
            excluded.repeat(len(queries), 1),
            None if weights is None else weights.flatten(),
            None if batch.labels is None else batch.labels.repeat(len(queries)),
            None if batch.labels is None else labels,
            None if batch.groups is None else batch.groups.repeat(len(queries)),
            groups,
        )

    def _positives(self, anchors: Tensor, targets: Tensor, similarity: Similarity) -> Tensor:
        """Return the scores of the anchors, view by view, with the keys of the other views."""
        rows = [
            [similarity.pairs(u, key) for w, key in enumerate(targets) if not self._is_own(v, w)]
            for v, u in enumerate(anchors)
        ]
        return torch.cat([torch.stack(row, 1) for row in rows])

    def _is_own(self, query: int, key: int) -> bool:
        return self.symmetric and query == key

    def _candidates(
        self, targets: Tensor, similarity: Similarity, batch: Batch
    ) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
        """Return candidates (m, k), excluded ones of samples (n, ·), labels and groups (m,)."""
        parts: list[tuple[Tensor, Tensor, Tensor | None, Tensor | None]] = []
        if self.in_batch or not len(self.queue):
            n_keys, n = targets.shape[:2]
            own = torch.arange(n_keys * n, device=targets.device).view(n, n_keys)
            labels, groups = (
                None if marks is None else marks.repeat_interleave(n_keys)
                for marks in (batch.labels, batch.groups)
            )
            parts.append((targets.transpose(0, 1).flatten(0, 1), own, labels, groups))
        if len(self.queue):
            keys, labels = self.queue.filled()
            own = self.queue.own(batch.rows) + sum(len(part[0]) for part in parts)
            parts.append((similarity.embed(keys), own, labels, self._groups_in_queue()))
        if len(parts) == 1:
            return parts[0]
        keys, owns, labels, groups = zip(*parts, strict=True)
        return torch.cat(keys), torch.cat(owns, 1), _joined(labels), _joined(groups)

    def _groups_in_queue(self) -> Tensor | None:
        """Return the groups of the keys: of samples of X as they are now, of others as before."""
        rows, groups = (marks[: len(self.queue)] for marks in (self.queue.rows, self.queue.groups))
        now = self.fit.groups_of(rows)
        if now is None:
            return None
        return torch.where(rows < 0, groups, now).repeat_interleave(self.queue.keys.shape[1])

    def update(self) -> None:
        """Move the momentum encoder towards the network and push the keys of the step."""
        self.momentum_network.follow()
        self.queue.push(*self.new)

    def resume(self, state: dict[str, Any], same_samples: bool) -> None:
        """Continue with the momentum encoder and, if keys per sample are as many, the queue."""
        prefix = "momentum_network."
        self.momentum_network.load_state_dict(
            {k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)}
        )
        old = {k.removeprefix("queue."): v for k, v in state.items() if k.startswith("queue.")}
        if old["keys"].shape[1:] != self.queue.keys.shape[1:]:
            return
        ids, n_seen, labels = old["ids"], old["_extra_state"], old["labels"]
        if self.fit.is_part:
            n_others = self.queue._count_others(ids, n_seen)
            self.queue = self._new_queue(n_others).to(self.queue.keys.device)
        self.queue.resume(old["keys"], labels, n_seen, ids, old["groups"])
        if (now := self.fit.class_ids(self.fit.labels)) is not None:
            rows = self.queue.rows
            is_known = (rows >= 0) & (now[rows] >= 0)
            self.queue.labels = torch.where(is_known, now[rows], self.queue.labels)


def _joined(marks: Sequence[Tensor | None]) -> Tensor | None:
    """Return what is known about several parts of the candidates, None if it is about none."""
    known = [part for part in marks if part is not None]
    return torch.cat(known) if len(known) == len(marks) else None
