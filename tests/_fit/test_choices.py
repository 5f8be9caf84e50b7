"""The parameters of an embedder, checked and resolved."""

import numpy as np
import pytest
from skorch.callbacks import EarlyStopping, LRScheduler
from torch import nn

from skcontrast import ContrastiveEmbedder
from skcontrast.augmentation import GaussianNoise, Views
from skcontrast.encoders import MLP
from skcontrast.frameworks import SimCLR
from skcontrast.losses import DCL
from skcontrast.schedules import Linear, Steps
from skcontrast.similarity import Cosine
from tests.common import X_DIGITS, small

BAD_PARAMETERS = {
    "n_components=0": ({"n_components": 0}, ValueError, "'n_components'.*int in the range"),
    "projection_dim=-1": ({"projection_dim": -1}, ValueError, "'projection_dim'"),
    "output": ({"output": "both"}, ValueError, "'output'.*representation"),
    "n_views=1": ({"n_views": 1}, ValueError, "'n_views'"),
    "batch_size=1": ({"batch_size": 1}, ValueError, "'batch_size'"),
    "max_epochs=0": ({"max_epochs": 0}, ValueError, "'max_epochs'"),
    "lr": ({"lr": -1.0}, ValueError, "'lr'"),
    "optimizer name": ({"optimizer": "adagard"}, ValueError, "'optimizer'.*adam"),
    "optimizer class": ({"optimizer": dict}, TypeError, "'optimizer'.*Optimizer"),
    "lr_schedule": ({"lr_schedule": "linear"}, ValueError, "'lr_schedule'.*cosine"),
    "device": ({"device": "gpu"}, ValueError, "'device'.*'cpu'.*gpu"),
    "device meta": ({"device": "meta"}, ValueError, "'device'.*must hold data"),
    "device 99": ({"device": "cuda:99"}, ValueError, "'device'.*available"),
    "loss value": ({"loss": DCL(tau_plus=7)}, ValueError, r"'tau_plus' parameter of DCL.*\[0"),
    "schedule": (
        {"loss": DCL(tau_plus=Linear(0, 2))}, ValueError, "'tau_plus' parameter of DCL"
    ),
    "schedule value": (
        {"loss": DCL(tau_plus=Linear("a", 1))}, ValueError, "'start' parameter of Linear"
    ),
    "encoder value": ({"encoder": MLP(hidden=(-3,))}, ValueError, "hidden"),
    "similarity value": (
        {"similarity": Cosine(-1)}, ValueError, "'temperature' parameter of Cosine"
    ),
    "augmentation value": (
        {"augmentation": GaussianNoise(scale=-1)}, ValueError, "'scale' parameter of GaussianNoise"
    ),
    "augmentation type": ({"augmentation": "flip"}, TypeError, "'augmentation'"),
    "loss class": ({"loss": DCL}, TypeError, r"'loss'.*Write loss=DCL\(\)"),
    "loss type": ({"loss": "dcl"}, TypeError, "'loss'.*instance of Loss"),
    "framework class": ({"framework": SimCLR}, TypeError, r"framework=SimCLR\(\)"),
    "similarity class": ({"similarity": Cosine}, TypeError, r"similarity=Cosine\(\)"),
    "encoder class": ({"encoder": MLP}, TypeError, r"encoder=MLP\(\)"),
    "module class": ({"encoder": nn.Identity}, TypeError, "encoder"),
    "augmentation class": (
        {"augmentation": GaussianNoise}, TypeError, r"augmentation=GaussianNoise\(\)"
    ),
    "callback type": ({"callbacks": ["stop"]}, TypeError, "'callbacks'.*callbacks of skorch"),
    "callback monitor": ({"callbacks": [EarlyStopping()]}, ValueError, "monitor='train_loss'"),
    "two schedulers": ({"callbacks": [LRScheduler()]}, ValueError, "lr_schedule='constant'"),
    "lr factor": ({"lr_schedule": Linear(1, -1)}, ValueError, "'lr_schedule'.*at least"),
    "lr steps": ({"lr_schedule": Steps([1, np.nan], [0.5])}, ValueError, "'values'.*finite"),
    "nothing to train": (
        {"encoder": nn.Identity(), "projection_dim": 0}, ValueError, "nothing to train.*'encoder'"
    ),
    "callback class": ({"callbacks": [EarlyStopping]}, TypeError, r"EarlyStopping\(\)"),
    "module that does not fit": ({"encoder": nn.Linear(3, 2)}, ValueError, "encoder.*shape"),
    "module of other width": (
        {"encoder": nn.Linear(64, 2), "n_components": 3}, ValueError, "n_components"
    ),
}  # fmt: skip


@pytest.mark.parametrize("params, error, message", BAD_PARAMETERS.values(), ids=BAD_PARAMETERS)
def test_bad_parameter_is_refused_by_name(params, error, message):
    embedder = ContrastiveEmbedder(**{"max_epochs": 2, **params})
    with pytest.raises(error, match=message):
        embedder.fit(X_DIGITS)
    assert not hasattr(embedder, "encoder_") and not hasattr(embedder, "n_features_in_")


def test_views_can_be_passed_directly():
    views = GaussianNoise().fit_transform(X_DIGITS)
    assert isinstance(views, Views)
    embedder = small().fit(views)
    np.testing.assert_array_equal(embedder.transform(views), embedder.transform(X_DIGITS))
