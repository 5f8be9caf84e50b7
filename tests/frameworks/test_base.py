"""What holds for every framework: continuing, refusals, a custom framework."""

import copy
import pickle

import numpy as np
import pytest
import torch
from sklearn.model_selection import GridSearchCV
from skorch.callbacks import Callback, Checkpoint, LoadInitState
from torch import nn

from skcontrast.encoders import ConvNet
from skcontrast.frameworks import CMC, Framework, KeyQueue, MoCo, SimCLR
from skcontrast.losses import SupCon
from skcontrast.similarity import VonMisesFisher
from tests.common import Trains, TrainsSession, check_every_loss, check_sklearn_contract, small
from tests.frameworks.common import IMAGES, MOCOS, Watches, X, Y, make_fit, random

ALL = [*MOCOS, CMC(), CMC(split=10, n_negatives=20, momentum=0.0)]


class Begins(Callback):
    """Keeps what the session is when training begins."""

    def on_train_begin(self, net, **kwargs):
        self.state = copy.deepcopy(net.criterion_.state_dict())


@pytest.mark.parametrize("framework", ALL, ids=repr)
def test_partial_fit_in_pieces_is_one_fit(framework):
    whole = small(framework=framework, max_epochs=3, lr_schedule="constant", batch_size=32).fit(X)
    pieces = small(framework=framework, max_epochs=3, lr_schedule="constant", batch_size=32)
    for _ in range(3):
        pieces.partial_fit(X)
        pieces = pickle.loads(pickle.dumps(pieces))
    np.testing.assert_array_equal(pieces.transform(X), whole.transform(X))


def test_only_fits_that_can_continue_keep_the_queue():
    assert small(framework=MoCo()).fit(X)._states is None
    assert small(warm_start=True).fit(X)._states["framework"] is None
    embedder = small(framework=MoCo(), warm_start=True).fit(X)
    assert embedder._states["framework"] is not None
    assert vars(embedder.framework_) == MoCo().get_params()
    embedder.set_params(warm_start=False).fit(X)
    assert embedder._states is None


def test_continuing_with_other_samples_or_a_different_framework():
    """Keys stay while they mean something, and their rows while the samples are the same."""
    ends, begins = [], Begins()
    watch = Watches(lambda session: ends.append(copy.deepcopy(session.state_dict())))
    embedder = small(
        framework=MoCo(queue_size=40), warm_start=True, batch_size=16, callbacks=[watch, begins]
    )

    def newest(state):
        """Return the keys of the queue, the newest first."""
        keys = state["queue.keys"]
        order = torch.arange(state["queue._extra_state"])[-len(keys) :].flip(0) % len(keys)
        return keys[order]

    embedder.fit(X)
    last = ends[-1]
    embedder.fit(X[:50])
    assert torch.equal(newest(begins.state), newest(last))
    assert (last["queue.rows"] >= 0).all() and (begins.state["queue.rows"] == -1).all()
    last = ends[-1]
    embedder.set_params(framework__queue_size=30).fit(X[:50])
    assert torch.equal(newest(begins.state), newest(last)[:30])
    assert (begins.state["queue.rows"] >= 0).all()
    # Keys of both views are not keys of one.
    embedder.set_params(framework__symmetric=True).fit(X[:50])
    assert begins.state["queue._extra_state"] == 0
    embedder.set_params(framework=SimCLR()).fit(X)
    assert not any(name.startswith("queue") for name in begins.state)
    embedder.set_params(framework=MoCo(queue_size=30)).fit(X)
    assert begins.state["queue._extra_state"] == 0
    assert embedder.n_epochs_ == 12 and np.isfinite(embedder.transform(X)).all()


@pytest.mark.parametrize("framework", [MoCo(queue_size=40), CMC()], ids=repr)
def test_a_fit_resumes_from_a_checkpoint(framework, tmp_path):
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


@pytest.mark.parametrize("framework", [MoCo(), MoCo(symmetric=True)], ids=repr)
def test_images_in_bf16_are_embedded_nearly_as_in_float32(framework):
    keys = []
    watch = Watches(lambda session: keys.append(session.queue.keys.dtype))
    params = {"encoder": ConvNet(widths=(8,)), "framework": framework, "callbacks": [watch]}
    exact, half = (small(precision=p, **params).fit(IMAGES) for p in ("float32", "bf16"))
    assert set(keys) == {torch.float32}
    h = exact.transform(IMAGES)
    assert half.transform(IMAGES).dtype == h.dtype == np.float32
    difference = np.abs(half.transform(IMAGES) - h)
    assert difference.max() > 0 and difference.mean() < 0.02 * np.abs(h).mean()
    last = exact.history_[-1, "train_loss"]
    assert half.history_[-1, "train_loss"] == pytest.approx(last, rel=0.01)


