"""Which views `score` compares: the same for embedders that were trained with different ones."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from .._data._sources import array_of
from ..augmentation import Augmentation
from ._choices import augmentations_of
from ._defaults import scored_chain
from ._setup import Setup


def scored_views(setup: Setup, X: Any, augmentation: Any = None) -> list[Augmentation]:
    """Return the fitted augmentations that draw the views.

    Parameters
    ----------
    setup : Setup
        The fitted embedder's.
    X : array-like of length n_samples
        The samples that are scored, as their kind returns them; the augmentations are fitted to
        them.
    augmentation : augmentation, list, Pipeline or None
        None takes the default of the kind or, where it has none, those of the training.
    """
    schema = setup.schema
    chain = augmentations_of(augmentation, "make_view_scorer")
    if chain is None:
        chain = scored_chain(
            schema.kind,
            schema.sample_shape,
            setup.augmentation,
            mixes_channels=schema.border is None,
        )
    if chain is setup.augmentation:
        return chain
    array = array_of(X)
    return [clone(step).fit_checked(array, schema) for step in chain]
