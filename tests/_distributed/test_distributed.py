"""Several processes that share a fit: the same as one process that has the whole batch."""

import contextlib
import io
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import traceback
import warnings
from datetime import timedelta

import joblib
import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from skorch.callbacks import Callback, EarlyStopping
from torch import nn
from torch.utils.data import TensorDataset

from skcontrast._distributed._shared_network import SharedNetwork
from skcontrast._distributed._world import World, current_world, gather, pool, sum_gradients
from skcontrast._objective._contrast import in_batch
from skcontrast._objective._functional import objective_value
from skcontrast.augmentation import RandomAffine, Unflatten
from skcontrast.encoders import MLP, ConvNet
from skcontrast.frameworks import CMC, MoCo
from skcontrast.losses import BCL, HCL, SupCon
from skcontrast.schedules import Auto, Linear
from skcontrast.similarity import Cosine
from tests.common import Trains, small

pytestmark = pytest.mark.skipif(
    not torch.distributed.is_available(), reason="needs torch.distributed"
)

X, Y = (array[:101] for array in load_digits(return_X_y=True))
IMAGES = X.reshape(-1, 1, 8, 8)
SECONDS = 120


# Two processes that wait for something to do


def serve(rank, port, pipe):
    """Join the group; call what comes through the pipe and send back what it returns."""
    warnings.simplefilter("error")
    torch.set_num_threads(1)
    torch.distributed.init_process_group(
        "gloo",
        init_method=f"tcp://127.0.0.1:{port}",
        rank=rank,
        world_size=2,
        timeout=timedelta(seconds=SECONDS),
    )
    while (task := pipe.recv()) is not None:
        function, args, kwargs = task
        try:
            pipe.send((function(*args, **kwargs), None))
        except Exception:
            pipe.send((None, traceback.format_exc()))
    torch.distributed.destroy_process_group()


