"""A fit knows whether training has raised the score without labels, and warns if it has not."""

import warnings

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from skorch.callbacks import Callback
from torch import nn
from torch.utils.data import TensorDataset

from skcontrast import load, save
from skcontrast._fit import _improvement
from skcontrast.augmentation import GaussianNoise
from skcontrast.callbacks import CollapseWarning
from skcontrast.kinds import Kind
from tests.common import X_DIGITS, small

LONG = {"max_epochs": 10, "batch_size": 100, "lr": 0.02}  # 20 steps
DESTROYS = GaussianNoise(scale=100.0)


@pytest.fixture(autouse=True)
def fits_of_20_steps_are_long(monkeypatch):
    assert _improvement._LEAST_STEPS == 100
    monkeypatch.setattr(_improvement, "_LEAST_STEPS", 20)


def messages(embedder, X=X_DIGITS, fit="fit"):
    """Return the warnings of a fit that did not improve."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        getattr(embedder, fit)(X)
    return [str(w.message) for w in caught if "has not improved" in str(w.message)]


@pytest.fixture
def scores(monkeypatch):
    """Return the list of the scores that fits will measure."""
    found, score = [], _improvement._score

    def recorded(*args):
        found.append(score(*args))
        return found[-1]

    monkeypatch.setattr(_improvement, "_score", recorded)
    return found


def test_the_improvement_is_the_score_after_training_minus_that_before(scores):
    torch.manual_seed(0)
    encoder = nn.Sequential(nn.Linear(64, 16), nn.ReLU())
    embedder = small(**LONG, encoder=encoder).fit(X_DIGITS)
    untrained = small(encoder=encoder, max_epochs=1, lr=1e-12).fit(X_DIGITS)
    start, end = scores
    assert start == pytest.approx(untrained.score(X_DIGITS)) and end == embedder.score(X_DIGITS)
    assert embedder.improvement_ == end - start > 0.01


def test_at_most_256_samples_are_scored_evenly_spread(scores):
    X = load_digits().data[:1000]
    embedder = small(max_epochs=5).fit(X)
    assert scores[-1] == embedder.score(X[::4])


def test_a_fit_whose_views_destroy_the_samples_warns_of_both_scores(scores):
    embedder = small(**LONG, augmentation=DESTROYS)
    (message,) = messages(embedder)
    assert all(f"{score:.3f}" in message for score in scores)
    assert embedder.improvement_ < 0.01 and "compare_with_baselines" in message


@pytest.mark.parametrize("start, end", [(0.050, 0.059), (0.9, 0.2)])
def test_the_warning_says_what_it_compares_and_its_margin(start, end, monkeypatch):
    scores = iter([start, end])
    monkeypatch.setattr(_improvement, "_score", lambda *args: next(scores))
    (message,) = messages(small(**LONG))
    assert message.startswith(
        "Training has not improved the score without labels by 0.01 or more, and less is noise: "
        f"of training samples, it was {start:.3f} and is {end:.3f}."
    )


def test_a_good_fit_does_not_warn():
    assert not messages(small(**LONG))


@pytest.mark.parametrize(
    "params, n",
    [
        ({"max_epochs": 9, "batch_size": 100}, 200),
        ({"max_epochs": 1, "batch_size": 2}, 200),
        ({"max_epochs": 20}, 49),
    ],
    ids=["few steps", "one epoch", "few samples"],
)
def test_where_it_would_be_noise_it_is_none(params, n):
    embedder = small(augmentation=DESTROYS, **params)
    assert not messages(embedder, X_DIGITS[:n]) and embedder.improvement_ is None


def test_after_partial_fit_and_in_an_embedder_from_a_file_it_is_none(tmp_path):
    embedder = small(**LONG).fit(X_DIGITS)
    save(embedder, tmp_path / "embedder.safetensors")
    assert load(tmp_path / "embedder.safetensors").improvement_ is None
    assert not messages(embedder, fit="partial_fit") and embedder.improvement_ is None


def test_a_fit_that_continues_another_knows_its_own_improvement_and_does_not_warn():
    embedder = small(**LONG, warm_start=True).fit(X_DIGITS)
    first = embedder.improvement_
    assert not messages(embedder.set_params(augmentation=DESTROYS))
    assert embedder.improvement_ < first


class Rows(Kind):
    """Rows of numbers, without default views."""

    name = "rows"

    def check(self, X):
        return np.asarray(X, dtype=np.float32)

    def to_tensor(self, X, device):
        return torch.from_numpy(X).to(device)


def test_the_samples_themselves_are_no_views():
    embedder = small(**LONG, kind=Rows(), encoder=nn.Linear(64, 8), augmentation=[])
    assert not messages(embedder) and embedder.improvement_ is None


class Overflows(nn.Linear):
    """Returns infinity for samples in inference mode until it has been trained."""

    def forward(self, x):
        h = super().forward(x)
        self.trained = getattr(self, "trained", False) or self.training
        return h if self.trained else h / 0


def test_a_start_that_is_not_finite_has_no_score():
    embedder = small(**LONG, encoder=Overflows(64, 8))
    assert not messages(embedder) and embedder.improvement_ is None


def test_a_projection_is_scored_where_transform_returns_it(scores):
    embedder = small(**LONG, output="projection").fit(X_DIGITS)
    assert scores[-1] == embedder.score(X_DIGITS)
    assert scores[-1] != embedder.set_params(output="representation").score(X_DIGITS)


class Forgets(nn.Linear):
    """Returns the same for all samples after some steps of the training."""

    calls = 0

    def forward(self, x):
        self.calls += self.training
        return super().forward(x) * (self.calls < 5) + 1


def test_a_collapse_is_told_once():
    embedder = small(**LONG, encoder=Forgets(64, 8))
    with pytest.warns(CollapseWarning) as caught:
        embedder.fit(X_DIGITS)
    assert len(caught) == 1 and embedder.improvement_ < 0


def test_measuring_leaves_the_fit_as_it_is(monkeypatch):
    embedder = small(**LONG, encoder=nn.Sequential(nn.Linear(64, 8), nn.Dropout(0.3)))
    measured = embedder.fit(X_DIGITS).transform(X_DIGITS)
    monkeypatch.setattr(_improvement, "_score", lambda *args: None)
    embedder.fit(X_DIGITS)
    assert embedder.improvement_ is None
    np.testing.assert_array_equal(embedder.transform(X_DIGITS), measured)


class Stops(Callback):
    """Ends a fit by an error after some epochs, once."""

    is_due = False

    def on_epoch_end(self, net, **kwargs):
        if Stops.is_due and len(net.history) == 7:
            Stops.is_due = False
            raise RuntimeError("killed")


def test_a_resumed_fit_and_a_finished_one_know_the_same_improvement(tmp_path):
    X, params = (
        TensorDataset(torch.as_tensor(X_DIGITS)),
        {**LONG, "checkpoint": tmp_path, "callbacks": [Stops()]},
    )
    whole = small(**LONG).fit(X).improvement_
    Stops.is_due = True
    with pytest.raises(RuntimeError, match="killed"):
        small(**params).fit(X)
    for _ in range(2):
        assert small(**params).fit(X).improvement_ == whole
