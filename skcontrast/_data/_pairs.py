"""Pairs: two parts of each sample, as two arrays or as one that is cut."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ._guess import guess_kind
from ._kinds import Kind
from ._sources import LazySamples
from ._validation import as_array_like


class Pairs(Kind):
    """Samples of two parts, for a framework that has an encoder for each.

    X is a tuple of two arrays with the same samples, features or channels of which are put side
    by side; or one array, which the framework cuts. Batches are those of the kind that this gives.

    Parameters
    ----------
    of : Kind, default=None
        The kind of the arrays; None guesses it.
    """

    name = "pairs"

    def __init__(self, of=None):
        self.of = of

    def read(self, X, *, owner, seen=None, min_samples=1, check_finite=True):
        """Check X and put the two parts of each sample side by side."""
        X, border = _join(X) if isinstance(X, tuple) else (X, None)
        if seen is not None:
            _check_border(border, seen.border)
            kind = seen.kind
        elif self.of is not None:
            kind = self.of
        else:
            kind, X = guess_kind(X)
        X, schema = kind.read(
            X, owner=owner, seen=seen, min_samples=min_samples, check_finite=check_finite
        )
        return X, replace(schema, reader=self, border=border)


def _join(X):
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
    arrays = [np.asarray(None if isinstance(part, LazySamples) else part) for part in parts]
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


def _check_border(border, fitted):
    """Raise ValueError if a pair of arrays is divided elsewhere than X was in fit."""
    if border is None or border == fitted:
        return
    if fitted is None:
        raise ValueError(
            "X is a pair of arrays, but in fit it was one array that was not cut into its first "
            "and its other features or channels: pass X as in fit."
        )
    raise ValueError(
        f"The first array of the pair X has {border} features or channels, in fit it had {fitted}."
    )
