"""Pairs: two parts of each sample, as two arrays or as one that is cut."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .._arguments import naming
from .._data._array_like import as_array_like
from .._data._sources import LazySamples
from ._base import Kind, Schema
from ._guess import guess_kind


class Pairs(Kind):
    """Samples of two parts, for a framework that has an encoder for each.

    X is a tuple of two arrays that hold the same samples, whose features or channels are put side
    by side; or one array, which the framework splits. Batches are batches of the arrays' kind.

    Parameters
    ----------
    of : Kind, default=None
        The kind of the arrays; None guesses it.

    See Also
    --------
    skcontrast.frameworks.CMC : Has an encoder for each part, and reads X as pairs by itself.
    Kind : The base class.

    Examples
    --------
    >>> import numpy as np
    >>> from skcontrast import ContrastiveEmbedder
    >>> from skcontrast.frameworks import CMC
    >>> rng = np.random.default_rng(0)
    >>> words, pixels = rng.normal(size=(50, 4)), rng.normal(size=(50, 6))
    >>> embedder = ContrastiveEmbedder(framework=CMC(), max_epochs=1, random_state=0)
    >>> embedder.fit_transform((words, pixels)).shape
    (50, 256)
    """

    name = "pairs"

    def __init__(self, of: Kind | None = None):
        self.of = of

    def read(
        self,
        X: Any,
        *,
        owner: Any,
        seen: Schema | None = None,
        min_samples: int = 1,
        check_finite: bool = True,
    ) -> tuple[Any, Schema]:
        """Check X and put the two parts of each sample side by side."""
        first = X[0] if isinstance(X, tuple) and X else X
        X, border = _join(X) if isinstance(X, tuple) else (X, None)
        if seen is not None:
            _check_border(border, seen.border)
            kind = seen.kind
        else:
            kind = self.of or guess_kind(first)[0]
        X, schema = kind.read(
            X, owner=owner, seen=seen, min_samples=min_samples, check_finite=check_finite
        )
        return X, replace(schema, reader=self, border=border)


def _join(X: tuple) -> tuple[np.ndarray, int]:
    """Return two arrays side by side, and where the second begins.

    Raises
    ------
    ValueError
        If the two are not arrays, or have different numbers of samples, or samples of different
        kinds or sizes.
    """
    if len(X) != 2:
        raise ValueError(f"X must be an array or a pair of arrays, got a tuple of {len(X)}.")
    parts = [as_array_like(part) for part in X]
    with naming("X", "a pair of two arrays of numbers"):
        arrays = [np.asarray(None if isinstance(part, LazySamples) else part) for part in parts]
        if any(np.iscomplexobj(part) for part in arrays):
            raise ValueError("got complex numbers")
        arrays = [
            part.astype(float) if part.ndim and part.dtype.kind not in "biuf" else part
            for part in arrays
        ]
    if not all(part.ndim for part in arrays):
        kinds = " and ".join(type(part).__name__ for part in X)
        raise ValueError(f"The pair X must hold two arrays of samples, got {kinds}.")
    first, second = (part[:, None] if part.ndim == 3 else part for part in arrays)
    if len(first) != len(second):
        raise ValueError(
            "The two arrays of the pair X must hold the same samples: the first has "
            f"{len(first)}, the second {len(second)}."
        )
    if first.ndim != second.ndim or first.ndim < 2 or first.shape[2:] != second.shape[2:]:
        raise ValueError(
            "The two arrays of the pair X must both be vectors, or both be images of one height "
            f"and width, got shapes {first.shape} and {second.shape}."
        )
    return np.concatenate([first, second], axis=1), first.shape[1]


def _check_border(border: int | None, fitted: int | None) -> None:
    """Raise ValueError if the first array of a pair has a different width than in `fit`."""
    if border is None or border == fitted:
        return
    if fitted is None:
        raise ValueError(
            "X is a pair of arrays, but in fit it was one array that was not split into its first "
            "and its remaining features or channels: pass X as in fit."
        )
    raise ValueError(
        f"The first array of the pair X has {border} features or channels, in fit it had {fitted}."
    )
