"""Measures of two views as scorers, for searches without labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sklearn.pipeline import Pipeline

from .._network._view_score import Measure
from ..augmentation import Augmentation


def make_view_scorer(
    measure: Measure,
    *,
    augmentation: Augmentation | Pipeline | Sequence[Augmentation] | None = None,
    greater_is_better: bool = True,
) -> ViewScorer:
    """Return a scorer without labels: a measure of two views of held-out samples.

    ``ContrastiveEmbedder.score`` is the scorer of :func:`neighbor_agreement`.

    Parameters
    ----------
    measure : callable
        ``measure(z1, z2)`` compares what `transform` returns for two views of the same samples,
        shape (n, d) each, and returns a number. At most 1,024 samples are compared at a time; the
        score is the mean over the parts.
    augmentation : augmentation, list or Pipeline of augmentations, default=None
        Draws the views, the same for all embedders that are compared. None is as in
        ``ContrastiveEmbedder.score``: the default of the kind of X.
    greater_is_better : bool, default=True
        If False, the score is minus the measure.

    Returns
    -------
    scorer : callable
        ``scorer(estimator, X, y=None)``, where the estimator is a fitted embedder or a Pipeline
        that ends in one. Two calls return the same score.

    See Also
    --------
    sklearn.metrics.make_scorer : The same for predictions.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import cross_val_score
    >>> from skcontrast import ContrastiveEmbedder
    >>> from skcontrast.augmentation import GaussianNoise
    >>> from skcontrast.metrics import alignment, make_view_scorer
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> scorer = make_view_scorer(alignment, augmentation=GaussianNoise(), greater_is_better=False)
    >>> embedder = ContrastiveEmbedder(max_epochs=1, random_state=0)
    >>> cross_val_score(embedder, X, cv=3, scoring=scorer).shape
    (3,)
    """
    return ViewScorer(measure, augmentation, 1 if greater_is_better else -1)


class ViewScorer:
    """What :func:`make_view_scorer` returns.

    Parameters
    ----------
    measure : callable
        Compares embeddings of two views.
    augmentation : augmentation, list, Pipeline or None
        Draws the views.
    sign : {1, -1}
        Factor on the measure.
    """

    def __init__(self, measure: Measure, augmentation: Any, sign: int):
        self.measure, self.augmentation, self.sign = measure, augmentation, sign

    def __call__(self, estimator: Any, X: Any, y: Any = None) -> float:
        if isinstance(estimator, Pipeline):
            X = estimator[:-1].transform(X) if len(estimator) > 1 else X
            estimator = estimator[-1]
        return self.sign * estimator._score_views(X, self.measure, self.augmentation)

    def __repr__(self) -> str:
        sign = "" if self.sign == 1 else ", greater_is_better=False"
        views = "" if self.augmentation is None else f", augmentation={self.augmentation!r}"
        name = getattr(self.measure, "__name__", repr(self.measure))
        return f"make_view_scorer({name}{views}{sign})"
