"""Frameworks: what a queue holds, what a momentum encoder is, who is contrasted with whom."""

import copy
import gc
import pickle
from collections import deque

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks
from skorch.callbacks import Callback, Checkpoint, LoadInitState
from torch import nn
from torch.utils.data import TensorDataset

from skcontrast import contrastive_loss
from skcontrast._data import _memory
from skcontrast._data._batches import Batch
from skcontrast._objective._functional import objective_value
from skcontrast.augmentation import SimCLRAugmentation
from skcontrast.encoders import ConvNet
from skcontrast.frameworks import (
    CMC,
    FitContext,
    Framework,
    KeyQueue,
    MoCo,
    MomentumNetwork,
    SimCLR,
)
from skcontrast.frameworks._bank import Bank
from skcontrast.frameworks._lab import rgb_to_lab
from skcontrast.losses import BCL, DCL, HCL, PUCL, InfoNCE, Ring, SupCon, Supervised
from skcontrast.schedules import Auto
from skcontrast.similarity import Cosine, VonMisesFisher
from tests.common import LOSSES, Trains, TrainsSession, small

X, Y = (array[:101] for array in load_digits(return_X_y=True))
IMAGES = X.reshape(-1, 1, 8, 8)

MOCOS = [
    MoCo(momentum=0.9),
    MoCo(queue_size=20, momentum=0.5),
    MoCo(symmetric=True),
    MoCo(queue_size=64, in_batch=True),
]
ALL = [*MOCOS, CMC(), CMC(split=10, n_negatives=20, momentum=0.0)]


