"""Lists, golden values and helpers that several test modules share.

They stand here and not in conftest.py because tests are parametrised with them, or because
spawned processes import them: fixtures exist at neither time.
"""

import json
import multiprocessing
import pickle
import random
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.utils.estimator_checks import check_estimator
from torch import nn
from torch.utils.data import Dataset

from skcontrast import ContrastiveEmbedder, contrastive_loss, load, losses, save
from skcontrast._fit import _net  # private: every loss of a fit is checked
from skcontrast.encoders import MLP, ConvNet
from skcontrast.frameworks import Framework, Session, SimCLR
from skcontrast.kinds import Kind


@cache
def golden_file():
    """Return the reference values; `meta` in the file says how each was made."""
    path = Path(__file__).parent / "golden" / "losses.json"
    return json.loads(path.read_text(encoding="utf-8"))


def golden_cases():
    return golden_file()["cases"]


def golden_vmf():
    """Return the table of the von Mises–Fisher distribution."""
    return golden_file()["vmf"]


def golden_input(name, n, d):
    """Return the rows of the golden file's `inputs_formula`, float64, of unit length."""
    i = torch.arange(n, dtype=torch.float64)[:, None]
    j = torch.arange(d, dtype=torch.float64)
    wave = torch.sin(0.37 * (i + 1) * (j + 1))
    rows = {
        "A": wave + 0.1 * torch.cos(1.7 * i - 0.3 * j),
        "B": wave + 0.4 * torch.cos(0.53 * (i + 2) * (j + 1)),
        "C": wave + 0.3 * torch.sin(0.91 * (i + 1) + 0.47 * (j + 1) ** 2),
        "Q": torch.cos(0.29 * (i + 1) * (j + 2)) + 0.2 * torch.sin(1.1 * i + 0.7 * j),
    }[name]
    return rows / rows.norm(dim=1, keepdim=True)


def random_views(n, d, n_views=2, *, dtype=torch.float64, seed=0):
    """Return views that are noisy copies of common samples."""
    generator = torch.Generator().manual_seed(seed)
    base = torch.randn(n, d, generator=generator, dtype=dtype)
    noise = torch.randn(n_views, n, d, generator=generator, dtype=dtype)
    return list(base + 0.5 * noise)


X_DIGITS = load_digits().data[:200]
IMAGES = X_DIGITS.reshape(-1, 1, 8, 8)

# Every loss once, with hyperparameters that are not its defaults; a new loss adds its line here.
LOSSES = [
    losses.InfoNCE(),
    losses.DCL(tau_plus=0.2),
    losses.HCL(tau_plus=0.05, beta=0.7),
    losses.HCL(tau_plus=0.2, beta=2.0, detach_weights=True),
    losses.PUCL(tau_plus=0.15, c=0.2),
    losses.Ring(outer=0.6, inner=0.2),
    losses.SoftSupCon(sharpness=4.0, tau_plus=0.15, pull=0.4),
    losses.SoftRing(sharpness=4.0, tau_plus=0.15, beta=0.5, floor=0.2, detach_weights=False),
    losses.BCL(alpha=0.8, tau_plus=0.2),
    losses.BCL(alpha=0.9, beta=0.7, form="printed", detach_weights=False),
    losses.NonparametricBCL(alpha=0.8, beta=0.7),
    losses.NonparametricBCL(alpha=0.6, beta=0.9, tau_plus=0.3, form="printed"),
    losses.PositiveDebiased(tau_plus=0.15),
    losses.PositiveDebiased(tau_plus=0.15, negatives=losses.HCL(tau_plus=0.1, beta=0.7)),
    losses.PositiveDebiased(tau_plus=0.15, negatives=losses.BCL(), form="printed"),
    losses.PositiveDebiased(tau_plus=0.15, negatives=losses.Ring(outer=0.7, inner=0.2)),
    losses.PositiveDebiased(tau_plus=0.1, negatives=losses.Supervised()),
    losses.Supervised(),
    losses.SupCon(),
    losses.SINCERE(),
    losses.SemiSupCon(every=1, share=0.5),
]


def check_sklearn_contract(estimator, expected_failures=None):
    """Run scikit-learn's checks of estimators, and name all that fail.

    Parameters
    ----------
    estimator : estimator
        Not fitted.
    expected_failures : dict of str, default=None
        The checks that must fail, with the reasons.
    """
    expected_failures = expected_failures or {}
    results = check_estimator(
        estimator, expected_failed_checks=expected_failures, on_skip=None, on_fail=None
    )
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    assert not failed, failed
    assert {r["check_name"] for r in results if r["status"] == "xfail"} == set(expected_failures)
    assert sum(r["status"] == "passed" for r in results) > 30


