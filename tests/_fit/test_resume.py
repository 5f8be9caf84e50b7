"""partial_fit, warm_start and interrupted fits continue where they were."""

import numpy as np
import pytest
from skorch.callbacks import Callback

from skcontrast.augmentation import GaussianNoise
from skcontrast.encoders import MLP
from skcontrast.losses import DCL
from skcontrast.schedules import Linear
from tests.common import X_DIGITS, small


def test_partial_fit_trains_one_epoch_at_a_time():
    embedder = small()
    for k in range(3):
        embedder.partial_fit(X_DIGITS)
        assert embedder.n_epochs_ == len(embedder.history_) == k + 1
    assert embedder.history_[:, "lr"] == [1e-3] * 3
    assert embedder.history_[:, "epoch"] == [1, 2, 3]


def test_partial_fit_advances_schedules():
    embedder = small(max_epochs=3, loss=DCL(tau_plus=Linear(0.0, 0.2)))
    for _ in range(5):
        embedder.partial_fit(X_DIGITS)
    assert embedder.history_[:, "loss__tau_plus"] == [0.0, 0.1, 0.2, 0.2, 0.2]


def test_partial_fit_in_pieces_equals_fit_at_constant_learning_rate():
    whole = small(max_epochs=3, lr_schedule="constant").fit(X_DIGITS)
    pieces = small(max_epochs=3, lr_schedule="constant")
    for _ in range(3):
        pieces.partial_fit(X_DIGITS)
    np.testing.assert_array_equal(pieces.transform(X_DIGITS), whole.transform(X_DIGITS))


def test_warm_start_continues_and_cold_start_begins_again():
    warm = small(warm_start=True).fit(X_DIGITS)
    before = warm.transform(X_DIGITS)
    warm.fit(X_DIGITS)
    assert warm.n_epochs_ == 4
    assert not np.array_equal(warm.transform(X_DIGITS), before)
    cold = small().fit(X_DIGITS)
    before = cold.transform(X_DIGITS)
    np.testing.assert_array_equal(cold.fit(X_DIGITS).transform(X_DIGITS), before)


def test_continuing_with_a_different_optimizer_or_weight_decay():
    class Seen(Callback):
        def on_train_end(self, net, **kwargs):
            decays.append(net.optimizer_.param_groups[0]["weight_decay"])

    decays = []
    embedder = small(warm_start=True, weight_decay=0.5, callbacks=[Seen()]).fit(X_DIGITS)
    embedder.set_params(weight_decay=0.0).fit(X_DIGITS)
    assert decays == [0.5, 0.0]
    embedder.set_params(optimizer="sgd").fit(X_DIGITS)
    assert embedder.n_epochs_ == 6


def test_continuing_takes_another_loss_and_another_chain_and_keeps_a_chain_without_one():
    embedder = small(warm_start=True, max_epochs=1).fit(X_DIGITS)
    before = embedder.augmentation_
    for loss, augmentation, kind in (
        (DCL(tau_plus=0.3), None, type(before[0])),
        (DCL(tau_plus=0.2), GaussianNoise(), GaussianNoise),
        (DCL(tau_plus=0.2), None, GaussianNoise),
    ):
        embedder.set_params(loss=loss, augmentation=augmentation).fit(X_DIGITS)
        assert repr(embedder.loss_) == repr(loss)
        assert type(embedder.augmentation_[0]) is kind


@pytest.mark.parametrize(
    "params", [{"n_components": 3}, {"projection_dim": 7}, {"encoder": MLP(widths=(3,))}]
)
def test_continuing_with_a_different_network_is_refused(params):
    embedder = small(warm_start=True).fit(X_DIGITS)
    (name,) = params
    with pytest.raises(ValueError, match=f"The '{name}' parameter .* has changed"):
        embedder.set_params(**params).fit(X_DIGITS)
    embedder.set_params(warm_start=False).fit(X_DIGITS)


def test_a_failed_fit_leaves_the_fitted_embedder_as_it_was():
    class Fails(Callback):
        def on_epoch_end(self, net, **kwargs):
            raise RuntimeError("disk full")

    embedder = small(warm_start=True).fit(X_DIGITS)
    before = embedder.transform(X_DIGITS)
    with pytest.raises(RuntimeError, match="disk full"):
        embedder.set_params(callbacks=[Fails()]).fit(X_DIGITS)
    np.testing.assert_array_equal(embedder.transform(X_DIGITS), before)
    assert embedder.n_epochs_ == 2
    with pytest.raises(ValueError, match="NaN"):
        embedder.fit(np.full((4, 64), np.nan))
    np.testing.assert_array_equal(embedder.transform(X_DIGITS), before)
