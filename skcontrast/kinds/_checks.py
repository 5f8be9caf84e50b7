"""Validation of custom kinds of data."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._checks import validated
from ._base import Kind, Request, with_scaler


@validated(kind=Kind)
def check_kind(kind: Kind, X: Any) -> None:
    """Check that a custom kind keeps the order, treats samples independently, and leaves X alone.

    Call this in a test of your class. ``fit`` only checks the types and lengths of the outputs
    of methods.

    Parameters
    ----------
    kind : Kind
        An instance of your class.
    X : list or ndarray of length n_samples
        At least two samples.

    Raises
    ------
    TypeError, ValueError
        If ``check`` returns other samples when it is called with the first and the last one alone,
        or with its own output; or if it, ``scaler`` or ``to_tensor`` returns an object of the
        wrong type or length.

    See Also
    --------
    skcontrast.encoders.check_encoder : Compares samples of a kind alone and in a padded batch.

    Examples
    --------
    >>> import numpy as np, torch
    >>> from skcontrast.kinds import Kind, check_kind
    >>> class Sorted(Kind):
    ...     def check(self, X):
    ...         return np.sort(X, axis=0)
    ...
    ...     def to_tensor(self, X, device):
    ...         return torch.from_numpy(X).to(device)
    >>> check_kind(Sorted(), np.array([[3.0], [1.0], [2.0]]))
    Traceback (most recent call last):
    ...
    ValueError: Sorted.check must keep the order, treat samples independently, be idempotent...
    """
    checked, schema = kind._read(X, Request(kind, min_samples=2))
    with_scaler(kind, checked)
    if None in schema.sample_shape and getattr(checked, "dtype", None) != np.dtype(object):
        return  # padded by `check`, to the longest of the samples that it gets
    ends = np.array([0, len(X) - 1])
    expected = [array.copy() for array in kind._arrays(checked[ends])]
    few = X[ends] if isinstance(X, np.ndarray) else [X[0], X[-1]]
    for some in (few, checked[ends]):
        both = zip(kind._arrays(kind._read(some, Request(kind))[0]), expected, strict=True)
        if any(a.shape != b.shape or not np.allclose(a, b, equal_nan=True) for a, b in both):
            raise ValueError(
                f"{type(kind).__name__}.check must keep the order, treat samples independently, "
                "be idempotent, and not modify X."
            )
