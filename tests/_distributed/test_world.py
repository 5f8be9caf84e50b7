"""The processes of a fit, their shares and what they exchange."""

import numpy as np
import pytest
import torch

from skcontrast._distributed._world import (
    Shares,
    World,
    current_world,
    gather,
    pool,
    sum_gradients,
)

pytestmark = pytest.mark.skipif(
    not torch.distributed.is_available(), reason="needs torch.distributed"
)


def test_without_a_group_there_is_no_world(monkeypatch):
    assert current_world() is None
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "a worker of joblib inherits this")
    monkeypatch.setattr("multiprocessing.parent_process", lambda: "the one that torchrun started")
    assert current_world() is None


def test_shares_are_all_rows_once_and_of_sizes_that_differ_by_at_most_one():
    for size in (1, 2, 3, 8):
        for n in range(size, 40):
            shares = [np.arange(n)[World(rank, size).share(n)] for rank in range(size)]
            assert np.array_equal(np.concatenate(shares), np.arange(n))
            assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_a_rank_encodes_all_views_of_its_samples():
    for size, n_samples, n_views in [(2, 7, 2), (3, 8, 3), (2, 5, 1)]:
        rows = []
        for rank in range(size):
            shares = Shares(World(rank, size))
            assert shares.rows(12) == shares.world.share(12)
            shares.n_samples = n_samples
            own = shares.rows(n_views * n_samples)
            samples = np.arange(n_samples)[shares.world.share(n_samples)]
            assert (own.view(n_views, -1) % n_samples == torch.as_tensor(samples)).all()
            rows += own.tolist()
            assert shares.rows(n_samples + 1) == shares.world.share(n_samples + 1)
        assert sorted(rows) == list(range(n_views * n_samples))


def gathered():
    world = current_world()
    parameters = [torch.ones(2, requires_grad=True) for _ in range(3)]
    parameters[world.rank].grad = torch.full((2,), 5.0)
    sums = sum_gradients(parameters, torch.tensor(1.0), torch.tensor(world.rank + 1.0))
    return {
        "gather": gather(torch.tensor([world.rank, 7]), world).tolist(),
        "pool": pool(torch.arange(world.rank + 1.0)).tolist(),
        "sums": [float(number) for number in sums],
        "gradients": [None if p.grad is None else p.grad.tolist() for p in parameters],
    }


def test_collectives(ranks):
    for found in ranks(gathered):
        assert found == {
            "gather": [[0, 7], [1, 7]],
            "pool": [0.0, 0.0, 1.0],
            "sums": [2.0, 3.0],
            "gradients": [[5.0, 5.0], [5.0, 5.0], None],
        }
