"""A fit of two processes is the fit of one process that has the whole batch."""

import contextlib
import io
import os
import signal
import threading

import networkx as nx
import numpy as np
import pytest
import torch
from skorch.callbacks import Callback, EarlyStopping
from torch import nn
from torch.utils.data import TensorDataset

from skcontrast._distributed._shared_network import SharedNetwork
from skcontrast._distributed._world import Shares, World
from skcontrast.callbacks import Evaluation
from skcontrast.datasets import Parts
from skcontrast.encoders import GIN, MLP, ConvNet, SeriesNet
from skcontrast.frameworks import CMC, InfoGraph, MoCo
from skcontrast.graphs import pack_graphs
from skcontrast.losses import BCL, DCL, SemiSupCon, SupCon
from skcontrast.schedules import Auto
from tests._distributed.common import CASES, IMAGES, X, Y, rank
from tests.common import Trains, small

pytestmark = pytest.mark.skipif(
    not torch.distributed.is_available(), reason="needs torch.distributed"
)


def result(embedder, X=X):
    """Return all that a fit leaves behind, comparable."""
    state = {
        f"{part}.{name}": tensor.numpy()
        for part, module in (("encoder", embedder.encoder_), ("head", embedder.projector_))
        for name, tensor in module.state_dict().items()
    }
    history = [
        {k: v for k, v in row.items() if k not in ("dur", "batches")} for row in embedder.history_
    ]
    return {"state": state, "history": history, "embedding": embedder.transform(X)}


def fitted(X=X, y=None, metadata=None, **params):
    embedder = small(**{"optimizer": "sgd", "lr": 0.05, **params})
    return result(embedder.fit(X, y, **(metadata or {})), X)


def assert_equal(one, other, atol=0.0):
    """Compare results; with a tolerance where they are equal up to rounding."""
    assert one["state"].keys() == other["state"].keys()
    for name, array in one["state"].items():
        np.testing.assert_allclose(other["state"][name], array, rtol=0, atol=atol, err_msg=name)
    np.testing.assert_allclose(other["embedding"], one["embedding"], rtol=0, atol=10 * atol)
    assert len(one["history"]) == len(other["history"])
    for row, expected in zip(one["history"], other["history"], strict=True):
        assert row == (pytest.approx(expected, rel=10 * atol) if atol else expected)


MORE = {
    **CASES,
    "weights": {"metadata": {"sample_weight": np.arange(101) % 4}},
    "descriptions": {
        "metadata": {"descriptions": np.random.default_rng(0).normal(size=(101, 5))},
        "projection_dim": 5,
    },
    "groups that are no negatives": {"metadata": {"groups": np.arange(101) % 30}},
    "groups of positives": {
        "metadata": {"groups": np.arange(101) % 30},
        "same_group": "positive",
        "batch_size": 40,
    },
    "domains": {"metadata": {"domains": np.arange(101) % 3}, "batch_size": 20},
    "groups and a queue": {
        "metadata": {"groups": np.arange(101) % 30},
        "framework": MoCo(queue_size=40, momentum=0.9),
    },
    "groups and a bank": {
        "metadata": {"groups": np.arange(101) % 30},
        "framework": CMC(n_negatives=30),
        "n_components": 16,
    },
    "a Dataset": {"X": TensorDataset(torch.as_tensor(X)), "batch_size": 40},
    "a Dataset and a queue": {
        "X": TensorDataset(torch.as_tensor(X)),
        "framework": MoCo(queue_size=40, momentum=0.9, symmetric=True),
        "batch_size": 40,
    },
    "a Dataset and a bank": {
        "X": TensorDataset(torch.as_tensor(X)),
        "framework": CMC(n_negatives=30, split=20),
        "n_components": 16,
        "n_views": 3,
    },
    "streamed images": {
        "X": IMAGES,
        "memory_budget": 0,
        "encoder": ConvNet(widths=(4, 8)),
        "precision": "float32",
        "batch_size": 30,
    },
    "streamed, a custom framework": {"framework": Trains(), "memory_budget": 0},
    "auto from labels": {
        "loss": BCL(alpha=Auto(every=1), tau_plus="auto"),
        "y": Y,
        "max_epochs": 3,
    },
    "few labels, spread": {
        "loss": SemiSupCon(every=1, share=0.5),
        "y": np.where(np.arange(101) < 30, Y, -1),
        "batch_size": 40,
        "max_epochs": 3,
    },
    "a queue": {"framework": MoCo(queue_size=40, momentum=0.9), "batch_size": 24, "max_epochs": 3},
    "a queue with labels, both views": {
        "framework": MoCo(momentum=0.5, symmetric=True),
        "loss": SupCon(),
        "y": Y,
    },
    "two encoders and a bank": {"framework": CMC(n_negatives=30), "n_components": 16},
    "images with vectors": {
        "X": Parts(X.reshape(-1, 1, 8, 8), X[:, :20]),
        "framework": CMC(n_negatives=30),
        "encoder": [ConvNet(widths=(4,)), MLP((8,))],
        "n_components": 16,
    },
    "series, some shorter": {
        "X": np.where(
            np.arange(101)[:, None, None] % 9 + np.arange(32) < 36, X.reshape(-1, 2, 32), np.nan
        ),
        "encoder": SeriesNet(widths=(4, 8)),
        "batch_size": 10,
    },
    "a custom framework": {"framework": Trains()},
    "auto from ranks": {"loss": BCL(alpha=Auto(every=2)), "max_epochs": 4, "batch_size": 40},
}


