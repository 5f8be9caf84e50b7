"""What version 0.1.0 pickled where it has a schema now."""

from __future__ import annotations

from typing import Any

from ._base import Schema
from ._guess import kind_of_shape
from .several import Several


def schema_of_0_1(state: dict[str, Any], takes_parts: bool = False) -> Schema:
    """Return what X was, from what version 0.1.0 pickled of it, and take that out.

    Parameters
    ----------
    state : dict
        The attributes of an embedder or an augmentation.
    takes_parts : bool, default=False
        Whether X was several arrays.
    """
    shape = state.pop("_sample_shape")
    kind, border = kind_of_shape(shape), state.pop("_border", None)
    n_channels = shape[0] if len(shape) != 2 else 1
    return Schema(
        kind,
        shape,
        Several() if takes_parts else kind,
        state.get("n_features_in_"),
        state.get("feature_names_in_"),
        None if border is None else (border, n_channels - border),
    )
