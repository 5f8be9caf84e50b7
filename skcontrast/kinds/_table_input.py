"""The first layer of networks of tables: from coded columns to features."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

# Up to so many categories, a column is one-hot encoded.
MOST_ONE_HOT = 256
# The names of the cycles of times, by their days.
_CYCLES = {1: "day", 7: "week", 365: "year"}


def embedding_width(n_categories: int) -> int:
    """Return the width of the embedding of a column, ``min(600, round(1.6 n ** 0.56))`` [1]_.

    References
    ----------
    .. [1] J. Howard, S. Gugger, "fastai: A Layered API for Deep Learning", Information 11(2),
       2020: ``fastai.tabular.model.emb_sz_rule``.
    """
    return min(600, round(1.6 * n_categories**0.56))


def n_features(columns: Sequence[Any]) -> int:
    """Return how many features `TableInput` makes of coded columns."""
    return sum(_width(column) for column in columns)


def feature_names(columns: Sequence[Any], names: Sequence[str]) -> list[str]:
    """Return the names of what `TableInput` makes of coded columns, of columns of given names."""
    named = list(zip(columns, names, strict=True))
    numbers = [(column, name) for column, name in named if column.type != "category"]
    found = [name for _, name in numbers]
    found += [f"{name}_missing" for column, name in numbers if column.has_gaps]
    cycles = [(name, _CYCLES[int(T) // 86400]) for column, name in numbers for T in column.periods]
    found += [f"{name}_{cycle}_{wave}" for wave in ("sin", "cos") for name, cycle in cycles]
    categories = [(column, name) for column, name in named if column.type == "category"]
    for column, name in sorted(categories, key=lambda pair: _is_embedded(pair[0])):
        own = range(_width(column)) if _is_embedded(column) else _components(column)
        found += [f"{name}_{component}" for component in own]
    return found


def _is_embedded(column: Any) -> bool:
    return len(column.categories) > MOST_ONE_HOT


def _components(column: Any) -> list[str]:
    """Return what each component of a one-hot vector stands for."""
    return [*column.categories, *["rare"] * column.has_rare, *["missing"] * column.has_gaps]


def _width(column: Any) -> int:
    if column.type != "category":
        return 1 + column.has_gaps + 2 * len(column.periods)
    if _is_embedded(column):
        return embedding_width(len(column.categories))
    return len(_components(column))


class TableInput(nn.Module):
    """The encoder's first step: turn the columns of a table into features.

    Numbers stay as they are, and a gap is 0, the mean. A column that had gaps in `fit` has a
    second feature, 1 for gaps, so that the next layer learns what a gap means. Times also
    have the sine and cosine of the time of day, week and year. A column of up to 256 categories is
    one-hot encoded, with components for rare categories and for gaps if there were any in `fit`;
    one of more categories is embedded. What `fit` did not see is a vector of zeros.

    Parameters
    ----------
    columns : sequence of Column
        The columns of `fit`.
    center, scale : Tensor of shape (n_columns,), dtype float64
        The numbers that standardised columns, to recover times.
    """

    if TYPE_CHECKING:  # all buffers

        def __getattr__(self, name: str) -> Tensor: ...

    def __init__(self, columns: Sequence[Any], center: Tensor, scale: Tensor):
        super().__init__()
        # Columns by what becomes of them: numbers, gaps, cycles, one-hot codes, embeddings.
        positions = range(len(columns))
        numbers = [j for j in positions if columns[j].type != "category"]
        self._keep("numbers", numbers)
        self._keep("masked", [j for j in numbers if columns[j].has_gaps])
        self._keep_cycles(columns, center, scale)
        categories = [j for j in positions if columns[j].type == "category"]
        one_hot = [j for j in categories if not _is_embedded(columns[j])]
        self._keep("one_hot", one_hot)
        self._keep_slots([columns[j] for j in one_hot])
        embedded = [j for j in categories if j not in one_hot]
        self._keep("embedded", embedded)
        self.embeddings = nn.ModuleList(_embedding(columns[j]) for j in embedded)

    def _keep(self, name: str, values: list, dtype: torch.dtype = torch.int64) -> None:
        self.register_buffer(name, torch.tensor(values, dtype=dtype))

    def _keep_cycles(self, columns: Sequence[Any], center: Tensor, scale: Tensor) -> None:
        """Keep, for each cycle of each time, the map from the standardised time to its angle."""
        cycles = [(j, period) for j, column in enumerate(columns) for period in column.periods]
        self._keep("times", [j for j, _ in cycles])
        turns = [2 * math.pi / period for _, period in cycles]
        phases = [2 * math.pi * (float(center[j]) % period) / period for j, period in cycles]
        self._keep("phases", phases, torch.float32)
        speeds = [turn * float(scale[j]) for turn, (j, _) in zip(turns, cycles, strict=True)]
        self._keep("speeds", speeds, torch.float32)

    def _keep_slots(self, columns: Sequence[Any]) -> None:
        """Keep where the component of each category is; the last one is left out in the end."""
        self.width = sum(_width(column) for column in columns)
        firsts, rare, gaps, start = [], [], [], 0
        for column in columns:
            n = len(column.categories)
            firsts.append(start)
            rare.append(start + n if column.has_rare else self.width)
            gaps.append(start + n + column.has_rare if column.has_gaps else self.width)
            start += _width(column)
        self._keep("first", firsts)
        self._keep("rare", rare)
        self._keep("gap", gaps)
        self._keep("sizes", [len(column.categories) for column in columns])

    def forward(self, x: Tensor) -> Tensor:
        """Return features of shape (n, n_features) for coded rows x of shape (n, n_columns)."""
        parts = [x[:, self.numbers].nan_to_num(0.0), x[:, self.masked].isnan().to(x.dtype)]
        if len(self.times):
            angles = x[:, self.times] * self.speeds + self.phases
            parts += [angles.sin().nan_to_num(0.0), angles.cos().nan_to_num(0.0)]
        if self.width:
            parts.append(self._components(x[:, self.one_hot]))
        for k, embedding in enumerate(self.embeddings):
            n_vectors = len(embedding.get_parameter("weight"))
            codes = x[:, self.embedded[k]].nan_to_num(n_vectors - 1.0)
            parts.append(embedding(codes.long()))
        return torch.cat(parts, 1)

    def _components(self, codes: Tensor) -> Tensor:
        """Return the one-hot vectors of the given columns side by side."""
        known = self.first + codes.nan_to_num(0.0).long()
        slots = torch.where(codes < self.sizes, known, self.rare)
        slots = torch.where(codes.isnan(), self.gap, slots)
        zeros = codes.new_zeros(len(codes), self.width + 1)
        return zeros.scatter(1, slots, 1.0)[:, : self.width]


def _embedding(column: Any) -> nn.Embedding:
    """Return vectors of the categories, of rare ones and of gaps, with a mean square of 1 / width.

    So an embedding has the length of a one-hot vector.
    """
    n, width = len(column.categories), _width(column)
    embedding = nn.Embedding(n + 2, width)
    with torch.no_grad():
        embedding.weight.div_(math.sqrt(width))
        embedding.weight[n] *= column.has_rare
        embedding.weight[n + 1] *= column.has_gaps
    return embedding
