"""Vectors: rows of a table."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from scipy.sparse import issparse
from sklearn.utils.validation import validate_data
from torch import Tensor, nn

from .._arguments import naming
from .._data._array_like import (
    as_array_like,
    check_blocks_finite,
    check_dimensions,
    check_lazy,
    check_same_shape,
    is_checked_in_place,
    number_types,
    refuse_graphs,
)
from .._data._sources import LazySamples, SparseSamples
from .._data._statistics import FARTHEST, as_tensor, mean_and_std
from ._base import Kind, Schema
from ._scaling import Rescale, Standardize, as_float32, cast, float_of, rows_for, scaled

_EXPECTED = "vectors of numbers, shape (n_samples, n_features)"


class Vectors(Kind):
    """Vectors of numbers, shape (n_samples, n_features): whatever scikit-learn takes as X.

    Sparse matrices are vectors too. Their rows are made dense batch by batch, never all at once.

    Parameters
    ----------
    standardize : bool, default=True
        Whether to scale the input to zero mean and unit variance per feature. If False, vectors
        are not scaled.

    See Also
    --------
    Tables : For columns of numbers, categories and times, with gaps.
    Images : For arrays of three or four dimensions.
    Kind : The base class.

    Examples
    --------
    A series of 3 channels and 8 steps is not an image; as a vector it has 24 features:

    >>> import numpy as np
    >>> from skcontrast import ContrastiveEmbedder
    >>> from skcontrast.kinds import Vectors
    >>> series = np.random.default_rng(0).normal(size=(50, 3, 8))
    >>> embedder = ContrastiveEmbedder(kind=Vectors(), max_epochs=1, random_state=0)
    >>> embedder.fit_transform(series.reshape(50, -1)).shape
    (50, 128)
    """

    name = "vectors"
    expected = "vectors, X of shape (n_samples, n_features)"
    augmentation_advice = (
        "; choose an augmentation of vectors such as GaussianNoise, or, if they are flattened "
        "images, put Unflatten((channels, height, width)) before it"
    )
    float_batches = True
    shares_batches = True
    holds_arrays = True

    _parameter_constraints: dict = {"standardize": ["boolean"]}

    def __init__(self, standardize: bool = True):
        self.standardize = standardize

    def recognise(self, X: Any, *, is_declared: bool = False) -> Any | None:
        """Return X: vectors take what no other kind has recognised."""
        check_dimensions(X)
        return X

    def describes(self, sample_shape: tuple) -> bool:
        """Return whether this is ``(n_features,)``."""
        return len(sample_shape) == 1 and sample_shape[0] is not None

    def read(
        self,
        X: Any,
        *,
        owner: Any,
        seen: Schema | None = None,
        min_samples: int = 1,
        check_finite: bool = True,
    ) -> tuple[Any, Schema]:
        """Check X as scikit-learn does; columns that have names must be those of `fit`."""
        refuse_graphs(X, self, owner, seen)
        X = as_array_like(X)
        check_dimensions(X)
        if getattr(X, "ndim", 2) > 2:
            check_same_shape(X.shape[1:], owner, seen)
            raise ValueError(
                f"X must hold vectors, shape (n_samples, n_features), got shape {X.shape}: pass "
                "X.reshape(len(X), -1)."
            )
        if isinstance(X, LazySamples):
            check_lazy(X, min_samples)
            check_same_shape(X.shape[1:], owner, seen)
            return X, Schema(self, X.shape[1:], math.prod(X.shape[1:]))
        checked, is_sparse = _stand_in(owner, seen), issparse(X)
        is_checked_later = not is_sparse and not is_checked_in_place(X)
        # scikit-learn looks for NaN in the sum of X, which overflows for finite values near 1e308.
        silent = np.errstate(over="ignore", invalid="ignore")
        with silent, _gaps_explained(), naming("X", _EXPECTED, X):
            X = validate_data(
                checked,
                X,
                accept_sparse="csr",
                reset=seen is None,
                dtype=[np.float64, np.float32] if is_sparse else number_types(X),
                ensure_min_samples=min_samples,
                ensure_all_finite=is_sparse or (check_finite and not is_checked_later),
            )
            if check_finite and is_checked_later:
                check_blocks_finite(X, owner)
        names = getattr(checked, "feature_names_in_", None)
        X = SparseSamples(X) if issparse(X) else X
        return X, Schema(self, X.shape[1:], checked.n_features_in_, names)

    def scaler(self) -> VectorScaler:
        """Return a `VectorScaler`."""
        return VectorScaler(self.standardize)

    def to_tensor(self, X: Any, device: torch.device | str) -> Tensor:
        """Return X as float32, unscaled."""
        return as_tensor(X).to(device, torch.float32)

    def first_layer(
        self,
        some: Tensor,
        scaler: Any,
        *,
        channels_last: bool,
    ) -> nn.Module:
        """Return a layer that standardises by the statistics that the scaler has learned."""
        return Standardize(as_float32(scaler.mean_), as_float32(scaler.std_))

    def rows_per_call(self, X: Any) -> int:
        """Return the number of rows that hold about a million numbers."""
        return rows_for(math.prod(X.shape[1:]))

    def nbytes(self, X: Any) -> float:
        """Return the bytes of X in float32."""
        return 4 * float(np.prod(X.shape, dtype=np.float64))

    def arrays(self, X: Any) -> list[np.ndarray]:
        """Return X itself."""
        return [X]


class VectorScaler:
    """The map from vectors to the float32 tensors that augmentations work on.

    Values are only cast, and the network standardises them with ``mean_`` and ``std_``. Where
    float32 would lose precision (offsets far beyond the spread, magnitudes near its limits), they
    are standardised here, in float64, before they are cast.

    Parameters
    ----------
    standardize : bool, default=True
        If False, values are only cast.
    """

    # Offsets of at most so many standard deviations cost less than 1e-5 of them in float32.
    _NEAR_ZERO = 100.0
    _WELL_INSIDE_FLOAT32 = (1e-30, 1e30)

    def __init__(self, standardize: bool = True):
        self.standardize = standardize

    @property
    def finds_nonfinite(self) -> bool:
        """Whether `to_tensor` itself raises ValueError for NaN and infinity in X."""
        return self.only_casts_

    def fit(self, X: np.ndarray) -> VectorScaler:
        """Learn the map from X of shape (n_samples, n_features)."""
        self.only_casts_ = True
        self.mean_, self.std_ = np.zeros(X.shape[1]), np.ones(X.shape[1])
        if self.standardize:
            mean, std = X.mean_and_std() if isinstance(X, SparseSamples) else mean_and_std(X)
            self.only_casts_ = self._fits_float32(mean, std)
            if self.only_casts_:
                self.mean_, self.std_ = mean, std
            else:
                self.center_, self.scale_ = mean, std
        return self

    def to_tensor(self, X: np.ndarray, device: torch.device | str) -> Tensor:
        """Return X as a float32 tensor on a device, without a copy if it is one already."""
        if self.only_casts_:
            with _gaps_explained():
                return cast(X, self.standardize).to(device)
        return scaled(X, self.center_, self.scale_, -FARTHEST, FARTHEST).to(device)

    def from_tensor(self, batch: Tensor, X: np.ndarray) -> np.ndarray:
        """Return views of X in its own units, as floats that hold its dtype."""
        dtype = float_of(X)
        if self.only_casts_:
            return batch.numpy().astype(dtype, copy=False)
        return (batch.double().numpy() * self.scale_ + self.center_).astype(dtype)

    def layer(self) -> Rescale:
        """Return the map as a layer on tensors."""
        if self.only_casts_:
            return Rescale()
        return Rescale(torch.as_tensor(self.center_), torch.as_tensor(self.scale_))

    def _fits_float32(self, mean: np.ndarray, std: np.ndarray) -> bool:
        low, high = self._WELL_INSIDE_FLOAT32
        near = np.abs(mean) / self._NEAR_ZERO <= std
        return bool(near.all() and std.min() > low and std.max() < high)


@contextmanager
def _gaps_explained() -> Iterator[None]:
    """Say in the error about NaN in X how gaps are accepted."""
    try:
        yield
    except ValueError as error:
        if "contains NaN" not in str(error):
            raise
        raise ValueError(
            "Input X contains NaN. Vectors must not have gaps: pass kind='tables' to "
            "ContrastiveEmbedder, also for an array, or impute them."
        ) from error


def _stand_in(owner: Any, seen: Schema | None) -> Any:
    """Return a copy of `owner` on which scikit-learn may set the names that it finds in X."""
    stand_in = object.__new__(type(owner))
    vars(stand_in).update(vars(owner))
    for name in ("n_features_in_", "feature_names_in_"):
        vars(stand_in).pop(name, None)
    if seen is not None:
        seen.assign_names(stand_in)
    return stand_in
