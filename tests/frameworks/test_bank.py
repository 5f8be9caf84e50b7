"""The memory bank of CMC."""

import pytest
import torch

from skcontrast.frameworks._cmc import Bank  # private: the bank alone
from skcontrast.similarity import Cosine
from tests.frameworks.common import random


@pytest.mark.parametrize("momentum", [0.0, 0.5, 1.0])
def test_bank_update_rule(momentum):
    bank = Bank(6, 3, momentum, 2)
    first, second = random(2, 1, 2, 3), random(2, 3, 2, 3, seed=1)
    rows = torch.tensor([4, 1])
    bank.update(first, rows, torch.tensor([7, -1]), Cosine())
    unit = torch.nn.functional.normalize
    torch.testing.assert_close(bank.vectors[:, rows], unit(first[:, 0], dim=-1))
    assert bank.labels.tolist() == [-1, -1, -1, -1, 7, -1]
    bank.update(second, rows.flip(0), None, Cosine())
    new = unit(unit(second, dim=-1).mean(1), dim=-1).flip(1)
    expected = unit(momentum * unit(first[:, 0], dim=-1) + (1 - momentum) * new, dim=-1)
    torch.testing.assert_close(bank.vectors[:, rows], expected)
    assert bank.n_visited == 2 and bank.visited.tolist() == [4, 1, -1, -1, -1, -1]
    assert (bank.vectors[:, [0, 2, 3, 5]] == 0).all()


@pytest.mark.parametrize("n", [2, 5, 12, 13, 30])
def test_drawn_vectors_are_all_different_and_the_sample_knows_its_own(n):
    bank, generator, own_is_drawn = Bank(20, 1, 0.5, 2), torch.Generator().manual_seed(0), 0
    rows = torch.randperm(20, generator=generator)[:13]
    for part in rows.split(5):
        z = part.view(1, 1, -1, 1).expand(2, 1, -1, 1) + 1.0
        bank.update(z, part, part, Cosine())
    for _ in range(20):
        vectors, own, drawn = bank.draw(n, torch.arange(20), generator)
        assert vectors.shape == (2, min(n, 13), 1) and drawn.unique().numel() == min(n, 13)
        assert set(drawn.tolist()) <= set(rows.tolist())
        for row, (column,) in enumerate(own.tolist()):
            assert drawn[column] == row if row in drawn else column == len(drawn) - 1
            own_is_drawn += row in drawn
    assert own_is_drawn == 20 * min(n, 13)
