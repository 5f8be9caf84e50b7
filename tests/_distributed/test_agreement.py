"""Ranks that were given different things are told what differs, and where."""

import functools

import numpy as np
import pytest
import torch
from skorch.callbacks import Callback
from skorch.history import History
from torch import nn
from torch.utils.data import TensorDataset

from skcontrast._distributed import _agreement
from skcontrast.augmentation import FeatureDropout, FunctionAugmentation, GaussianNoise
from skcontrast.encoders import MLP
from skcontrast.frameworks import MoCo, SimCLR
from skcontrast.losses import DCL, HCL, InfoNCE, PositiveDebiased, SupCon
from skcontrast.optimizers import Optimizer
from skcontrast.schedules import Linear
from skcontrast.similarity import Cosine
from tests._distributed.common import X, Y, rank
from tests.common import small

pytestmark = pytest.mark.skipif(
    not torch.distributed.is_available(), reason="needs torch.distributed"
)
REFUSAL = "fit was given different data or parameters on rank 1 than on rank 0: "


def error_of(**values):
    """Return the message with which fit refuses what differs between the ranks."""
    own = {name: value[rank()] for name, value in values.items()}
    X_, y = own.pop("X", X), own.pop("y", None)
    metadata = {name: own.pop(name) for name in ("sample_weight",) if name in own}
    with pytest.raises(ValueError) as error:
        small(**own).fit(X_, y, **metadata)
    return str(error.value)


def changed(array, value=0.25):
    """Return a copy of which one value differs, in a row that no sample of rows contains."""
    array = array.copy()
    array[(1234, *[3] * (array.ndim - 1))] = value
    return array


LONG = np.random.default_rng(0).normal(size=(2020, 5))
WEIGHTS = np.ones(2020)


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(64, 8)

    def forward(self, x):
        return self.layer(x)