def bonded_graphs(n=31):
    """Return graphs of very different sizes, whose edges have labels and weights."""
    graphs = [nx.gnp_random_graph(2 + (7 * k) % 13, 0.5, seed=k) for k in range(n)]
    for graph in graphs:
        for (u, v), data in graph.edges.items():
            data |= {"label": (u + v) % 3, "weight": 1.0 + u}
    return pack_graphs(graphs)


ON_GRAPHS = {
    "views": {},
    "a queue": {"framework": MoCo(queue_size=20)},
    "nodes against graphs": {"framework": InfoGraph(), "loss": DCL(tau_plus=0.1)},
    "contrastive, nodes against graphs": {"framework": InfoGraph("contrastive"), "y": Y[:31]},
}


@pytest.mark.parametrize("case", ON_GRAPHS)
def test_fit_on_graphs_is_the_fit_of_one_process(ranks, case):
    # Sums over nodes and edges are large, and so is the rounding of gradients.
    params = {"X": bonded_graphs(), "encoder": GIN(width=8), "batch_size": 11, "lr": 0.005}
    params |= ON_GRAPHS[case]
    first, second = ranks(fitted, **params)
    assert_equal(first, second)
    assert_equal(fitted(**params), first, atol=1e-4)


@pytest.mark.parametrize("params", MORE.values(), ids=MORE)
def test_fit_is_the_fit_of_one_process(ranks, params):
    first, second = ranks(fitted, **params)
    assert_equal(first, second)
    assert_equal(fitted(**params), first, atol=2e-5)


def test_adam_shifts_the_embedding_at_most(ranks):
    # The bias of the encoder's last layer, which batch norm takes away again, has a gradient of
    # nothing but rounding, and Adam makes steps of one size of gradients of any size.
    params = {"optimizer": "adam", "lr": 1e-3, "max_epochs": 5}
    first, second = ranks(fitted, **params)
    assert_equal(first, second)
    difference = first["embedding"] - fitted(**params)["embedding"]
    np.testing.assert_allclose(
        difference, np.broadcast_to(difference[0], difference.shape), atol=1e-5
    )
    assert abs(difference).max() < 0.01


def test_bf16(ranks):
    params = {"X": IMAGES, "encoder": ConvNet(widths=(4, 8)), "precision": "bf16", "max_epochs": 3}
    first, second = ranks(fitted, **params)
    assert_equal(first, second)
    losses = [[row["train_loss"] for row in r["history"]] for r in (first, fitted(**params))]
    np.testing.assert_allclose(*losses, rtol=1e-2)


