"""MoCo: who is contrasted with whom, and what the queue means in a fit."""

import gc
from itertools import chain

import numpy as np
import pytest
import torch

from skcontrast import contrastive_loss

# private: the value of a contrast that no public call forms
from skcontrast._objective._mean_loss import objective_value
from skcontrast.frameworks import Batch, MoCo
from skcontrast.losses import BCL, HCL, InfoNCE, Ring, SupCon, Supervised
from skcontrast.schedules import Auto
from skcontrast.similarity import Cosine
from tests.common import small, vectors
from tests.frameworks.common import MOCOS, Keeps, StopsAfter, Watches, X, Y, make_fit, random


def step(session, rows, n_views=2, labels=None, similarity=None):
    """Return a contrast of random samples, and queries and keys as they should be."""
    views = [random(len(rows), 6, seed=v + 17) for v in range(n_views)]
    batch = Batch(views[0], labels=labels, rows=torch.as_tensor(rows))
    contrast = session.contrast(views, similarity or Cosine(0.3), batch)
    network, momentum_network = session.context.module, session.momentum_network.network
    return contrast, [network(v) for v in views], [momentum_network(v) for v in views]


def started(framework, n_seen=12, **kwargs):
    """Return a session whose queue has seen some samples."""
    session = framework.start(make_fit(**kwargs))
    n_keys = session.queue.keys.shape[1]
    keys = random(n_seen, n_keys, session.context.width, seed=5)
    session.queue.push(keys, torch.arange(n_seen), torch.arange(n_seen) % 3)
    return session


@pytest.mark.parametrize("n_views", [2, 3])
@pytest.mark.parametrize("loss", [InfoNCE(), HCL(), BCL(), Ring()], ids=repr)
def test_contrast_with_the_queue_is_the_contrastive_loss_with_a_queue(loss, n_views):
    session = started(MoCo(), n_views=n_views)
    contrast, q, k = step(session, [20, 21, 22], n_views)
    value = objective_value(contrast, loss, Cosine(0.3))
    # None of the three is in the queue: the oldest sample takes no part.
    queue = session.queue.filled()[0][n_views - 1 :]
    expected = contrastive_loss(q[0], *k[1:], loss=loss, similarity=Cosine(0.3), queue=queue)
    torch.testing.assert_close(value, expected)
    (gradient,) = torch.autograd.grad(value, session.context.module.weight)
    (wanted,) = torch.autograd.grad(expected, session.context.module.weight)
    torch.testing.assert_close(gradient, wanted)


def test_a_symmetric_contrast_is_the_mean_over_both_directions():
    session = started(MoCo(symmetric=True))
    contrast, q, k = step(session, [20, 21, 22])
    queue = session.queue.filled()[0][2:]
    directions = [
        contrastive_loss(q[v], k[1 - v], similarity=Cosine(0.3), queue=queue) for v in (0, 1)
    ]
    value = objective_value(contrast, InfoNCE(), Cosine(0.3))
    torch.testing.assert_close(value, torch.stack(directions).mean())
    session.update()
    newest = session.queue.keys[12:15]
    torch.testing.assert_close(newest, torch.stack(k, 1))


def test_own_older_keys_are_not_negatives():
    session = started(MoCo())
    contrast, q, k = step(session, [20, 3, 5])
    assert contrast.excluded.tolist() == [[0], [3], [5]]
    keys = session.queue.filled()[0]
    expected = [
        contrastive_loss(q[0][[i]], k[1][[i]], similarity=Cosine(0.3), queue=keys[kept])
        for i, own in enumerate([0, 3, 5])
        for kept in [torch.arange(12) != own]
    ]
    value = objective_value(contrast, InfoNCE(), Cosine(0.3))
    torch.testing.assert_close(value, torch.stack(expected).mean())


