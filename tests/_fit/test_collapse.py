"""Collapse is warned of, once; divergence is an error; a low rank is neither."""

import warnings

import networkx as nx
import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import TensorDataset

from skcontrast.callbacks import CollapseWarning
from skcontrast.encoders import MLP
from skcontrast.frameworks import CMC, InfoGraph, MoCo
from skcontrast.kinds import Vectors
from skcontrast.similarity import DotProduct
from tests._fit.common import FailsAfter, Gone
from tests.common import IMAGES, X_DIGITS, images, small, vectors

GRAPHS = [nx.gnp_random_graph(n, 0.4, seed=n) for n in range(5, 35)]


class Collapses(nn.Module):
    """Returns the same for all samples from a step of the training on."""

    def __init__(self, step):
        super().__init__()
        self.layer, self.calls, self.step = nn.Linear(64, 8), 0, step

    def forward(self, x):
        self.calls += self.training
        h = self.layer(x)
        return h * (self.calls < self.step) + 1


def collapses(embedder, X=X_DIGITS):
    """Return the warnings of collapse in a fit."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        embedder.fit(X)
    return [str(w.message) for w in caught if w.category is CollapseWarning]


@pytest.mark.parametrize("epoch, noticed", [(1, 1), (2, 2), (3, 4), (5, 8), (9, 10)])
def test_a_collapse_is_noticed_after_a_power_of_two_or_at_the_end(epoch, noticed):
    embedder = small(encoder=Collapses(epoch), max_epochs=10, batch_size=256)
    (message,) = collapses(embedder)
    assert f"in or before epoch {noticed}: nearly all samples are alike" in message
    assert "effective rank 1.0" in message and "Lower 'lr'" in message


@pytest.mark.parametrize("X", [X_DIGITS, TensorDataset(torch.as_tensor(X_DIGITS))])
def test_a_resumed_fit_notices_it_by_the_samples_of_the_first_batch(X, tmp_path):
    params = {"max_epochs": 5, "batch_size": 256, "checkpoint": tmp_path}
    params["encoder"] = Collapses(4)
    with pytest.raises(Gone):
        small(callbacks=[FailsAfter(2)], **params).fit(X)
    params["encoder"].step = 2  # its steps are counted anew
    (message,) = collapses(small(**params), X)
    assert "in or before epoch 4" in message
    assert not collapses(small(**params), X)


def test_one_that_comes_after_the_epoch_state_is_not_noticed():
    assert not collapses(small(encoder=Collapses(11), max_epochs=10, batch_size=256))


def test_a_collapsed_network_that_trains_on_is_not_warned_of_again():
    embedder = small(encoder=Collapses(1), batch_size=256, warm_start=True)
    assert len(collapses(embedder)) == 1
    assert not collapses(embedder)


def test_a_learning_rate_that_is_far_too_high_collapses_images():
    embedder = small(encoder=None, lr=100.0, optimizer="sgd", max_epochs=4)
    assert len(collapses(embedder, IMAGES)) == 1


ONES = np.ones((30, 4))
HEALTHY = {
    "one feature": (vectors(60, 1), {}),
    "one binary feature": ((vectors(60, 1) > 0).astype(float), {}),
    "two samples": (vectors(2, 5), {}),
    "ten samples": (vectors(10, 5), {}),
    "two different samples": (np.vstack([ONES, np.zeros((30, 4))]), {}),
    "one component": (X_DIGITS, {"n_components": 1}),
    "two components": (X_DIGITS, {"n_components": 2}),
    "a small spread around a large mean": (
        vectors() * 1e-3 + 100,
        {"kind": Vectors(standardize=False)},
    ),
    "images": (images(), {"encoder": None}),
    "graphs": (GRAPHS, {"encoder": None}),
    "nodes": (GRAPHS, {"encoder": None, "framework": InfoGraph()}),
    "a queue": (X_DIGITS, {"framework": MoCo()}),
    "two encoders": (X_DIGITS, {"framework": CMC()}),
    "a high learning rate": (X_DIGITS, {"lr": 1.0, "optimizer": "sgd"}),
    "no head": (X_DIGITS, {"projection_dim": 0}),
}


@pytest.mark.parametrize("X, params", HEALTHY.values(), ids=HEALTHY)
def test_a_low_rank_from_the_beginning_is_no_collapse(X, params):
    assert not collapses(small(max_epochs=10, **params), X)


def test_a_module_draws_the_same_numbers_at_once_and_in_pieces():
    class Drops(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(64, 8)

        def forward(self, x):
            if not self.training:
                return self.layer(x)
            drawn.append(float(torch.rand(())))
            return self.layer(x) * (1 + drawn[-1])

    drawn: list[float] = []
    params = {"encoder": Drops(), "batch_size": 256, "lr_schedule": "constant"}
    small(max_epochs=3, **params).fit(X_DIGITS)
    at_once, drawn[:] = list(drawn), []
    pieces = small(max_epochs=3, **params)
    for _ in range(3):
        pieces.partial_fit(X_DIGITS)
    assert drawn == at_once and len(drawn) == 3


def test_representations_that_are_not_finite_are_left_to_the_check_of_divergence():
    class ReturnsNaN(nn.Linear):
        def forward(self, x):
            return super().forward(x) * torch.nan

    with pytest.raises(ValueError, match="Training diverged"):
        small(encoder=ReturnsNaN(64, 4)).fit(X_DIGITS)


def test_the_check_is_warned_of_at_the_line_of_the_caller():
    with pytest.warns(CollapseWarning) as caught:
        small(encoder=Collapses(1)).fit(X_DIGITS)
    assert caught[0].filename == __file__


@pytest.mark.parametrize("params", [{}, {"max_epochs": 1}, {"framework": MoCo()}], ids=str)
def test_a_fit_that_has_learned_nothing_is_warned_of_once(params):
    dead = nn.Sequential(nn.Linear(64, 8), nn.ReLU())
    nn.init.constant_(dead[0].bias, -1e3)
    for embedder, X in (
        (small(encoder=dead, **params), X_DIGITS),
        (small(augmentation=[], **params), np.ones((40, 64))),
    ):
        (message,) = collapses(embedder, X)
        assert "the same for all samples: the fit has learned nothing" in message


def test_equal_samples_in_the_first_batch_alone_are_no_reason_to_warn():
    X = np.zeros((200, 5))
    X[:10] = vectors(10)
    assert not collapses(small(batch_size=4), X)


# Divergence


class ReturnsNaN(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(64, 4)

    def forward(self, x):
        return self.layer(x) * torch.nan


DIVERGENT = {
    "weight_decay": {"weight_decay": 1e30, "optimizer": "sgd", "max_epochs": 5},
    "lr": {
        "lr": 1e30,
        "encoder": MLP((16,), batch_norm=False),
        "projection_dim": 0,
        "optimizer": "sgd",
        "max_epochs": 5,
    },
    "encoder": {"encoder": ReturnsNaN()},
}


@pytest.mark.parametrize("params", DIVERGENT.values(), ids=DIVERGENT)
def test_divergence_is_an_error_and_never_an_embedding(params):
    embedder = small(**params)
    message = r"diverged in epoch \d+: .*'lr'.*'temperature'.*'augmentation'"
    with pytest.raises(ValueError, match=message):
        embedder.fit(X_DIGITS)
    assert not hasattr(embedder, "encoder_")


@pytest.mark.parametrize("output", ["representation", "projection"])
def test_a_last_step_that_makes_embeddings_infinite_is_divergence(output):
    embedder = small(similarity=DotProduct(), lr=1e3, optimizer="sgd", output=output)
    with pytest.raises(ValueError, match=r"diverged in epoch 2: embeddings are not finite.*'lr'"):
        embedder.fit(vectors())
    assert not hasattr(embedder, "encoder_")