def fitted_again_and_again(**params):
    embedder = small(optimizer="sgd", lr_schedule="constant", **params)
    for _ in range(2):
        embedder.partial_fit(X)
    return result(embedder.set_params(warm_start=True).fit(X))


class Asked(TensorDataset):
    """A Dataset that notes what it was asked for."""

    rows: list = []

    def __getitem__(self, row):
        self.rows.append(row)
        return super().__getitem__(row)


class Epochs(Callback):
    """Keeps what was asked for in each epoch."""

    def on_epoch_begin(self, net, **kwargs):
        Asked.rows.clear()

    def on_epoch_end(self, net, **kwargs):
        self.rows = list(Asked.rows)


def asked_for(framework):
    epochs = Epochs()
    small(framework=framework, batch_size=40, max_epochs=3, callbacks=[epochs]).fit(
        Asked(torch.as_tensor(X))
    )
    return epochs.rows


@pytest.mark.parametrize("framework", [None, MoCo(momentum=0.9), CMC(split=3)], ids=repr)
def test_each_rank_reads_its_share_of_every_epoch(ranks, framework):
    first, second = ranks(asked_for, framework)
    assert abs(len(first) - len(second)) <= 3  # at most one in each of three batches
    assert sorted(first + second) == list(range(101))


def parts_of_a_stream():
    embedder = small(optimizer="sgd", framework=MoCo(queue_size=70), loss=SupCon())
    for part in (slice(50), slice(50, 101), slice(50)):
        data = TensorDataset(torch.as_tensor(X[part]))
        embedder.partial_fit(data, Y[part], groups=np.arange(101)[part] // 5)
    return result(embedder)


def test_a_stream_in_parts_is_the_stream_of_one_process(ranks):
    first, second = ranks(parts_of_a_stream)
    assert_equal(first, second)
    assert_equal(parts_of_a_stream(), first, atol=2e-5)


@pytest.mark.parametrize("framework", [None, MoCo(momentum=0.9)], ids=repr)
def test_partial_fit_and_warm_start_continue(ranks, framework):
    first, second = ranks(fitted_again_and_again, framework=framework)
    assert_equal(first, second)
    assert_equal(fitted_again_and_again(framework=framework), first, atol=2e-5)


# Consistent whatever each rank starts with


def fitted_with_own_seed(random_state):
    if random_state == "RandomState":
        random_state = np.random.RandomState(rank())
    return fitted(random_state=random_state)


@pytest.mark.parametrize("random_state", [None, "RandomState"])
def test_the_seed_is_the_one_of_rank_0(ranks, random_state):
    assert_equal(*ranks(fitted_with_own_seed, random_state))


def test_the_seed_of_an_instance(ranks):
    first, _ = ranks(fitted_with_own_seed, "RandomState")
    assert_equal(fitted(random_state=np.random.RandomState(0)), first, atol=2e-5)


def fitted_with_own_weights():
    module = nn.Sequential(nn.Linear(64, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.5))
    with torch.no_grad():
        module[0].weight.fill_(0.1 + rank()).diagonal().fill_(0)
    return fitted(encoder=module)


def test_the_weights_start_from_those_of_rank_0(ranks):
    assert_equal(*ranks(fitted_with_own_weights))


def dropped():
    masks = []

    class Records(nn.Dropout):
        def forward(self, x):
            if self.training:
                masks.append(super().forward(torch.ones_like(x)).numpy())
            return x

    small(encoder=nn.Sequential(nn.Linear(64, 16), Records()), max_epochs=1).fit(X)
    return masks[-1]


def test_ranks_drop_different_units(ranks):
    first, second = ranks(dropped)
    assert first.shape == second.shape == (101, 16)
    assert not np.array_equal(first, second)


# Together, or not at all


class RaisesOnRank1(Callback):
    """Calls something at the end of epoch 3, on rank 1 only."""

    def __init__(self, action):
        self.action = action

    def on_epoch_end(self, net, **kwargs):
        if rank() == 1 and len(net.history) == 3:
            self.action()


def stop():
    raise KeyboardInterrupt


def test_a_callback_of_one_rank_stops_all(ranks):
    first, second = ranks(fitted, callbacks=[RaisesOnRank1(stop)], max_epochs=6)
    assert len(first["history"]) == 3
    assert_equal(first, second)


def test_early_stopping(ranks):
    stopping = EarlyStopping(monitor="train_loss", patience=2, threshold=10.0)
    first, second = ranks(fitted, callbacks=[stopping], max_epochs=20)
    assert 1 < len(first["history"]) < 20
    assert_equal(first, second)


def score(embedder, X, y=None):
    return -abs(embedder.n_epochs_ - 2)


def evaluated(only_first):
    """Fit with an evaluation on all ranks, or on the first only."""
    evaluation = Evaluation(score, X, patience=2, restore_best=True)
    callbacks = [evaluation] if rank() == 0 or not only_first else None
    return fitted(callbacks=callbacks, max_epochs=9, lr_schedule="constant")


def test_an_evaluation_on_all_ranks_stops_and_restores_them_alike(ranks):
    first, second = ranks(evaluated, False)
    assert [row["score"] for row in first["history"]] == [-1, 0, -1, -2]
    assert_equal(first, second)


def test_an_evaluation_on_the_first_rank_stops_all_and_restores_its_own(ranks):
    first, second = ranks(evaluated, True)
    assert len(first["history"]) == len(second["history"]) == 4
    both, _ = ranks(evaluated, False)
    np.testing.assert_array_equal(first["embedding"], both["embedding"])


class Interrupts(Callback):
    """Presses Ctrl-C in the second step of an epoch, on rank 1 only."""

    steps = 0

    def on_batch_begin(self, net, **kwargs):
        self.steps += 1
        if rank() == 1 and self.steps == 8:
            os.kill(os.getpid(), signal.SIGINT)


def interrupted():
    embedder = small(optimizer="sgd", batch_size=26, max_epochs=10, callbacks=[Interrupts()])
    with pytest.raises(KeyboardInterrupt, match="keeps what it learned in 1 epochs"):
        embedder.fit(X)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    return result(embedder)


def test_an_interrupt_of_one_rank_interrupts_all_at_the_same_step(ranks):
    assert_equal(*ranks(interrupted))


def error_of(**own):
    """Return the message with which fit refuses what differs between the ranks."""
    arguments = {name: values[rank()] for name, values in own.items()}
    X_ = arguments.pop("X", X)
    y = arguments.pop("y", None)
    with pytest.raises(ValueError) as error:
        small(**arguments).fit(X_, y)
    return str(error.value)


def test_errors_that_all_ranks_see(ranks):
    broken = np.full((4, 3), np.nan)
    assert all("NaN" in message for message in ranks(error_of, X=(broken, broken)))
    diverging = {"lr": 1e30, "encoder": MLP((16,), batch_norm=False), "projection_dim": 0}
    own = {name: (value, value) for name, value in {**diverging, "optimizer": "sgd"}.items()}
    assert all("diverged" in message for message in ranks(error_of, **own))


def test_more_processes_than_views_are_refused():
    with pytest.raises(ValueError, match="encodes 4 views, fewer than the 5 processes"):
        SharedNetwork(nn.Identity(), Shares(World(0, 5)))(torch.zeros(4, 3))


# Who prints, who trains alone


def printed():
    with contextlib.redirect_stderr(io.StringIO()) as err, contextlib.redirect_stdout(err):
        small(verbose=1).fit(X)
    return err.getvalue()


def test_only_rank_0_prints(ranks):
    first, second = ranks(printed)
    assert "2/2" in first and second == ""


def fitted_in_a_thread():
    """Fit on rank 0 only."""
    results = []
    thread = threading.Thread(target=lambda: results.append(fitted()))
    if rank() == 0:
        thread.start()
        thread.join()
    return results


def test_a_fit_in_a_thread_is_the_fit_of_one_process(ranks):
    (alone,), _ = ranks(fitted_in_a_thread)
    assert_equal(alone, fitted(), atol=2e-5)
