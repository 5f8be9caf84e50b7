"""What version 0.1.0 pickled where it has a schema now."""

from __future__ import annotations

from typing import Any

from ._base import Schema
from ._guess import kind_of_shape
from .pairs import Pairs


def schema_of_0_1(state: dict[str, Any], takes_pairs: bool = False) -> Schema:
    """Return what X was, from what version 0.1.0 pickled of it, and take that out.

    Parameters
    ----------
    state : dict
        The attributes of an embedder or an augmentation.
    takes_pairs : bool, default=False
        Whether X was a pair of arrays.
    """
    shape = state.pop("_sample_shape")
    kind = kind_of_shape(shape)
    return Schema(
        kind,
        shape,
        Pairs() if takes_pairs else kind,
        state.get("n_features_in_"),
        state.get("feature_names_in_"),
        state.pop("_border", None),
    )
