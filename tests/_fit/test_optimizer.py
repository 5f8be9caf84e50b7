"""The learning rate of every epoch and of every group of parameters, and what is resumed."""

import numpy as np
import pytest
import torch
from skorch.callbacks import Callback, Checkpoint, Freezer, LoadInitState, Unfreezer
from torch import nn

from skcontrast.encoders import ConvNet
from skcontrast.frameworks import CMC, MoCo
from skcontrast.kinds import Vectors
from skcontrast.optimizers import Optimizer
from skcontrast.schedules import CosineDecay
from tests.common import X_DIGITS, Trains, small


def test_learning_rate_decays_to_nothing_or_stays():
    cosine = small(max_epochs=20, lr=0.01).fit(X_DIGITS).history_[:, "lr"]
    assert cosine == sorted(cosine, reverse=True) and cosine[-1] < 0.001
    constant = small(max_epochs=3, lr=0.01, lr_schedule="constant").fit(X_DIGITS).history_[:, "lr"]
    assert constant == [0.01] * 3
    warm = small(max_epochs=4, lr=0.01, lr_schedule=CosineDecay(warmup=0.5)).fit(X_DIGITS)
    assert warm.history_[0, "lr"] < warm.history_[1, "lr"]


def test_an_optimizer_that_has_no_fused_form_trains():
    losses = small(optimizer=torch.optim.RMSprop, max_epochs=5).fit(X_DIGITS).history_
    assert losses[-1, "train_loss"] < losses[0, "train_loss"]


class Rates(Callback):
    """Notes the learning rate of every group in every step."""

    def __init__(self):
        self.seen = []

    def on_batch_end(self, net, **kwargs):
        self.seen.append([group["lr"] for group in net.optimizer_.param_groups])


def encoder():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 8))


def weights(embedder):
    """Return the weights by the names that the user knows."""
    named = embedder._model.network.user_named_parameters()
    return {name: parameter.detach().clone() for name, parameter in named}


SLOW = Optimizer(param_groups=[("encoder.*", {"lr": 1e-4})])


def test_a_rate_of_zero_keeps_a_part_as_it_is():
    module = encoder()
    still = Optimizer(param_groups=[("encoder.0.*", {"lr": 0.0}), ("*bias", {"lr": 0.1})])
    trained = weights(small(encoder=module, optimizer=still, weight_decay=0.1).fit(X_DIGITS))
    assert trained["encoder.0.weight"].equal(module[0].weight)
    assert not trained["encoder.3.weight"].equal(module[3].weight)


def test_the_schedule_scales_each_group_by_its_own_rate():
    rates = Rates()
    embedder = small(lr=1e-3, optimizer=SLOW, max_epochs=5, batch_size=50, callbacks=[rates])
    history = embedder.fit(X_DIGITS).history_
    main, slow = np.array(rates.seen).T
    np.testing.assert_allclose(slow, main / 10)
    assert main[0] == 1e-3 and main[-1] < 1e-4
    assert history[:, "lr"] == main[3::4].tolist()  # of the parameters without a group


@pytest.mark.parametrize("framework", [MoCo(queue_size=64, momentum=0.9), CMC(), Trains()])
def test_names_are_those_of_the_users_modules_in_every_framework(framework):
    module = nn.Sequential(nn.LazyLinear(8))
    embedder = small(encoder=module, framework=framework, optimizer=SLOW).fit(X_DIGITS)
    parts = ["0.", "1."] if isinstance(framework, CMC) else [""]
    assert {f"encoder.{part}0.weight" for part in parts} <= weights(embedder).keys()
    assert any(name.startswith(f"projector.{parts[-1]}") for name in weights(embedder))
    if isinstance(framework, Trains):
        own = Optimizer(param_groups=[("framework.predictor.*", {"lr": 0.1})])
        embedder.set_params(optimizer=own).fit(X_DIGITS)


@pytest.mark.parametrize("standardize", [True, False])
def test_names_do_not_depend_on_the_first_layer(standardize):
    embedder = small(encoder=encoder(), kind=Vectors(standardize=standardize)).fit(X_DIGITS)
    expected = {f"encoder.{name}" for name, _ in encoder().named_parameters()}
    assert {name for name in weights(embedder) if name.startswith("encoder")} == expected


def test_a_freezer_of_skorch_matches_the_same_names():
    module = encoder()
    embedder = small(encoder=module, callbacks=[Freezer("encoder.0.*")]).fit(X_DIGITS)
    assert weights(embedder)["encoder.0.weight"].equal(module[0].weight)


def test_a_frozen_encoder_learns_from_the_epoch_on_in_which_it_is_unfrozen():
    module, wait = encoder(), [Freezer("encoder.*"), Unfreezer("encoder.*", at=2)]
    before = module.state_dict()
    for n_epochs, is_same in ((1, True), (2, False)):
        embedder = small(encoder=module, callbacks=wait, max_epochs=n_epochs).fit(X_DIGITS)
        after = embedder.encoder_[-1].state_dict()
        assert all(after[name].equal(before[name]) == is_same for name in before)


def test_a_continued_fit_keeps_every_moment_and_with_other_groups_begins_with_none():
    # The moments hardly decay, so the second fit ends with those of the first.
    def moments(embedder):
        state = embedder._states["optimizer"]["state"]
        return [state[place]["exp_avg"] for place in sorted(state)]

    embedder = small(warm_start=True, lr_schedule="constant").fit(X_DIGITS)
    before = moments(embedder)
    still = Optimizer(betas=(1 - 1e-12, 0.999))
    embedder.set_params(optimizer=still, lr=1e-30, max_epochs=1).fit(X_DIGITS)
    assert len(before) == len(weights(embedder))
    for old, new in zip(before, moments(embedder), strict=True):
        torch.testing.assert_close(new, old)
    grouped = Optimizer(betas=(1 - 1e-12, 0.999), param_groups=[("*bias", {"lr": 0.0})])
    embedder.set_params(optimizer=grouped).fit(X_DIGITS)
    assert max(moment.abs().max() for moment in moments(embedder)) < 1e-6


def test_a_fit_resumed_from_a_checkpoint_with_groups_is_the_uninterrupted_fit(tmp_path):
    def train(max_epochs, *callbacks):
        params = {"optimizer": SLOW, "lr_schedule": "constant", "callbacks": list(callbacks)}
        return small(max_epochs=max_epochs, **params).fit(X_DIGITS)

    checkpoint = Checkpoint(monitor=None, dirname=tmp_path)
    train(2, checkpoint)
    resumed = train(2, LoadInitState(checkpoint))
    np.testing.assert_array_equal(resumed.transform(X_DIGITS), train(4).transform(X_DIGITS))


def test_groups_train_in_bfloat16_and_on_images():
    images = X_DIGITS.reshape(-1, 8, 8)
    groups = Optimizer("adamw", param_groups=[("encoder.0.*", {"lr": 0.0})])
    embedder = small(encoder=ConvNet((8,)), optimizer=groups, precision="bf16", max_epochs=10)
    losses = embedder.set_params(lr=0.01).fit(images).history_[:, "train_loss"]
    assert losses[-1] < losses[0]
