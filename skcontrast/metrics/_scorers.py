"""Measures of two views as scorers, for searches without labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from ..augmentation import Augmentation


def make_view_scorer(
    measure: Callable[..., float],
    *,
    augmentation: Augmentation | Pipeline | Sequence[Augmentation] | None = None,
    greater_is_better: bool = True,
    n_views: Literal[1, 2] = 2,
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
    n_views : {1, 2}, default=2
        Number of views that the measure takes: 1 for ``measure(z)``, such as :func:`uniformity`
        and :func:`effective_rank`.

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
    if not callable(measure):
        raise TypeError(f"measure must be a function of embeddings, got {measure!r}.")
    if n_views not in (1, 2):
        raise ValueError(f"n_views must be 1 or 2, got {n_views!r}.")
    return ViewScorer(measure, augmentation, 1 if greater_is_better else -1, n_views)


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
    n_views : {1, 2}
        Number of views that the measure takes.
    """

    def __init__(
        self, measure: Callable[..., float], augmentation: Any, sign: int, n_views: int = 2
    ):
        self.measure, self.augmentation, self.sign = measure, augmentation, sign
        self.n_views = n_views

    def __call__(self, estimator: Any, X: Any, y: Any = None) -> float:
        if isinstance(estimator, Pipeline):
            X = estimator[:-1].transform(X) if len(estimator) > 1 else X
            estimator = estimator[-1]
        if not hasattr(estimator, "_score_views"):
            raise TypeError(
                "A scorer of views takes a ContrastiveEmbedder or a Pipeline that ends in one, "
                f"got {estimator!r}."
            )
        return self.sign * estimator._score_views(X, self._of_views, self.augmentation)

    def _of_views(self, *views: NDArray[np.float32]) -> float:
        """Return the measure of as many of the views as it takes."""
        return self.measure(*views[: self.n_views])

    def __repr__(self) -> str:
        sign = "" if self.sign == 1 else ", greater_is_better=False"
        views = "" if self.augmentation is None else f", augmentation={self.augmentation!r}"
        one = "" if self.n_views == 2 else ", n_views=1"
        name = getattr(self.measure, "__name__", repr(self.measure))
        return f"make_view_scorer({name}{views}{sign}{one})"
