"""Label spreading: pseudo-labels of unlabeled samples from their neighbours."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from scipy.sparse import csr_array
from torch import Tensor

from ._checks import validate_parameters
from .losses import PseudoLabels

# Default number of neighbours in the graph.
N_NEIGHBORS = 15
# As in Iscen et al.: the weight of an edge is the cosine to this power, and in each step the share
# α of the class scores of a sample comes from its neighbours. With α near 1, clusters get one
# class.
_POWER = 3
_ALPHA = 0.99
_STEPS = 50
# The power that calibrates F: the most probable classes are right about as often as predicted.
_CALIBRATION = 5
# With this many labels per class, the AUC is estimated from pairs of labeled samples alone. With
# fewer labels, pseudo-labels give a better estimate.
_ENOUGH_LABELS = 20
# The largest number of samples in the graph, which bounds its cost.
_LARGEST_GRAPH = 10_000
# Rows whose scores with all samples of the graph are in memory at once.
_CHUNK = 1024


class Spread(NamedTuple):
    """Summary of the class probabilities of all samples, which needs less memory.

    Attributes
    ----------
    classes : ndarray of shape (n,), dtype int64
        The most probable class of each sample.
    confidence : ndarray of shape (n,), dtype float32
        Its probability, 0 where no path leads to a labeled sample.
    drawn : ndarray of shape (n,), dtype int64
        A class drawn from the probabilities; −1 where all are 0. The most probable classes fit the
        representation better than the true classes do, which would bias an estimated AUC. Drawn
        classes do not.
    total : ndarray of shape (n_classes,), dtype float64
        The sum of the probabilities of each class.
    """

    classes: NDArray[np.int64]
    confidence: NDArray[np.float32]
    drawn: NDArray[np.int64]
    total: NDArray[np.float64]


def summarize(chunks: Iterable[NDArray[np.float32]], rng: np.random.Generator) -> Spread:
    """Return the summary of probabilities that come in chunks of rows."""
    summaries = []
    for chunk in chunks:
        cdf = chunk.cumsum(1)
        drawn = (rng.random((len(chunk), 1)) * cdf[:, -1:] >= cdf).sum(1)
        drawn = np.where(cdf[:, -1] > 0, drawn.clip(max=cdf.shape[1] - 1), -1)
        total = chunk.sum(0, dtype=np.float64)
        summaries.append(Spread(chunk.argmax(1), chunk.max(1), drawn, total))
    *of_rows, totals = zip(*summaries, strict=True)
    classes, confidence, drawn = map(np.concatenate, of_rows)
    return Spread(classes, confidence, drawn, np.sum(totals, axis=0))


class LabelGraph:
    r"""Label spreading on the graph of nearest neighbours.

    With the symmetric adjacency matrix S, normalised by the degrees,
    :math:`F \leftarrow \alpha S F + (1 - \alpha) Y` is repeated from F = Y. Each column of Y sums
    to 1. Rows of F are flatter than probabilities; :math:`F^5`, scaled to sum 1, is close to them.
    The size of the graph is bounded. Samples outside of it get the weighted mean of their
    neighbours in it. Rows sum to 1, or are 0 where no path leads to a labeled sample.

    Parameters
    ----------
    h : Tensor of shape (n, d)
        Representations. Features are standardised, and rows compared by their cosine.
    labels : Tensor of shape (n,), dtype int64
        Classes 0, 1, …; −1 where unknown.
    n_neighbors : int
        Neighbours of each sample in the graph, reduced to n − 1 if it is larger.
    """

    def __init__(self, h: Tensor, labels: Tensor, n_neighbors: int):
        h = F.normalize((h - h.mean(0)) / h.std(0, correction=0).clamp_min(1e-6))
        self.rows = _graph_rows((labels >= 0).cpu())
        self.labels, self.n_classes = labels.cpu()[self.rows], int(labels.max()) + 1
        self.nodes = torch.full((len(h),), -1)
        self.nodes[self.rows] = torch.arange(len(self.rows))
        k = min(n_neighbors, len(self.rows) - 1)
        self.weights, self.neighbors = _nearest(h, h[self.rows.to(h.device)], self.nodes, k)
        self.adjacency = _adjacency(self.weights[self.rows], self.neighbors[self.rows])

    def chunks(self) -> Iterator[tuple[slice, NDArray[np.float32]]]:
        """Yield chunks of rows and the class probabilities of their samples."""
        known = (self.labels >= 0).numpy()
        # The graph may lack a rare class.
        classes = F.one_hot(self.labels[self.labels >= 0], self.n_classes)
        start = np.zeros((len(self.labels), self.n_classes))
        start[known] = classes.numpy() / classes.sum(0).numpy().clip(1)
        spread = _calibrated(self._spread(start))
        for first in range(0, len(self.nodes), _CHUNK):
            chunk = slice(first, first + _CHUNK)
            outside = self.nodes[chunk] < 0
            probabilities = spread[self.nodes[chunk]].astype(np.float32)
            edges = self.weights[chunk][outside], self.neighbors[chunk][outside]
            probabilities[outside] = _sparse(*edges, len(self.rows)) @ spread
            yield chunk, probabilities / probabilities.sum(1, keepdims=True).clip(1e-12)

    def left_out(self, folds: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the probabilities of labeled samples without the labels of their fold.

        All labeled samples must be in the graph. F is linear in Y, so that the labels are spread
        once, each on its own.

        Parameters
        ----------
        folds : ndarray of shape (n_labeled,), dtype int64
            The fold of each labeled sample.
        """
        known = np.flatnonzero(self.labels >= 0)
        start = np.zeros((len(self.labels), len(known)))
        start[known, np.arange(len(known))] = 1
        influence = self._spread(start)[known] * (folds[:, None] != folds)
        classes = np.eye(self.n_classes)[self.labels[known]]
        kept = (folds[:, None] != folds) @ classes  # labels of each class outside the fold
        spread = _calibrated(influence @ classes / kept.clip(1))
        return spread / spread.sum(1, keepdims=True).clip(1e-12)

    def _spread(self, start: NDArray) -> NDArray:
        """Return F for an initial Y."""
        spread = start
        for _ in range(_STEPS):
            spread = _ALPHA * (self.adjacency @ spread) + (1 - _ALPHA) * start
        return spread


