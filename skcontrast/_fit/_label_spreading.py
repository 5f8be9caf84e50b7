"""Classes of unlabeled samples, spread from the labeled ones through the representation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from scipy.sparse import csr_array
from torch import Tensor

from ..losses import SemiSupCon

# Neighbours in the graph where no loss sets their number.
N_NEIGHBORS = 15
# As in Iscen et al.: an edge of the graph weighs the cosine to this power, and in each step a
# sample takes the share α of its classes from its neighbours; near 1, clusters share theirs.
_POWER = 3
_ALPHA = 0.99
_STEPS = 50
# The power that makes F probabilities: with it, the surest classes are right as often as they say.
_CALIBRATION = 5
# With this many labels per class, the AUC is estimated from pairs of labeled samples alone; with
# fewer, spread classes estimate it better.
_ENOUGH = 20
# The largest number of samples in the graph, so that its cost does not grow with the square of n.
_LARGEST_GRAPH = 10_000
# Rows whose scores with all samples of the graph are held at once.
_CHUNK = 1024


class Spread(NamedTuple):
    """What is kept of the probabilities of all samples, which take much memory for many classes.

    Attributes
    ----------
    classes : ndarray of shape (n,), dtype int64
        The likeliest class of each sample.
    sureness : ndarray of shape (n,), dtype float32
        Its probability, 0 where no labeled sample can be reached.
    drawn : ndarray of shape (n,), dtype int64
        A class drawn from the probabilities; −1 where no class is possible. Unlike the likeliest
        classes, which agree with the representation where the true ones do not, draws separate no
        better than true classes.
    total : ndarray of shape (n_classes,), dtype float64
        The sum of the probabilities of each class.
    """

    classes: NDArray[np.int64]
    sureness: NDArray[np.float32]
    drawn: NDArray[np.int64]
    total: NDArray[np.float64]


def summed_up(blocks: Iterable[NDArray[np.float32]], rng: np.random.Generator) -> Spread:
    """Return what is kept of probabilities, given some rows at a time."""
    parts = []
    for block in blocks:
        steps = block.cumsum(1)
        places = (rng.random((len(block), 1)) * steps[:, -1:] >= steps).sum(1)
        drawn = np.where(steps[:, -1] > 0, places.clip(max=steps.shape[1] - 1), -1)
        total = block.sum(0, dtype=np.float64)
        parts.append(Spread(block.argmax(1), block.max(1), drawn, total))
    *of_rows, totals = zip(*parts, strict=True)
    classes, sureness, drawn = map(np.concatenate, of_rows)
    return Spread(classes, sureness, drawn, np.sum(totals, axis=0))


def spread_in_blocks(
    h: Tensor, labels: Tensor, n_neighbors: int
) -> Iterator[tuple[slice, NDArray[np.float32]]]:
    r"""Yield the probabilities of the classes of all samples, with their rows, in blocks of rows.

    Label spreading on the graph of nearest neighbours: with the symmetric adjacency matrix S,
    normalised by the degrees, :math:`F \leftarrow \alpha S F + (1 - \alpha) Y` is repeated from
    F = Y, where each class has the same mass in Y. Rows of F are much flatter than probabilities;
    :math:`F^5`, scaled to sum 1, is near. Samples outside of the graph, which is bounded in size,
    take the weighted mean of their neighbours in it. Rows sum to 1, or are 0 where no labeled
    sample can be reached.

    Parameters
    ----------
    h : Tensor of shape (n, d)
        Representations; each feature is standardised, and rows are compared by their cosine.
    labels : Tensor of shape (n,), dtype int64
        Classes from 0 on, −1 where unknown.
    n_neighbors : int
        Neighbours of each sample in the graph; at most n − 1 are used.
    """
    h = F.normalize((h - h.mean(0)) / h.std(0, correction=0).clamp_min(1e-6))
    known = (labels >= 0).cpu()
    rows = _graph_rows(known)
    own = torch.full((len(h),), -1)
    own[rows] = torch.arange(len(rows))
    scores, places = _nearest(h, h[rows.to(h.device)], own, min(n_neighbors, len(rows) - 1))
    given = labels.cpu()[rows]
    # The graph may lack a rare class.
    classes = F.one_hot(given[given >= 0], int(labels.max()) + 1)
    spread = _spread(scores[rows], places[rows], classes, given >= 0)
    for start in range(0, len(h), _CHUNK):
        block = slice(start, start + _CHUNK)
        place, outside = own[block], own[block] < 0
        found = spread[place].astype(np.float32)
        neighbors = _sparse(scores[block][outside], places[block][outside], len(rows))
        found[outside] = neighbors @ spread
        yield block, found / found.sum(1, keepdims=True).clip(1e-12)


def _graph_rows(known: Tensor) -> Tensor:
    """Return the samples of the graph in order: labeled ones first in case it cannot hold all."""
    if len(known) <= _LARGEST_GRAPH:
        return torch.arange(len(known))
    labeled, unlabeled = _evenly(known.nonzero()[:, 0], _LARGEST_GRAPH // 2), (~known).nonzero()
    chosen = torch.cat([labeled, _evenly(unlabeled[:, 0], _LARGEST_GRAPH - len(labeled))])
    return chosen.sort().values


def _evenly(rows: Tensor, n: int) -> Tensor:
    """Return at most n of the rows, evenly spread."""
    return rows if len(rows) <= n else rows[torch.linspace(0, len(rows) - 1, n).long()]


def _nearest(h: Tensor, graph: Tensor, own: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return weights and places of each sample's k nearest samples in the graph, itself left out.

    Returns
    -------
    weights, places : Tensor of shape (n, k)
        On the CPU.
    """
    found = []
    for start in range(0, len(h), _CHUNK):
        scores = h[start : start + _CHUNK] @ graph.T
        place = own[start : start + _CHUNK].to(h.device)
        inside = (place >= 0).nonzero()[:, 0]
        scores[inside, place[inside]] = -torch.inf
        found.append([part.cpu() for part in scores.topk(k)])
    values, places = (torch.cat(parts) for parts in zip(*found, strict=True))
    return values.clamp_min(0) ** _POWER, places


