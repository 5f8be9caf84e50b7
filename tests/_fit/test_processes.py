"""Several processes train the network that one would train with the whole batch."""

import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np
import pytest
import torch
from skorch.callbacks import Callback, EarlyStopping, PrintLog
from torch import nn

from skcontrast._fit._processes import Processes, process_group  # private: one process of several
from skcontrast.augmentation import FunctionAugmentation, GaussianNoise
from skcontrast.encoders import GIN, MLP
from skcontrast.frameworks import CMC, Framework, InfoGraph, MoCo, SimCLR
from skcontrast.losses import BCL, DCL, SemiSupCon, SupCon
from skcontrast.schedules import Auto
from tests._fit.common import GRAPHS, assert_same_bits, left_behind
from tests.common import Items, Trains, in_a_process, processes, small, vectors

CPU = torch.device("cpu")
X, Y = vectors(101, 6).astype(np.float32), np.arange(101) % 3


def same(x):
    """Return the view that draws no random numbers."""
    return 1.0 * x


def plain(**params):
    """Return an embedder without batch normalisation and without randomness in its views."""
    torch.manual_seed(0)
    defaults = {
        "encoder": nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 5)),
        "augmentation": FunctionAugmentation(same),
        "projection_dim": 0,
        "batch_size": 24,
        "warm_start": True,
    }
    return small(**{**defaults, **params})


class Counted(Items):
    """Counts how often its samples are read."""

    n_read = 0

    def __getitem__(self, row):
        self.n_read += 1
        return super().__getitem__(row)


