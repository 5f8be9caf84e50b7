"""The embedder in an estimator, and what comes before it."""

from __future__ import annotations

import inspect
from typing import Any

from sklearn.base import clone
from sklearn.pipeline import Pipeline

from ..augmentation import Augmentation
from ..embedder import ContrastiveEmbedder


def split_at_embedder(estimator: Any) -> tuple[Pipeline | None, ContrastiveEmbedder]:
    """Return the steps of a Pipeline before its embedder, and the embedder.

    Parameters
    ----------
    estimator : ContrastiveEmbedder or Pipeline
        The argument.
    """
    if isinstance(estimator, ContrastiveEmbedder):
        return None, estimator
    if isinstance(estimator, Pipeline):
        for k, (_, step) in enumerate(estimator.steps):
            if isinstance(step, ContrastiveEmbedder):
                return (estimator[:k] if k else None), step
    raise TypeError(f"estimator must be a ContrastiveEmbedder or contain one, got {estimator!r}.")


def transformer(estimator: Any) -> Any:
    """Return an estimator that has `transform`, or raise TypeError.

    Parameters
    ----------
    estimator : object
        The argument.
    """
    if inspect.isclass(estimator) or not hasattr(estimator, "transform"):
        raise TypeError(f"estimator must have the method transform, got {estimator!r}.")
    return estimator


def embedder_and_input(estimator: Any, X: Any) -> tuple[ContrastiveEmbedder, Any]:
    """Return an embedder and the X that it is passed.

    Parameters
    ----------
    estimator : ContrastiveEmbedder, Pipeline, augmentation or list of augmentations
        The steps before an embedder that is not fitted are cloned and fitted to X.
    X : array-like
        The samples.
    """
    if isinstance(estimator, (Augmentation, list, tuple)):
        return ContrastiveEmbedder(augmentation=estimator), X
    before, embedder = split_at_embedder(estimator)
    if before is None:
        return embedder, X
    if embedder.__sklearn_is_fitted__():
        return embedder, before.transform(X)
    return embedder, clone(before).fit_transform(X)