def test_the_first_step_is_contrasted_within_the_batch():
    session = MoCo().start(make_fit())
    contrast, _, k = step(session, [4, 0, 9])
    torch.testing.assert_close(contrast.candidates, Cosine(0.3).embed(k[1]))
    assert contrast.excluded.tolist() == [[0], [1], [2]]
    session.update()
    contrast, *_ = step(session, [1, 2, 3])
    torch.testing.assert_close(contrast.candidates, Cosine(0.3).embed(k[1]))


def test_labels_go_with_the_keys():
    session = started(MoCo())
    contrast, *_ = step(session, [20, 3], labels=torch.tensor([2, -1]))
    assert contrast.anchor_labels.tolist() == [2, -1]
    assert contrast.candidate_labels.tolist() == [0, 1, 2] * 4
    session.update()
    assert session.queue.labels[12:14].tolist() == [2, -1]
    assert step(session, [1, 2])[0].candidate_labels is None


@pytest.mark.parametrize("loss", [Supervised(), SupCon()], ids=repr)
def test_losses_that_read_labels_see_those_of_the_queue(loss):
    session = started(MoCo())
    labels = torch.tensor([2, 0, -1])
    contrast, q, k = step(session, [20, 21, 22], labels=labels)
    queue, queue_y = (held[1:] for held in session.queue.filled())
    expected = contrastive_loss(
        q[0], k[1], loss=loss, similarity=Cosine(0.3), queue=queue, y=labels, queue_y=queue_y
    )
    torch.testing.assert_close(objective_value(contrast, loss, Cosine(0.3)), expected)


# MoCo in a fit


