"""Views that are drawn to be looked at: as in training, but in the units of X."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from .._checks import POSITIVE_INT, check_argument, naming
from .._data._arrays import LazySamples, row_blocks
from .._runtime import one_thread, plain_modes, resolve_device, resolve_seed
from ..augmentation import Augmentation
from ..augmentation._symmetries import may_show_symmetries
from ..kinds._base import Schema, in_units_of_X
from ..kinds._images import Images
from ._samples import read_training_samples
from ._settings import resolve_settings
from ._setup import Fitted, new_setup


class DrawnViews(NamedTuple):
    """Views of samples, in the units of X.

    Attributes
    ----------
    views : tuple of n_views array-likes of length n
        The views.
    samples : array-like of length n
        Their originals.
    X : array-like of length n_samples
        All samples, as their kind reads them.
    schema : Schema
        Their schema.
    """

    views: tuple[Any, ...]
    samples: Any
    X: Any
    schema: Schema


def drawn_views(embedder: Any, X: Any, n_views: int, rows: Any, random_state: Any) -> DrawnViews:
    """Draw views as `ContrastiveEmbedder.views` documents it.

    Parameters
    ----------
    embedder : ContrastiveEmbedder
        Fitted, or not fitted; never changed.
    X, n_views, rows, random_state : array-like, int, array-like or slice, int
        As in `ContrastiveEmbedder.views`.
    """
    check_argument("views", "n_views", n_views, POSITIVE_INT)
    seed = resolve_seed(random_state)
    device = resolve_device(embedder.device, type(embedder).__name__)
    with plain_modes(device), one_thread(device):
        if hasattr(embedder, "_fitted"):
            setup = embedder._fitted
            X = setup.read(X, embedder)
        else:
            settings = resolve_settings(embedder)
            X, schema, given = read_training_samples(settings, X, embedder, None)
            with torch.inference_mode(False):
                # Before a fit, augmentations learn as in it; where none learns, two samples do.
                subset = X if _is_learned_from(X, schema, given) else X[:2]
                setup = new_setup(settings, subset, schema, given)
        samples = X[:] if rows is None else X[chosen_rows(rows, len(X))]
        if not len(samples):
            raise ValueError("The 'rows' parameter of views must choose at least one sample.")
        views = _draw(setup, samples, int(n_views), seed, device)
    return DrawnViews(views, samples, X, setup.schema)


def chosen_rows(rows: Any, n_samples: int) -> NDArray[np.int64]:
    """Return the numbers of the samples that an index, a slice, indices or a mask choose."""
    with naming("rows", f"a slice, ints below {n_samples} or a mask of {n_samples} bools", rows):
        chosen = np.arange(n_samples)[rows]
        if np.ndim(chosen) > 1:
            raise TypeError(f"got {rows!r}")
        return np.atleast_1d(chosen)


def _is_learned_from(X: Any, schema: Schema, chain: list[Augmentation] | None) -> bool:
    """Return whether views of X depend on further samples, or these need not be read.

    The scale of uint8 images is known; the default augmentation follows what symmetries they show.
    """
    is_known = isinstance(X, LazySamples) and type(schema.kind) is Images and X.dtype == np.uint8
    if not is_known:
        return True
    if chain is None:
        return may_show_symmetries(len(X), schema.sample_shape)
    return any(step.uses_samples for step in chain)


@torch.no_grad()
def _draw(setup: Fitted, samples: Any, n_views: int, seed: int, device: Any) -> tuple[Any, ...]:
    """Return views of samples; the first ones are the same for any number of views."""
    batches = list(row_blocks(samples, setup.schema.kind._rows_per_call(samples)))
    draw = setup.composed(setup.augmentation, device, is_for_network=False)
    generator = torch.Generator(device=device).manual_seed(seed)
    views = []
    # View by view, not batch by batch: the first views are the same however many there are.
    for _ in range(n_views):
        drawn = [draw(setup.scaler.to_tensor(batch, device), generator) for batch in batches]
        together = torch.cat([batch.to("cpu") for batch in drawn])
        views.append(in_units_of_X(setup.scaler, together, samples))
    return tuple(views)
