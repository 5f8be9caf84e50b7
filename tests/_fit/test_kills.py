"""A fit that is killed at any moment, and called again until it ends, has the same bits."""

import os
import random
import signal
import time
from multiprocessing import set_start_method
from pathlib import Path

import pytest
import torch
from skorch.callbacks import Callback

from skcontrast._fit import _identity
from tests._fit.common import assert_same_bits, fit_case, left_behind
from tests.common import processes

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")

N_EPOCHS = 12
KILLS = 6
# What is killed: a case, and its parameters.
KILLED = {
    "SimCLR": ("SimCLR", {}),
    "MoCo": ("MoCo", {}),
    "CMC": ("CMC", {}),
    "InfoGraph": ("InfoGraph", {}),
    "spread labels": ("spread labels", {}),
    "auto from few labels": ("auto from few labels", {}),
    "dropout": ("dropout", {}),
    "images": ("images", {}),
    "the best weights": ("the best weights", {}),
    "a Dataset that two threads read": ("a Dataset", {"n_workers": 2, "max_epochs": 6}),
}


class Dies(Callback):
    """Kills its process after some steps."""

    def __init__(self, n_steps):
        self.n_steps = n_steps

    def on_batch_end(self, net, **kwargs):
        self.n_steps -= 1
        if not self.n_steps:
            os.kill(os.getpid(), signal.SIGKILL)


def die_while_writing(n_writes):
    """Let this process be killed in the middle of a write: the file is half written."""
    sync, left = os.fsync, [2 * n_writes - 1]  # of a file, then of its folder

    def killed(descriptor):
        left[0] -= 1
        if left[0] <= 0:
            os.ftruncate(descriptor, 100)
            os.kill(os.getpid(), signal.SIGKILL)
        sync(descriptor)

    os.fsync = killed


def child(pipe, folder, case, params, n_steps=0, n_writes=0):
    """Fit, and send what is left behind."""
    torch.set_num_threads(1)
    set_start_method("fork", force=True)  # of the workers that read ahead
    if n_writes:
        die_while_writing(n_writes)
    pipe.send("started")
    _identity._SHOWING.add(Dies)
    callbacks = [Dies(n_steps)] if n_steps else []
    params = {"max_epochs": N_EPOCHS, **params}
    pipe.send(left_behind(fit_case(case, callbacks, checkpoint=folder, **params)))


def run(folder, case, params, seconds=None, **moment):
    """Return what a fit leaves behind, or None if it was killed, after some seconds or itself."""
    reader, writer = processes().Pipe(duplex=False)
    arguments = (writer, folder, case, params)
    process = processes().Process(target=child, args=arguments, kwargs=moment)
    process.start()
    writer.close()
    assert reader.recv() == "started"
    is_over = seconds is None or reader.poll(seconds)
    try:
        return reader.recv() if is_over else None
    except EOFError:
        return None
    finally:
        if not is_over:
            process.kill()
        process.join()


def test_a_fit_killed_in_a_step_and_in_a_write_is_resumed_to_the_same_bits(tmp_path):
    folder = tmp_path / "killed"
    expected = run(None, "SimCLR", {})
    for n_parts, moment in enumerate([{"n_steps": 5}, {"n_writes": 3}]):
        assert run(folder, "SimCLR", {}, **moment) is None
        assert len(list(folder.glob("*.safetensors"))) == 1
        assert len(list(folder.glob(".*.part"))) == n_parts
    found = run(folder, "SimCLR", {})
    assert_same_bits(found, expected)
    assert not list(folder.glob(".*.part"))


@pytest.mark.slow
@pytest.mark.parametrize("name", KILLED)
def test_a_fit_killed_at_random_moments_is_resumed_to_the_same_bits(name, tmp_path):
    case, params = KILLED[name]
    rng, kills, cut, rounds = random.Random(name), 0, 0, 0
    expected = run(None, case, params)
    start = time.perf_counter()
    run(tmp_path / "timed", case, params)
    seconds = time.perf_counter() - start
    while kills < KILLS:
        folder, found = Path(tmp_path, str(rounds)), None
        while found is None:
            is_killed = kills < KILLS
            limit = rng.uniform(0, 0.7 * seconds) if is_killed else None
            found = run(folder, case, params, limit)
            kills += found is None
            cut += len(list(folder.glob(".*.part")))
        assert_same_bits(found, expected)
        rounds += 1
    print(f"{name}: {kills} kills, {cut} of them while writing, {rounds} fits, all equal")
