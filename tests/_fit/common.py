"""Fits of every kind of state, and what they leave behind, comparable to the bit."""

import networkx as nx
import numpy as np
import torch
from sklearn.datasets import load_digits
from skorch.callbacks import Callback, EarlyStopping, Freezer, LRScheduler
from torch.utils.data import TensorDataset

from skcontrast.callbacks import Evaluation
from skcontrast.encoders import GIN, MLP, ConvNet, PatchNet
from skcontrast.frameworks import CMC, InfoGraph, MoCo
from skcontrast.losses import BCL, DCL, SemiSupCon
from skcontrast.schedules import Auto, Linear
from tests.common import Trains, small

X, Y = (array[:90] for array in load_digits(return_X_y=True))
FEW = np.where(np.arange(90) < 30, Y, -1)
GRAPHS = [nx.gnp_random_graph(8, 0.2 + 0.1 * (k % 5), seed=k) for k in range(30)]
N_EPOCHS = 4


def first_epochs_are_best(embedder, X, y):
    """Score an embedder such that its second epoch is the best."""
    return -abs(embedder.n_epochs_ - 2)


def evaluation(**options):
    return Evaluation(first_epochs_are_best, X[:20], **options)


class Counts(Callback):
    """Keeps something in every way that there is."""

    def on_train_begin(self, net, **kwargs):
        self.n_, self.seen_ = 0, {"rows": [], "mean": torch.zeros(2)}

    def on_epoch_end(self, net, **kwargs):
        self.n_ += 1
        self.seen_["rows"].append((self.n_, net.history[-1, "train_loss"]))
        self.seen_["mean"] += self.n_
        net.history.record("counted", self.n_)


class Gone(RuntimeError):
    """The process would be gone."""


class FailsAfter(Callback):
    """Lets a fit end in the middle of the epoch after some."""

    def __init__(self, n_epochs):
        self.n_epochs = n_epochs

    def on_batch_end(self, net, training, **kwargs):
        if len(net.history) > self.n_epochs:
            raise Gone


# Parameters of `small`; "X" and "y" are passed to fit. Callbacks are made for each fit.
CASES = {
    "SimCLR": {},
    "MoCo": {"framework": MoCo(queue_size=50, momentum=0.9), "batch_size": 30},
    "CMC": {"framework": CMC(n_negatives=30)},
    "InfoGraph": {"framework": InfoGraph(), "X": GRAPHS, "encoder": GIN(n_layers=2, width=8)},
    "spread labels": {"loss": SemiSupCon(every=3), "y": FEW},
    "auto from ranks": {"loss": BCL(alpha=Auto(every=2), tau_plus=Auto(every=3))},
    "auto from few labels": {"loss": BCL(alpha=Auto(every=2), tau_plus=Auto(every=3)), "y": FEW},
    "schedules": {"loss": DCL(tau_plus=Linear(0.0, 0.2)), "optimizer": "sgd"},
    "dropout": {"encoder": MLP((16,), dropout=0.3)},
    "a Dataset": {"X": TensorDataset(torch.as_tensor(X))},
    "a framework of one's own": {"framework": Trains()},
    "images": {"X": X.reshape(-1, 1, 8, 8) / 16, "encoder": ConvNet(widths=(4,))},
    "a dictionary of patches": {
        "X": X.reshape(-1, 1, 8, 8) / 16,
        "encoder": PatchNet(n_patches=4, patch_size=3, widths=(4,)),
    },
    "the best weights": {"callbacks": lambda: [evaluation(restore_best=True)]},
    "patience": {"callbacks": lambda: [evaluation(patience=1)], "max_epochs": 6},
    "early stopping": {
        "callbacks": lambda: [EarlyStopping("train_loss", patience=2, threshold=0.5)],
        "max_epochs": 6,
    },
    "a scheduler": {
        "callbacks": lambda: [LRScheduler("StepLR", step_size=2, gamma=0.5)],
        "lr_schedule": "constant",
    },
    "frozen later": {"callbacks": lambda: [Freezer("encoder.*.weight", at=2)]},
    "a callback of one's own": {"callbacks": lambda: [Counts()]},
}


def fit_case(name, callbacks=(), **params):
    """Return an embedder that is fitted as a case says, with further callbacks."""
    defaults = {"max_epochs": N_EPOCHS, "batch_size": 45, "warm_start": True}
    case = {**defaults, **CASES[name], **params}
    data, y = case.pop("X", X), case.pop("y", None)
    made = case.pop("callbacks", list)()
    return small(**case, callbacks=[*made, *callbacks]).fit(data, y)


def left_behind(embedder):
    """Return all that a fit has learned as nested values of which each can be compared."""
    fitted = embedder._model
    rows = [
        {k: v for k, v in row.items() if k not in ("dur", "batches")} for row in fitted.history
    ]
    module = fitted.network
    tensors = dict([*module.named_parameters(), *module.named_buffers()])
    return {
        "weights": {name: tensor.detach().numpy().copy() for name, tensor in tensors.items()},
        "history": rows,
        "estimates": dict(fitted.estimates),
        "states": _arrays(embedder._states),
    }


def _arrays(value):
    if isinstance(value, torch.Tensor):
        return value.detach().numpy().copy()
    if isinstance(value, dict):
        return {key: _arrays(item) for key, item in value.items()}
    return value


def assert_same_bits(found, expected, place="fit"):
    """Compare nested values; NaN equals NaN."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys(), place
        for key, item in expected.items():
            assert_same_bits(found[key], item, f"{place}.{key}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), place
        for k, item in enumerate(expected):
            assert_same_bits(found[k], item, f"{place}.{k}")
    else:
        np.testing.assert_array_equal(found, expected, err_msg=place)