def _spread(weights: Tensor, places: Tensor, classes: Tensor, known: Tensor) -> NDArray:
    """Return the probabilities of the samples of the graph, shape (n, n_classes)."""
    n = len(places)
    directed = _sparse(weights, places, n)
    adjacency = directed.maximum(directed.T)
    scale = 1 / np.sqrt(np.asarray(adjacency.sum(1)).clip(1e-12))
    adjacency = (adjacency.multiply(scale[:, None]).multiply(scale[None])).tocsr()
    start = np.zeros((n, classes.shape[1]))
    start[known.numpy()] = classes.numpy() / classes.sum(0).numpy().clip(1)
    spread = start
    for _ in range(_STEPS):
        spread = _ALPHA * (adjacency @ spread) + (1 - _ALPHA) * start
    spread = (spread / spread.max(1, keepdims=True).clip(1e-300)) ** _CALIBRATION
    return spread / spread.sum(1, keepdims=True).clip(1)


def _sparse(weights: Tensor, places: Tensor, n_columns: int) -> csr_array:
    """Return the matrix that has the weights of each row in its places."""
    n, k = places.shape
    parts = weights.flatten().double().numpy(), places.flatten().numpy(), np.arange(n + 1) * k
    return csr_array(parts, shape=(n, n_columns))


