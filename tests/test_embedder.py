"""The embedder: what is learned, transform, projection, score, refusals."""

import numpy as np
import pytest
import torch
from skorch.callbacks import EarlyStopping, LRScheduler
from torch import nn

from skcontrast import ContrastiveEmbedder
from skcontrast.augmentation import (
    GaussianNoise,
    MarginalCorruption,
    RandomAffine,
    SimCLRAugmentation,
    Views,
)
from skcontrast.encoders import MLP
from skcontrast.frameworks import SimCLR
from skcontrast.losses import DCL, HCL
from skcontrast.schedules import Linear, Steps
from skcontrast.similarity import Cosine
from tests.common import IMAGES, X_DIGITS, images, small, small_images, vectors


def test_default_augmentation_suits_the_kind_of_input():
    def default(X):
        return type(small(encoder=None).fit(X).augmentation_[0])

    assert default(vectors()) is MarginalCorruption
    assert default(images(channels=1)) is RandomAffine
    assert default(images(channels=3)) is SimCLRAugmentation


def test_changing_X_after_fit_changes_nothing():
    X = vectors()
    embedder = small(augmentation=MarginalCorruption()).fit(X)
    before, kept = embedder.score(vectors()), embedder.transform(vectors())
    X[:] = 0
    assert embedder.score(vectors()) == before
    np.testing.assert_array_equal(embedder.transform(vectors()), kept)


def test_fit_inside_inference_mode_and_under_a_different_default_dtype():
    expected = small().fit_transform(X_DIGITS)
    with torch.inference_mode():
        np.testing.assert_array_equal(small().fit_transform(X_DIGITS), expected)
    torch.set_default_dtype(torch.float64)
    try:
        assert small().fit_transform(X_DIGITS).dtype == np.float32
    finally:
        torch.set_default_dtype(torch.float32)


def test_score_rises_with_training_and_repeats():
    short, long = small(max_epochs=1).fit(X_DIGITS), small(max_epochs=30).fit(X_DIGITS)
    assert short.score(X_DIGITS) < long.score(X_DIGITS) < 0
    assert long.score(X_DIGITS) == long.score(X_DIGITS)


def test_score_compares_temperatures_on_one_scale():
    scores = [small(similarity=Cosine(t)).fit(X_DIGITS).score(X_DIGITS) for t in (0.05, 5.0)]
    assert abs(scores[0] - scores[1]) < 2


def test_transform_of_a_sample_does_not_depend_on_the_others():
    embedder = small_images().fit(IMAGES)
    whole = embedder.transform(IMAGES)
    order = np.random.default_rng(0).permutation(len(IMAGES))
    np.testing.assert_allclose(embedder.transform(IMAGES[order]), whole[order], atol=1e-6)
    np.testing.assert_allclose(embedder.transform(IMAGES[:1]), whole[:1], atol=1e-6)


def test_projection_is_the_head_on_the_representation():
    embedder = small(projection_dim=3).fit(X_DIGITS)
    h = embedder.transform(X_DIGITS)
    z = embedder.set_params(output="projection").transform(X_DIGITS)
    expected = embedder.projector_(torch.from_numpy(h)).detach().numpy()
    np.testing.assert_allclose(z, expected, atol=1e-6)
    assert len(embedder.get_feature_names_out()) == 3


def test_parameters_changed_after_fit_do_not_change_the_widths():
    embedder = small(projection_dim=5).fit(X_DIGITS)
    embedder.set_params(output="projection", projection_dim=7, n_components=9)
    assert embedder.transform(X_DIGITS).shape[1] == len(embedder.get_feature_names_out()) == 5
    with pytest.raises(ValueError, match="'output' parameter"):
        embedder.set_params(output="both").transform(X_DIGITS)


def test_without_a_head_projection_is_representation():
    embedder = small(projection_dim=0).fit(X_DIGITS)
    h = embedder.transform(X_DIGITS)
    np.testing.assert_array_equal(embedder.set_params(output="projection").transform(X_DIGITS), h)
    assert len(embedder.get_feature_names_out()) == h.shape[1]


