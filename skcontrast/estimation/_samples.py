"""Scores with known labels, projections of views, and ranks."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from numbers import Integral
from typing import Any, Literal, NamedTuple, cast

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from .._checks import POSITIVE_INT, Interval, StrOptions
from .._checks._arguments import as_numbers, check_component, check_length, validated
from .._data._metadata import validate_labels
from .._objective._contrast import Contrast, embed_views, in_batch
from .._objective._mean_loss import tiles
from .._runtime import guarded
from ..schedules._numbers import check_hyperparameters
from ..similarity import Cosine, Similarity
from ..similarity._base import check_view_embeddings, map_entries


class ScoreSample(NamedTuple):
    """Scores of anchors, with the true classes of their candidates.

    Attributes
    ----------
    scores : ndarray of shape (n_anchors, n_candidates)
        Scores of the candidates.
    is_negative : ndarray of shape (n_anchors, n_candidates), dtype bool
        Whether a candidate is a true negative.
    positives : ndarray of shape (n_anchors, n_positives)
        Scores of samples that are known to share the anchor's class.
    lower_bound : float
        The minimum score of the model or the similarity.
    """

    scores: np.ndarray
    is_negative: np.ndarray
    positives: np.ndarray
    lower_bound: float

    @classmethod
    @guarded()
    @validated(positives=[StrOptions({"views", "same class"})])
    def from_views(
        cls,
        *views: Any,
        y: Sequence | np.ndarray,
        similarity: Similarity | None = None,
        positives: Literal["views", "same class"] = "views",
    ) -> ScoreSample:
        r"""Return the scores of embeddings, with true and false negatives from labels.

        Every view of a sample is an anchor, and its candidates are all views of the other
        samples, as in a step of training with one batch of these samples. All anchors have the
        same number of candidates, N = n_views · (n − 1); for rare classes, fewer of them are
        false negatives.

        Parameters
        ----------
        *views : Tensor or array-like of shape (n, d), or tuple of two
            Embeddings of two or more views of the same n samples. For ``VonMisesFisher`` tuples
            of mean directions (n, d) and concentrations (n,).
        y : array-like of shape (n,)
            Classes; −1 where unknown: such samples are ignored.
        similarity : Similarity, default=None
            The score; None is ``Cosine()``.
        positives : {"views", "same class"}, default="views"
            The positives of an anchor. "views": the other views of the same sample, as in
            training. "same class": the other views of the next sample of its class, cyclically.
            If the samples are in random order, these are draws from the false negatives, as the
            theory of ``DCL`` and ``PUCL`` assumes. Candidates are the same in both cases.

        Returns
        -------
        sample : ScoreSample
            Scores of n_views · n anchors with n_views − 1 positives each, float64. It has
            (n_views · n)² numbers.

        Raises
        ------
        ValueError
            If there are fewer than two views or two samples of known class, or a class has one
            sample and positives are of the same class.

        See Also
        --------
        skcontrast.estimation.negative_bias : The bias of a loss on such scores.
        skcontrast.estimation.project_views : Views from a fitted embedder.

        Examples
        --------
        >>> import numpy as np
        >>> from skcontrast.estimation import ScoreSample
        >>> z1, z2 = np.random.default_rng(0).normal(size=(2, 6, 4))
        >>> sample = ScoreSample.from_views(z1, z2, y=[0, 0, 0, 1, 1, 1])
        >>> sample.scores.shape, sample.is_negative.sum(axis=1)[0], sample.positives.shape
        ((12, 10), np.int64(6), (12, 1))
        """
        labels = validate_labels(y, None, needed_by="ScoreSample.from_views")
        views = tuple(_rows_of_known_class(view, labels) for view in views)
        labels = labels[labels >= 0]
        if len(labels) < 2:
            raise ValueError(f"y must hold the classes of two samples, got {len(labels)}.")
        contrast, similarity = contrast_of(views, similarity, torch.from_numpy(labels), least=2)
        with torch.no_grad():
            scores = torch.cat([array for _, array in _scores_by_tile(contrast, similarity)])
        # The other views, as in a fit, or views of another sample of the class.
        positive_scores = contrast.scores_of_positives(slice(None), scores)
        if positives == "same class":
            positive_scores = _of_same_class(scores, labels, len(views))
        # Every anchor excludes the same number of candidates, so the rest is a matrix again.
        is_candidate = torch.ones_like(scores, dtype=torch.bool)
        is_candidate.scatter_(1, contrast.excluded, False)
        pair = scores, ~contrast.same_class(slice(None))
        candidates, is_negative = (x[is_candidate].view(len(x), -1).numpy() for x in pair)
        bounds = similarity.bounds(contrast.anchors.shape[1])
        return cls(candidates, is_negative, positive_scores.numpy(), bounds[0])


def checked_sample(sample: ScoreSample) -> ScoreSample:
    """Return the arrays of a sample as float64 and bool."""
    scores = np.ascontiguousarray(sample.scores, dtype=np.float64)
    positives = np.ascontiguousarray(sample.positives, dtype=np.float64)
    is_negative = np.ascontiguousarray(sample.is_negative, dtype=bool)
    return sample._replace(scores=scores, is_negative=is_negative, positives=positives)


def true_negatives_by_rank(sample: ScoreSample) -> np.ndarray:
    """Return the share of true negatives at each rank, shape (N,), from the lowest score on."""
    order = np.argsort(sample.scores, axis=1, kind="stable")
    return np.take_along_axis(sample.is_negative, order, axis=1).mean(axis=0)


def _rows_of_known_class(view: Any, labels: np.ndarray) -> Any:
    """Return the rows of a view with known classes."""
    if isinstance(view, tuple):
        return tuple(_rows_of_known_class(array, labels) for array in view)
    view = as_numbers(view, "views", ensure_2d=False, allow_nd=True)
    check_length("y", len(labels), len(view))
    return view[labels >= 0]


def _of_same_class(scores: Tensor, labels: np.ndarray, n_views: int) -> Tensor:
    """Return the scores of the other views of the next sample of the class."""
    following = np.empty(len(labels), dtype=np.int64)
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        if len(members) == 1:
            raise ValueError("positives='same class' needs two samples of each class.")
        following[members] = np.roll(members, -1)
    views = range(n_views)
    columns = [[w * len(labels) + following for w in views if w != v] for v in views]
    return scores.gather(1, torch.from_numpy(np.array(columns)).transpose(1, 2).flatten(0, 1))


@guarded()
@validated(n_views=POSITIVE_INT, random_state=[Interval(Integral, 0, 2**63 - 1, closed="both")])
def project_views(
    embedder: Any, X: Any, *, n_views: int = 2, random_state: int = 0
) -> tuple[NDArray[np.float32], ...]:
    """Return the projections of random views of samples: the vectors that the loss compares.

    Parameters
    ----------
    embedder : ContrastiveEmbedder
        Model. Views are drawn by its `augmentation_`, and projected in inference mode.
    X : array-like, list of graphs or Views
        Samples of the shape seen in `fit`.
    n_views : int, default=2
        Number of views.
    random_state : int, default=0
        Seeds the draws.

    Returns
    -------
    views : tuple of n_views ndarrays of shape (n_samples, d), dtype float32
        Projections, for :meth:`ScoreSample.from_views
        <skcontrast.estimation.ScoreSample.from_views>`, :func:`macro_auc` and
        :func:`positive_ranks`; pass ``similarity=embedder.similarity_``, too. Concentrations are
        one more column. Without augmentation, all views are equal.

    Examples
    --------
    >>> import numpy as np
    >>> from skcontrast import ContrastiveEmbedder
    >>> from skcontrast.estimation import macro_auc, project_views
    >>> X = np.repeat(np.eye(4), 10, axis=0)
    >>> embedder = ContrastiveEmbedder(max_epochs=1, random_state=0).fit(X)
    >>> z1, z2 = project_views(embedder, X)
    >>> macro_auc(z1, z2, y=np.repeat(np.arange(4), 10)).value > 0.5
    True
    """
    if inspect.isclass(embedder) or not hasattr(embedder, "_transforming"):
        raise TypeError(f"embedder must be a fitted ContrastiveEmbedder, got {embedder!r}.")
    check_is_fitted(embedder)
    model = embedder._model
    first = next(embedder.encoder_.parameters(), None)
    device = torch.device("cpu") if first is None else first.device
    views = model.sampler(embedder.augmentation_, device)
    generator = torch.Generator(device=device).manual_seed(random_state)
    network = model.network
    module = network if model.similarity.n_extra else model.projecting(network)

    def view(samples: Any) -> Any:
        return views.draw(views.to_batch(samples), generator)

    X = model.read(X, embedder)
    return tuple(model.embed(module, X, device, view) for _ in range(n_views))


class Estimate(NamedTuple):
    """A number estimated from the data.

    Attributes
    ----------
    value : float
        The estimate.
    standard_error : float
        Its standard error as if the observations were independent; infinite if the data do not
        determine the value, NaN if unknown.
    """

    value: float
    standard_error: float


def count_outscored(contrast: Contrast, similarity: Similarity) -> Tensor:
    """Return the number of candidates that score at most as high as each positive.

    Returns
    -------
    counts : Tensor of shape (n_anchors, n_positives), dtype int64
        From 0 to N.
    """
    counts = torch.empty_like(contrast.positives, dtype=torch.int64)
    for tile, scores in _scores_by_tile(contrast, similarity):
        positives = contrast.scores_of_positives(tile, scores)
        scores = scores.scatter(1, contrast.excluded[tile], torch.inf)
        for m, positive in enumerate(positives.unbind(1)):
            counts[tile, m] = (scores <= positive[:, None]).sum(1)
    return counts


def class_aucs(contrast: Contrast, similarity: Similarity) -> Tensor:
    """Return for each anchor the probability that its class scores above others.

    The contrast must have labels.

    Returns
    -------
    aucs : Tensor of shape (n_anchors,)
        The share of pairs of a candidate of the anchor's class and one of another class in which
        the first scores higher; a tie counts half. NaN for anchors of unknown class or without
        such pairs.
    """
    aucs = torch.empty_like(contrast.anchors[:, 0])
    for tile, scores in _scores_by_tile(contrast, similarity):
        scores = scores.scatter(1, contrast.excluded[tile], -torch.inf)
        same = contrast.same_class(tile)
        other = _are_known(contrast, tile) & ~same
        ordered, order = scores.sort(1)
        counts = other.gather(1, order).cumsum(1)
        counts = torch.cat([counts.new_zeros(len(counts), 1), counts], 1)
        sides = (torch.searchsorted(ordered, scores, right=right) for right in (False, True))
        below = sum(counts.gather(1, side) for side in sides) * same
        aucs[tile] = below.sum(1) / (2 * same.sum(1) * other.sum(1))
    return aucs


def _are_known(contrast: Contrast, rows: slice) -> Tensor:
    """Return a mask of known classes of anchor and candidate, without excluded candidates."""
    anchors, candidates = cast(Any, (contrast.anchor_labels, contrast.candidate_labels))
    known = (anchors[rows, None] >= 0) & (candidates >= 0)
    return known.scatter_(1, contrast.excluded[rows], False)


def contrast_of(
    views: Sequence[Any], similarity: Similarity | None, labels: Tensor | None, least: int
) -> tuple[Contrast, Similarity]:
    """Return the contrast of views within their batch, and the similarity.

    Parameters
    ----------
    views : tuple
        Arrays or tensors (n, d), or tuples of mean directions and concentrations.
    similarity : Similarity or None
        None is ``Cosine()``.
    labels : Tensor of shape (n,), dtype int64, or None
        Classes of the samples.
    least : int
        The minimum number of views.
    """
    similarity = check_component(similarity, Similarity, "estimation", "similarity", Cosine)
    check_hyperparameters(similarity)
    views = [map_entries(_in_double, view) for view in views]
    check_view_embeddings(views, None, similarity, least)
    n = len(views[0][0] if isinstance(views[0], tuple) else views[0])
    if labels is not None:
        check_length("y", len(labels), n)
    return in_batch(embed_views(views, similarity), labels), similarity


def _in_double(view: Any) -> Tensor:
    array = as_numbers(view, "views", dtype=np.float64, ensure_2d=False, allow_nd=True)
    return torch.as_tensor(array)


@torch.no_grad()
def _scores_by_tile(contrast: Contrast, similarity: Similarity) -> Iterator[tuple[slice, Tensor]]:
    """Yield slices of the anchors and their scores with all candidates."""
    for rows in tiles(contrast.anchors, len(contrast.candidates)):
        yield rows, similarity.scores(contrast.anchors[rows], contrast.candidates)
