"""The contrast of embeddings that come as arrays, computed in float64."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .._arguments import numbers
from .._parameters import check_component, check_numbers
from ..similarity import Cosine, Similarity
from ..similarity._validation import check_kinds
from ._contrast import Contrast, embed_views, in_batch


def contrast_of(
    views: Sequence[Any], similarity: Similarity | None, labels: Tensor | None = None
) -> tuple[Contrast, Similarity]:
    """Return the contrast of views within their batch, and the similarity.

    Parameters
    ----------
    views : tuple
        Arrays or tensors (n, d), or tuples of mean directions and concentrations.
    similarity : Similarity or None
        None is ``Cosine()``.
    labels : Tensor of shape (n,), dtype int64, default=None
        Classes of the samples.
    """
    similarity = check_component(
        similarity, Similarity, owner="estimation", parameter="similarity", default=Cosine
    )
    check_numbers(similarity)
    if not views:
        raise ValueError("views must be arrays of one shape (n, d), got none.")
    views = [_in_double(view) for view in views]
    directions = check_kinds({f"view {k + 1}": v for k, v in enumerate(views)}, similarity)
    shapes = {tuple(direction.shape) for direction in directions.values()}
    if len(shapes) != 1 or min(shapes)[0] < 2:
        raise ValueError(
            f"views must be arrays of one shape (n, d) with n ≥ 2, got {sorted(shapes)}."
        )
    n_samples = min(shapes)[0]
    if labels is not None and len(labels) != n_samples:
        raise ValueError(f"y must have one entry per sample, {n_samples}, got {len(labels)}.")
    return in_batch(embed_views(views, similarity), similarity, labels), similarity


def _in_double(view: Any) -> Any:
    if isinstance(view, tuple):
        return tuple(map(_in_double, view))
    return torch.as_tensor(
        numbers(view, "views", dtype=np.float64, ensure_2d=False, allow_nd=True)
    )