@pytest.mark.parametrize(
    "own, expected",
    [
        ({"max_epochs": (2, 3)}, "'max_epochs' is 3 instead of 2."),
        ({"loss": (DCL(0.1), DCL(0.2))}, "'loss__tau_plus' is 0.2 instead of 0.1."),
        (
            {"loss": (InfoNCE(), DCL(0.1))},
            "'loss' is skcontrast.losses._debiased.DCL instead of "
            "skcontrast.losses._debiased.InfoNCE; ",
        ),
        (
            {"loss": (PositiveDebiased(negatives=DCL(0.1)), PositiveDebiased(negatives=DCL(0.2)))},
            "'loss__negatives__tau_plus' is 0.2 instead of 0.1.",
        ),
        (
            {"loss": (HCL(beta=Linear(1.0, 0.0)), HCL(beta=Linear(1.0, 0.5)))},
            "'loss__beta__stop' is 0.5 instead of 0.0.",
        ),
        ({"similarity": (Cosine(0.5), Cosine(0.1))}, "'similarity__temperature' is 0.1 instead"),
        ({"framework": (SimCLR(), MoCo(32))}, "'framework' is skcontrast.frameworks._moco.MoCo"),
        ({"framework": (MoCo(64), MoCo(32))}, "'framework__queue_size' is 32 instead of 64."),
        (
            {"augmentation": (GaussianNoise(0.1), [FeatureDropout(0.1), GaussianNoise(0.1)])},
            "'augmentation' is a list of 2 instead of skcontrast.augmentation.",
        ),
        (
            {"augmentation": (GaussianNoise(0.1), GaussianNoise(0.2))},
            "'augmentation__scale' is 0.2 instead of 0.1.",
        ),
        ({"encoder": (MLP((16,)), MLP((8,)))}, "'encoder__widths' is [8] instead of [16]."),
        (
            {"encoder": (MLP((16,), dropout=0.1), MLP((16,), dropout=0.2))},
            "'encoder__dropout' is 0.2 instead of 0.1.",
        ),
        (
            {"encoder": (nn.Linear(64, 8), nn.Linear(64, 9))},
            "'encoder__weight' is (9, 64) instead of (8, 64)",
        ),
        ({"encoder": (nn.Linear(64, 8), Scaled())}, "'encoder' is "),
        (
            {
                "encoder": (
                    nn.Sequential(nn.Linear(64, 8), nn.ReLU()),
                    nn.Sequential(nn.Linear(64, 8), nn.Tanh()),
                )
            },
            "'encoder__layers[2]' is torch.nn.modules.activation.Tanh() instead of",
        ),
        (
            {
                "encoder": (
                    nn.Sequential(nn.Linear(64, 8), nn.Dropout(0.1)),
                    nn.Sequential(nn.Linear(64, 8), nn.Dropout(0.2)),
                )
            },
            "'encoder__layers[2]' is torch.nn.modules.dropout.Dropout(p=0.2",
        ),
        ({"optimizer": (torch.optim.Adam, torch.optim.SGD)}, "'optimizer' is "),
        (
            {"optimizer": (Optimizer("adam"), Optimizer("sgd"))},
            "'optimizer__algorithm' is 'sgd' instead of 'adam'.",
        ),
        (
            {"lr_schedule": (Linear(1, 0), Linear(1, 0.5))},
            "'lr_schedule__stop' is 0.5 instead of 0.",
        ),
        ({"lr": (0.1, np.float64(0.2))}, "'lr' is "),
        ({"warm_start": (False, True)}, "'warm_start' is True instead of False."),
        ({"X": (X[:50], X[50:])}, "'X' is float64 of shape (51, 64) with checksum "),
        ({"X": (X, X.astype(np.float32))}, "'X' is float32 of shape (101, 64) with checksum "),
        ({"X": (X[:50], X[50:100])}, "'X' is float64 of shape (50, 64) with checksum "),
        ({"X": (LONG, changed(LONG))}, "'X' is float64 of shape (2020, 5) with checksum "),
        (
            {"X": (LONG, LONG), "sample_weight": (WEIGHTS, changed(WEIGHTS))},
            "'sample_weight' is ",
        ),
        ({"sample_weight": (np.ones(101), None)}, "'sample_weight' is missing instead of float"),
        ({"y": (Y, Y[::-1]), "loss": (SupCon(), SupCon())}, "'y' is int64 of shape (101,) with"),
        (
            {"X": [TensorDataset(torch.as_tensor(x)) for x in (X, X + 1)]},
            "'X' is float64 of shape (101, 64) with checksum ",
        ),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else next(iter(value)),
)
def test_the_message_names_what_differs_and_on_which_rank(ranks, own, expected):
    for message in ranks(error_of, **own):
        assert message.startswith(REFUSAL + expected)


def functions():
    """Fit with a function that is not the same on all ranks."""
    made = (FunctionAugmentation(functools.partial(torch.add, other=k)) for k in (1.1, 1.2))
    return error_of(augmentation=tuple(made))


def test_functions_are_compared_by_name_and_arguments(ranks):
    for message in ranks(functions):
        assert message.startswith(REFUSAL) and "augmentation__func[1]['other']" in message


def methods():
    """Call another method on each rank."""
    embedder = small()
    with pytest.raises(ValueError) as error:
        (embedder.fit if rank() else embedder.partial_fit)(X)
    return str(error.value)


def test_fit_and_partial_fit_are_not_mixed(ranks):
    for message in ranks(methods):
        assert message.startswith(f"{REFUSAL}'method' is fit instead of partial_fit.")


def pasts(case):
    """Continue a fit that is not the same on all ranks."""
    embedder = small(warm_start=True).set_params(max_epochs=1)
    if case == "a fit more":
        embedder.fit(X)
        if rank() == 1:
            embedder._fitted = None
            del embedder._fitted
    elif case == "weights":
        embedder.fit(X)
        with torch.no_grad():
            next(embedder.encoder_.parameters()).add_(rank())
    elif case == "epochs":
        for _ in range(2):
            embedder.fit(X)
        if rank() == 1:
            del embedder._fitted.history[-1]
    with pytest.raises(ValueError) as error:
        embedder.fit(X)
    return str(error.value)


@pytest.mark.parametrize(
    "case, expected",
    [
        pytest.param(
            "a fit more",
            "'earlier_fit__epochs' is missing instead of 1;",
            marks=pytest.mark.slow,
        ),
        ("weights", "'earlier_fit__state' is checksum "),
        ("epochs", "'earlier_fit__epochs' is 1 instead of 2."),
    ],
)
def test_fits_continue_from_the_same(ranks, case, expected):
    for message in ranks(pasts, case):
        assert message.startswith(REFUSAL + expected)


class Loads(Callback):
    """Loads a checkpoint with the history of an earlier fit."""

    def on_train_begin(self, net, **kwargs):
        if rank() == 1:
            net.history_ = History([{"epoch": 1, "batches": [], "train_loss": 1.0}])


def loaded():
    with pytest.raises(ValueError) as error:
        small(callbacks=[Loads()]).fit(X)
    return str(error.value)


def test_checkpoints_are_loaded_by_all_ranks(ranks):
    for message in ranks(loaded):
        assert message.startswith(f"{REFUSAL}'epochs' is 1 instead of 0.")


def with_version(own):
    before = _agreement.versions
    _agreement.versions = lambda names: {name: f"{name} {own[rank()]}" for name in names}
    try:
        return error_of()
    finally:
        _agreement.versions = before


def test_other_versions_are_refused(ranks):
    for message in ranks(with_version, ["1.0", "2.0"]):
        assert message.startswith(f"{REFUSAL}'skcontrast' is skcontrast 2.0 instead of ")
        assert "'torch' is torch 2.0 instead of torch 1.0." in message
