"""The queue of keys: its content, the owners of its keys, how it is resumed."""

from collections import deque

import pytest
import torch

from skcontrast._runtime import _memory
from skcontrast.frameworks import KeyQueue, MoCo
from tests.common import small
from tests.frameworks.common import X, random


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
                for row, columns in zip(rows, queue.own(rows), strict=True):
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


def resumed(queue, n_slots, same_samples=True):
    other = KeyQueue(n_slots, 1, 2, 20)
    other.resume(queue.keys, queue.rows, queue.labels, queue.n_seen, same_samples)
    return other


def oldest_first(queue):
    order = torch.arange(queue.n_seen - len(queue), queue.n_seen) % queue.n_slots
    return queue.keys[order, 0, 0].int().tolist()


def test_a_resumed_queue_is_the_same_queue():
    queue = filled_queue(6, [1, 2, 3, 4, 5, 6, 7, 8, 9])
    other = resumed(queue, 6)
    assert torch.equal(other.keys, queue.keys) and torch.equal(other.rows, queue.rows)
    assert torch.equal(other.labels, queue.labels) and other.n_seen == queue.n_seen == 9
    rows = torch.arange(20)
    assert torch.equal(other.own(rows), queue.own(rows))
    assert oldest_first(resumed(filled_queue(6, [3, 1]), 6)) == [3, 1]


@pytest.mark.parametrize("n_slots, expected", [(4, [6, 7, 8, 9]), (9, [4, 5, 6, 7, 8, 9])])
def test_a_queue_resumed_with_a_different_size_keeps_the_newest(n_slots, expected):
    queue = resumed(filled_queue(6, [1, 2, 3, 4, 5, 6, 7, 8, 9]), n_slots)
    assert oldest_first(queue) == expected
    queue.push(torch.full((1, 1, 2), 15.0), torch.tensor([15]))
    assert oldest_first(queue) == [*expected, 15][-n_slots:]
    assert queue.rows[queue.own(torch.tensor([9, 15]))[:, 0]].tolist() == [9, 15]


def test_of_samples_visited_twice_the_newest_keys_are_resumed():
    queue = resumed(filled_queue(8, [1, 2, 3, 4, 2, 5, 1]), 8)
    assert oldest_first(queue) == [3, 4, 2, 5, 1]


def test_a_queue_resumed_with_other_samples_forgets_whose_keys_it_holds():
    queue = resumed(filled_queue(6, [1, 2, 3, 4, 5, 6, 7]), 6, same_samples=False)
    assert oldest_first(queue) == [2, 3, 4, 5, 6, 7]
    assert (queue.rows == -1).all() and (queue.labels == -1).all()
    assert len(resumed(queue, 6)) == 6


def part(first_id, rows=(), n_slots=8):
    """Return the queue of a fit with a part of 20 samples of a stream."""
    queue, rows = KeyQueue(n_slots, 1, 2, 20, first_id), torch.tensor(rows, dtype=torch.int64)
    queue.push(rows[:, None, None].expand(-1, 1, 2).float(), rows, rows % 3, rows % 2)
    return queue


def next_part(queue, first_id):
    """Return the queue of the next fit, with those samples."""
    other = part(first_id)
    state = (queue.keys, queue.rows, queue.labels, queue.n_seen, False, queue.ids, queue.groups)
    other.resume(*state)
    return other


def test_the_queue_of_the_next_part_holds_the_same_keys_with_their_classes_and_groups():
    first = part(1000, [3, 1, 4, 15, 9, 2, 6])
    second = next_part(first, 5000)
    for name in ("keys", "labels", "groups", "ids"):
        assert torch.equal(getattr(second, name), getattr(first, name)), name
    assert (second.rows == -1).all() and len(second) == 7
    assert first._count_others(first.ids, 7) == 0 < second._count_others(first.ids, 7) == 7


def test_a_part_that_returns_knows_the_keys_of_its_samples():
    first = part(1000, [3, 1, 4])
    second = next_part(first, 5000)
    second.push(torch.zeros(2, 1, 2), torch.tensor([3, 9]))
    third = next_part(second, 1000)
    assert third.rows[:5].tolist() == [3, 1, 4, -1, -1]
    assert third.own(torch.tensor([4, 3, 9]))[:, 0].tolist() == [2, 0, 0]
    assert third._count_others(second.ids, second.n_seen) == 2


def test_a_queue_larger_than_the_memory_is_refused(monkeypatch):
    monkeypatch.setattr(_memory, "_bytes_of", lambda device: 1000)
    with pytest.raises(ValueError, match=r"'queue_size' parameter of MoCo needs .* GB on cpu"):
        small(framework=MoCo()).fit(X)
