"""The learning rate of every epoch."""

from skcontrast.schedules import CosineDecay
from tests.common import X_DIGITS, small


def test_learning_rate_decays_to_nothing_or_stays():
    cosine = small(max_epochs=20, lr=0.01).fit(X_DIGITS).history_[:, "lr"]
    assert cosine == sorted(cosine, reverse=True) and cosine[-1] < 0.001
    constant = small(max_epochs=3, lr=0.01, lr_schedule="constant").fit(X_DIGITS).history_[:, "lr"]
    assert constant == [0.01] * 3
    warm = small(max_epochs=4, lr=0.01, lr_schedule=CosineDecay(warmup=0.5)).fit(X_DIGITS)
    assert warm.history_[0, "lr"] < warm.history_[1, "lr"]
