"""Numbers and a category of every node, or of every edge, of a batch of graphs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor

from .._data._statistics import FARTHEST, mean_and_std

_C = TypeVar("_C", bound=Any)


@dataclass(frozen=True)
class Columns:
    """Features of n things: numbers, and a category that is kept as a code.

    Attributes
    ----------
    dense : Tensor of shape (n, n_dense)
        Numerical features.
    codes : Tensor of shape (n,), dtype int64, or None
        The category of each, −1 if it is unknown or masked.
    n_codes : int
        Number of categories.
    ordinal : bool
        Whether the categories have an order, in which each thing also has all earlier ones.
    """

    dense: Tensor
    codes: Tensor | None = None
    n_codes: int = 0
    ordinal: bool = False

    @property
    def width(self) -> int:
        """Number of columns of `x`."""
        return self.dense.shape[1] + self.n_codes

    @property
    def x(self) -> Tensor:
        """The features, shape (n, n_dense + n_codes): numbers, then the category.

        The category is a one-hot code, or, if categories are ordinal, a cumulative one: ones up to
        the category and zeros from there on.
        """
        if self.codes is None:
            return self.dense
        categories = torch.arange(self.n_codes, device=self.dense.device)
        codes = self.codes[:, None]
        code = categories <= codes if self.ordinal else categories == codes
        return torch.cat([self.dense, code.to(self.dense.dtype)], 1)

    def project(self, weight: Tensor) -> Tensor:
        """Return ``x @ weight.T``, shape (n, n_out), without forming the code.

        Parameters
        ----------
        weight : Tensor of shape (n_out, n_dense + n_codes)
        """
        n_dense = self.dense.shape[1]
        if self.codes is None:
            return self.dense @ weight.T
        # The last row is that of an unknown category.
        table = weight[:, n_dense:].T
        table = F.pad(table.cumsum(0) if self.ordinal else table, (0, 0, 0, 1))
        projected = F.embedding(self.codes % (self.n_codes + 1), table)
        return torch.addmm(projected, self.dense, weight[:, :n_dense].T) if n_dense else projected


@dataclass(frozen=True)
class EdgeColumns(Columns):
    """Features of the edges of a batch, in the order of its topology.

    Attributes
    ----------
    weight : Tensor of shape (n_edges,) or None
        Weights of the edges, in units of the mean weight of the training graphs. They are a
        column of `dense` too, standardised like other numbers.
    """

    weight: Tensor | None = None


def mapped(columns: _C, function: Callable[[Tensor], Tensor]) -> _C:
    """Return columns, or a batch of graphs, with a function of each tensor of features."""
    return replace(columns, **{name: function(value) for name, value in _tensors(columns)})


def joined(parts: Sequence[_C]) -> _C:
    """Return the columns of several batches, or several batches, as one."""
    tensors = zip(*map(_tensors, parts), strict=True)
    fields = {named[0][0]: torch.cat([value for _, value in named]) for named in tensors}
    return replace(parts[0], **fields)


def _tensors(columns: Any) -> list[tuple[str, Tensor]]:
    """Return the tensors with a row for each node or edge, by name."""
    found = [(name, getattr(columns, name, None)) for name in ("dense", "codes", "weight")]
    return [(name, value) for name, value in found if value is not None]


def standards(values: Tensor, standardize: bool) -> tuple[Tensor, Tensor]:
    """Return the mean and the standard deviation of each column of (n, d).

    They are 0 and 1 for columns of zeros and ones, and for all without `standardize`.
    """
    d = values.shape[1]
    if not (standardize and len(values)):
        return torch.zeros(d, dtype=torch.float64), torch.ones(d, dtype=torch.float64)
    mean, std = map(torch.from_numpy, mean_and_std(values.numpy()))
    is_kept = is_binary(values).all(0)
    return mean.masked_fill(is_kept, 0.0), std.masked_fill(is_kept, 1.0)


def is_binary(values: Tensor) -> Tensor:
    """Return which values are 0 or 1."""
    return (values == 0) | (values == 1)


def standardised(values: Tensor, mean: Tensor, std: Tensor) -> Tensor:
    """Return columns in standard deviations from the mean, see `standards`, clipped."""
    return ((values.double() - mean) / std).clamp_(-FARTHEST, FARTHEST).float()


def codes_of(labels: Tensor, categories: Sequence[Hashable]) -> dict[Hashable, int]:
    """Return the code of each category that occurs."""
    return {categories[k]: code for code, k in enumerate(labels.unique().tolist())}


def coded(labels: Tensor, categories: Sequence[Hashable], codes: dict[Hashable, int]) -> Tensor:
    """Return the codes of labels, shape (n,), −1 for a category that has none."""
    table = [codes.get(category, -1) for category in categories]
    return torch.tensor(table, dtype=torch.int64)[labels]