@pytest.mark.parametrize("framework", MOCOS, ids=repr)
def test_no_fit_has_false_positives_of_the_own_sample(framework, monkeypatch):
    session_type = type(framework.start(make_fit(n_samples=99)))
    contrast_of, seen = session_type.contrast, []

    def checked(session, views, similarity, batch):
        held = session.queue.rows[: len(session.queue)].clone()
        contrast = contrast_of(session, views, similarity, batch)
        n_keys = session.queue.keys.shape[1]
        before = len(contrast.candidates) - n_keys * len(held)
        owner = torch.cat([held.new_full((before,), -2), held.repeat_interleave(n_keys)])
        rows = batch.rows.repeat(len(contrast.anchors) // len(batch.rows))
        own = owner == rows[:, None]
        seen.append(int(own.sum()))
        assert not own.scatter(1, contrast.excluded, False).any()
        return contrast

    monkeypatch.setattr(session_type, "contrast", checked)
    embedder = small(framework=framework, batch_size=16, max_epochs=3, warm_start=True)
    embedder.fit(X)
    stops = StopsAfter(4)
    with pytest.raises(KeyboardInterrupt, match="has the state after 4 epochs"):
        embedder.set_params(callbacks=[stops]).fit(X)
    embedder.set_params(callbacks=None).fit(X)
    assert sum(seen) > 0


PARTS = {name: vectors(50, seed=k) for k, name in enumerate("ABC")}


@pytest.mark.parametrize("symmetric", [False, True])
def test_in_a_stream_the_keys_of_earlier_parts_stay_as_negatives_of_everyone(symmetric):
    keeps, n_keys = Keeps("queue"), 1 + symmetric
    framework = MoCo(queue_size=120 * n_keys, symmetric=symmetric)
    embedder = small(framework=framework, loss=SupCon(), callbacks=[keeps], batch_size=20)
    classes = np.arange(50) % 3
    embedder.partial_fit(PARTS["A"], classes)
    assert keeps.after.n_slots == 50 and keeps.after.labels.unique().numel() == 3
    for name, n_slots in [("B", 100), ("A", 120), ("C", 120)]:
        end = keeps.after
        embedder.partial_fit(PARTS[name], classes)
        start = keeps.before
        assert start.n_slots == n_slots and len(start) == len(end)
        assert set(map(tuple, start.filled()[0].tolist())) == set(
            map(tuple, end.filled()[0].tolist())
        )
        assert (start.rows == -1).all() and (start.labels == -1).all()


@pytest.mark.parametrize(
    "before, expected",
    [("", [50] * 5), ("B", [100, 100, 50, 50, 50]), ("BC", [150, 150, 100, 50, 50])],
)
def test_a_part_that_comes_again_continues_with_the_same_queue(before, expected, monkeypatch):
    """Its samples are known, so that none is its own negative; keys of others leave it."""
    keeps = Keeps("queue")
    embedder = small(framework=MoCo(), batch_size=16, callbacks=[keeps])
    for name in [*before, "A"]:
        embedder.partial_fit(PARTS[name])
    session_type, seen = type(MoCo().start(make_fit())), []
    plain = session_type.contrast

    def checked(session, views, similarity, batch):
        contrast = plain(session, views, similarity, batch)
        own = session.queue.rows[: len(session.queue)] == batch.rows[:, None]
        seen.append(own.sum(1).tolist())
        assert not own.scatter(1, contrast.excluded, False).any()
        return contrast

    monkeypatch.setattr(session_type, "contrast", checked)
    n_slots = [keeps.after.n_slots]
    for _ in range(4):
        end = keeps.after
        embedder.partial_fit(PARTS["A"])
        n_slots.append(keeps.before.n_slots)
        if n_slots[-1] == n_slots[-2]:
            for name in ("keys", "rows", "labels"):
                assert torch.equal(getattr(keeps.before, name), getattr(end, name))
    assert set(chain(*seen)) == {0, 1}  # at most one older visit, which is excluded
    assert n_slots == expected


def test_a_stream_may_have_more_room_than_its_first_part_has_samples():
    embedder = small(framework=MoCo(queue_size=500)).partial_fit(PARTS["A"])
    for n in (50, 100):
        assert len(embedder._states["framework"]["state"]["queue.keys"]) == n
        embedder.partial_fit(PARTS["B"])


def test_groups_of_keys_are_those_of_their_samples_and_unknown_for_others():
    groups = np.arange(50) // 10
    keeps = Keeps("queue")
    embedder = small(framework=MoCo(), callbacks=[keeps])
    embedder.partial_fit(PARTS["A"], groups=groups).partial_fit(PARTS["A"], groups=groups)
    held = keeps.session.context.groups_of(keeps.before.rows)
    assert len(held.unique()) == 5 and (held >= 0).all()
    embedder.partial_fit(PARTS["B"], groups=groups)
    assert (keeps.session.context.groups_of(keeps.before.rows) == -1).all()


@pytest.mark.slow
def test_a_fit_of_many_steps_holds_as_many_tensors_as_one_of_few():
    held = []

    def count(session):
        if session.queue.n_seen % len(X):  # the epoch is not over, and keeps a loss per step
            return
        gc.collect()
        held.append(sum(issubclass(type(thing), torch.Tensor) for thing in gc.get_objects()))

    small(
        framework=MoCo(queue_size=30), batch_size=10, max_epochs=4, callbacks=[Watches(count)]
    ).fit(X)
    assert len(held) == 4 and set(held[2:]) == {held[1]}


def test_auto_reads_ranks_and_classes_of_the_queue():
    for y in (None, Y):
        loss = BCL(alpha=Auto(every=1), tau_plus=Auto(every=1))
        embedder = small(framework=MoCo(queue_size=60), loss=loss).fit(X, y)
        assert 0.5 <= embedder.estimates_["alpha"] <= 1


def test_small_sets_and_batches():
    for n, batch_size in [(2, 2), (3, 2), (5, 4)]:
        for framework in (MoCo(), MoCo(symmetric=True)):
            h = small(framework=framework, batch_size=batch_size).fit(X[:n]).transform(X[:n])
            assert np.isfinite(h).all()


@pytest.mark.parametrize("queue_size", ["auto", 500])
def test_a_queue_holds_at_most_one_visit_of_each_sample(queue_size):
    sizes = []
    watch = Watches(lambda session: sizes.append(session.queue.n_slots))
    small(framework=MoCo(queue_size), callbacks=[watch]).fit(X)
    assert set(sizes) == {101}