class Ranks:
    """Two processes of one group, started when they are first needed."""

    processes = ()

    def start(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        context = multiprocessing.get_context("spawn")
        self.pipes, theirs = zip(*(context.Pipe() for _ in range(2)), strict=True)
        self.processes = [
            context.Process(target=serve, args=(rank, port, pipe), daemon=True)
            for rank, pipe in enumerate(theirs)
        ]
        for process in self.processes:
            process.start()

    def stop(self):
        for process in self.processes:
            process.kill()
            process.join()
        self.processes = ()

    def __call__(self, function, *args, **kwargs):
        """Return what the function returns on each rank."""
        if not self.processes:
            self.start()
        for pipe in self.pipes:
            pipe.send((function, args, kwargs))
        answers = []
        for rank, pipe in enumerate(self.pipes):
            if not pipe.poll(SECONDS):
                self.stop()
                pytest.fail(f"rank {rank} did not answer in {SECONDS} s")
            answers.append(pipe.recv())
        for _, error in answers:
            if error is not None:
                pytest.fail(error)
        return [answer for answer, _ in answers]


@pytest.fixture(scope="module")
def ranks():
    both = Ranks()
    yield both
    both.stop()


def rank():
    return torch.distributed.get_rank()


def result(embedder, X=X):
    """Return all that a fit leaves behind, comparable."""
    state = {
        f"{part}.{name}": tensor.numpy()
        for part, module in (("encoder", embedder.encoder_), ("head", embedder.projector_))
        for name, tensor in module.state_dict().items()
    }
    history = [
        {k: v for k, v in row.items() if k not in ("dur", "batches")} for row in embedder.history_
    ]
    return {"state": state, "history": history, "embedding": embedder.transform(X)}


def fitted(X=X, y=None, metadata=None, **params):
    embedder = small(**{"optimizer": "sgd", "lr": 0.05, **params})
    return result(embedder.fit(X, y, **(metadata or {})), X)


def assert_equal(one, other, atol=0.0):
    """Compare results; with a tolerance where they are equal but for rounding."""
    assert one["state"].keys() == other["state"].keys()
    for name, array in one["state"].items():
        np.testing.assert_allclose(other["state"][name], array, rtol=0, atol=atol, err_msg=name)
    np.testing.assert_allclose(other["embedding"], one["embedding"], rtol=0, atol=10 * atol)
    assert len(one["history"]) == len(other["history"])
    for row, expected in zip(one["history"], other["history"], strict=True):
        assert row == (pytest.approx(expected, rel=10 * atol) if atol else expected)


class RecordsGradients(Callback):
    """Keeps the gradient of the first step."""

    def on_grad_computed(self, net, named_parameters, **kwargs):
        found = {name: p.grad.clone().numpy() for name, p in named_parameters}
        if not hasattr(self, "gradient"):
            self.gradient = found


def first_gradient(X=X, y=None, **params):
    record = RecordsGradients()
    small(callbacks=[record], max_epochs=1, **params).fit(X, y)
    return record.gradient


# Equal to one process

CASES = {
    "batch norm": {},
    "no batch norm": {"encoder": MLP((16,), batch_norm=False), "projection_dim": 0},
    "images": {"X": IMAGES, "encoder": ConvNet(widths=(4, 8)), "precision": "float32"},
    "uneven batches, three views": {"batch_size": 24, "n_views": 3},
    "batches of three": {"X": X[:9], "batch_size": 3},
    "labels": {"loss": SupCon(), "y": np.where(np.arange(len(Y)) % 3, Y, -1)},
    "hard negatives": {"loss": HCL(tau_plus=0.1, beta=1.0), "batch_size": 50},
    "a module's own batch norm": {
        "encoder": nn.Sequential(
            nn.Linear(64, 32),
            nn.BatchNorm1d(32, affine=False, track_running_stats=False),
            nn.ReLU(),
            nn.BatchNorm1d(32, momentum=None),
        )
    },
}


@pytest.mark.parametrize("params", CASES.values(), ids=CASES)
def test_gradient_is_the_one_of_the_whole_batch(ranks, params):
    expected = first_gradient(**params)
    for found in ranks(first_gradient, **params):
        assert found.keys() == expected.keys()
        for name, gradient in expected.items():
            np.testing.assert_allclose(found[name], gradient, rtol=0, atol=5e-6, err_msg=name)


def gradient_in_float64(shape, loss, channels_last):
    """Return the gradient on this rank, or of one process where there is no group."""
    torch.manual_seed(0)
    encoder = ConvNet(widths=(3, 4)) if len(shape) == 3 else MLP((6,))
    network = encoder.build(shape, 8).double().train()
    views = torch.randn(2, 7, *shape, dtype=torch.float64)
    if channels_last:
        views = torch.stack([view.to(memory_format=torch.channels_last) for view in views])
        network.to(memory_format=torch.channels_last)
    labels, similarity, world = torch.tensor([0, 1, 0, 1, -1, 2, 2]), Cosine(), current_world()
    shared = network if world is None else SharedNetwork(network, world)
    z = shared(views.flatten(0, 1)).unflatten(0, (2, 7))
    contrast = in_batch(similarity.embed(z), similarity, labels)
    part = 1
    if world is not None:
        contrast = contrast.take(world.share(14))
        part = len(contrast.anchors) / 14
    value = objective_value(contrast, loss, similarity) * part
    value.backward()
    parameters, value = list(network.parameters()), value.detach()
    if world is not None:
        (value,) = sum_gradients(parameters, value)
    return [float(value), *(p.grad.numpy() for p in parameters)]


@pytest.mark.parametrize(
    "shape, channels_last", [((5,), False), ((1, 6, 6), False), ((3, 6, 6), True)]
)
@pytest.mark.parametrize("loss", [BCL(beta=1.0), SupCon()], ids=repr)
def test_gradient_in_double_precision(ranks, loss, shape, channels_last):
    expected = gradient_in_float64(shape, loss, channels_last)
    for found in ranks(gradient_in_float64, shape, loss, channels_last):
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


MORE = {
    **CASES,
    "weights": {"metadata": {"sample_weight": np.arange(101) % 4}},
    "descriptions": {
        "metadata": {"descriptions": np.random.default_rng(0).normal(size=(101, 5))},
        "projection_dim": 5,
    },
    "a Dataset": {"X": TensorDataset(torch.as_tensor(X)), "batch_size": 40},
    "auto from labels": {
        "loss": BCL(alpha=Auto(every=1), tau_plus="auto"),
        "y": Y,
        "max_epochs": 3,
    },
    "a queue": {"framework": MoCo(queue_size=40, momentum=0.9), "batch_size": 24, "max_epochs": 3},
    "a queue with labels, both views": {
        "framework": MoCo(momentum=0.5, symmetric=True, in_batch=True),
        "loss": SupCon(),
        "y": Y,
    },
    "two encoders and a bank": {"framework": CMC(n_negatives=30), "n_components": 16},
    "a framework of one's own": {"framework": Trains()},
    "auto from ranks": {"loss": BCL(alpha=Auto(every=2)), "max_epochs": 4, "batch_size": 40},
}


@pytest.mark.parametrize("params", MORE.values(), ids=MORE)
def test_fit_is_the_fit_of_one_process(ranks, params):
    first, second = ranks(fitted, **params)
    assert_equal(first, second)
    assert_equal(fitted(**params), first, atol=2e-5)


def test_adam_shifts_the_embedding_at_most(ranks):
    # The bias of the encoder's last layer, which batch norm takes away again, has a gradient of
    # nothing but rounding, and Adam makes steps of one size of gradients of any size.
    params = {"optimizer": "adam", "lr": 1e-3, "max_epochs": 5}
    first, second = ranks(fitted, **params)
    assert_equal(first, second)
    difference = first["embedding"] - fitted(**params)["embedding"]
    np.testing.assert_allclose(
        difference, np.broadcast_to(difference[0], difference.shape), atol=1e-5
    )
    assert abs(difference).max() < 0.01


def test_bf16(ranks):
    params = {"X": IMAGES, "encoder": ConvNet(widths=(4, 8)), "precision": "bf16", "max_epochs": 3}
    first, second = ranks(fitted, **params)
    assert_equal(first, second)
    losses = [[row["train_loss"] for row in r["history"]] for r in (first, fitted(**params))]
    np.testing.assert_allclose(*losses, rtol=1e-2)


def fitted_compiled():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's own
        warnings.filterwarnings("error", "compile=True")
        return fitted(compile=True, batch_size=50)


@pytest.mark.slow
def test_compiled(ranks):
    first, second = ranks(fitted_compiled)
    assert_equal(first, second)
    assert_equal(fitted(batch_size=50), first, atol=2e-5)


def fitted_on_and_on(**params):
    embedder = small(optimizer="sgd", lr_schedule="constant", **params)
    for _ in range(2):
        embedder.partial_fit(X)
    return result(embedder.set_params(warm_start=True).fit(X))


@pytest.mark.parametrize("framework", [None, MoCo(momentum=0.9)], ids=repr)
def test_going_on(ranks, framework):
    first, second = ranks(fitted_on_and_on, framework=framework)
    assert_equal(first, second)
    assert_equal(fitted_on_and_on(framework=framework), first, atol=2e-5)


# Consistent whatever each rank starts with


def fitted_with_own_seed(random_state):
    if random_state == "RandomState":
        random_state = np.random.RandomState(rank())
    return fitted(random_state=random_state)


@pytest.mark.parametrize("random_state", [None, "RandomState"])
def test_the_seed_is_the_one_of_rank_0(ranks, random_state):
    assert_equal(*ranks(fitted_with_own_seed, random_state))


def test_the_seed_of_an_instance(ranks):
    first, _ = ranks(fitted_with_own_seed, "RandomState")
    assert_equal(fitted(random_state=np.random.RandomState(0)), first, atol=2e-5)


def fitted_with_own_weights():
    module = nn.Sequential(nn.Linear(64, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.5))
    with torch.no_grad():
        module[0].weight.fill_(0.1 + rank()).diagonal().fill_(0)
    return fitted(encoder=module)


def test_the_weights_start_from_those_of_rank_0(ranks):
    assert_equal(*ranks(fitted_with_own_weights))


def dropped():
    masks = []

    class Records(nn.Dropout):
        def forward(self, x):
            masks.append(super().forward(torch.ones_like(x)).numpy())
            return x

    small(encoder=nn.Sequential(nn.Linear(64, 16), Records()), max_epochs=1).fit(X)
    return masks[-1]


def test_ranks_drop_different_units(ranks):
    first, second = ranks(dropped)
    assert first.shape == second.shape == (101, 16)
    assert not np.array_equal(first, second)


# Together, or not at all


class RaisesOnRank1(Callback):
    """Calls something at the end of epoch 3, on rank 1 only."""

    def __init__(self, action):
        self.action = action

    def on_epoch_end(self, net, **kwargs):
        if rank() == 1 and len(net.history) == 3:
            self.action()


def stop():
    raise KeyboardInterrupt


def test_a_callback_of_one_rank_stops_all(ranks):
    first, second = ranks(fitted, callbacks=[RaisesOnRank1(stop)], max_epochs=6)
    assert len(first["history"]) == 3
    assert_equal(first, second)


def test_early_stopping(ranks):
    stopping = EarlyStopping(monitor="train_loss", patience=2, threshold=10.0)
    first, second = ranks(fitted, callbacks=[stopping], max_epochs=20)
    assert 1 < len(first["history"]) < 20
    assert_equal(first, second)


class Interrupts(Callback):
    """Presses Ctrl-C in the second step of an epoch, on rank 1 only."""

    steps = 0

    def on_batch_begin(self, net, **kwargs):
        self.steps += 1
        if rank() == 1 and self.steps == 8:
            os.kill(os.getpid(), signal.SIGINT)


def interrupted():
    embedder = small(optimizer="sgd", batch_size=26, max_epochs=10, callbacks=[Interrupts()])
    with pytest.raises(KeyboardInterrupt, match="keeps what it learned in 1 epochs"):
        embedder.fit(X)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    return result(embedder)


def test_an_interrupt_of_one_rank_interrupts_all_at_the_same_step(ranks):
    assert_equal(*ranks(interrupted))


def error_of(**own):
    """Return the message with which fit refuses what differs between the ranks."""
    arguments = {name: values[rank()] for name, values in own.items()}
    X_ = arguments.pop("X", X)
    y = arguments.pop("y", None)
    with pytest.raises(ValueError) as error:
        small(**arguments).fit(X_, y)
    return str(error.value)


@pytest.mark.parametrize(
    "own",
    [
        {"X": (X[:50], X[50:100])},
        {"X": (X[:50], X[50:])},
        {"X": (X, X.astype(np.float32))},
        {"y": (Y, Y[::-1]), "loss": (SupCon(), SupCon())},
        {"max_epochs": (2, 3)},
    ],
    ids=["own half", "own part", "dtype", "y", "parameter"],
)
def test_ranks_with_other_data_or_parameters_are_refused(ranks, own):
    for message in ranks(error_of, **own):
        assert "other data or parameters on rank 1 than on rank 0" in message


def test_errors_that_all_ranks_see(ranks):
    broken = np.full((4, 3), np.nan)
    assert all("NaN" in message for message in ranks(error_of, X=(broken, broken)))
    diverging = {"lr": 1e30, "encoder": MLP((16,), batch_norm=False), "projection_dim": 0}
    own = {name: (value, value) for name, value in {**diverging, "optimizer": "sgd"}.items()}
    assert all("diverged" in message for message in ranks(error_of, **own))


def test_more_processes_than_views_are_refused():
    with pytest.raises(ValueError, match="encodes 4 views, fewer than the 5 processes"):
        SharedNetwork(nn.Identity(), World(0, 5))(torch.zeros(4, 3))


# Who prints, who trains alone


def printed():
    with contextlib.redirect_stderr(io.StringIO()) as err, contextlib.redirect_stdout(err):
        small(verbose=1).fit(X)
    return err.getvalue()


def test_only_rank_0_prints(ranks):
    first, second = ranks(printed)
    assert "2/2" in first and second == ""


def fitted_in_a_thread():
    """Fit on rank 0 only."""
    results = []
    thread = threading.Thread(target=lambda: results.append(fitted()))
    if rank() == 0:
        thread.start()
        thread.join()
    return results


def test_a_fit_in_a_thread_is_the_fit_of_one_process(ranks):
    (alone,), _ = ranks(fitted_in_a_thread)
    assert_equal(alone, fitted(), atol=2e-5)


def test_without_a_group_there_is_no_world(monkeypatch):
    assert current_world() is None
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "a worker of joblib inherits this")
    monkeypatch.setattr("multiprocessing.parent_process", lambda: "the one that torchrun started")
    assert current_world() is None