def random(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def make_fit(module=None, n_samples=30, n_views=2, width=4):
    module = module or nn.Linear(6, width)
    return FitContext(
        module=module,
        network=module.__call__,
        prepare=lambda module: module.__call__,
        n_samples=n_samples,
        n_views=n_views,
        batch_size=8,
        width=width,
        device=torch.device("cpu"),
        generator=torch.Generator(),
    )


class Watches(Callback):
    """Calls a function with the session after every step."""

    def __init__(self, function):
        self.function = function

    def on_batch_end(self, net, **kwargs):
        self.function(net.criterion_)


# The queue


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
def test_a_queue_resumed_with_another_size_keeps_the_newest(n_slots, expected):
    queue = resumed(filled_queue(6, [1, 2, 3, 4, 5, 6, 7, 8, 9]), n_slots)
    assert oldest_first(queue) == expected
    queue.push(torch.full((1, 1, 2), 15.0), torch.tensor([15]))
    assert oldest_first(queue) == [*expected, 15][-n_slots:]
    assert queue.rows[queue.own(torch.tensor([9, 15]))[:, 0]].tolist() == [9, 15]


def test_of_samples_visited_twice_the_newest_keys_are_resumed():
    queue = resumed(filled_queue(8, [1, 2, 3, 4, 2, 5, 1]), 8)
    assert oldest_first(queue) == [3, 4, 2, 5, 1]


def test_a_queue_resumed_with_other_samples_forgets_who_its_keys_are_of():
    queue = resumed(filled_queue(6, [1, 2, 3, 4, 5, 6, 7]), 6, same_samples=False)
    assert oldest_first(queue) == [2, 3, 4, 5, 6, 7]
    assert (queue.rows == -1).all() and (queue.labels == -1).all()
    assert len(resumed(queue, 6)) == 6


# The momentum encoder


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


# MoCo's contrast


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


def test_own_older_keys_are_no_negatives():
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


def test_in_batch_keys_beside_the_queue():
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


class StopsAfter(Callback):
    """The user loses patience after some steps of the second epoch."""

    def __init__(self, n_steps):
        self.n_steps = n_steps

    def on_train_begin(self, net, **kwargs):
        self.left = len(net.get_iterator(kwargs["X"])) + self.n_steps

    def on_batch_end(self, net, **kwargs):
        self.left -= 1
        if not self.left:
            self.state = copy.deepcopy(net.criterion_.state_dict())
            net.train_step_single = raises_interrupt  # not notify, which ends the fit in order


class Begins(Callback):
    """Keeps what the session is when training begins."""

    def on_train_begin(self, net, **kwargs):
        self.state = copy.deepcopy(net.criterion_.state_dict())


def raises_interrupt(*args, **kwargs):
    raise KeyboardInterrupt


@pytest.mark.parametrize("framework", [MoCo(queue_size=40), CMC()], ids=repr)
def test_an_interrupted_fit_goes_on_with_the_same_memory(framework):
    stops, begins = StopsAfter(3), Begins()
    embedder = small(framework=framework, warm_start=True, batch_size=16, callbacks=[stops])
    with pytest.raises(KeyboardInterrupt, match="keeps what it learned in 1 epochs"):
        embedder.fit(X)
    embedder.set_params(callbacks=[begins]).fit(X)
    assert embedder.n_epochs_ == 3 and begins.state.keys() == stops.state.keys()
    for name, value in stops.state.items():
        if isinstance(value, torch.Tensor):
            assert torch.equal(begins.state[name], value), name
        else:
            assert begins.state[name] == value


@pytest.mark.parametrize("framework", ALL, ids=repr)
def test_partial_fit_in_pieces_is_one_fit(framework):
    whole = small(framework=framework, max_epochs=3, lr_schedule="constant", batch_size=32).fit(X)
    pieces = small(framework=framework, max_epochs=3, lr_schedule="constant", batch_size=32)
    for _ in range(3):
        pieces.partial_fit(X)
        pieces = pickle.loads(pickle.dumps(pieces))
    np.testing.assert_array_equal(pieces.transform(X), whole.transform(X))


def test_warm_start_goes_on_with_the_same_queue():
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


def test_only_what_goes_on_keeps_the_queue():
    assert small(framework=MoCo()).fit(X)._fitted.framework_state is None
    assert small(warm_start=True).fit(X)._fitted.framework_state is None
    embedder = small(framework=MoCo(), warm_start=True).fit(X)
    assert embedder._fitted.framework_state is not None
    assert vars(embedder.framework_) == MoCo().get_params()
    embedder.set_params(warm_start=False).fit(X)
    assert embedder._fitted.framework_state is None


def test_going_on_with_another_framework_or_other_samples():
    embedder = small(framework=MoCo(), warm_start=True).fit(X)
    embedder.fit(X[:50])
    embedder.set_params(framework=MoCo(symmetric=True, queue_size=30)).fit(X[:50])
    embedder.set_params(framework=SimCLR()).fit(X)
    embedder.set_params(framework=MoCo(queue_size=30)).fit(X)
    assert embedder.n_epochs_ == 10 and np.isfinite(embedder.transform(X)).all()


def test_labels_of_the_queue_do_not_outlive_their_samples():
    embedder = small(framework=MoCo(), loss=SupCon(), warm_start=True).fit(X, Y)
    known = []
    watch = Watches(lambda session: known.append(int((session.queue.labels >= 0).sum())))
    embedder.set_params(callbacks=[watch], batch_size=20, max_epochs=1).fit(X, Y[::-1])
    assert known[0] == 17  # the first of six batches
    known.clear()
    embedder.fit(X, Y[::-1])
    assert known[0] == 101


def test_checkpoints_hold_the_queue(tmp_path):
    checkpoint = Checkpoint(monitor=None, dirname=tmp_path)
    small(framework=MoCo(), callbacks=[checkpoint]).fit(X)
    state = torch.load(tmp_path / "criterion.pt")
    assert state["queue.keys"].shape == (101, 1, 64) and state["queue._extra_state"] == 202


@pytest.mark.parametrize("framework", [MoCo(queue_size=40), CMC()], ids=repr)
def test_a_fit_goes_on_from_a_checkpoint(framework, tmp_path):
    checkpoint, ends = Checkpoint(monitor=None, dirname=tmp_path), []
    watch = Watches(lambda session: ends.append(copy.deepcopy(session.state_dict())))
    params = {"framework": framework, "max_epochs": 3, "batch_size": 60}
    small(callbacks=[checkpoint, watch], **params).fit(X)
    begins = Begins()
    embedder = small(callbacks=[LoadInitState(checkpoint), begins], **params).fit(X)
    name = "queue.keys" if isinstance(framework, MoCo) else "bank.vectors"
    assert torch.equal(begins.state[name], ends[-1][name])
    rates = embedder.history_[:, "lr"]
    assert embedder.n_epochs_ == 6 and rates[3:] == rates[:3]
    assert embedder.history_[3, "train_loss"] != embedder.history_[0, "train_loss"]


def test_a_fit_of_many_steps_holds_no_more_than_one_of_few():
    held = []

    def count(session):
        if session.queue.n_seen % len(X):  # the epoch goes on, and keeps a loss per step
            return
        gc.collect()
        held.append(sum(issubclass(type(thing), torch.Tensor) for thing in gc.get_objects()))

    small(
        framework=MoCo(queue_size=30), batch_size=10, max_epochs=6, callbacks=[Watches(count)]
    ).fit(X)
    assert len(held) == 6 and set(held[2:]) == {held[1]}


def test_the_same_in_pieces_from_a_dataset_and_with_three_views():
    params = {"framework": MoCo(queue_size=40), "n_views": 3, "batch_size": 20}
    expected = small(**params).fit(X).transform(X)
    dataset = TensorDataset(torch.as_tensor(X))
    np.testing.assert_array_equal(small(**params).fit(dataset).transform(X), expected)


@pytest.mark.parametrize("precision", ["float32", "bf16"])
def test_images_in_every_precision(precision):
    embedder = small(encoder=ConvNet(widths=(8,)), framework=MoCo(), precision=precision)
    assert np.isfinite(embedder.fit(IMAGES).transform(IMAGES)).all()


def test_auto_reads_ranks_and_classes_of_the_queue():
    for y in (None, Y):
        loss = BCL(alpha=Auto(every=1), tau_plus=Auto(every=1))
        embedder = small(framework=MoCo(queue_size=60), loss=loss).fit(X, y)
        assert 0.5 <= embedder.estimates_["alpha"] <= 1


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("framework", ALL, ids=repr)
def test_every_loss_with_every_framework(loss, framework):
    embedder = small(loss=loss, framework=framework, batch_size=30)
    h = embedder.fit(X, Y).transform(X)
    assert np.isfinite(h).all() and np.isfinite(embedder.history_[:, "train_loss"]).all()


def test_grid_search_reaches_into_the_framework():
    search = GridSearchCV(small(framework=MoCo()), {"framework__momentum": [0.5, 0.9]}, cv=2)
    search.fit(X)
    assert search.best_estimator_.framework_.momentum == search.best_params_["framework__momentum"]


def test_small_sets_and_batches():
    for n, batch_size in [(2, 2), (3, 2), (5, 4)]:
        for framework in (MoCo(), MoCo(symmetric=True, in_batch=True)):
            h = small(framework=framework, batch_size=batch_size).fit(X[:n]).transform(X[:n])
            assert np.isfinite(h).all()


# The bank and the parts of CMC


@pytest.mark.parametrize("momentum", [0.0, 0.5, 1.0])
def test_bank_update_rule(momentum):
    bank = Bank(6, 3, momentum)
    first, second = random(2, 1, 2, 3), random(2, 3, 2, 3, seed=1)
    rows = torch.tensor([4, 1])
    bank.update(first, rows, torch.tensor([7, -1]))
    unit = torch.nn.functional.normalize
    torch.testing.assert_close(bank.vectors[:, rows], unit(first[:, 0], dim=-1))
    assert bank.labels.tolist() == [-1, -1, -1, -1, 7, -1]
    bank.update(second, rows.flip(0))
    new = unit(unit(second, dim=-1).mean(1), dim=-1).flip(1)
    expected = unit(momentum * unit(first[:, 0], dim=-1) + (1 - momentum) * new, dim=-1)
    torch.testing.assert_close(bank.vectors[:, rows], expected)
    assert bank.n_visited == 2 and bank.visited.tolist() == [4, 1, -1, -1, -1, -1]
    assert (bank.vectors[:, [0, 2, 3, 5]] == 0).all()


@pytest.mark.parametrize("n", [2, 5, 12, 13, 30])
def test_drawn_vectors_are_all_different_and_the_own_one_is_named(n):
    bank, generator, own_is_drawn = Bank(20, 1, 0.5), torch.Generator().manual_seed(0), 0
    rows = torch.randperm(20, generator=generator)[:13]
    for part in rows.split(5):
        bank.update(part.view(1, 1, -1, 1).expand(2, 1, -1, 1) + 1.0, part, part)
    for _ in range(20):
        vectors, own, labels = bank.draw(n, torch.arange(20), generator)
        assert vectors.shape == (2, min(n, 13), 1) and labels.unique().numel() == min(n, 13)
        assert set(labels.tolist()) <= set(rows.tolist())
        for row, (column,) in enumerate(own.tolist()):
            assert labels[column] == row if row in labels else column == len(labels) - 1
            own_is_drawn += row in labels
    assert own_is_drawn == 20 * min(n, 13)


def started_cmc(n_negatives=8, **kwargs):
    module = nn.Linear(6, 8)
    return CMC(n_negatives=n_negatives).start(make_fit(module, width=8, **kwargs))


def test_each_part_is_contrasted_with_the_bank_of_the_other():
    session = started_cmc(n_negatives=29)
    session.bank.update(random(2, 2, 30, 4), torch.arange(30))
    views, rows = [random(3, 6, seed=v) for v in range(2)], torch.tensor([4, 0, 29])
    contrasts = session.contrast(views, Cosine(0.3), Batch(views[0], rows=rows))
    z = torch.stack([session.fit.module(view) for view in views])
    for part, contrast in enumerate(contrasts):
        anchors, keys = z[..., 4 * part :][..., :4], z[..., 4 * (1 - part) :][..., :4]
        others = [
            contrastive_loss(
                anchors[v, [i]], *keys[:, [i]], queue=bank[torch.arange(30) != row],
                similarity=Cosine(0.3),
            )
            for bank in [session.bank.vectors[1 - part]]
            for v in range(2)
            for i, row in enumerate(rows)
        ]  # fmt: skip
        value = objective_value(contrast, InfoNCE(), Cosine(0.3))
        torch.testing.assert_close(value, torch.stack(others).mean())


def test_the_first_negatives_of_a_bank_are_those_of_the_batch():
    session = started_cmc()
    views, rows = [random(3, 6, seed=v) for v in range(2)], torch.tensor([4, 0, 29])
    batch = Batch(views[0], rows=rows)
    first, second = session.contrast(views, Cosine(0.3), batch)
    z = session.fit.module(views[0]).detach()
    torch.testing.assert_close(first.candidates, Cosine(0.3).embed(z[:, 4:]))
    torch.testing.assert_close(second.candidates, Cosine(0.3).embed(z[:, :4]))
    session.update()
    first, _ = session.contrast(views, Cosine(0.3), batch)
    assert first.candidates.shape == (3, 4) and not first.candidates.requires_grad
    assert first.excluded[:, 0].unique().numel() == 3


@pytest.mark.parametrize(
    "rgb, lab",
    [
        ((0, 0, 0), (0, 0, 0)),
        ((255, 255, 255), (100, 0, 0)),
        ((255, 0, 0), (53.24, 80.09, 67.20)),
        ((0, 255, 0), (87.73, -86.18, 83.18)),
        ((0, 0, 255), (32.30, 79.19, -107.86)),
        ((119, 119, 119), (50.03, 0, 0)),
        ((1, 1, 1), (0.27, 0, 0)),
    ],
)
def test_rgb_to_lab(rgb, lab):
    image = torch.tensor(rgb, dtype=torch.uint8).view(1, 3, 1, 1).expand(2, 3, 4, 5)
    expected = torch.tensor(lab, dtype=torch.float32).view(1, 3, 1, 1).expand(2, 3, 4, 5)
    torch.testing.assert_close(rgb_to_lab(image), expected, rtol=0, atol=0.02)
    as_float = (image / 255).requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        converted = rgb_to_lab(as_float)
    torch.testing.assert_close(converted, rgb_to_lab(image))
    converted.sum().backward()
    assert as_float.grad.isfinite().all()


def halves(embedder, X):
    """Return the representation, encoder by encoder."""
    return np.split(embedder.transform(X), 2, axis=1)


def test_transform_is_both_encoders_side_by_side():
    rng = np.random.default_rng(0)
    changed = X.copy()
    changed[:, 10:] = rng.permuted(X[:, 10:], axis=0)
    embedder = small(framework=CMC(split=10)).fit(X)
    (first, second), (same, other) = halves(embedder, X), halves(embedder, changed)
    np.testing.assert_array_equal(first, same)
    assert not np.allclose(second, other)
    assert embedder.get_feature_names_out().shape == (first.shape[1] * 2,)
    projected = embedder.set_params(output="projection").transform(X)
    assert projected.shape == (101, 2 * 64) and np.isfinite(embedder.score(X))


def test_lab_contrasts_lightness_with_colour():
    images = np.random.default_rng(0).integers(0, 256, size=(20, 3, 6, 6), dtype=np.uint8)
    grey = images[:, :1].repeat(3, 1)
    embedder = small(encoder=ConvNet(widths=(4,)), framework=CMC()).fit(images)
    light, colour = halves(embedder, grey)
    np.testing.assert_allclose(colour, colour[:1].repeat(20, 0), atol=1e-3)
    assert light.std(axis=0).max() > 1e-3
    first, second = (net(torch.zeros(2, c, 6, 6)) for net, c in zip(
        embedder.encoder_[-1].networks, (1, 2), strict=True
    ))  # fmt: skip
    assert first.shape == second.shape
    for precision in ("float32", "bf16"):
        fitted = clone(embedder).set_params(precision=precision).fit(images / 255)
        assert np.isfinite(fitted.transform(images / 255)).all()


@pytest.mark.parametrize("split", [1, 63, [0], [5, 3, 60], np.array([1, 2]), "random", "auto"])
def test_splits_cut_all_features_in_two(split):
    one = small(framework=CMC(split=split)).fit(X)
    first, second = one.encoder_[-1].split.first, one.encoder_[-1].split.second
    assert sorted([*first.tolist(), *second.tolist()]) == list(range(64))
    if isinstance(split, int):
        assert first.tolist() == list(range(split))
    elif isinstance(split, str):
        again = small(framework=CMC(split=split)).fit(X).encoder_[-1].split.first
        other = small(framework=CMC(split=split), random_state=1).fit(X).encoder_[-1].split.first
        assert len(first) == 32 and torch.equal(first, again) and not torch.equal(first, other)
    else:
        assert first.tolist() == list(split)


def test_a_pair_of_arrays_is_their_concatenation_and_a_split():
    pair = X[:, :20], X[:, 20:].astype(np.float32)
    whole = small(framework=CMC(split=20)).fit(X)
    embedder = small(framework=CMC()).fit(pair)
    np.testing.assert_array_equal(embedder.transform(pair), whole.transform(X))
    np.testing.assert_array_equal(embedder.transform(X), whole.transform(X))
    assert embedder.score(pair) == whole.score(X)
    grey, colour = IMAGES[:, 0], np.concatenate([IMAGES, IMAGES], 1)
    images = small(encoder=ConvNet(widths=(4,)), framework=CMC()).fit((grey, colour))
    assert images.transform((grey, colour)).shape[0] == 101
    assert [part.shape for part in images.encoder_[-1].split.buffers()] == [(1,), (2,)]


@pytest.mark.parametrize(
    "framework, as_pair, is_mixed",
    [(CMC(), False, True), (CMC(), True, False), (CMC(split=1), False, False)],
)
def test_default_views_mix_no_channels_that_are_contrasted(framework, as_pair, is_mixed):
    images = np.random.default_rng(0).random((20, 3, 6, 6))
    data = (images[:, 0], images[:, 1:]) if as_pair else images
    embedder = small(encoder=ConvNet(widths=(4,)), framework=framework).fit(data)
    assert isinstance(embedder.augmentation_[0], SimCLRAugmentation) == is_mixed


def test_a_pair_must_be_cut_as_in_fit():
    pair, other = ((X[:, :k], X[:, k:]) for k in (20, 30))
    embedder = small(framework=CMC(split=20)).fit(X)
    np.testing.assert_array_equal(embedder.transform(pair), embedder.transform(X))
    with pytest.raises(ValueError, match=r"pair X has 30 .*, in fit it had 20"):
        embedder.transform(other)
    for split in ("random", [5, 3]):
        embedder = small(framework=CMC(split=split)).fit(X)
        with pytest.raises(ValueError, match="X is a pair of arrays, but in fit it was one"):
            embedder.transform(pair)


def test_going_on_with_the_same_split_written_otherwise():
    embedder = small(framework=CMC(split=[0, 1]), warm_start=True).fit(X)
    embedder.set_params(framework__split=np.array([0, 1])).fit(X)
    with pytest.raises(ValueError, match=r"from CMC\(split=\[0, 1\]\) to CMC\(split=2\)"):
        embedder.set_params(framework__split=np.int64(2)).fit(X)


def test_warm_start_goes_on_with_the_same_bank_if_the_samples_are_the_same():
    embedder = small(framework=CMC(), warm_start=True).fit(X)
    states = []
    watch = Watches(lambda session: states.append(copy.deepcopy(session.bank.state_dict())))
    embedder.set_params(callbacks=[watch], batch_size=20)
    last = embedder._fitted.framework_state["state"]["bank.vectors"].clone()
    embedder.fit(X)
    unmoved = (states[0]["vectors"] == last).all(-1).all(0)
    assert unmoved.sum() == 101 - 17 and states[0]["_extra_state"] == 101
    states.clear()
    embedder.fit(X[::-1])
    assert states[0]["_extra_state"] == 17 and embedder.n_epochs_ == 6


def test_descriptions_are_as_wide_as_one_head():
    embedder = small(framework=CMC(), projection_dim=5)
    descriptions = np.random.default_rng(0).normal(size=(101, 5))
    assert np.isfinite(embedder.fit(X, descriptions=descriptions).transform(X)).all()
    with pytest.raises(ValueError, match=r"descriptions must have shape \(n_samples, 5\)"):
        embedder.fit(X, descriptions=np.ones((101, 10)))


def test_a_draw_larger_than_the_bank_is_reduced_with_a_warning_if_it_was_asked_for():
    with pytest.warns(UserWarning, match="'n_negatives' parameter of CMC is 101.* 100 other"):
        small(framework=CMC(n_negatives=101)).fit(X)


def test_grid_search_over_splits():
    grid = {"framework__split": [10, 30], "framework__momentum": [0.5]}
    search = GridSearchCV(small(framework=CMC()), grid, cv=2, error_score="raise").fit(X)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


# Contract checks: some of the product by default, all of it among the slow tests

SOME = [
    *[small(framework=f, similarity=VonMisesFisher()) for f in [MoCo(), CMC()]],
    small(framework=MoCo(), loss=PUCL()),
    small(framework=CMC(), loss=HCL()),
    small(framework=MoCo(queue_size=8, symmetric=True, in_batch=True), loss=SupCon()),
]
PRODUCT = [small(framework=f, loss=loss) for f in [MoCo(), CMC()] for loss in LOSSES]


@pytest.mark.filterwarnings("ignore:The 'queue_size' parameter of MoCo is 8")
@parametrize_with_checks(SOME)
def test_estimator_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(PRODUCT)
def test_estimator_checks_of_every_loss(estimator, check):
    check(estimator)


# A framework of one's own


def test_parameters_of_a_session_are_trained_and_go_on():
    seen = []
    watch = Watches(lambda s: seen.append((s.n_updates, s.predictor.weight.detach().clone())))
    embedder = small(framework=Trains(), warm_start=True, callbacks=[watch], lr=0.1, batch_size=60)
    embedder.fit(X)
    assert [n for n, _ in seen] == [1, 2, 3, 4]
    assert not torch.equal(seen[0][1], seen[-1][1])
    embedder.set_params(lr=1e-12).fit(X)
    torch.testing.assert_close(seen[4][1], seen[3][1], rtol=0, atol=1e-6)
    embedder.set_params(framework=None, callbacks=None).fit(
        X
    )  # the optimizer has other parameters now


class Remembers(Framework):
    """Has a trained parameter and a queue, and resumes as a session does by default."""

    def __init__(self, queue_size=20):
        self.queue_size = queue_size

    def start(self, fit):
        session = TrainsSession(fit)
        session.queue = KeyQueue(self.queue_size, 1, fit.width, fit.n_samples)
        return session


def test_a_session_resumes_what_still_has_its_shape_and_meaning():
    old = Remembers().start(make_fit())
    old.queue.push(random(6, 1, 4), torch.arange(6))
    state = old.state_dict()
    for new, same_samples, is_whole in [
        (Remembers().start(make_fit()), True, True),
        (Remembers().start(make_fit()), False, False),
        (Remembers(10).start(make_fit()), True, False),
    ]:
        new.resume(state, same_samples)
        assert torch.equal(new.predictor.weight, old.predictor.weight)
        assert new.queue.n_seen == 6 * is_whole
    embedder = small(framework=Remembers(20), warm_start=True).fit(X)
    embedder.set_params(framework__queue_size=10).fit(X)


def test_a_session_starts_from_the_random_state_and_leaves_the_global_one():
    torch.manual_seed(3)
    before = torch.get_rng_state()
    first, second = (small(framework=Trains()).fit(X).transform(X) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert torch.equal(torch.get_rng_state(), before)


# Refusals


@pytest.mark.parametrize(
    "framework, message",
    [
        (MoCo(momentum=1.5), r"'momentum' parameter of MoCo must be a float in .* \[0\.0, 1\.0\]"),
        (MoCo(momentum=-0.1), "'momentum' parameter of MoCo"),
        (MoCo(queue_size=0), "'queue_size' parameter of MoCo"),
        (MoCo(queue_size="all"), "'queue_size' parameter of MoCo"),
        (MoCo(queue_size=1), "'queue_size' parameter of MoCo must be at least 2"),
        (MoCo(queue_size=3, symmetric=True), "must be at least 4, the keys of two samples, got 3"),
        (MoCo(symmetric="yes"), "'symmetric' parameter of MoCo"),
        (CMC(momentum=1.01), "'momentum' parameter of CMC"),
        (CMC(n_negatives=0), "'n_negatives' parameter of CMC"),
        (CMC(split=0), "'split' parameter of CMC"),
        (CMC(split=64), "'split' parameter of CMC: 64 must leave some of 64"),
        (CMC(split=65), "'split' parameter of CMC: 65 is out of the range of 64 features"),
        (CMC(split=[1, 64]), r"'split' parameter of CMC: \[1, 64\] is out of the range of 64"),
        (CMC(split=[-1]), r"\[-1\] is out of the range of 64"),
        (CMC(split=[1, 1]), "name none twice"),
        (CMC(split=[]), "'split' parameter of CMC: must be an int or a list of ints"),
        (CMC(split=[0.5]), "must be an int or a list of ints"),
        (CMC(split="lab"), "'split' parameter of CMC: 'lab' needs images of three channels"),
        (CMC(split="rgb"), "'split' parameter of CMC"),
    ],
    ids=repr,
)
def test_bad_hyperparameters_are_refused_by_name(framework, message):
    with pytest.raises(ValueError, match=message):
        small(framework=framework).fit(X)


def test_a_queue_larger_than_all_samples_is_reduced_with_a_warning_if_it_was_asked_for():
    with pytest.warns(UserWarning, match="queue_size.* is 500, but 101 samples have 101 keys"):
        small(framework=MoCo(queue_size=500)).fit(X)
    sizes = []
    watch = Watches(lambda session: sizes.append(session.queue.n_slots))
    small(framework=MoCo(), callbacks=[watch]).fit(X)
    assert set(sizes) == {101}


def test_a_queue_larger_than_the_memory_is_refused(monkeypatch):
    monkeypatch.setattr(_memory, "_bytes_of", lambda device: 1000)
    with pytest.raises(ValueError, match=r"'queue_size' parameter of MoCo needs .* GB on cpu"):
        small(framework=MoCo()).fit(X)


def test_a_bank_larger_than_the_memory_is_refused(monkeypatch):
    monkeypatch.setattr(_memory, "_bytes_of", lambda device: 1000)
    with pytest.raises(ValueError, match=r"The memory bank of CMC needs .* GB on cpu"):
        small(framework=CMC()).fit(X)


@pytest.mark.parametrize(
    "pair, message",
    [
        ((X, X[:50]), "same samples: the first has 101, the second 50"),
        ((X, IMAGES), "vectors both, or images of one height and width both"),
        ((IMAGES, IMAGES[..., 1:]), "images of one height and width both"),
        ((X, X, X), "a pair of arrays, got a tuple of 3"),
        ((None, X), "X must be an array of samples, got None"),
        ((csr_matrix(X), X), "must hold two arrays of samples, got csr_matrix and ndarray"),
        ((TensorDataset(torch.tensor(X)), X), "two arrays of samples, got TensorDataset and"),
        ((X[:, :3], X[:, 3:]), "in fit it had 20|first array of the pair X has 3"),
        ((X[:, :20], np.full_like(X[:, 20:], np.nan)), "NaN"),
    ],
)
def test_bad_pairs_are_refused(pair, message):
    embedder = small(framework=CMC(), warm_start=True).fit((X[:, :20], X[:, 20:]))
    with pytest.raises(ValueError, match=message):
        embedder.fit(pair)
    with pytest.raises(ValueError, match=message):
        embedder.transform(pair)


@pytest.mark.parametrize("framework", [None, MoCo(), CMC()], ids=repr)
def test_what_might_be_a_pair_is_refused_with_a_hint(framework):
    pair = [X[:, :20], X[:, 20:]]
    pair = pair if isinstance(framework, CMC) else tuple(pair)
    with pytest.raises(
        ValueError, match=r"A pair of arrays must be a tuple, .* framework=CMC\(\)"
    ):
        small(framework=framework).fit(pair)


def test_what_does_not_go_with_two_encoders_is_refused():
    with pytest.raises(ValueError, match=r"X is a pair of arrays.*pass split='auto'"):
        small(framework=CMC(split=3)).fit((X, X))
    with pytest.raises(ValueError, match="'auto' needs vectors or images of three channels"):
        small(framework=CMC(), encoder=None).fit(IMAGES)
    with pytest.raises(ValueError, match="failed on samples of shape"):
        small(framework=CMC(), encoder=nn.Linear(64, 5)).fit(X)
    with pytest.raises(ValueError, match="return 10 and 54 components"):
        small(framework=CMC(split=10), encoder=lambda s: nn.Identity(), projection_dim=0).fit(X)
    embedder = small(warm_start=True).fit(X)
    with pytest.raises(ValueError, match="'framework' parameter of ContrastiveEmbedder has chang"):
        embedder.set_params(framework=CMC()).fit(X)


def test_a_framework_class_is_refused():
    with pytest.raises(TypeError, match=r"Write framework=MoCo\(\) instead"):
        small(framework=MoCo, loss=DCL()).fit(X)
