"""scikit-learn's own checks, and what its users do with a transformer."""

from functools import partial

import joblib
import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from torch import nn

from skcontrast import ContrastiveEmbedder
from skcontrast.augmentation import (
    AugmentationDropped,
    ColorJitter,
    GaussianNoise,
    RandomAffine,
    Unflatten,
)
from skcontrast.encoders import MLP, ConvNet
from skcontrast.kinds import Vectors
from skcontrast.losses import BCL, DCL, HCL, Supervised
from skcontrast.optimizers import Optimizer
from skcontrast.similarity import Cosine, VonMisesFisher
from tests.common import LOSSES, check_sklearn_contract, small, vectors

brief = partial(small, max_epochs=1)
# One loss of each path through the engine: no weights, weights by rank, weights by label. What
# does not depend on the loss is checked along with one of them.
VARIANTS = [
    brief(),
    brief(loss=Supervised(), similarity=VonMisesFisher(), output="projection", projection_dim=8),
    brief(
        loss=BCL(alpha=0.8, tau_plus=0.2),
        augmentation=GaussianNoise(),
        projection_dim=0,
        n_components=5,
        n_views=3,
        kind=Vectors(standardize=False),
        optimizer="sgd",
    ),
    brief(
        kind="vectors",
        optimizer=Optimizer("adamw", betas=(0.9, 0.9), param_groups=[("enc*", {"lr": 1e-4})]),
        lr_schedule="constant",
    ),
]
OTHER_LOSSES = [
    brief(loss=loss)
    for loss in LOSSES
    if repr(loss) not in {repr(variant.loss) for variant in VARIANTS}
]


@pytest.mark.parametrize(
    "estimator",
    [
        pytest.param(it, marks=[pytest.mark.slow] * (k % 2), id=f"{k}")
        for k, it in enumerate(VARIANTS)
    ],
)
def test_estimator_checks(estimator):
    check_sklearn_contract(estimator)


@pytest.mark.slow
@pytest.mark.parametrize("estimator", OTHER_LOSSES, ids=lambda e: repr(e.loss))
def test_estimator_checks_of_every_other_loss(estimator):
    check_sklearn_contract(estimator)


def image_pipeline(**kwargs):
    return Pipeline(
        [
            ("image", Unflatten((1, 8, 8))),
            ("affine", RandomAffine()),
            ("embed", small(encoder=ConvNet(widths=(8,)), **kwargs)),
            ("clf", LogisticRegression(max_iter=2000)),
        ]
    )


def test_pipeline_of_augmentation_embedder_and_classifier(digits):
    X, y = digits
    pipe = image_pipeline().fit(X, y)
    assert pipe.predict(X).shape == y.shape
    assert type(pipe[2].augmentation_[0]) is RandomAffine
    assert pipe[:-1].transform(X).dtype == np.float32


