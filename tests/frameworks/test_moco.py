"""MoCo: who is contrasted with whom, and what the queue means in a fit."""

import copy
import gc

import numpy as np
import pytest
import torch
from skorch.callbacks import Callback, Checkpoint

from skcontrast import contrastive_loss
from skcontrast._data._batches import Batch
from skcontrast._objective._functional import objective_value
from skcontrast._runtime import _memory
from skcontrast.frameworks import MoCo
from skcontrast.losses import BCL, HCL, InfoNCE, Ring, SupCon, Supervised
from skcontrast.schedules import Auto
from skcontrast.similarity import Cosine
from tests.common import small, vectors
from tests.frameworks.common import MOCOS, StopsAfter, Watches, X, Y, make_fit, random


def step(session, rows, n_views=2, labels=None, similarity=None):
    """Return a contrast of random samples, and queries and keys as they should be."""
    views = [random(len(rows), 6, seed=v + 17) for v in range(n_views)]
    batch = Batch(views[0], labels=labels, rows=torch.as_tensor(rows))
    contrast = session.contrast(views, similarity or Cosine(0.3), batch)
    network, momentum_network = session.fit.module, session.momentum_network.network
    return contrast, [network(v) for v in views], [momentum_network(v) for v in views]


def started(framework, n_seen=12, **kwargs):
    """Return a session whose queue has seen some samples."""
    session = framework.start(make_fit(**kwargs))
    n_keys = session.queue.keys.shape[1]
    keys = random(n_seen, n_keys, session.fit.width, seed=5)
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
    (gradient,) = torch.autograd.grad(value, session.fit.module.weight)
    (wanted,) = torch.autograd.grad(expected, session.fit.module.weight)
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


def test_in_batch_keys_alongside_the_queue():
    session = started(MoCo(in_batch=True), n_views=3)
    contrast, _, k = step(session, [20, 3, 5], n_views=3)
    assert len(contrast.candidates) == 2 * 3 + 2 * 12
    assert contrast.excluded.tolist() == [[0, 1, 6, 7], [2, 3, 12, 13], [4, 5, 16, 17]]
    keys = torch.cat([torch.stack(k[1:], 1).flatten(0, 1), session.queue.filled()[0]])
    torch.testing.assert_close(contrast.candidates, Cosine(0.3).embed(keys))


def test_the_first_step_is_contrasted_within_the_batch():
    session = MoCo().start(make_fit())
    contrast, _, k = step(session, [4, 0, 9])
    torch.testing.assert_close(contrast.candidates, Cosine(0.3).embed(k[1]))
    assert contrast.excluded.tolist() == [[0], [1], [2]]
    session.update()
    contrast, *_ = step(session, [1, 2, 3])
    torch.testing.assert_close(contrast.candidates, Cosine(0.3).embed(k[1]))


@pytest.mark.parametrize("in_batch", [False, True])
def test_labels_go_with_the_keys(in_batch):
    session = started(MoCo(in_batch=in_batch))
    contrast, *_ = step(session, [20, 3], labels=torch.tensor([2, -1]))
    assert contrast.anchor_labels.tolist() == [2, -1]
    assert contrast.candidate_labels.tolist() == [2, -1] * in_batch + [0, 1, 2] * 4
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
    with pytest.raises(KeyboardInterrupt, match="keeps what it learned in 4 epochs"):
        embedder.set_params(callbacks=[stops]).fit(X)
    embedder.set_params(callbacks=None).fit(X)
    assert sum(seen) > 0


def test_warm_start_continues_with_the_same_queue():
    embedder = small(framework=MoCo(queue_size=40), warm_start=True, batch_size=16)
    states = []
    watch = Watches(lambda session: states.append(copy.deepcopy(session.state_dict())))
    embedder.set_params(callbacks=[watch]).fit(X, None)
    last = states[-1]
    kept = embedder._fitted.framework_state["state"]
    assert kept.keys() == last.keys()
    n_before = len(states)
    embedder.fit(X)
    first, n_new = states[n_before], 15  # 101 samples in batches of 14 and 15
    assert first["queue._extra_state"] == last["queue._extra_state"] + n_new
    slots = torch.arange(first["queue._extra_state"] - n_new, first["queue._extra_state"]) % 40
    is_old = torch.ones(40, dtype=torch.bool)
    is_old[slots] = False
    for name in ("queue.keys", "queue.rows", "queue.labels"):
        torch.testing.assert_close(first[name][is_old], last[name][is_old])


def test_keys_in_the_queue_take_the_new_classes_of_their_samples():
    embedder = small(framework=MoCo(), loss=SupCon(), warm_start=True).fit(X, Y)
    seen = []
    watch = Watches(lambda session: seen.append((session.queue, session.fit)))
    embedder.set_params(callbacks=[watch], batch_size=20, max_epochs=1).fit(X, Y[::-1])
    queue, fit = seen[0]
    classes = fit.class_ids(torch.from_numpy(Y[::-1].copy()))
    assert torch.equal(queue.labels, classes[queue.rows])


class Keeps(Callback):
    """Keeps the queue as it is when the training begins and ends."""

    def on_train_begin(self, net, **kwargs):
        self.before = copy.deepcopy(net.criterion_.queue)

    def on_train_end(self, net, **kwargs):
        self.after = copy.deepcopy(net.criterion_.queue)


PARTS = {name: vectors(50, seed=k) for k, name in enumerate("ABC")}


