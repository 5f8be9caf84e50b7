"""Random batches of samples with their metadata, from memory or read batch by batch."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from .._runtime import free_bytes
from ._arrays import is_lazy

# Share of the free memory that training samples may take without a budget.
_SHARE = 0.5


class Metadata(NamedTuple):
    """Labels, groups and weights of anchors or candidates.

    Attributes
    ----------
    labels : Tensor of shape (n,), dtype int64, or None
        Classes; −1 where unknown.
    groups : Tensor of shape (n,), dtype int64, or None
        Groups; −1 where there is none.
    weights : Tensor of shape (n,) or None
        Factors on the losses.
    """

    labels: Tensor | None = None
    groups: Tensor | None = None
    weights: Tensor | None = None

    def take(self, rows: Tensor) -> Metadata:
        """Return the metadata of these rows, in any order and number."""
        return Metadata(*(None if field is None else field[rows] for field in self))

    def of_anchors(self, candidates: Metadata) -> dict[str, Tensor | None]:
        """Return these, and those of candidates, as arguments of a `Contrast`."""
        return {
            "weights": self.weights,
            "anchor_labels": self.labels,
            "candidate_labels": None if self.labels is None else candidates.labels,
            "anchor_groups": self.groups,
            "candidate_groups": candidates.groups,
        }


class Batch(NamedTuple):
    """A batch of samples and their metadata.

    Attributes
    ----------
    x : Tensor of shape (n, ...), or a batch of a different class
        The samples, such as a GraphBatch of n graphs.
    labels : Tensor of shape (n,), dtype int64, or None
        Their classes; −1 where unknown.
    weights : Tensor of shape (n,) or None
        Factors on their losses.
    descriptions : Tensor of shape (n, d) or None
        Vectors with which the projections of samples should agree.
    rows : Tensor of shape (n,), dtype int64, or None
        Their row numbers in X.
    groups : Tensor of shape (n,), dtype int64, or None
        The groups of samples that are known to belong together; −1 for a sample without a group.
    """

    x: Tensor
    labels: Tensor | None = None
    weights: Tensor | None = None
    descriptions: Tensor | None = None
    rows: Tensor | None = None
    groups: Tensor | None = None

    def anchor_weights(self, z: Tensor) -> Tensor | None:
        """Return the factors on the losses of anchors, or None where all are 1.

        The loss of an anchor with projection z is multiplied by the weight of its sample and, if
        the sample has a description t, by max(0, cos(z, t)): an anchor that disagrees with its
        description counts less.

        Parameters
        ----------
        z : Tensor of shape (n_views, n, d)
            Projections of the views of the samples. Numbers that follow the projection, such as a
            concentration, are ignored.

        Returns
        -------
        weights : Tensor of shape (n_views, n), without gradient, or None
        """
        if self.descriptions is None:
            return None if self.weights is None else self.weights.expand(z.shape[:2])
        z = z.detach()[..., : self.descriptions.shape[1]]
        agreement = F.cosine_similarity(z, self.descriptions, dim=-1).clamp_min(0)
        return agreement if self.weights is None else agreement * self.weights

    def metadata(self, z: Tensor) -> Metadata:
        """Return the metadata of views of the samples as anchors, one view after another.

        Parameters
        ----------
        z : Tensor of shape (n_views, n, d)
            As in `anchor_weights`.

        Returns
        -------
        metadata : Metadata
            With the attributes ``labels``, ``groups`` and ``weights``, each a tensor of shape
            (n_views · n,) or None.
        """
        weights = self.anchor_weights(z)
        rows = torch.arange(z.shape[1], device=z.device).repeat(len(z))
        metadata = Metadata(self.labels, self.groups).take(rows)
        return metadata._replace(weights=None if weights is None else weights.flatten())


class BatchSampler:
    """Iterate over all samples in random batches, in a new order at each pass.

    The sizes of batches differ by at most one. No batch holds a single sample, which has no
    negatives: with an odd number of rows and a `batch_size` of 2, one batch holds 3.

    If the share of labeled rows is below `labeled_share`, each batch gets more labeled rows, until
    they make up this share or all are in it. They are drawn again for each batch. An epoch then
    has more batches, as these still hold at most `batch_size` samples.

    Parameters
    ----------
    source : Source
        The samples.
    batch_size : int
        The maximum size of a batch, at least 2.
    labeled : Tensor of shape (n_labeled,), dtype int64, default=None
        The labeled rows.
    labeled_share : float, default=0.0
        In [0, 1).
    pairs : Tensor of shape (n_samples,), dtype int64, default=None
        Groups, −1 where there is none. Samples of a group, and of one domain, are drawn in pairs,
        so that they meet in a batch.
    domains : Tensor of shape (n_samples,), dtype int64, default=None
        Numbers from 0 on, each of at least two samples. Every batch is of one domain.
    share : callable, default=None
        ``share(rows)`` returns the rows of a batch that this process reads; None is all.
    **metadata : dict of str to Tensor of shape (n_samples, ...)
        Further fields of `Batch`: labels, weights, descriptions and groups of all samples.
    """

    def __init__(
        self,
        source: Source,
        batch_size: int,
        labeled: Tensor | None = None,
        labeled_share: float = 0.0,
        pairs: Tensor | None = None,
        domains: Tensor | None = None,
        share: Callable[[Tensor], Tensor] | None = None,
        **metadata: Tensor,
    ):
        self.source, self.device, self.n_samples = source, source.device, len(source)
        self.metadata = {name: tensor.to(source.device) for name, tensor in metadata.items()}
        self.labeled = torch.empty(0, dtype=torch.int64) if labeled is None else labeled
        natural = len(self.labeled) / self.n_samples
        # With m added to p rows, of which the natural share is labeled: m = excess · (p + m).
        excess = max(0.0, labeled_share - natural) / (1 - natural) if natural < 1 else 0.0
        self.n_added = min(int(excess * batch_size), len(self.labeled), batch_size - 2)
        self.domains = None if domains is None else domains.cpu()
        self.counts = [self.n_samples] if domains is None else domains.bincount().tolist()
        size = batch_size - self.n_added
        self.n_batches = [min(-(-count // size), count // 2) for count in self.counts]
        self.pairs = None if pairs is None else pairs.cpu()
        if self.pairs is not None and self.domains is not None:
            within = self.pairs * len(self.counts) + self.domains  # pairs are of one domain, too
            self.pairs = within.where(self.pairs >= 0, -1)
        self.generator = torch.Generator()
        self.share = (lambda rows: rows) if share is None else share

    def __len__(self) -> int:
        return sum(self.n_batches)

    def __iter__(self) -> Generator[Batch, None, None]:
        # The order is the same in both dtypes. For data larger than memory it takes most of the
        # memory.
        dtype = torch.int32 if self.n_samples < 2**31 else torch.int64
        order = torch.randperm(self.n_samples, generator=self.generator, dtype=dtype)
        if self.pairs is not None:
            order = self._in_pairs(order.long(), self.pairs)
        batches: Sequence[Tensor] = self._divided(order)
        if self.n_added:
            batches = [torch.cat([rows, self._added_to(rows)]) for rows in batches]
        with closing(self.source.batches([*map(self.share, batches)])) as samples:
            for rows, x in zip(batches, samples, strict=True):
                rows = rows.to(self.device, torch.int64)
                metadata = {name: tensor[rows] for name, tensor in self.metadata.items()}
                yield Batch(x, rows=rows, **metadata)

    def samples(self, n: int) -> Any:
        """Return at most n samples, evenly spread."""
        return self.source.take(torch.arange(0, self.n_samples, -(-self.n_samples // n)))

    def in_order(self, batch_size: int) -> Iterator[Any]:
        """Yield all samples of the share in the order of X, at most `batch_size` at a time."""
        yield from self.source.batches(self.share(torch.arange(self.n_samples)).split(batch_size))

    def _divided(self, order: Tensor) -> Sequence[Tensor]:
        """Divide rows in a random order into batches."""
        if self.domains is None or len(self.counts) == 1:
            n = self.n_batches[0]  # 0 of a single sample
            return order.to(self.device).tensor_split(n) if n else ()
        order = order[self.domains[order.long()].sort(stable=True).indices].to(self.device)
        of_domains = zip(order.split(self.counts), self.n_batches, strict=True)
        batches = [batch for rows, n in of_domains for batch in rows.tensor_split(n)]
        return [batches[k] for k in torch.randperm(len(batches), generator=self.generator)]

    def _in_pairs(self, order: Tensor, groups: Tensor) -> Tensor:
        """Return a random order in which samples of a group are next to each other in pairs."""
        by_group = order[groups[order].sort(stable=True).indices]
        marks, counts = groups[by_group].unique_consecutive(return_counts=True)
        ranks = torch.cat([torch.arange(count) for count in counts.tolist()])
        # The first of each pair starts a new one; samples without a group stay alone.
        is_first = (ranks % 2 == 0) | (marks.repeat_interleave(counts) < 0)
        pair = is_first.cumsum(0) - 1
        position = torch.randperm(int(pair[-1]) + 1, generator=self.generator)
        return by_group[position[pair].sort(stable=True).indices]

    def _added_to(self, rows: Tensor) -> Tensor:
        """Draw labeled rows of the same domain that are not in a batch yet."""
        drawn = self.labeled[torch.randperm(len(self.labeled), generator=self.generator)]
        if self.domains is not None:
            drawn = drawn[self.domains[drawn] == self.domains[rows[:1].cpu()]]
        drawn = drawn.to(rows.device)
        return drawn[~torch.isin(drawn, rows)][: self.n_added]


@dataclass(eq=False)
class Source:
    """Samples that are on the device, or read, converted and moved there batch by batch.

    Parameters
    ----------
    X : ndarray, LazySamples or custom samples, (n_samples, ...), or a batch on the device
        The samples.
    device : torch.device
        Where they are needed.
    to_tensor : callable, default=None
        ``to_tensor(array, device)``; None if X is a batch on the device.
    n_workers : int, default=0
        Threads that read ahead; 0 reads in the caller's thread.
    """

    X: Any
    device: torch.device
    to_tensor: Callable | None = None
    n_workers: int = 0

    def __len__(self) -> int:
        return len(self.X)

    def take(self, rows: Tensor) -> Any:
        """Return the samples of these rows, read in this thread."""
        return self._moved(self._loaded(rows))

    def batches(self, batches: Sequence[Tensor]) -> Generator[Any, None, None]:
        """Yield the samples of each batch, a tensor of rows."""
        with closing(read_ahead(self._loaded, batches, self.n_workers)) as samples:
            yield from map(self._moved, samples)

    def _moved(self, x: Any) -> Any:
        """Move a batch to the device; a part of X is already there."""
        is_there = self.to_tensor is None
        return x if is_there else x.to(self.device, non_blocking=self.device.type == "cuda")

    def _loaded(self, rows: Tensor) -> Any:
        """Return the samples of these rows, in pinned memory if they are moved to a GPU."""
        if self.to_tensor is None:
            return self.X[rows.to(self.device)]
        x = self.to_tensor(self.X[rows.cpu().numpy()], torch.device("cpu"))
        is_pinned = self.device.type == "cuda" and hasattr(x, "pin_memory")
        return x.pin_memory() if is_pinned else x


def read_ahead(
    read: Callable, batches: Iterable[Any], n_threads: int
) -> Generator[Any, None, None]:
    """Yield ``read(batch)`` for each batch in order; each thread reads at most two batches ahead.

    If the caller stops, by Ctrl-C or an error, pending reads are cancelled.
    """
    if not n_threads:
        yield from map(read, batches)
        return
    pool, ahead = ThreadPoolExecutor(n_threads), deque[Future]()
    try:
        for batch in batches:
            ahead.append(pool.submit(read, batch))
            if len(ahead) == 2 * n_threads:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def is_streamed(X: Any, n_bytes: float, device: torch.device, budget: float | None) -> bool:
    """Return whether samples of `n_bytes` are read batch by batch, not all held on the device.

    0 bytes are always held; see `bytes_allowed`.
    """
    return n_bytes > 0 and (is_lazy(X) or n_bytes > bytes_allowed(device, budget))


def bytes_allowed(device: torch.device, budget: float | None) -> float:
    """Return the maximum bytes of samples on a device, by default half of its free memory."""
    if budget is not None:
        return budget * 1e9
    # Processes that torchrun has started on a machine share its memory, but have a GPU each.
    n_sharing = int(os.environ.get("LOCAL_WORLD_SIZE", 1)) if device.type == "cpu" else 1
    return _SHARE * free_bytes(device) / n_sharing