@pytest.mark.parametrize("framework", ALL, ids=repr)
def test_every_loss_takes_what_a_framework_contrasts(framework, monkeypatch):
    check_every_loss(monkeypatch, small(framework=framework, batch_size=30), X, Y)


def test_grid_search_reaches_into_the_framework():
    search = GridSearchCV(small(framework=MoCo()), {"framework__momentum": [0.5, 0.9]}, cv=2)
    search.fit(X)
    assert search.best_estimator_.framework_.momentum == search.best_params_["framework__momentum"]


# Contract checks; by default, those of test_sklearn_contract and of MoCo on graphs are run


SOME = [
    small(framework=CMC(), max_epochs=1),
    small(
        framework=MoCo(queue_size=8, symmetric=True),
        loss=SupCon(),
        similarity=VonMisesFisher(),
        max_epochs=1,
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize("estimator", SOME, ids=lambda e: repr(e.framework))
def test_estimator_checks(estimator):
    check_sklearn_contract(estimator)


# A custom framework


def test_parameters_of_a_session_are_trained_and_continue():
    seen = []
    watch = Watches(lambda s: seen.append((s.n_updates, s.predictor.weight.detach().clone())))
    embedder = small(framework=Trains(), warm_start=True, callbacks=[watch], lr=0.1, batch_size=60)
    embedder.fit(X)
    assert [n for n, _ in seen] == [1, 2, 3, 4]
    assert not torch.equal(seen[0][1], seen[-1][1])
    embedder.set_params(lr=1e-12).fit(X)
    torch.testing.assert_close(seen[4][1], seen[3][1], rtol=0, atol=1e-6)
    # The optimizer has other parameters now.
    embedder.set_params(framework=None, callbacks=None).fit(X)


class Remembers(Framework):
    """Has a trained parameter and a queue, and resumes as a session does by default."""

    def __init__(self, queue_size=20):
        self.queue_size = queue_size

    def start(self, context):
        session = TrainsSession(context)
        session.queue = KeyQueue(self.queue_size, 1, context.width, context.n_samples)
        return session


def test_a_session_resumes_state_that_still_has_its_shape_and_meaning():
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


class PredictsInto(Framework):
    """Has a trained parameter, whose shape depends on `width`."""

    def __init__(self, width=4):
        self.width = width

    def start(self, context):
        session = TrainsSession(context)
        session.predictor = nn.Linear(context.width, self.width)
        return session


def test_a_session_does_not_resume_a_parameter_of_another_shape():
    old = PredictsInto(4).start(make_fit())
    for width in (4, 5):
        new = PredictsInto(width).start(make_fit())
        before = new.predictor.weight.detach().clone()
        new.resume(old.state_dict(), same_samples=False)
        expected = old.predictor.weight if width == 4 else before
        assert torch.equal(new.predictor.weight, expected)


# Refusals


@pytest.mark.parametrize(
    "framework, message",
    [
        (MoCo(queue_size=1), "'queue_size' parameter of MoCo must be at least 2"),
        (MoCo(queue_size=3, symmetric=True), "must be at least 4, the keys of two samples, got 3"),
        (CMC(split=64), "'split' parameter of CMC: 64 must name .* from 0 to 63, .* not all"),
        (CMC(split=65), "'split' parameter of CMC: 65 must name .* from 0 to 63"),
        (CMC(split=[1, 64]), r"'split' parameter of CMC: \[1, 64\] must name .* from 0 to 63"),
        (CMC(split=[-1]), r"\[-1\] must name .* from 0 to 63"),
        (CMC(split=[1, 1]), "none twice"),
        (CMC(split=[]), "'split' parameter of CMC: must be a name, an int, a list of ints"),
        (CMC(split=[0.5]), "must be a name, an int, a list of ints"),
        (CMC(split="lab"), "'split' parameter of CMC: 'lab' needs images of three channels"),
        (CMC(split="rgb"), "'split' parameter of CMC"),
    ],
    ids=repr,
)
def test_bad_hyperparameters_are_refused_by_name(framework, message):
    with pytest.raises(ValueError, match=message):
        small(framework=framework).fit(X)
