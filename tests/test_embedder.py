"""The embedder: what is learned, transform, projection, score, refusals."""

import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from sklearn.base import clone
from torch import nn

from skcontrast import ContrastiveEmbedder
from skcontrast.metrics import compare_with_baselines
from tests.common import IMAGES, X_DIGITS, reloaded, small, small_images, vectors


def test_transform_of_a_sample_does_not_depend_on_the_others():
    embedder = small_images().fit(IMAGES)
    whole = embedder.transform(IMAGES)
    order = np.random.default_rng(0).permutation(len(IMAGES))
    np.testing.assert_allclose(embedder.transform(IMAGES[order]), whole[order], atol=1e-6)
    np.testing.assert_allclose(embedder.transform(IMAGES[:1]), whole[:1], atol=1e-6)


def test_parameters_changed_after_fit_do_not_change_the_widths():
    embedder = small(projection_dim=5).fit(X_DIGITS)
    embedder.set_params(output="projection", projection_dim=7, n_components=9)
    assert embedder.transform(X_DIGITS).shape[1] == len(embedder.get_feature_names_out()) == 5
    with pytest.raises(ValueError, match="'output' parameter"):
        embedder.set_params(output="both").transform(X_DIGITS)


def test_a_users_module_is_copied_and_trained():
    module = nn.Sequential(nn.Linear(64, 10), nn.ReLU(), nn.Linear(10, 6))
    before = {k: v.clone() for k, v in module.state_dict().items()}
    embedder = small(encoder=module).fit(X_DIGITS)
    assert all(weight.grad is None for weight in module.parameters())
    assert all(torch.equal(v, before[k]) for k, v in module.state_dict().items())
    assert not torch.equal(embedder.encoder_[1][0].weight, module[0].weight)
    assert embedder.transform(X_DIGITS).shape == (200, 6)


BAD_X = {
    "one sample": (np.ones((1, 3)), ValueError, r"1 sample.*minimum of 2"),
    "strings": (np.array([["a", "b"], ["c", "d"]]), ValueError, "could not convert string"),
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
        (IMAGES, X_DIGITS, r"shape \(64,\), but .* fitted on samples of shape \(1, 8, 8\)"),
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


class Short(ContrastiveEmbedder):
    """An embedder with its own defaults, of which one may be changed."""

    def __init__(self, max_epochs=1):
        super().__init__(max_epochs=max_epochs, lr=0.01, random_state=0, device="cpu")


def test_a_subclass_may_take_fewer_parameters(tmp_path):
    X = vectors()
    found = clone(Short(2)).fit(X)
    expected = ContrastiveEmbedder(max_epochs=2, lr=0.01, random_state=0, device="cpu")
    np.testing.assert_array_equal(found.transform(X), expected.fit_transform(X))
    own = {f"{__name__}.Short": Short}
    loaded = reloaded(found, tmp_path, custom_objects=own)
    assert isinstance(loaded, Short) and loaded.max_epochs == 2
    np.testing.assert_array_equal(loaded.transform(X), found.transform(X))
    scores = compare_with_baselines(found, X, np.arange(len(X)) % 2, n_repeats=2).scores
    assert "untrained" in scores


def test_a_tensor_gives_a_tensor_where_scikit_learn_dispatches():
    code = """
import numpy as np, sklearn, torch
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import make_pipeline
from skcontrast import ContrastiveClassifier, ContrastiveEmbedder
X = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
t, y = torch.from_numpy(X), torch.arange(40) % 2
embedder = ContrastiveEmbedder(max_epochs=1, random_state=0)
h = embedder.fit(X).transform(X)
with sklearn.config_context(array_api_dispatch=True):
    found = embedder.fit(t).transform(t)
    assert isinstance(found, torch.Tensor) and np.array_equal(found, h)
    assert type(make_pipeline(embedder, RidgeClassifier()).fit(t, y).predict(t)) is torch.Tensor
    assert type(embedder.transform(X)) is np.ndarray
    few = np.where(np.arange(40) < 20, y, -1)
    assert len(ContrastiveClassifier(embedder).fit(t, few).predict(t)) == 40
assert type(embedder.transform(t)) is np.ndarray
"""
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    command = [sys.executable, "-c", code]
    found = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert not found.returncode, found.stderr
