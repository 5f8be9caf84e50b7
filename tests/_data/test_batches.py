"""How an epoch is cut into batches."""

import torch

# private: the batches of a fit, one by one
from skcontrast._data._batches import BatchSampler, Source


def test_batches_cover_all_rows_and_none_holds_one_sample():
    for n in range(2, 60):
        for batch_size in range(2, 62):
            samples = Source(torch.arange(n), torch.device("cpu"))
            batches = [batch.x for batch in BatchSampler(samples, batch_size)]
            sizes = [len(x) for x in batches]
            assert sorted(torch.cat(batches).tolist()) == list(range(n))
            assert min(sizes) >= 2 and max(sizes) - min(sizes) <= 1
            assert max(sizes) <= batch_size + (batch_size == 2)


def drawn(n, batch_size, n_labeled, share):
    """Return the rows of the batches of an epoch."""
    sampler = BatchSampler(
        Source(torch.arange(n), torch.device("cpu")), batch_size, torch.arange(n_labeled), share
    )
    return [batch.x for batch in sampler]


def test_labeled_rows_are_a_share_of_each_batch_or_all_in_it():
    for n_labeled in [1, 7, 40, 90]:
        for share in [0.1, 0.5, 0.9]:
            n, batch_size = 100, 20
            batches = drawn(n, batch_size, n_labeled, share)
            assert sorted(set(torch.cat(batches).tolist())) == list(range(n))
            for rows in batches:
                assert len(rows) <= batch_size and len(set(rows.tolist())) == len(rows)
            labeled = torch.cat(batches) < n_labeled
            all_in_each = n_labeled * len(batches)
            assert labeled.sum() >= min((share - 0.06) * len(labeled), all_in_each)


def test_enough_labeled_rows_leave_the_batches_as_they_are():
    expected = torch.cat(drawn(100, 20, 0, 0.0)).tolist()
    assert torch.cat(drawn(100, 20, 30, 0.3)).tolist() == expected
    assert torch.cat(drawn(100, 20, 0, 0.3)).tolist() == expected
    assert torch.cat(drawn(100, 20, 100, 0.3)).tolist() == expected


def test_every_batch_is_of_one_domain():
    for batch_size in [2, 5, 16, 300]:
        for n_labeled, share in [(0, 0.0), (30, 0.5)]:
            domains = torch.tensor([3] * 2 + [0] * 40 + [1] * 17 + [2] * 61)[torch.randperm(120)]
            samples = Source(torch.arange(120), torch.device("cpu"))
            labeled = torch.arange(n_labeled)
            sampler = BatchSampler(samples, batch_size, labeled, share, domains=domains)
            batches = [batch.x for batch in sampler]
            assert len(batches) == len(sampler)
            assert all(len(domains[rows].unique()) == 1 for rows in batches)
            assert all(2 <= len(rows.unique()) == len(rows) for rows in batches)
            assert max(len(rows) for rows in batches) <= batch_size + (batch_size == 2)
            assert set(torch.cat(batches).tolist()) == set(range(120))
            of_batches = torch.stack([domains[rows[0]] for rows in batches])
            assert batch_size == 300 or (of_batches.diff() < 0).any()  # domains take turns


def test_two_samples_of_a_group_meet_within_their_domain():
    domains, groups = torch.arange(2000) % 5, torch.arange(2000) // 10
    samples = Source(torch.arange(2000), torch.device("cpu"))
    sampler = BatchSampler(samples, 128, pairs=groups, domains=domains)
    met = [groups[batch.x].bincount()[groups[batch.x]] > 1 for batch in sampler]
    assert torch.cat(met).float().mean() > 0.95


def test_a_single_domain_changes_nothing():
    samples = Source(torch.arange(50), torch.device("cpu"))
    one, two = (BatchSampler(samples, 8, domains=d) for d in (None, torch.zeros(50).long()))
    one.generator.manual_seed(0)
    two.generator.manual_seed(0)
    for a, b in zip(one, two, strict=True):
        assert torch.equal(a.x, b.x)


def test_samples_come_in_order_too():
    samples = Source(torch.arange(10), torch.device("cpu"))
    assert [x.tolist() for x in BatchSampler(samples, 2).in_order(4)] == [
        [0, 1, 2, 3],
        [4, 5, 6, 7],
        [8, 9],
    ]