def confident_labels(spread: Spread, labels: Tensor, share: float) -> Tensor:
    """Return the labels, and where they are unknown the surest pseudo-labels of each class.

    Parameters
    ----------
    spread : Spread
        The classes that spreading yields.
    labels : Tensor of shape (n,), dtype int64
        Classes, −1 where unknown.
    share : float
        Share of the pseudo-labels of each class that is kept, in [0, 1].

    Returns
    -------
    labels : Tensor of shape (n,), dtype int64
        −1 where still unknown.
    """
    completed = labels.cpu().numpy().copy()
    for k in range(len(spread.total)):
        rows = np.flatnonzero((completed < 0) & (spread.classes == k) & (spread.sureness > 0))
        order = np.argsort(-spread.sureness[rows], kind="stable")
        completed[rows[order[: round(share * len(rows))]]] = k
    return torch.from_numpy(completed).to(labels.device)


class LabelSpreader:
    """Completes the labels of a training set while the network learns.

    Parameters
    ----------
    settings : SemiSupCon or None
        How labels are completed for the loss; None leaves them as they are.
    labels : Tensor of shape (n,), dtype int64, or None
        The given classes, −1 where unknown. There is nothing to spread unless the classes of
        samples are unknown and two classes are known.

    Attributes
    ----------
    labeled : Tensor of shape (n_labeled,), dtype int64
        The rows with a given class.
    labeled_share : float
        Share of each batch that is drawn from these rows at least.
    """

    def __init__(self, settings: SemiSupCon | None, labels: Tensor | None):
        self.settings = settings
        self.labels = torch.empty(0, dtype=torch.int64) if labels is None else labels
        self.labeled = (self.labels >= 0).nonzero()[:, 0].cpu()
        self.labeled_share = 0.0
        if settings is not None and len(self.labeled):
            self.labeled_share = settings.labeled_share

    @property
    def has_some_labels(self) -> bool:
        """Whether there is anything to spread."""
        return len(self.labeled) < len(self.labels) and int(self.labels.max()) > 0

    def is_due(self, epoch: int, is_first: bool) -> bool:
        """Return whether the loss gets new pseudo-labels before an epoch.

        Parameters
        ----------
        epoch : int
            Counted over all fits of the network; before epoch 0 it has learned nothing.
        is_first : bool
            Whether it is the first epoch of a fit.
        """
        if self.settings is None or not self.has_some_labels or not epoch:
            return False
        return is_first or epoch % self.settings.every == 0

    def spread(self, h: Tensor, seed: Sequence[int]) -> Spread:
        """Return what is known of the classes of all samples.

        Parameters
        ----------
        h : Tensor of shape (n, d)
            Representations.
        seed : sequence of int
            Seeds the drawn classes.
        """
        n_neighbors = N_NEIGHBORS if self.settings is None else self.settings.n_neighbors
        blocks = spread_in_blocks(h, self.labels, n_neighbors)
        return summed_up((block for _, block in blocks), np.random.default_rng(seed))

    def shares(self, spread: Spread) -> NDArray[np.float64]:
        """Return the shares of the classes among all samples, shape (n_classes,).

        Before classes can be distinguished, their shares are those among the labeled samples:
        spread labels would gather in a few classes.

        Parameters
        ----------
        spread : Spread
            As `spread` returns it.
        """
        labels, n_classes = self.labels.cpu().numpy(), len(spread.total)
        given = np.bincount(labels[self.labeled], minlength=n_classes) / len(self.labeled)
        sureness = (spread.sureness.mean() - 1 / n_classes) / (1 - 1 / n_classes)
        return given + max(sureness, 0.0) * (spread.total / spread.total.sum() - given)

    def complete(self, spread: Spread) -> Tensor:
        """Return the labels for the loss: completed by the most confident pseudo-labels."""
        share = 0.0 if self.settings is None else self.settings.share
        return confident_labels(spread, self.labels, share)

    def draw(self, spread: Spread) -> Tensor:
        """Return the labels for estimates: where unknown, drawn from their probabilities.

        With 20 labels per class or more, unknown classes stay unknown.
        """
        if len(self.labeled) >= _ENOUGH * len(spread.total):
            return self.labels
        drawn = torch.from_numpy(spread.drawn).to(self.labels.device)
        return torch.where(self.labels >= 0, self.labels, drawn)