def test_a_users_module_is_copied_and_trained():
    module = nn.Sequential(nn.Linear(64, 10), nn.ReLU(), nn.Linear(10, 6))
    before = {k: v.clone() for k, v in module.state_dict().items()}
    embedder = small(encoder=module).fit(X_DIGITS)
    assert all(torch.equal(v, before[k]) for k, v in module.state_dict().items())
    assert not torch.equal(embedder.encoder_[1][0].weight, module[0].weight)
    assert embedder.transform(X_DIGITS).shape == (200, 6)


def test_a_callable_builds_the_encoder_for_the_shape():
    embedder = small(encoder=lambda shape: nn.Linear(shape[0], 4)).fit(X_DIGITS)
    assert embedder.transform(X_DIGITS).shape == (200, 4)


def test_low_temperature_with_hard_negatives_is_finite():
    embedder = small(similarity=Cosine(0.01), loss=HCL(beta=5), max_epochs=10).fit(X_DIGITS)
    assert np.isfinite(embedder.transform(X_DIGITS)).all()
    assert np.isfinite(embedder.history_[:, "train_loss"]).all()


BAD_X = {
    "NaN": (np.array([[1.0, np.nan], [0.0, 1.0]]), ValueError, "contains NaN"),
    "inf": (np.array([[1.0, np.inf], [0.0, 1.0]]), ValueError, "contains infinity"),
    "empty": (np.empty((0, 3)), ValueError, "0 sample"),
    "no features": (np.empty((3, 0)), ValueError, "0 feature"),
    "one sample": (np.ones((1, 3)), ValueError, r"1 sample.*minimum of 2"),
    "complex": (np.ones((4, 3)) * 1j, ValueError, "Complex data not supported"),
    "strings": (np.array([["a", "b"], ["c", "d"]]), ValueError, "could not convert string"),
    "1-D": (np.ones(5), ValueError, "Expected 2D array"),
    "5-D": (
        np.ones((2, 2, 2, 2, 2)),
        ValueError,
        r"2 dimensions .* 4 .*got an array of shape \(2, 2",
    ),
    "NaN image": (np.full((3, 1, 4, 4), np.nan), ValueError, "contains NaN"),
    "one image": (np.ones((1, 3, 4, 4)), ValueError, r"1 sample.*minimum of 2"),
    "empty image": (np.ones((4, 3, 0, 4)), ValueError, "at least 1"),
    "object images": (np.full((3, 4, 4), "a", dtype=object), ValueError, "could not convert"),
}


@pytest.mark.parametrize("X, error, message", BAD_X.values(), ids=BAD_X)
def test_bad_X_is_refused_by_name(X, error, message):
    with pytest.raises(error, match=message):
        small(encoder=None).fit(X)


@pytest.mark.parametrize(
    "fitted_on, X, message",
    [
        (X_DIGITS, X_DIGITS[:, :10], "X has 10 features.*expecting 64"),
        (X_DIGITS, IMAGES, r"samples of shape \(1, 8, 8\).*fitted on samples of shape \(64,\)"),
        (IMAGES, X_DIGITS, r"\(n_samples, 1, 8, 8\)"),
        (IMAGES, IMAGES[:, :, :4], r"samples of shape \(1, 4, 8\).*shape \(1, 8, 8\)"),
        (IMAGES, np.full_like(IMAGES, np.nan), "NaN"),
        (X_DIGITS, np.full_like(X_DIGITS, np.inf), "infinity"),
    ],
    ids=["width", "images for vectors", "vectors for images", "height", "NaN", "inf"],
)
def test_wrong_X_at_transform_is_refused(fitted_on, X, message):
    embedder = small(encoder=None, max_epochs=1).fit(fitted_on)
    for method in (embedder.transform, embedder.score):
        with pytest.raises(ValueError, match=message):
            method(X)


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
