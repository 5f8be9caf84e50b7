"""Scorers from measures of embeddings with classes, and of views without classes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from .._checks._arguments import validated
from .._checks._constraints import brief
from .._runtime import guarded

if TYPE_CHECKING:
    from ..augmentation import Augmentation


@validated(measure=[callable], needs_y=["boolean"], greater_is_better=["boolean", None])
def make_embedding_scorer(
    measure: Callable[..., Any],
    *,
    needs_y: bool = True,
    greater_is_better: bool | None = None,
    **kwargs: Any,
) -> Scorer:
    """Return a scorer that embeds held-out samples, and applies a measure to the embedding.

    The measures of this module are scorers, too, with their default options: pass
    ``scoring=knn_accuracy``.

    The measure does not use the training set: measures with classes evaluate each held-out sample
    by the other held-out samples. To fit a classifier to the training set, put it at the end of
    the Pipeline, and score it as usual.

    An embedder is not a classifier, so ``cv=5`` makes folds of consecutive samples: if samples
    are sorted by class, pass ``cv=StratifiedKFold(shuffle=True)``.

    Parameters
    ----------
    measure : callable
        ``measure(H, y)``, such as :func:`knn_accuracy`, :func:`linear_probe`,
        :func:`few_label_accuracy`, :func:`recall_at_k`, :func:`map_at_r`,
        :func:`skcontrast.estimation.macro_auc` and ``sklearn.metrics.silhouette_score``. H is
        the output of `transform`; raw images are flattened. y is passed by name if the measure has
        a parameter of this name. If it returns several numbers, the score is their mean.
    needs_y : bool, default=True
        If False, ``measure(H)``, such as :func:`uniformity` and :func:`effective_rank`.
    greater_is_better : bool, default=None
        If False, the score is minus the measure. None is False for :func:`alignment` and
        :func:`uniformity`, else True.
    **kwargs : dict
        Further arguments of the measure, such as ``n_neighbors=5``.

    Returns
    -------
    scorer : callable
        ``scorer(estimator, X, y=None)``, where the estimator is a fitted transformer, or a
        Pipeline that ends in one: an embedder, PCA, or ``FunctionTransformer()`` for raw data.

    Raises
    ------
    TypeError
        If `measure` is not a function; when it is called, if the estimator has no `transform`.
    ValueError
        When it is called, if the measure needs classes and y is None.

    See Also
    --------
    make_view_scorer : A scorer of two views, without classes.
    sklearn.metrics.make_scorer : The same for predictions.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import StratifiedKFold, cross_validate
    >>> from skcontrast import ContrastiveEmbedder
    >>> from skcontrast.metrics import few_label_accuracy, knn_accuracy, make_embedding_scorer
    >>> scoring = {
    ...     "neighbors": make_embedding_scorer(knn_accuracy, n_neighbors=5),
    ...     "few labels": make_embedding_scorer(few_label_accuracy, n_labels=3),
    ... }
    >>> X, y = load_iris(return_X_y=True)
    >>> embedder = ContrastiveEmbedder(max_epochs=1, random_state=0)
    >>> folds = StratifiedKFold(3, shuffle=True, random_state=0)
    >>> scores = cross_validate(embedder, X, y, cv=folds, scoring=scoring)
    >>> scores["test_few labels"].shape
    (3,)
    """
    options = kwargs if needs_y else {**kwargs, "needs_y": False}
    better = _direction(measure, greater_is_better)
    return Scorer("make_embedding_scorer", _of_embeddings, measure, better, options)


@validated(measure=[callable], greater_is_better=["boolean", None])
def make_view_scorer(
    measure: Callable[..., float],
    *,
    augmentation: Augmentation | Pipeline | Sequence[Augmentation] | None = None,
    greater_is_better: bool | None = None,
) -> Scorer:
    """Return a scorer that applies a measure to two views of held-out samples, without labels.

    ``ContrastiveEmbedder.score`` is the scorer of :func:`neighbor_agreement`.

    Parameters
    ----------
    measure : callable
        ``measure(z1, z2)`` returns a number for the embeddings of two views of the same samples,
        shape (n, d) each. Views are compared in blocks of at most 1,024 samples; the score is the
        mean over blocks.
    augmentation : augmentation, list or Pipeline of augmentations, default=None
        The augmentation of the views, for all embedders. None is the default of the kind of X, as
        in ``ContrastiveEmbedder.score``.
    greater_is_better : bool, default=None
        If False, the score is minus the measure. None is False for :func:`alignment` and
        :func:`uniformity`, else True.

    Returns
    -------
    scorer : callable
        ``scorer(estimator, X, y=None)``, where the estimator is a fitted embedder or a Pipeline
        that ends in one. Two calls return the same score.

    See Also
    --------
    make_embedding_scorer : A scorer of embeddings and their classes.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import cross_val_score
    >>> from skcontrast import ContrastiveEmbedder
    >>> from skcontrast.augmentation import GaussianNoise
    >>> from skcontrast.metrics import alignment, make_view_scorer
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> scorer = make_view_scorer(alignment, augmentation=GaussianNoise())
    >>> embedder = ContrastiveEmbedder(max_epochs=1, random_state=0)
    >>> cross_val_score(embedder, X, cv=3, scoring=scorer).shape
    (3,)
    """
    options = {} if augmentation is None else {"augmentation": augmentation}
    better = _direction(measure, greater_is_better)
    return Scorer("make_view_scorer", _of_views, measure, better, options)


@dataclass(frozen=True, repr=False)
class Scorer:
    """A measure as a scorer; ``repr`` is the call that makes it.

    `apply` is called with the measure, an estimator, X, y and the options.
    """

    made_by: str
    apply: Callable[..., Any]
    measure: Callable[..., Any]
    greater_is_better: bool
    options: dict[str, Any]

    @guarded()
    def __call__(self, estimator: Any, X: Any, y: Any = None) -> float:
        value = self.apply(self.measure, estimator, X, y, **self.options)
        score = float(np.mean(getattr(value, "value", value)))
        return score if self.greater_is_better else -score

    def __repr__(self) -> str:
        sign = {} if self.greater_is_better else {"greater_is_better": False}
        options = (f"{name}={value!r}" for name, value in {**self.options, **sign}.items())
        return f"{self.made_by}({', '.join([_name(self.measure), *options])})"


def _of_embeddings(
    measure: Any, estimator: Any, X: Any, y: Any, /, *, needs_y: bool = True, **kwargs: Any
) -> Any:
    if not needs_y:
        return measure(embed(estimator, X), **kwargs)
    if y is None:
        raise ValueError(f"{_name(measure)} needs the classes of the samples: pass y.")
    if "y" in inspect.signature(measure).parameters:
        return measure(embed(estimator, X), y=y, **kwargs)
    return measure(embed(estimator, X), y, **kwargs)


def _of_views(measure: Any, estimator: Any, X: Any, y: Any, /, augmentation: Any = None) -> Any:
    before, embedder = split_at_embedder(estimator)
    X = X if before is None else before.transform(X)
    return embedder._score_views(X, measure, augmentation)


def embed(estimator: Any, X: Any) -> Any:
    """Return the output of a transformer, with flattened images."""
    if isinstance(estimator, type) or not hasattr(estimator, "transform"):
        raise TypeError(f"estimator must have the method transform, got {brief(estimator)}.")
    H = estimator.transform(X)
    return np.asarray(H).reshape(len(H), -1) if getattr(H, "ndim", 2) > 2 else H


def split_at_embedder(
    estimator: Any, name: str = "estimator", *, at_end: bool = True
) -> tuple[Pipeline | None, Any]:
    """Return the steps before the embedder of a Pipeline, or None, and the embedder."""
    estimator = thawed(estimator)
    steps = estimator.steps if isinstance(estimator, Pipeline) else [("", estimator)]
    for k, (_, step) in enumerate(steps):
        step = thawed(step)
        is_embedder = hasattr(step, "_score_views") and not isinstance(step, type)
        if is_embedder and (k == len(steps) - 1 or not at_end):
            return (estimator[:k] if k else None), step
    advice = ": pass its embedder_" if hasattr(steps[-1][1], "embedder_") else ""
    raise TypeError(
        f"{name} must be a ContrastiveEmbedder or a Pipeline that {'ends in' if at_end else 'has'}"
        f" one, got {brief(estimator)}{advice}."
    )


def thawed(estimator: Any) -> Any:
    """Return the estimator in a FrozenEstimator, or the estimator itself."""
    return estimator.estimator if isinstance(estimator, FrozenEstimator) else estimator


def _direction(measure: Callable[..., Any], greater_is_better: bool | None) -> bool:
    """Return `greater_is_better`, or for None the default of the measure."""
    default = getattr(getattr(measure, "func", measure), "greater_is_better", True)
    return default if greater_is_better is None else greater_is_better


def _name(measure: Any) -> str:
    return getattr(measure, "__name__", repr(measure))