@pytest.mark.parametrize("symmetric", [False, True])
def test_the_queue_of_a_part_starts_as_the_queue_at_the_end_of_the_part_before(symmetric):
    keeps, n_keys = Keeps(), 1 + symmetric
    framework = MoCo(queue_size=120 * n_keys, symmetric=symmetric)
    embedder = small(framework=framework, callbacks=[keeps], batch_size=20)
    embedder.partial_fit(PARTS["A"])
    sizes = []
    for name in "BABC":
        end = keeps.after
        embedder.partial_fit(PARTS[name])
        start, sizes = keeps.before, [*sizes, keeps.before.n_slots]
        for mark in ("keys", "ids", "labels", "groups"):
            held = [getattr(q, mark)[: len(q)] for q in (start, end)]
            assert torch.equal(*held), mark
    assert sizes == [100, 100, 100, 120]  # at most the different samples, and queue_size


def test_in_a_stream_no_candidate_is_a_key_of_the_anchors_own_sample(monkeypatch):
    embedder = small(framework=MoCo(), batch_size=16)
    embedder.partial_fit(PARTS["A"])
    session_type, seen = type(MoCo().start(make_fit())), []
    plain = session_type.contrast

    def checked(session, views, similarity, batch):
        contrast = plain(session, views, similarity, batch)
        own = session.queue.ids[None] == (session.fit.first_id + batch.rows)[:, None]
        seen.append(int(own.sum()))
        assert not own.scatter(1, contrast.excluded, False).any()
        return contrast

    monkeypatch.setattr(session_type, "contrast", checked)
    for name in "BAACBB":
        embedder.partial_fit(PARTS[name])
    assert sum(seen) > 50


def test_classes_and_groups_are_recognised_by_their_names_in_a_stream():
    keeps = Keeps()
    embedder = small(framework=MoCo(), loss=SupCon(), callbacks=[keeps])
    names = np.array(list("abcde"))
    kinds, scenes = np.arange(50) % 3, np.arange(50) // 10
    embedder.partial_fit(PARTS["A"], names[kinds], groups=scenes)
    embedder.partial_fit(PARTS["B"], names[kinds + 2], groups=scenes + 3.0)
    labels, groups = keeps.after.labels, keeps.after.groups
    by_row = keeps.after.ids.argsort()
    of_A = by_row[:50] if keeps.before.ids.max() < keeps.after.ids.max() else by_row[50:]
    of_B = torch.tensor(sorted(set(range(100)) - set(of_A.tolist())))
    of_B = of_B[keeps.after.ids[of_B].argsort()]
    for marks, first, second in ((labels, kinds, kinds + 2), (groups, scenes, scenes + 3)):
        same = marks[of_A][:, None] == marks[of_B]
        assert np.array_equal(same.numpy(), first[:, None] == second)


def test_a_stream_may_have_more_room_than_its_first_part_has_samples(monkeypatch):
    embedder = small(framework=MoCo(queue_size=500)).partial_fit(PARTS["A"])  # no warning
    assert len(embedder._fitted.framework_state["state"]["queue.keys"]) == 50
    monkeypatch.setattr(_memory, "_bytes_of", lambda device: 4 * 64 * 499)
    with pytest.raises(ValueError, match="'queue_size' parameter of MoCo needs"):
        small(framework=MoCo(queue_size=500)).partial_fit(PARTS["A"])


def test_checkpoints_hold_the_queue(tmp_path):
    checkpoint = Checkpoint(monitor=None, dirname=tmp_path)
    small(framework=MoCo(), callbacks=[checkpoint]).fit(X)
    state = torch.load(tmp_path / "criterion.pt")
    assert state["queue.keys"].shape == (101, 1, 64) and state["queue._extra_state"] == 202


def test_a_fit_of_many_steps_holds_as_many_tensors_as_one_of_few():
    held = []

    def count(session):
        if session.queue.n_seen % len(X):  # the epoch is not over, and keeps a loss per step
            return
        gc.collect()
        held.append(sum(issubclass(type(thing), torch.Tensor) for thing in gc.get_objects()))

    small(
        framework=MoCo(queue_size=30), batch_size=10, max_epochs=6, callbacks=[Watches(count)]
    ).fit(X)
    assert len(held) == 6 and set(held[2:]) == {held[1]}


def test_auto_reads_ranks_and_classes_of_the_queue():
    for y in (None, Y):
        loss = BCL(alpha=Auto(every=1), tau_plus=Auto(every=1))
        embedder = small(framework=MoCo(queue_size=60), loss=loss).fit(X, y)
        assert 0.5 <= embedder.estimates_["alpha"] <= 1


def test_small_sets_and_batches():
    for n, batch_size in [(2, 2), (3, 2), (5, 4)]:
        for framework in (MoCo(), MoCo(symmetric=True, in_batch=True)):
            h = small(framework=framework, batch_size=batch_size).fit(X[:n]).transform(X[:n])
            assert np.isfinite(h).all()


def test_a_queue_larger_than_all_samples_is_reduced_with_a_warning_if_it_was_asked_for():
    with pytest.warns(UserWarning, match="queue_size.* is 500, but 101 samples have 101 keys"):
        small(framework=MoCo(queue_size=500)).fit(X)
    sizes = []
    watch = Watches(lambda session: sizes.append(session.queue.n_slots))
    small(framework=MoCo(), callbacks=[watch]).fit(X)
    assert set(sizes) == {101}