@pytest.mark.parametrize("n_jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_grid_search_over_the_hyperparameters_of_loss_and_similarity(digits, n_jobs):
    X, y = digits
    embed = small(augmentation=GaussianNoise(), max_epochs=1)
    pipe = Pipeline([("embed", embed), ("clf", LogisticRegression(max_iter=2000))])
    grid = {
        "embed__loss": [DCL(), HCL()],
        "embed__loss__tau_plus": [0.05, 0.1],
        "embed__similarity__temperature": [0.2],
    }
    search = GridSearchCV(pipe, grid, cv=2, n_jobs=n_jobs, error_score="raise")
    search.fit(X, y)
    embedder = search.best_estimator_["embed"]
    assert embedder.loss_.tau_plus == search.best_params_["embed__loss__tau_plus"]
    temperature = embedder.similarity_.temperature
    assert temperature == search.best_params_["embed__similarity__temperature"]
    assert len(set(search.cv_results_["mean_test_score"])) > 1
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_nested_parameter_of_a_default_component():
    embedder = small().set_params(similarity__temperature=0.07, loss=DCL(), loss__tau_plus=0.3)
    assert embedder.similarity.temperature == 0.07
    assert embedder.loss.tau_plus == 0.3
    assert small().similarity is None


@pytest.mark.parametrize(
    "name", ["encoder__widths", "augmentation__rate", "lr_schedule__warmup", "callbacks__x"]
)
def test_nested_parameter_of_something_without_parameters_is_refused(name):
    role = name.split("__")[0]
    with pytest.raises(ValueError, match=f"The '{role}' parameter .* pass an object as {role}"):
        ContrastiveEmbedder().set_params(**{name: 1})


def test_saved_and_loaded(digits, tmp_path):
    pipe = image_pipeline().fit(*digits)
    joblib.dump(pipe, tmp_path / "pipe.joblib")
    loaded = joblib.load(tmp_path / "pipe.joblib")
    np.testing.assert_array_equal(loaded.predict(digits[0]), pipe.predict(digits[0]))
    np.testing.assert_array_equal(loaded[:-1].transform(digits[0]), pipe[:-1].transform(digits[0]))
    assert loaded["embed"].score(digits[0].reshape(-1, 1, 8, 8)) == pipe["embed"].score(
        digits[0].reshape(-1, 1, 8, 8)
    )
    loaded.fit(*digits)


def test_feature_union_with_a_raw_branch(digits):
    X, y = digits
    embed = make_pipeline(GaussianNoise(), small(n_components=6))
    union = FeatureUnion([("embedding", embed), ("raw", "passthrough")])
    assert make_pipeline(union, SVC()).fit(X, y).score(X, y) > 0.8
    out = union.fit_transform(X)
    assert out.shape == (300, 70)
    np.testing.assert_array_equal(out[:, 6:], X)


def test_scaling_after_an_augmentation_says_that_the_augmentation_is_lost(digits):
    with pytest.warns(AugmentationDropped, match="directly before"):
        make_pipeline(GaussianNoise(), StandardScaler(), small()).fit(digits[0])


@pytest.mark.parametrize(
    "pipe, message",
    [
        (make_pipeline(RandomAffine(), small()), r"RandomAffine.*\(n_samples.*Unflatten"),
        (make_pipeline(ColorJitter(), small()), r"ColorJitter.*Unflatten"),
        (make_pipeline(RandomAffine(), Unflatten((1, 8, 8)), small()), r"Unflatten must come be"),
    ],
    ids=["affine on vectors", "jitter on vectors", "Unflatten too late"],
)
def test_out_of_order_augmentation_is_refused(digits, pipe, message):
    with pytest.raises(ValueError, match=message):
        pipe.fit(digits[0])


def test_augmentation_in_the_pipeline_and_in_the_embedder_is_refused(digits):
    pipe = make_pipeline(GaussianNoise(), small(augmentation=GaussianNoise()))
    with pytest.raises(ValueError, match=r"has augmentation=: remove one of them"):
        pipe.fit(digits[0])


def test_the_two_doors_for_an_augmentation_give_the_same(digits):
    X, _ = digits
    outside = make_pipeline(GaussianNoise(), small()).fit(X).transform(X)
    inside = small(augmentation=GaussianNoise()).fit(X).transform(X)
    as_list = small(augmentation=[GaussianNoise()]).fit(X).transform(X)
    nested = make_pipeline(make_pipeline("passthrough", GaussianNoise()))
    as_pipeline = small(augmentation=nested).fit(X).transform(X)
    for other in (inside, as_list, as_pipeline):
        np.testing.assert_array_equal(other, outside)


def test_parameters_of_the_users_objects_are_not_touched(digits):
    loss, similarity, encoder = DCL(), Cosine(0.3), MLP(widths=(8,))
    embedder = small(loss=loss, similarity=similarity, encoder=encoder).fit(digits[0])
    assert embedder.loss is loss and embedder.loss_ is not loss
    assert vars(loss) == {"tau_plus": 0.1}
    assert isinstance(embedder.encoder_, torch.nn.Module)


def test_repr_shows_what_differs_from_the_defaults():
    embedder = ContrastiveEmbedder(loss=DCL(tau_plus=0.2), similarity=Cosine(0.2))
    assert repr(embedder) == (
        "ContrastiveEmbedder(loss=DCL(tau_plus=0.2), similarity=Cosine(temperature=0.2))"
    )
    assert "ContrastiveEmbedder" in embedder._repr_html_()


def test_a_pipeline_with_memory_trains_once_per_fold_whatever_the_encoder(tmp_path, monkeypatch):
    trained, train = [], ContrastiveEmbedder._train

    def count(self, *args, **kwargs):
        trained.append(self)
        return train(self, *args, **kwargs)

    monkeypatch.setattr(ContrastiveEmbedder, "_train", count)
    steps = [("embed", small(encoder=nn.Linear(5, 8))), ("classify", LogisticRegression())]
    pipe = Pipeline(steps, memory=joblib.Memory(tmp_path, verbose=0))
    search = GridSearchCV(pipe, {"classify__C": [0.1, 1, 10]}, cv=2)
    search.fit(vectors(), np.arange(60) % 2)
    assert len(trained) == 3  # two folds and one for refit