def _graph_rows(known: Tensor) -> Tensor:
    """Return the sorted rows of the samples of the graph; labeled samples get up to half of it."""
    if len(known) <= _LARGEST_GRAPH:
        return torch.arange(len(known))
    labeled, unlabeled = _evenly(known.nonzero()[:, 0], _LARGEST_GRAPH // 2), (~known).nonzero()
    chosen = torch.cat([labeled, _evenly(unlabeled[:, 0], _LARGEST_GRAPH - len(labeled))])
    return chosen.sort().values


def _evenly(rows: Tensor, n: int) -> Tensor:
    """Return at most n of the rows, evenly spread."""
    return rows if len(rows) <= n else rows[torch.linspace(0, len(rows) - 1, n).long()]


def _nearest(h: Tensor, graph: Tensor, nodes: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return each sample's k nearest other samples in the graph.

    Returns
    -------
    weights, neighbors : Tensor of shape (n, k)
        Weights of the edges, and numbers of the samples in the graph; on the CPU.
    """
    chunks = []
    for start in range(0, len(h), _CHUNK):
        scores = h[start : start + _CHUNK] @ graph.T
        node = nodes[start : start + _CHUNK].to(h.device)
        inside = (node >= 0).nonzero()[:, 0]
        scores[inside, node[inside]] = -torch.inf
        chunks.append([tensor.cpu() for tensor in scores.topk(k)])
    cosines, neighbors = (torch.cat(tensors) for tensors in zip(*chunks, strict=True))
    return cosines.clamp_min(0) ** _POWER, neighbors


def _adjacency(weights: Tensor, neighbors: Tensor) -> csr_array:
    """Return the symmetric adjacency matrix, normalised by the degrees."""
    directed = _sparse(weights, neighbors, len(neighbors))
    adjacency = directed.maximum(directed.T)
    scale = 1 / np.sqrt(np.asarray(adjacency.sum(1)).clip(1e-12))
    return (adjacency.multiply(scale[:, None]).multiply(scale[None])).tocsr()


def _calibrated(spread: NDArray) -> NDArray:
    """Return probabilities from rows of F, which are flatter."""
    spread = (spread / spread.max(1, keepdims=True).clip(1e-300)) ** _CALIBRATION
    return spread / spread.sum(1, keepdims=True).clip(1)


def _sparse(weights: Tensor, columns: Tensor, n_columns: int) -> csr_array:
    """Return the matrix with the weights (n, k) of each row in its k columns."""
    n, k = columns.shape
    arrays = weights.flatten().double().numpy(), columns.flatten().numpy(), np.arange(n + 1) * k
    return csr_array(arrays, shape=(n, n_columns))


def confident_labels(spread: Spread, labels: Tensor, share: float) -> Tensor:
    """Return the labels, completed by the most confident pseudo-labels of each class.

    Parameters
    ----------
    spread : Spread
        Result of label spreading.
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
        rows = np.flatnonzero((completed < 0) & (spread.classes == k) & (spread.confidence > 0))
        order = np.argsort(-spread.confidence[rows], kind="stable")
        completed[rows[order[: round(share * len(rows))]]] = k
    return torch.from_numpy(completed).to(labels.device)


class LabelSpreader:
    """Adds pseudo-labels to the labels of a training set during training.

    Parameters
    ----------
    settings : PseudoLabels or None
        How the loss gets pseudo-labels; with None, it gets none.
    labels : Tensor of shape (n,), dtype int64, or None
        Known classes, −1 where unknown. Label spreading needs unlabeled samples, and labels of at
        least two classes.

    Attributes
    ----------
    labeled : Tensor of shape (n_labeled,), dtype int64
        The rows of known class.
    labeled_share : float
        Smallest share of each batch that is drawn from these rows.
    """

    def __init__(self, settings: PseudoLabels | None, labels: Tensor | None):
        if settings is not None:
            if not hasattr(settings, "labeled_share") or isinstance(settings, type):
                raise TypeError(
                    f"pseudo_labels of a loss must return PseudoLabels or None, got {settings!r}."
                )
            validate_parameters(settings)
        self.settings = settings
        self.labels = torch.empty(0, dtype=torch.int64) if labels is None else labels
        self.labeled = (self.labels >= 0).nonzero()[:, 0].cpu()
        self.labeled_share = settings.labeled_share if settings and len(self.labeled) else 0.0

    @property
    def has_some_labels(self) -> bool:
        """Whether some samples are unlabeled and labels of at least two classes are known."""
        return len(self.labeled) < len(self.labels) and int(self.labels.max()) > 0

    def is_due(self, epoch: int, is_first: bool) -> bool:
        """Return whether pseudo-labels are renewed before an epoch.

        Parameters
        ----------
        epoch : int
            Counted over all fits of the network. Before epoch 0 it is untrained.
        is_first : bool
            Whether it is the first epoch of a fit.
        """
        if self.settings is None or not self.has_some_labels or not epoch:
            return False
        return is_first or epoch % self.settings.every == 0

    def spread(self, h: Tensor, seed: Sequence[int]) -> Spread:
        """Return the summary of label spreading.

        Parameters
        ----------
        h : Tensor of shape (n, d)
            Representations.
        seed : sequence of int
            Seeds the drawn classes.
        """
        n_neighbors = N_NEIGHBORS if self.settings is None else self.settings.n_neighbors
        chunks = LabelGraph(h, self.labels, n_neighbors).chunks()
        return summarize((rows for _, rows in chunks), np.random.default_rng(seed))

    def shares(self, spread: Spread) -> NDArray[np.float64]:
        """Return estimated shares of the classes among all samples, shape (n_classes,).

        At low confidence, pseudo-labels collect in a few classes. Then the shares are those among
        the labeled samples.

        Parameters
        ----------
        spread : Spread
            As `spread` returns it.
        """
        labels, n_classes = self.labels.cpu().numpy(), len(spread.total)
        known = np.bincount(labels[self.labeled], minlength=n_classes) / len(self.labeled)
        confidence = (spread.confidence.mean() - 1 / n_classes) / (1 - 1 / n_classes)
        return known + max(confidence, 0.0) * (spread.total / spread.total.sum() - known)

    def complete(self, spread: Spread) -> Tensor:
        """Return the labels for the loss, completed by the most confident pseudo-labels."""
        share = 0.0 if self.settings is None else self.settings.share
        return confident_labels(spread, self.labels, share)

    def draw(self, spread: Spread) -> Tensor:
        """Return the labels for estimates; unknown ones are drawn from their probabilities.

        With 20 or more labels per class, they stay unknown.
        """
        if len(self.labeled) >= _ENOUGH_LABELS * len(spread.total):
            return self.labels
        drawn = torch.from_numpy(spread.drawn).to(self.labels.device)
        return torch.where(self.labels >= 0, self.labels, drawn)
