"""The queue of keys: its content, the owners of its keys, how it continues."""

from collections import deque

import pytest
import torch

from skcontrast.frameworks import KeyQueue
from tests.frameworks.common import random


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
