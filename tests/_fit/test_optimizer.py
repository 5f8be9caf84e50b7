"""The learning rate of every epoch."""

import numpy as np
import torch

from skcontrast.schedules import CosineDecay
from tests.common import X_DIGITS, small


def test_learning_rate_decays_to_nothing_or_stays():
    cosine = small(max_epochs=20, lr=0.01).fit(X_DIGITS).history_[:, "lr"]
    assert cosine == sorted(cosine, reverse=True) and cosine[-1] < 0.001
    constant = small(max_epochs=3, lr=0.01, lr_schedule="constant").fit(X_DIGITS).history_[:, "lr"]
    assert constant == [0.01] * 3
    warm = small(max_epochs=4, lr=0.01, lr_schedule=CosineDecay(warmup=0.5)).fit(X_DIGITS)
    assert warm.history_[0, "lr"] < warm.history_[1, "lr"]


def test_a_class_of_optimizers_is_taken_as_its_name():
    by_name, by_class = (
        small(optimizer=optimizer).fit_transform(X_DIGITS)
        for optimizer in ("adam", torch.optim.Adam)
    )
    np.testing.assert_array_equal(by_class, by_name)


def test_an_optimizer_that_has_no_fused_form_trains():
    losses = small(optimizer=torch.optim.RMSprop, max_epochs=5).fit(X_DIGITS).history_
    assert losses[-1, "train_loss"] < losses[0, "train_loss"]
