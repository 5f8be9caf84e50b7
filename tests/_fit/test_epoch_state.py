"""An interrupt returns to the last finished epoch, to the last bit."""

import copy

import pytest
import torch
from skorch.callbacks import Callback
from torch import nn

from skcontrast.frameworks import MoCo
from tests._fit.common import X, assert_same_bits, left_behind
from tests.common import small


class StopsAfter(Callback):
    def __init__(self, n_epochs):
        self.n_epochs = n_epochs

    def on_epoch_end(self, net, **kwargs):
        if len(net.history) == self.n_epochs:
            net.stop()


class Interrupted(nn.Module):
    """A network in whose n-th training pass the user presses Ctrl-C."""

    def __init__(self, n):
        super().__init__()
        self.layer, self.norm = nn.Linear(64, 4), nn.BatchNorm1d(4)
        self._left = [n]  # in a list, so that a resumed fit does not count on

    def forward(self, x):
        self._left[0] -= self.training
        if self.training and not self._left[0]:
            raise KeyboardInterrupt
        return self.norm(self.layer(x))


def interrupted(n, **params):
    torch.manual_seed(0)
    return small(encoder=Interrupted(n), max_epochs=3, batch_size=30, warm_start=True, **params)


@pytest.mark.parametrize(
    "params", [{}, {"framework": MoCo(queue_size=50)}], ids=["SimCLR", "MoCo"]
)
@pytest.mark.parametrize("step", range(3))
def test_an_interrupt_at_any_step_leaves_the_finished_epochs(step, params):
    # Three steps an epoch. The momentum encoder of MoCo does not train: it passes nothing.
    for k in (1, 2):
        expected = interrupted(0, callbacks=[StopsAfter(k)], **params).fit(X)
        found = interrupted(3 * k + step + 1, **params)
        with pytest.raises(KeyboardInterrupt, match=f"{k} epochs"):
            found.fit(X)
        assert_same_bits(left_behind(found), left_behind(expected))


def test_an_interrupt_in_the_first_epoch_of_a_warm_start_leaves_the_embedder_as_it_was():
    embedder = interrupted(3 * 3 + 2).fit(X)
    before = copy.deepcopy(left_behind(embedder))
    with pytest.raises(KeyboardInterrupt, match="3 epochs"):
        embedder.fit(X)
    assert_same_bits(left_behind(embedder), before)


@pytest.mark.filterwarnings("ignore:'checkpoint' does not keep Interrupted._left")
def test_an_interrupted_fit_is_resumed_by_the_same_call(tmp_path):
    expected = interrupted(0).fit(X)
    found = interrupted(8, checkpoint=tmp_path)
    with pytest.raises(KeyboardInterrupt, match="2 epochs"):
        found.fit(X)
    again = interrupted(0, checkpoint=tmp_path).fit(X)
    assert_same_bits(left_behind(again), left_behind(expected))
