"""Classes of unlabeled samples, spread from the labeled ones through the representation."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from scipy.sparse import coo_array
from torch import Tensor, nn

from .._data._batches import TrainingSet
from .._distributed._world import World, from_first_rank
from .._network._inference import encode_batches
from ..losses._base import LabelSpreading

# As in Iscen et al.: neighbours weigh cos³; with α near 1, classes spread along whole clusters.
_POWER = 3
_ALPHA = 0.99
_STEPS = 50
# The graph holds at most so many samples, so that its cost does not grow with the square of n.
_LARGEST_GRAPH = 10_000
# Rows whose scores with all samples of the graph are held at once.
_CHUNK = 1024


def spread_labels(h: Tensor, labels: Tensor, n_neighbors: int) -> NDArray[np.float32]:
    r"""Return the probabilities of the classes of all samples, given the classes of some.

    Label spreading on the graph of nearest neighbours: with the symmetric adjacency matrix S,
    normalised by the degrees, :math:`F \leftarrow \alpha S F + (1 - \alpha) Y` is repeated from
    F = Y, where each class has the same mass in Y. Samples outside of the graph, which is bounded
    in size, take the weighted mean of their neighbours in it.

    Parameters
    ----------
    h : Tensor of shape (n, d)
        Representations; each feature is standardised, and rows are compared by their cosine.
    labels : Tensor of shape (n,), dtype int64
        Classes from 0 on, −1 where unknown.
    n_neighbors : int
        Neighbours of each sample in the graph; at most n − 1 are used.

    Returns
    -------
    probabilities : ndarray of shape (n, n_classes)
        Rows sum to 1, or are 0 where no labeled sample can be reached.
    """
    h = F.normalize((h - h.mean(0)) / h.std(0, correction=0).clamp_min(1e-6))
    known = (labels >= 0).cpu()
    rows = _graph_rows(known)
    own = torch.full((len(h),), -1)
    own[rows] = torch.arange(len(rows))
    scores, places = _nearest(h, h[rows.to(h.device)], own, min(n_neighbors, len(rows) - 1))
    given = labels.cpu()[rows]
    spread = _spread(scores[rows], places[rows], F.one_hot(given[given >= 0]), given >= 0)
    outside = own < 0
    probabilities = np.zeros((len(h), spread.shape[1]), np.float32)
    probabilities[rows] = spread
    weights = scores[outside][:, :, None].numpy()
    probabilities[outside] = (weights * spread[places[outside]]).sum(1)
    return probabilities / probabilities.sum(1, keepdims=True).clip(1e-12)


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
    """Return F after some steps, shape (n, n_classes), rows scaled to sum 1."""
    n, k = places.shape
    index = np.repeat(np.arange(n), k), places.flatten().numpy()
    directed = coo_array((weights.flatten().double().numpy(), index), shape=(n, n)).tocsr()
    adjacency = directed.maximum(directed.T)
    scale = 1 / np.sqrt(np.asarray(adjacency.sum(1)).clip(1e-12))
    adjacency = (adjacency.multiply(scale[:, None]).multiply(scale[None])).tocsr()
    start = np.zeros((n, classes.shape[1]))
    start[known.numpy()] = classes.numpy() / classes.sum(0).numpy().clip(1)
    spread = start
    for _ in range(_STEPS):
        spread = _ALPHA * (adjacency @ spread) + (1 - _ALPHA) * start
    return spread / spread.sum(1, keepdims=True).clip(1e-300)


def confident_labels(probabilities: NDArray[np.float32], labels: Tensor, share: float) -> Tensor:
    """Return the labels, and where they are unknown the surest guesses of each class.

    Parameters
    ----------
    probabilities : ndarray of shape (n, n_classes)
        As `spread_labels` returns them.
    labels : Tensor of shape (n,), dtype int64
        Classes, −1 where unknown.
    share : float
        Share of the guesses of each class that are kept, in [0, 1].

    Returns
    -------
    labels : Tensor of shape (n,), dtype int64
        −1 where still unknown.
    """
    completed = labels.cpu().numpy().copy()
    guesses, sureness = probabilities.argmax(1), probabilities.max(1)
    for k in range(probabilities.shape[1]):
        rows = np.flatnonzero((completed < 0) & (guesses == k) & (sureness > 0))
        order = np.argsort(-sureness[rows], kind="stable")
        completed[rows[order[: round(share * len(rows))]]] = k
    return torch.from_numpy(completed).to(labels.device)


class LabelSpreader:
    """Completes the labels of a training set every few epochs.

    Parameters
    ----------
    settings : LabelSpreading or None
        How; None does nothing.
    labels : Tensor of shape (n,), dtype int64, or None
        The given classes, −1 where unknown. There is nothing to spread unless classes of some
        samples are unknown and two classes are known.

    Attributes
    ----------
    labeled : Tensor of shape (n_labeled,), dtype int64
        The rows with a given class.
    labeled_share : float
        Share of each batch that is drawn from these rows at least.
    """

    def __init__(self, settings: LabelSpreading | None, labels: Tensor | None):
        self.settings, self.labels = settings, labels
        self.labeled, self.labeled_share = torch.empty(0, dtype=torch.int64), 0.0
        if settings is not None and labels is not None:
            self.labeled = (labels >= 0).nonzero()[:, 0].cpu()
            self.labeled_share = settings.labeled_share if len(self.labeled) else 0.0

    @property
    def spreads(self) -> bool:
        """Whether there is anything to spread."""
        return (
            self.settings is not None
            and self.labels is not None
            and len(self.labeled) < len(self.labels)
            and int(self.labels.max()) > 0
        )

    def start_epoch(
        self,
        epoch: int,
        is_first: bool,
        data: TrainingSet,
        encoder: nn.Module,
        batch_size: int,
        world: World | None,
    ) -> None:
        """Complete the labels of the training set, if that is due.

        Parameters
        ----------
        epoch : int
            Counted over all fits of the network; before the first, nothing is known about it.
        is_first : bool
            Whether it is the first epoch of this fit.
        data : TrainingSet
            Whose labels are completed.
        encoder : torch.nn.Module
            Through whose output they are spread.
        batch_size : int
            Samples that are encoded at once.
        world : World or None
            The processes that share the fit; all take the labels of the first.
        """
        if not (self.spreads and epoch and (is_first or epoch % self.settings.every == 0)):
            return
        h = encode_batches(encoder, data.in_order(batch_size))
        probabilities = spread_labels(h, self.labels, self.settings.n_neighbors)
        labels = confident_labels(probabilities, self.labels, self.settings.share)
        labels = labels.to(data.device)
        data.known["labels"] = labels if world is None else from_first_rank(labels)