# The parts


def test_shares_are_all_rows_once_and_of_sizes_that_differ_by_at_most_one():
    for size in (1, 2, 3, 8):
        for n in range(size, 40):
            shares = [np.arange(n)[World(rank, size).share(n)] for rank in range(size)]
            assert np.array_equal(np.concatenate(shares), np.arange(n))
            assert max(map(len, shares)) - min(map(len, shares)) <= 1


def gathered():
    world = current_world()
    parameters = [torch.ones(2, requires_grad=True) for _ in range(3)]
    parameters[world.rank].grad = torch.full((2,), 5.0)
    sums = sum_gradients(parameters, torch.tensor(1.0), torch.tensor(world.rank + 1.0))
    return {
        "gather": gather(torch.tensor([world.rank, 7]), world).tolist(),
        "pool": pool(torch.arange(world.rank + 1.0), world).tolist(),
        "sums": [float(number) for number in sums],
        "gradients": [None if p.grad is None else p.grad.tolist() for p in parameters],
    }


def test_collectives(ranks):
    for found in ranks(gathered):
        assert found == {
            "gather": [[0, 7], [1, 7]],
            "pool": [0.0, 0.0, 1.0],
            "sums": [2.0, 3.0],
            "gradients": [[5.0, 5.0], [5.0, 5.0], None],
        }