def check_every_loss(monkeypatch, embedder, X, y):
    """Fit, and at each step compute every loss, and its gradient, of what is contrasted there."""
    objective_value = _net.objective_value

    def checked(contrast, loss, similarity, objective, same_group):
        for other in LOSSES:
            arguments = contrast, other, similarity, objective, same_group
            if objective == "jensen-shannon" and not other.is_estimate:
                with pytest.raises(ValueError, match="no Jensen–Shannon form"):
                    objective_value(*arguments)
                continue
            value = objective_value(*arguments)
            (slopes,) = torch.autograd.grad(value, contrast.anchors, retain_graph=True)
            assert value.isfinite() and slopes.isfinite().all(), other
        return objective_value(contrast, loss, similarity, objective, same_group)

    monkeypatch.setattr(_net, "objective_value", checked)
    embedder.set_params(loss=losses.Supervised()).fit(X, y)


def some_labels(n):
    """Return three classes and, first, an unlabeled sample."""
    labels = torch.arange(n) % 3
    labels[0] = -1
    return labels


def evaluate(*views, loss, **kwargs):
    """Return the loss, with labels where it needs them, by default some, and nowhere else."""
    if loss.requires_y:
        kwargs.setdefault("y", some_labels(len(views[0])))
        if kwargs.get("queue") is not None:
            kwargs.setdefault("queue_y", some_labels(len(kwargs["queue"])))
    else:
        kwargs = {name: value for name, value in kwargs.items() if name not in ("y", "queue_y")}
    return contrastive_loss(*views, loss=loss, **kwargs)


def small(**kwargs):
    """Return an embedder that trains in a moment."""
    defaults = {"encoder": MLP(widths=(16,)), "max_epochs": 2, "random_state": 0, "device": "cpu"}
    return ContrastiveEmbedder(**{**defaults, **kwargs})


def vectors(n=60, d=5, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def images(n=20, channels=3, side=6, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, size=(n, channels, side, side), dtype=np.uint8)


def small_images(**kwargs):
    return small(encoder=ConvNet(widths=(8,)), **kwargs)


class Items(Dataset):
    """A Dataset of the items of a sequence, with a label beside each if one is given."""

    def __init__(self, items, *label):
        self.items, self.label = items, label

    def __len__(self):
        return len(self.items)

    def __getitem__(self, row):
        return (self.items[row], *self.label) if self.label else self.items[row]


class Numbers(Kind):
    """Arrays of numbers, as a kind of one's own."""

    name = "numbers"

    def check(self, X):
        return np.asarray(X)

    def to_tensor(self, X, device):
        return torch.from_numpy(X).to(device)


def reloaded(fitted, folder, **kwargs):
    """Return what a file of something fitted holds."""
    save(fitted, folder / "a.safetensors")
    return load(folder / "a.safetensors", **kwargs)


def run_onnx(path, X):
    """Return what an exported network makes of samples."""
    onnxruntime = pytest.importorskip("onnxruntime")
    return onnxruntime.InferenceSession(path).run(None, {"X": X})[0]


# gradcheck along random directions, and among the slow tests of each number.
BY_DIRECTIONS = pytest.mark.parametrize(
    "fast_mode", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["", "each number"]
)


def global_states():
    """Return the states of the global generators."""
    states = torch.get_rng_state().numpy(), np.random.get_state(), random.getstate()  # noqa: NPY002
    return pickle.dumps(states)


def processes():
    """Return the context of multiprocessing from which tests start processes.

    On Linux a server forks them: an interpreter that has imported what tests need and has done
    nothing else. A new process is ready at once and is otherwise as if spawned.
    """
    if sys.platform != "linux":
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["pytest", "tests.common"])
    return context


def in_a_process(function, *args):
    """Return what a function at the top of a module returns in a process of its own."""
    with ProcessPoolExecutor(1, mp_context=processes()) as executor:
        return executor.submit(function, *args).result(timeout=300)


def inverse_cdf(p, alpha):
    """Return Φ of a draw from αφ(1) + (1−α)φ(2), by the inverse of its cdf 2αu + (1−2α)u²."""
    return p / (alpha + np.sqrt(alpha**2 + (1 - 2 * alpha) * p))


def simulated_ranks(alpha, tau_plus, n_candidates, n_positives=50_000, seed=0):
    """Return ranks of positives that are drawn as false negatives are."""
    rng = np.random.default_rng(seed)
    positives = inverse_cdf(rng.random(n_positives), 1 - alpha)
    # The number of candidates below is binomial, given the cdf of a random candidate.
    a = (1 - 2 * alpha) * (1 - 2 * tau_plus)
    v = (1 - a) * positives + a * positives**2
    return rng.binomial(n_candidates, v) / n_candidates


class Trains(Framework):
    """Has a parameter of its own that is trained."""

    def start(self, context):
        return TrainsSession(context)


class TrainsSession(Session):
    def __init__(self, context):
        super().__init__(context)
        self.predictor = nn.Linear(context.width, context.width)
        self.n_updates = 0

    def contrast(self, views, similarity, batch):
        return SimCLR().contrast(
            lambda x: self.predictor(self.context.network(x)), views, similarity, batch
        )

    def update(self):
        self.n_updates += 1
