"""The training loop: history, schedules, callbacks."""

import numpy as np
import pytest
import torch
from skorch.callbacks import (
    Callback,
    Checkpoint,
    EarlyStopping,
    LRScheduler,
    PrintLog,
    TrainEndCheckpoint,
)
from torch import nn

from skcontrast._fit._net import epoch_seeds  # private: the seeds of epochs
from skcontrast.losses import DCL, HCL
from skcontrast.schedules import CosineDecay, Linear, Steps
from skcontrast.similarity import Cosine
from tests.common import X_DIGITS, small


def test_training_lowers_the_loss_and_is_recorded():
    embedder = small(max_epochs=15, loss=DCL()).fit(X_DIGITS)
    losses = embedder.history_[:, "train_loss"]
    assert len(losses) == embedder.n_epochs_ == 15
    assert losses[-1] < losses[0]
    assert all(set(row) >= {"train_loss", "lr", "dur", "epoch"} for row in embedder.history_)


def test_schedules_reach_their_ends_and_stand_in_the_history():
    embedder = small(
        loss=HCL(tau_plus=Linear(0.0, 0.2), beta=Steps([2, 1], [0.5])),
        similarity=Cosine(CosineDecay(1.0, 0.5)),
        max_epochs=5,
    ).fit(X_DIGITS)
    history = embedder.history_
    np.testing.assert_allclose(history[:, "loss__tau_plus"], [0, 0.05, 0.1, 0.15, 0.2])
    assert history[:, "loss__beta"] == [2, 2, 1, 1, 1]
    assert history[0, "similarity__temperature"] == 1.0
    assert history[-1, "similarity__temperature"] == 0.5


def test_callbacks_that_save_work(tmp_path):
    callbacks = [
        Checkpoint(monitor="train_loss_best", dirname=tmp_path),
        TrainEndCheckpoint(dirname=tmp_path),
        ("rate", LRScheduler(policy="StepLR", step_size=1, gamma=0.5)),
    ]
    embedder = small(callbacks=callbacks, lr_schedule="constant", max_epochs=3).fit(X_DIGITS)
    assert (tmp_path / "params.pt").exists() and (tmp_path / "train_end_params.pt").exists()
    assert embedder.history_[:, "lr"] == [1e-3, 5e-4, 2.5e-4]
    assert not any("batches" in row for row in embedder.history_)


class AddsGroup(Callback):
    """Trains a further parameter from some epoch on, with a learning rate of its own."""

    def __init__(self, epoch):
        self.epoch, self.seen = epoch, []
        self.parameter = nn.Parameter(torch.zeros(1))

    def on_train_begin(self, net, **kwargs):
        self.add(net, 0)

    def on_epoch_begin(self, net, **kwargs):
        self.add(net, len(net.history))

    def add(self, net, epoch):
        if epoch == self.epoch:
            net.optimizer_.add_param_group({"params": [self.parameter], "lr": 0.5})

    def on_batch_end(self, net, **kwargs):
        self.seen.append([group["lr"] for group in net.optimizer_.param_groups])


@pytest.mark.parametrize("epoch", [0, 2])
def test_groups_that_callbacks_add_keep_their_own_rate(epoch):
    adds = AddsGroup(epoch)
    small(callbacks=[adds], max_epochs=3, lr=0.01, batch_size=256).fit(X_DIGITS)
    assert len(adds.seen) == 3
    for rates in adds.seen[max(epoch - 1, 0) :]:
        assert rates[1] == 0.5
    assert adds.seen[0][0] > adds.seen[1][0] > adds.seen[2][0]


def test_every_epoch_and_every_purpose_has_a_seed_of_its_own():
    seeds = [seed for epoch in range(50) for seed in epoch_seeds(7, epoch)]
    assert len(set(seeds)) == 200
    assert epoch_seeds(7, 3) == epoch_seeds(7, 3) != epoch_seeds(8, 3)


def test_print_log_prints_when_it_is_given_and_nothing_else_does(capfd):
    small(callbacks=[PrintLog()]).fit(X_DIGITS)
    out, err = capfd.readouterr()
    header, _, first, second = out.splitlines()
    assert header.split() == ["epoch", "lr", "train_loss", "dur"] and not err
    assert first.split()[0] == "1" and second.split()[0] == "2"
    stop = EarlyStopping(monitor="train_loss", patience=1, threshold=10.0)
    small(callbacks=[stop]).fit(X_DIGITS)
    assert capfd.readouterr().out == ""


def test_the_history_holds_plain_numbers_and_no_batches():
    embedder = small(warm_start=True).fit(X_DIGITS).fit(X_DIGITS).partial_fit(X_DIGITS)
    assert len(embedder.history_) == embedder.n_epochs_ == 5
    for row in embedder.history_:
        assert "batches" not in row
        assert all(type(value) in (int, float, bool) for value in row.values())
