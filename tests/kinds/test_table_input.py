"""The first layer of tables: which features a coded row has."""

import math

import numpy as np
import pytest
import torch

from skcontrast.kinds._table_input import MOST_ONE_HOT, TableInput, embedding_width, n_features
from skcontrast.kinds._tables import Column

NAN = math.nan


def layer(*columns, center=0.0, scale=1.0):
    ones = torch.ones(len(columns), dtype=torch.float64)
    return TableInput(columns, center * ones, scale * ones)


def test_numbers_stay_and_gaps_are_flagged_where_fit_saw_some():
    module = layer(Column("a", "number", has_gaps=True), Column("b", "number"))
    h = module(torch.tensor([[2.0, 3.0], [NAN, NAN]]))
    assert h.tolist() == [[2, 3, 0], [0, 0, 1]]


def test_categories_are_one_hot_with_components_for_what_fit_saw():
    both = Column("a", "category", ("x", "y"), has_rare=True, has_gaps=True)
    plain = Column("b", "category", ("x", "y", "z"))
    h = layer(both, plain)(torch.tensor([[0.0, 2.0], [2.0, 3.0], [NAN, NAN]]))
    assert h.tolist() == [[1, 0, 0, 0, 0, 0, 1], [0, 0, 1, 0, 0, 0, 0], [0, 0, 0, 1, 0, 0, 0]]


def test_many_categories_are_embedded():
    names = tuple(map(str, range(MOST_ONE_HOT + 1)))
    plain = layer(Column("a", "category", names))
    h = plain(torch.tensor([[0.0], [5.0], [len(names)], [NAN]]))
    assert h.shape == (4, embedding_width(len(names)))
    assert h[:2].abs().sum() > 0 and h[2:].abs().sum() == 0
    full = layer(Column("a", "category", names, has_rare=True, has_gaps=True))
    assert full(torch.tensor([[len(names)], [NAN]])).abs().sum(1).min() > 0


def test_an_embedding_is_about_as_long_as_a_one_hot_vector():
    torch.manual_seed(0)
    names = tuple(map(str, range(1000)))
    lengths = layer(Column("a", "category", names)).embeddings[0].weight[:1000].norm(dim=1)
    assert lengths.mean().item() == pytest.approx(1, abs=0.05)


def test_the_width_follows_the_rule_of_fastai():
    assert [embedding_width(n) for n in (2, 10, 100, 1000, 10**6)] == [2, 6, 21, 77, 600]


def test_cycles_of_a_time_return_after_a_period():
    day = 86400.0
    column = Column("a", "time", periods=(day,))
    center, scale = 1.7e9, 1e7
    module = layer(column, center=center, scale=scale)
    seconds = np.array([0, day / 4, day / 2, 30 * day, 30.25 * day]) + 19_000 * day
    h = module(torch.from_numpy((seconds - center) / scale).float()[:, None])
    angles = [0, 0.25, 0.5, 0, 0.25]
    np.testing.assert_allclose(h[:, 1], np.sin(2 * np.pi * np.array(angles)), atol=1e-3)
    np.testing.assert_allclose(h[:, 2], np.cos(2 * np.pi * np.array(angles)), atol=1e-3)


def test_the_number_of_features_is_known_before():
    columns = [
        Column("a", "number", has_gaps=True),
        Column("b", "time", has_gaps=True, periods=(86400.0, 604800.0)),
        Column("c", "category", ("x", "y"), has_rare=True),
        Column("d", "category", tuple(map(str, range(300))), has_gaps=True),
    ]
    h = layer(*columns)(torch.zeros(3, 4))
    assert h.shape == (3, n_features(columns)) == (3, 2 + 6 + 3 + embedding_width(300))