# torchrun

SCRIPT = """
    import os, pathlib, sys
    from sklearn.datasets import load_digits
    from skcontrast import ContrastiveEmbedder
    from skcontrast.encoders import MLP

    rank, X = os.environ["RANK"], load_digits().data[:101]
    embedder = ContrastiveEmbedder(MLP((16,)), max_epochs=2, device="cpu").fit(X)
    pathlib.Path(sys.argv[1], rank).write_bytes(embedder.transform(X).tobytes())
    if rank == sys.argv[2]:
        raise RuntimeError("disk full")
    embedder.fit(X)
"""


def torchrun(folder, failing=""):
    """Run the script on two ranks, of which one may fail between two fits."""
    script = folder / "script.py"
    script.write_text(textwrap.dedent(SCRIPT))
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    return subprocess.run(
        [*command, str(script), str(folder), failing],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
    )


def test_torchrun_is_enough(tmp_path):
    run = torchrun(tmp_path)
    assert run.returncode == 0, run.stderr
    embeddings = [(tmp_path / rank).read_bytes() for rank in ("0", "1")]
    assert embeddings[0] == embeddings[1] != b""


@pytest.mark.slow
def test_an_error_on_one_rank_ends_all(tmp_path):
    run = torchrun(tmp_path, failing="1")
    assert run.returncode != 0 and "disk full" in run.stderr


# Many fits


def test_grid_search_on_a_dask_cluster():
    dask = pytest.importorskip("dask.distributed")
    pipe = Pipeline(
        [
            ("images", Unflatten((1, 8, 8))),
            ("affine", RandomAffine()),
            ("embed", small(encoder=None)),
            ("clf", LogisticRegression()),
        ]
    )
    grid = {
        "embed__encoder": [ConvNet(widths=(4,)), nn.Sequential(nn.Flatten(), nn.Linear(64, 8))],
        "embed__loss": [BCL(), HCL(beta=Linear(1.0, 0.0))],
    }
    search = GridSearchCV(pipe, grid, cv=2, error_score="raise")
    here = clone(search).fit(X, Y % 2)
    cluster = dask.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    )
    with cluster, dask.Client(cluster), joblib.parallel_config("dask"):
        there = search.set_params(n_jobs=-1).fit(X, Y % 2)
    for name in ("mean_test_score", "rank_test_score"):
        np.testing.assert_allclose(there.cv_results_[name], here.cv_results_[name])
    np.testing.assert_allclose(there.predict_proba(X), here.predict_proba(X), atol=1e-4)