# By name: parameters of `plain`, and what is passed to fit.
CASES = {
    "SimCLR": ({}, {}),
    "three views": ({"n_views": 3, "loss": DCL(tau_plus=0.1)}, {"groups": np.arange(101) // 4}),
    "SupCon": ({"loss": SupCon(), "optimizer": "sgd", "lr": 0.1}, {"y": Y}),
    "spread labels": ({"loss": SemiSupCon(every=1)}, {"y": np.where(np.arange(101) < 40, Y, -1)}),
    "auto": ({"loss": BCL(alpha=Auto(every=1), tau_plus=Auto(every=1))}, {}),
    "MoCo": ({"framework": MoCo(queue_size=40, momentum=0.9)}, {"sample_weight": 1.0 + Y}),
    "symmetric MoCo": ({"framework": MoCo(symmetric=True)}, {}),
    "CMC": ({"framework": CMC(split=3, n_negatives=30)}, {}),
    "a framework of one's own": ({"framework": Trains()}, {}),
    "domains": ({}, {"domains": Y}),
    "a Dataset": ({}, {"X": Counted(X)}),
}


def fit_case(name):
    """Return what the fit of a case leaves behind."""
    params, given = CASES[name]
    if name == "CMC":
        torch.manual_seed(0)
        params = {**params, "encoder": [nn.Linear(3, 4), nn.Linear(3, 4)]}
    return left_behind(plain(**params).fit(**{"X": X, **given}))


class BypassesNetwork(Framework):
    """Calls the module of the fit, and so sees the share of one process."""

    def start(self, context):
        self.module = context.module
        return super().start(context)

    def contrast(self, network, views, similarity, batch):
        own = batch._replace(rows=None)
        return SimCLR().contrast(self.module, views, similarity, own)


class StopsFirst(Callback):
    """Stops the training in one process, after its second epoch."""

    def on_epoch_end(self, net, **kwargs):
        if net.processes.rank == 1 and len(net.history) == 2:
            net.stop()


class Draws(Callback):
    """Keeps the first views of a process."""

    def on_batch_begin(self, net, batch=None, **kwargs):
        if not hasattr(self, "drawn"):
            generator = net.generator.clone_state()
            self.drawn = net.draw(torch.zeros_like(batch.x), generator)


def message_of(embedder, X, *args):
    """Return the message with which fit refuses."""
    with pytest.raises(ValueError) as refused:
        embedder.fit(X, *args)
    return str(refused.value)


def fit_all(rank, folder):
    """Return by name what one process finds."""
    found = {"fits": {name: fit_case(name) for name in CASES}, "errors": {}}
    counted = Counted(X)
    found["reads"] = [(plain(max_epochs=n).fit(counted), counted.n_read)[1] for n in (2, 12)]
    errors = found["errors"]
    one_value = np.tile(X, (6, 1))  # of which a checkpoint would compare every third row
    one_value[77, 2] += 1e-3 * rank
    errors["one value"] = message_of(plain(), one_value)
    errors["order"] = message_of(plain(), np.roll(X, rank, axis=0))
    errors["number"] = message_of(plain(), X[rank:])
    errors["y"] = message_of(plain(loss=SupCon()), X, (Y + rank) % 3)
    errors["parameter"] = message_of(plain(batch_size=24 + rank), X)
    errors["epochs"] = message_of(plain(max_epochs=3 + rank), X)
    errors["batch"] = message_of(plain(batch_size=3), X)
    errors["InfoGraph"] = message_of(small(framework=InfoGraph(), encoder=GIN(width=8)), GRAPHS)
    errors["bypass"] = message_of(plain(framework=BypassesNetwork()), X)
    # With batch normalisation and random views.
    noise, draws = {"encoder": MLP((8,), dropout=0.1), "augmentation": GaussianNoise()}, Draws()
    usual = small(**noise, batch_size=24, random_state=None, callbacks=[draws], warm_start=True)
    torch.manual_seed(rank)  # the module differs in each process, as without a seed
    found["unseeded"] = left_behind(plain(encoder=nn.Linear(6, 4)).fit(X))
    found["usual"], found["drawn"] = left_behind(usual.fit(X)), draws.drawn
    found["MoCo with statistics"] = left_behind(small(framework=MoCo(), warm_start=True).fit(X))
    stopped = plain(callbacks=[StopsFirst()], max_epochs=5).fit(X)
    found["stopped"] = stopped.n_epochs_
    patient = [EarlyStopping("train_loss", patience=1, threshold=0.5), PrintLog()]
    found["patient"] = plain(callbacks=patient, max_epochs=9, verbose=1).fit(X).n_epochs_
    kept = partial(plain, checkpoint=f"{folder}/{rank}", random_state=None, verbose=1)
    found["kept"] = [left_behind(kept(max_epochs=n).fit(X)) for n in (2, 4)]
    return found


def as_rank(rank, size, port, folder):
    """Do as a script that torchrun has started, and return what `fit_all` finds and prints."""
    os.environ.update(
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(port),
        RANK=str(rank),
        LOCAL_RANK=str(rank),
        WORLD_SIZE=str(size),
        TORCHELASTIC_RUN_ID="a test",
    )
    multiprocessing.parent_process = lambda: None
    torch.set_num_threads(1)
    with open(f"{folder}/printed {rank}", "w") as file:
        sys.stderr = sys.stdout = file
        found = fit_all(rank, folder)
        sys.stderr, sys.stdout = sys.__stderr__, sys.__stdout__
    torch.distributed.destroy_process_group()
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("processes")


@pytest.fixture(scope="module")
def found(folder):
    """Return what each of two processes finds."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with ProcessPoolExecutor(2, mp_context=processes()) as pool:
        started = [pool.submit(as_rank, rank, 2, port, str(folder)) for rank in range(2)]
        return [one.result(timeout=300) for one in started]


@pytest.mark.parametrize("name", CASES)
def test_loss_and_weights_are_those_of_one_process_to_rounding(found, name):
    expected, both = fit_case(name), [one["fits"][name] for one in found]
    for key, value in expected["weights"].items():
        np.testing.assert_allclose(both[0]["weights"][key], value, atol=2e-6, err_msg=key)
    losses = [[row["train_loss"] for row in of["history"]] for of in (both[0], expected)]
    np.testing.assert_allclose(*losses, rtol=1e-5)
    sizes = [[row["train_batch_count"] for row in of["history"]] for of in (both[0], expected)]
    assert sizes[0] == sizes[1]
    framework = (expected["states"] or {}).get("framework") or {"state": {}}
    for key, value in framework["state"].items():
        np.testing.assert_allclose(
            both[0]["states"]["framework"]["state"][key], value, atol=1e-5, err_msg=key
        )
    np.testing.assert_equal(both[0]["estimates"], both[1]["estimates"])


@pytest.mark.parametrize("name", [*CASES, "unseeded", "usual", "MoCo with statistics"])
def test_every_process_ends_with_the_same_bits(found, name):
    first, second = (one["fits"].get(name) or one[name] for one in found)
    assert_same_bits(second, first)


def test_each_process_draws_views_of_its_own(found):
    first, second = (one["drawn"][:10] for one in found)
    assert (first != second).float().mean() > 0.9


def test_a_dataset_is_read_by_share(found):
    # The number of all reads: a fit of 2 epochs, then one of 12. Both start alike, and the check
    # for collapse takes at most 26 samples in three more epochs.
    of_ten_epochs = [both - 2 * two for two, both in (one["reads"] for one in found)]
    assert sum(of_ten_epochs) >= 10 * 101
    assert max(of_ten_epochs) <= 10 * 51 + 3 * 26


@pytest.mark.parametrize(
    ("name", "names"),
    {
        "one value": "'all of X' is",
        "order": "'X'",
        "number": "'X' is 101 samples",
        "y": "'y'",
        "parameter": "'batch_size' is 24 in process 0 and 25 in process 1",
        "epochs": "'max_epochs' is 3 in process 0 and 4 in process 1",
        "batch": "A batch has 3 samples, and each of 2 processes needs two",
        "InfoGraph": "InfoGraph cannot be fitted in several processes",
        "bypass": "BypassesNetwork",
    }.items(),
)
def test_what_does_not_fit_together_is_an_error_in_every_process(found, name, names):
    first, second = (one["errors"][name] for one in found)
    assert first == second
    assert names in first


def test_what_stops_one_process_stops_all(found):
    assert [one["stopped"] for one in found] == [2, 2]
    assert found[0]["patient"] == found[1]["patient"] < 9


def test_the_first_process_writes_the_checkpoint_from_which_all_resume(found, folder):
    assert (folder / "0" / "from_epoch_0.pt").exists()
    assert not (folder / "1").exists()
    for short, long in zip(*(one["kept"] for one in found), strict=True):
        assert_same_bits(long, short)
    short, long = found[1]["kept"]
    assert len(long["history"]) == 4
    assert_same_bits(long["history"][:2], short["history"])


def test_the_first_process_prints(found, folder):
    assert "4 of 4 epochs" in (folder / "printed 0").read_text()
    assert (folder / "printed 1").read_text() == ""


def joined_in_a_worker():
    """Return how many processes train together, in a worker that a script of torchrun starts."""
    os.environ.update(TORCHELASTIC_RUN_ID="a test", WORLD_SIZE="2", RANK="0", LOCAL_RANK="0")
    return process_group(CPU).size


def test_a_worker_of_a_search_trains_alone():
    assert in_a_process(joined_in_a_worker) == 1
    assert process_group(CPU).size == 1


def test_batch_normalisation_on_gpus_is_synchronised_during_the_fit_alone():
    class Own(nn.BatchNorm1d):
        pass

    network = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.BatchNorm2d(4), Own(4))
    before = [type(layer) for layer in network]
    state = {name: value.clone() for name, value in network.state_dict().items()}
    with Processes(0, 2).synced(network, torch.device("cuda")):
        during = [type(layer) for layer in network]
    assert during == [nn.Linear, nn.SyncBatchNorm, nn.SyncBatchNorm, Own]
    assert [type(layer) for layer in network] == before
    assert_same_bits(dict(network.state_dict()), state)
    for rank_size, device in (((0, 2), CPU), ((0, 1), torch.device("cuda"))):
        with Processes(*rank_size).synced(network, device):
            assert [type(layer) for layer in network] == before


SCRIPT = """
import os, signal, sys
from skorch.callbacks import Callback
from skcontrast import ContrastiveEmbedder
from sklearn.datasets import load_digits
from torch.distributed.elastic.multiprocessing.errors import record

class Fails(Callback):
    def on_epoch_end(self, net, **kwargs):
        if os.environ["RANK"] == "1" and len(net.history) == 2:
            if sys.argv[1] == "dies":
                os.kill(os.getpid(), signal.SIGKILL)
            raise ValueError("an error in one process")

@record
def main():
    X, _ = load_digits(return_X_y=True)
    callbacks = [] if sys.argv[1] == "lives" else [Fails()]
    embedder = ContrastiveEmbedder(
        max_epochs=3, random_state=0, device="cpu", callbacks=callbacks
    ).fit(X)
    print("fitted", f"{embedder.transform(X).sum():.8g}", flush=True)

main()
"""


@pytest.mark.slow
@pytest.mark.parametrize("way", ["lives", "dies", "raises"])
def test_torchrun_starts_a_fit_and_ends_all_processes_when_one_fails(tmp_path, way):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", str(script), way],
        capture_output=True,
        text=True,
        timeout=240,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        check=False,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("fitted")]
    if way == "lives":
        assert done.returncode == 0, done.stderr
        assert len(lines) == 2 and len(set(lines)) == 1
    else:
        assert done.returncode != 0 and lines == []
        # Both processes fail within the second to which torchrun measures which failed first.
        failures = done.stderr.partition("Failures:")[2]
        assert f"exitcode  : {-signal.SIGKILL if way == 'dies' else 1}" in failures
        assert ("ValueError: an error in one process" in failures) == (way == "raises")
        assert time.perf_counter() - start < 200
