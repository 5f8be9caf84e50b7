"""What training starts from: a new network, or a copy of a trained one."""

import operator

import numpy as np
import pytest
import torch
from sklearn.pipeline import make_pipeline
from torch import nn

# private: the model before its fit
from skcontrast._model._model import continued_model, new_model
from skcontrast._model._settings import resolve_settings  # private: settings without a fit
from skcontrast.augmentation import GaussianNoise, MarginalCorruption
from skcontrast.encoders import MLP
from skcontrast.kinds import Vectors
from skcontrast.kinds._recognise import read_samples  # private: samples without a fit
from skcontrast.losses import DCL
from tests.common import images, small, vectors


def parts(**kwargs):
    """Return the choices of an embedder, X as its kind reads it, and what X is."""
    settings = resolve_settings(small(**kwargs))
    return settings, *read_samples(vectors(), estimator=small())


def states_equal(first, second):
    first, second = first.state_dict(), second.state_dict()
    return first.keys() == second.keys() and all(first[k].equal(second[k]) for k in first)


def test_a_continued_network_is_a_copy():
    settings, X, schema = parts()
    past = new_model(settings, X, schema, None)
    model = continued_model(settings, X, None, past)
    assert model.network is not past.network and states_equal(model.network, past.network)
    with torch.no_grad():
        next(model.network.parameters()).add_(1)
    assert not states_equal(model.network, past.network)
    assert model.scaler is past.scaler and model.schema is past.schema


def test_a_continued_model_takes_the_new_choices_and_keeps_the_chain_unless_one_is_given():
    settings, X, schema = parts()
    past = new_model(settings, X, schema, None)
    changed, _, _ = parts(loss=DCL(tau_plus=0.3), augmentation=GaussianNoise())
    kept, given = (
        continued_model(changed, X, chain, past) for chain in (None, changed.augmentation)
    )
    assert repr(kept.loss) == repr(DCL(tau_plus=0.3)) and repr(past.loss) == repr(settings.loss)
    assert all(map(operator.is_, kept.augmentation, past.augmentation))
    assert isinstance(kept.augmentation[0], MarginalCorruption)
    assert isinstance(given.augmentation[0], GaussianNoise)


def test_augmentations_are_fitted_as_clones_also_those_of_a_pipeline():
    own = GaussianNoise()
    embedder = small(augmentation=own).fit(vectors())
    assert embedder.augmentation_[0] is not own and not own.__sklearn_is_fitted__()
    pipe = make_pipeline(GaussianNoise(), small()).fit(vectors())
    fitted = pipe[-1].augmentation_[0]
    assert fitted is not pipe[0]
    np.testing.assert_array_equal(fitted.std_, pipe[0].std_)


def test_a_model_draws_views_from_samples_and_from_batches_alike():
    settings, X, schema = parts(encoder=MLP(widths=(4,)), augmentation=GaussianNoise())
    model = new_model(settings, X, schema, settings.augmentation)
    draw = model.sampler(model.augmentation, torch.device("cpu")).draw
    batch = model.scaler.to_tensor(X, "cpu")
    views = [draw(batch, torch.Generator().manual_seed(1)) for _ in range(2)]
    assert isinstance(schema.kind, Vectors) and views[0].equal(views[1])
    assert views[0].shape == (60, 5) and not np.array_equal(views[0], batch)


@pytest.mark.parametrize("library", ["timm", "torchvision", "transformers"])
def test_a_network_of_a_library_of_pretrained_ones_is_warned_of(library):
    class Net(nn.Conv2d):
        __module__ = f"{library}.models"

        def forward(self, x):
            return super().forward(x).mean((2, 3))

    with pytest.warns(UserWarning, match=r"Net is passed without Pretrained.*Pretrained\(network"):
        small(encoder=Net(3, 4, 3)).fit(images())
    small(encoder=nn.Sequential(Net(3, 4, 3))).fit(images())
