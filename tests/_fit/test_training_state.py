"""What changes from epoch to epoch is put back to the last bit."""

import numpy as np
import pytest
import torch
from skorch.callbacks import Callback

from skcontrast.frameworks import MoCo
from tests._fit.common import (
    CASES,
    FailsAfter,
    Gone,
    X,
    Y,
    assert_same_bits,
    fit_case,
    left_behind,
)
from tests.common import small

# What they keep, other cases keep too.
LONG = {"images", "a dictionary of patches", "auto from few labels", "a Dataset"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in LONG)) for name in CASES]
)
def test_a_fit_that_ends_after_every_epoch_is_resumed_to_the_same_bits(name, tmp_path):
    whole = fit_case(name)
    for k in range(1, whole.n_epochs_):  # each is resumed from where the last one ended
        with pytest.raises(Gone):
            fit_case(name, [FailsAfter(k)], checkpoint=tmp_path)
    resumed = fit_case(name, checkpoint=tmp_path)
    assert_same_bits(left_behind(resumed), left_behind(whole))


@pytest.mark.parametrize("name", ["MoCo", "the best weights", "patience", "early stopping"])
def test_a_finished_fit_is_returned_with_the_same_bits_and_without_training(name, tmp_path):
    expected = left_behind(fit_case(name, checkpoint=tmp_path))
    again = fit_case(name, [FailsAfter(0)], checkpoint=tmp_path)
    assert_same_bits(left_behind(again), expected)


def test_a_custom_callback_resumes_what_it_has_learned(tmp_path):
    whole = fit_case("a callback of one's own").callbacks[0]
    with pytest.raises(Gone):
        fit_case("a callback of one's own", [FailsAfter(2)], checkpoint=tmp_path)
    counts = fit_case("a callback of one's own", checkpoint=tmp_path).callbacks[0]
    assert counts.n_ == whole.n_ and counts.seen_["rows"] == whole.seen_["rows"]
    assert torch.equal(counts.seen_["mean"], whole.seen_["mean"])


class Draws(Callback):
    """Keeps what torch.load does not read, by its own state_dict."""

    def on_train_begin(self, net, **kwargs):
        self.rng_ = np.random.default_rng(0)

    def on_epoch_end(self, net, **kwargs):
        net.history.record("drawn", self.rng_.integers(1000))

    def state_dict(self):
        return {"rng": self.rng_.bit_generator.state}

    def load_state_dict(self, state):
        self.rng_.bit_generator.state = state["rng"]


def test_a_callback_may_say_itself_what_it_keeps(tmp_path):
    def drawn(*more, **params):
        return small(callbacks=[Draws(), *more], **params).fit(X).history_[:, "drawn"]

    with pytest.raises(Gone):
        drawn(FailsAfter(1), checkpoint=tmp_path)
    assert drawn(checkpoint=tmp_path) == drawn()


def test_a_chain_of_fits_resumes_where_it_was(tmp_path):
    def chain(*callbacks, **params):
        embedder = small(warm_start=True, framework=MoCo(queue_size=50), **params)
        embedder.fit(X)
        return embedder.set_params(lr=1e-2, callbacks=callbacks).fit(X, Y)

    expected = left_behind(chain())
    with pytest.raises(Gone):
        chain(FailsAfter(3), checkpoint=tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "from_epoch_0.pt",
        "from_epoch_2.pt",
    ]
    assert_same_bits(left_behind(chain(checkpoint=tmp_path)), expected)


def test_without_a_checkpoint_a_fit_is_the_same_as_with_one(tmp_path):
    expected = small().fit_transform(X)
    np.testing.assert_array_equal(small(checkpoint=tmp_path).fit_transform(X), expected)
