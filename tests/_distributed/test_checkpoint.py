"""Rank 0 reads and writes the checkpoint of a fit; all ranks resume, or end with its error."""

import errno
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from skorch.callbacks import Callback

from skcontrast._fit import _identity
from skcontrast.frameworks import MoCo
from skcontrast.losses import SemiSupCon
from tests._distributed.common import X, Y, rank
from tests._fit.common import assert_same_bits, left_behind
from tests.common import small

pytestmark = pytest.mark.skipif(
    not torch.distributed.is_available(), reason="needs torch.distributed"
)

FEW = np.where(np.arange(len(Y)) < 30, Y, -1)
CASES = {
    "a queue": {"framework": MoCo(queue_size=40, momentum=0.9), "batch_size": 24},
    "few labels": {"loss": SemiSupCon(every=2), "y": FEW},
    "any seed": {"random_state": None},
}


class FailsAfter(Callback):
    def __init__(self, n_epochs):
        self.n_epochs = n_epochs

    def on_batch_end(self, net, **kwargs):
        if len(net.history) > self.n_epochs:
            raise RuntimeError("gone")


def in_own_folder(folder):
    """Go to a folder of this rank: the ranks have no file system in common."""
    own = Path(folder, str(rank()))
    own.mkdir(exist_ok=True)
    os.chdir(own)
    return own


def resumed(folder, y=None, **params):
    """Return what a fit leaves behind that ends after two epochs and is called again."""
    own = in_own_folder(folder)
    _identity._SHOWING.add(FailsAfter)  # an outage does not belong to the fit

    def fit(*callbacks):
        embedder = small(max_epochs=4, warm_start=True, checkpoint="here", **params)
        return left_behind(embedder.set_params(callbacks=callbacks).fit(X, y))

    with pytest.raises(RuntimeError, match="gone"):
        fit(FailsAfter(2))
    resumed = fit()
    assert (own / "here").exists() == (rank() == 0)
    return resumed, fit(FailsAfter(0))


def whole(y=None, **params):
    return left_behind(small(max_epochs=4, warm_start=True, **params).fit(X, y))


@pytest.mark.parametrize("name", CASES)
def test_a_shared_fit_is_resumed_to_the_same_bits(name, ranks, tmp_path):
    params = CASES[name]
    (first, again), (second, again_second) = ranks(resumed, str(tmp_path), **params)
    for other in (again, second, again_second):
        assert_same_bits(other, first)
    if name != "any seed":
        assert_same_bits(ranks(whole, **params)[0], first)


def refused(folder):
    """Return the error of a fit whose checkpoint only rank 0 cannot use."""
    own = in_own_folder(folder)
    (own / "here").touch()
    with pytest.raises((RuntimeError, ValueError), match="must be a folder") as info:
        small(checkpoint="here").fit(X)
    return str(info.value)


def test_what_rank_0_cannot_read_ends_all_ranks(ranks, tmp_path):
    first, second = ranks(refused, str(tmp_path))
    assert second == f"fit failed on rank 0: ValueError: {first}"


def filled_up(folder):
    """Return the error of a fit while which the disk of rank 0 is full."""
    in_own_folder(folder)
    sync, calls = os.fsync, []

    def fills_up(descriptor):
        calls.append(descriptor)
        if len(calls) > 2:
            raise OSError(errno.ENOSPC, "No space left on device")

    os.fsync = fills_up
    try:
        with pytest.raises((OSError, RuntimeError)) as info:
            small(max_epochs=4, checkpoint="here").fit(X)
    finally:
        os.fsync = sync
    return str(info.value), small(max_epochs=4, checkpoint="here").fit(X).n_epochs_


def test_a_full_disk_of_rank_0_ends_all_ranks_and_keeps_the_last_good_file(ranks, tmp_path):
    (first, n_first), (second, n_second) = ranks(filled_up, str(tmp_path))
    assert "No space left" in first
    assert second == f"fit failed on rank 0: OSError: {first}"
    assert n_first == n_second == 4
