"""Queues of keys, banks of vectors, and networks that follow another."""

import copy
from collections import deque

import pytest
import torch
from torch import nn

from skcontrast.frameworks import KeyQueue, MomentumNetwork
from skcontrast.frameworks._cmc import Bank  # private: the bank alone
from skcontrast.similarity import Cosine
from tests.frameworks.common import make_fit, random


@pytest.mark.parametrize("n_slots, n_pushed", [(7, 3), (7, 7), (6, 4), (5, 9), (20, 3)])
def test_queue_is_first_in_first_out_and_wraps_around(n_slots, n_pushed):
    queue, expected = KeyQueue(n_slots, 2, 3, 99), deque(maxlen=n_slots)
    for step in range(6):
        keys = random(n_pushed, 2, 3, seed=step)
        rows = torch.arange(n_pushed) + step * n_pushed
        queue.push(keys, rows, rows % 5)
        expected.extend(zip(keys.unbind(), rows.tolist(), strict=True))
        assert len(queue) == len(expected)
        oldest_first = torch.arange(queue.n_seen - len(queue), queue.n_seen) % n_slots
        held, labels = queue.filled()
        held = held.unflatten(0, (-1, 2))[oldest_first]
        torch.testing.assert_close(held, torch.stack([key for key, _ in expected]))
        assert queue.rows[oldest_first].tolist() == [row for _, row in expected]
        assert labels[::2][oldest_first].tolist() == [row % 5 for _, row in expected]


@pytest.mark.parametrize("n_slots", [2, 5, 12, 19, 20])
def test_own_older_keys_are_found_and_all_have_as_many_negatives(n_slots):
    n_samples, n_keys, found = 20, 3, 0
    queue = KeyQueue(n_slots, n_keys, 1, n_samples)
    generator = torch.Generator().manual_seed(0)
    for _ in range(5):
        for rows in torch.randperm(n_samples, generator=generator).tensor_split(3):
            if len(queue):
                held = queue.rows[: len(queue)].repeat_interleave(n_keys)
                oldest = (queue.n_seen - len(queue)) % n_slots
                for row, columns in zip(rows, queue.excluded(rows), strict=True):
                    own = torch.nonzero(held == row).flatten().tolist()
                    found += bool(own)
                    fallback = [oldest * n_keys + k for k in range(n_keys)]
                    assert columns.tolist() == (own or fallback)
            queue.push(random(len(rows), n_keys, 1), rows)
    assert found > 0


def filled_queue(n_slots, rows, n_samples=20):
    queue = KeyQueue(n_slots, 1, 2, n_samples)
    for part in torch.tensor(rows).split(4):
        queue.push(part[:, None, None].expand(-1, 1, 2).float(), part, part % 3)
    return queue


def oldest_first(queue):
    order = torch.arange(queue.n_seen - len(queue), queue.n_seen) % queue.n_slots
    return queue.keys[order, 0, 0].int().tolist()


def test_a_queue_of_the_same_size_continues_as_it_is():
    for queue in (filled_queue(6, [1, 2, 3, 4, 5, 6, 7, 8, 9]), filled_queue(6, [3, 1])):
        assert queue.continued(6) is queue


@pytest.mark.parametrize("n_slots, expected", [(4, [6, 7, 8, 9]), (9, [4, 5, 6, 7, 8, 9])])
def test_a_queue_that_continues_in_a_different_size_keeps_the_newest(n_slots, expected):
    queue = filled_queue(6, [1, 2, 3, 4, 5, 6, 7, 8, 9]).continued(n_slots)
    assert oldest_first(queue) == expected
    queue.push(torch.full((1, 1, 2), 15.0), torch.tensor([15]))
    assert oldest_first(queue) == [*expected, 15][-n_slots:]
    assert queue.rows[queue.excluded(torch.tensor([9, 15]))[:, 0]].tolist() == [9, 15]


def test_of_samples_visited_twice_the_newest_keys_continue():
    queue = filled_queue(8, [1, 2, 3, 4, 2, 5, 1]).continued(8)
    assert oldest_first(queue) == [3, 4, 2, 5, 1]


def test_keys_of_unknown_samples_have_slots_besides_those_of_X():
    queue = filled_queue(6, [1, 2, 3, 4, 5])
    queue.rows.fill_(-1)
    queue.set_extra_state(5)
    longer = queue.continued(99)
    assert longer.n_slots == 25 and oldest_first(longer) == [1, 2, 3, 4, 5]
    assert longer.excluded(torch.arange(20)).unique().tolist() == [0]  # nobody's, so the oldest
    assert queue.continued(22).n_slots == 22
    longer.push(torch.full((2, 1, 2), 9.0), torch.tensor([7, 19]))
    assert longer.excluded(torch.tensor([19, 0, 7]))[:, 0].tolist() == [6, 0, 5]


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


@pytest.mark.parametrize("momentum", [0.0, 0.9, 1.0])
def test_momentum_update(momentum):
    module = nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5), nn.Linear(5, 4)).train()
    network = MomentumNetwork(make_fit(module), momentum)
    before = copy.deepcopy(network.network.state_dict())
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(1.0)
    module(random(8, 6))
    network.follow()
    trained = module.state_dict()
    for name, value in network.network.state_dict().items():
        expected = trained[name]
        if value.is_floating_point():
            expected = momentum * before[name] + (1 - momentum) * trained[name]
        torch.testing.assert_close(value, expected, msg=name)
    assert not any(parameter.requires_grad for parameter in network.parameters())
    assert all(parameter.requires_grad for parameter in module.parameters())


def test_weights_that_two_layers_share_move_once():
    module = nn.Sequential(nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 6))
    module[2].weight = module[0].weight
    network = MomentumNetwork(make_fit(module), 0.9)
    before = module[0].weight.detach().clone()
    with torch.no_grad():
        module[0].weight.add_(1.0)
    network.follow()
    torch.testing.assert_close(network.network[2].weight, before + 0.1)


def test_keys_do_not_depend_on_the_batch_and_have_no_gradient():
    module = nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5), nn.Dropout(), nn.Linear(5, 4))
    network = MomentumNetwork(make_fit(module.train()), 0.9).train()
    x = random(8, 6)
    together = network(x)
    torch.testing.assert_close(torch.cat([network(row[None]) for row in x]), together)
    assert not together.requires_grad


def test_batch_statistics_start_from_the_first_batch():
    module = nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5)).train()
    network = MomentumNetwork(make_fit(module), 0.9)
    x = 3 + 2 * random(50, 6)
    torch.testing.assert_close(network(x), module(x), rtol=0, atol=0.1)
    torch.testing.assert_close(network.network[1].running_mean, module[0](x).mean(0))
    assert network.network[1].momentum == 0.1
    # A network that has been trained before keeps its statistics.
    trained = copy.deepcopy(module[1].running_mean)
    MomentumNetwork(make_fit(module), 0.9)(100 * x)
    torch.testing.assert_close(module[1].running_mean, trained)
