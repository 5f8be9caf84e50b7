"""Embeddings that know how sure they are: concentrations, draws, scores of a fitted embedder."""

import pickle

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_digits

from skcontrast.encoders import MLP
from skcontrast.frameworks import CMC, MoCo, SimCLR
from skcontrast.schedules import Linear
from skcontrast.similarity import Cosine, VonMisesFisher
from tests.common import check_every_loss, small

X, Y = (array[:120] for array in load_digits(return_X_y=True))
FRAMEWORKS = [SimCLR(), MoCo(momentum=0.9), MoCo(symmetric=True), CMC()]


def fitted(**kwargs):
    return small(**{"similarity": VonMisesFisher(), "projection_dim": 6, **kwargs}).fit(X)


@pytest.fixture(scope="module")
def embedder():
    return fitted()


@pytest.mark.parametrize("framework", FRAMEWORKS, ids=repr)
@pytest.mark.parametrize("projection_dim", [0, 6])
def test_concentrations_directions_and_scores(framework, projection_dim):
    embedder = fitted(framework=framework, projection_dim=projection_dim, n_components=5)
    n_modalities, d = (2 if framework.network_signature else 1), projection_dim or 5
    kappa = embedder.concentration(X)
    assert kappa.shape == (120,) and kappa.dtype == np.float32 and (kappa > 0).all()
    assert embedder.transform(X).shape == (120, 5 * n_modalities)
    embedder.set_params(output="projection")
    mu = embedder.transform(X)
    assert mu.shape == (120, d * n_modalities) == (120, len(embedder.get_feature_names_out()))
    lengths = np.linalg.norm(mu.reshape(120, n_modalities, d), axis=2)
    np.testing.assert_allclose(lengths, 1, rtol=1e-5)
    assert embedder.log_score(X[:7], X[:4]).shape == (7, 4)


@pytest.mark.parametrize("framework", FRAMEWORKS, ids=repr)
def test_every_loss_takes_what_a_framework_contrasts(framework, monkeypatch):
    embedder = small(similarity=VonMisesFisher(), framework=framework, max_epochs=1)
    check_every_loss(monkeypatch, embedder, X, Y)


def test_the_concentration_of_a_sample_does_not_depend_on_the_others(embedder):
    one_by_one = np.concatenate([embedder.concentration(X[[i]]) for i in range(20)])
    np.testing.assert_allclose(one_by_one, embedder.concentration(X)[:20], rtol=1e-5)


@pytest.mark.parametrize("projection_dim, d", [(6, 6), (64, 64), (0, 5)])
def test_concentrations_start_from_about_the_dimension(projection_dim, d):
    # Long enough for the running moments of the standardised representation.
    embedder = fitted(lr=1e-12, max_epochs=30, projection_dim=projection_dim, n_components=5)
    assert d / 2 < np.median(embedder.concentration(X)) < 2 * d


def test_far_from_all_that_was_seen_an_embedding_is_less_sure(embedder):
    kappa = [np.median(embedder.concentration(scale * X)) for scale in (1, 10, 100)]
    assert kappa == sorted(kappa, reverse=True)


def test_log_score_is_the_score_of_the_training_without_its_temperature():
    embedder = fitted(similarity=VonMisesFisher(temperature=Linear(4.0, 3.0)))
    mu = clone(embedder).fit(X).set_params(output="projection").transform(X)
    kappa = embedder.concentration(X)
    view = torch.from_numpy(mu).double(), torch.from_numpy(kappa).double()
    expected = VonMisesFisher(1.0)(view, view).numpy()
    scores = embedder.log_score(X)
    np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(scores, scores.T, rtol=1e-9)
    np.testing.assert_allclose(embedder.log_score(X[:5], X[:9]), scores[:5, :9], rtol=1e-4)


def test_with_two_encoders_the_concentration_is_that_of_the_product():
    embedder = fitted(framework=CMC())
    z = embedder.projector_(embedder.encoder_(torch.from_numpy(X).float())).detach()
    mu, kappa = embedder.similarity_.distribution(z.unflatten(1, (2, 7)))
    expected = (mu * kappa[..., None]).sum(1).norm(dim=1)
    np.testing.assert_allclose(embedder.concentration(X), expected, rtol=1e-4)


@pytest.mark.parametrize("similarity", [None, Cosine()])
@pytest.mark.parametrize("name", ["concentration", "log_score"])
def test_only_where_the_similarity_has_concentrations(similarity, name):
    embedder = small(similarity=similarity)
    assert not hasattr(embedder, name)
    with pytest.raises(AttributeError, match=f"has no {name}: pass similarity=VonMises"):
        getattr(embedder, name)


def test_the_fitted_similarity_decides(embedder):
    other = clone(embedder).fit(X).set_params(similarity=Cosine())
    np.testing.assert_array_equal(other.concentration(X), embedder.concentration(X))
    np.testing.assert_array_equal(other.log_score(X[:5]), embedder.log_score(X[:5]))
    plain = small(similarity=Cosine()).fit(X).set_params(similarity=VonMisesFisher())
    assert not hasattr(plain, "concentration")


@pytest.mark.parametrize("name", ["concentration", "log_score"])
def test_unfitted_is_refused(name):
    with pytest.raises(Exception, match="not fitted"):
        getattr(small(similarity=VonMisesFisher()), name)(X)


def test_pickled_and_continued(embedder):
    loaded = pickle.loads(pickle.dumps(embedder))
    np.testing.assert_array_equal(loaded.concentration(X), embedder.concentration(X))
    warm = small(similarity=VonMisesFisher(), warm_start=True).fit(X)
    assert np.isfinite(warm.fit(X).concentration(X)).all()
    with pytest.raises(ValueError, match=r"'similarity' parameter .* has changed from VonMises"):
        warm.set_params(similarity=Cosine()).fit(X)
    plain = small(similarity=Cosine(), warm_start=True).fit(X)
    with pytest.raises(ValueError, match="from one without concentrations to VonMisesFisher"):
        plain.set_params(similarity=VonMisesFisher()).fit(X)


def test_descriptions_are_compared_with_directions():
    descriptions = np.random.default_rng(0).normal(size=(len(X), 6))
    embedder = small(similarity=VonMisesFisher(), projection_dim=6)
    weighted = embedder.fit(X, descriptions=descriptions).transform(X)
    assert not np.allclose(weighted, fitted().transform(X))
    with pytest.raises(ValueError, match="descriptions"):
        embedder.fit(X, descriptions=descriptions[:, :5])


def test_the_score_of_projections_compares_directions(embedder):
    projecting = clone(embedder).set_params(output="projection").fit(X)
    score = projecting.score(X)
    assert 0 <= score <= 1 and score == projecting.score(X)
    # Without any effect of the concentrations.
    changed = clone(projecting).fit(X)
    with torch.no_grad():
        changed.projector_[-1].extra.bias += 3
    assert changed.score(X) == score
    assert (changed.concentration(X) > embedder.concentration(X)).all()


@pytest.mark.parametrize("parameter", ["projection_dim", "n_components"])
def test_one_dimension_is_refused(parameter):
    with pytest.raises(ValueError, match=f"'{parameter}' parameter .* at least 2 with .*, got 1"):
        fitted(**{"projection_dim": 0, parameter: 1})


@pytest.mark.slow
def test_long_training_stays_finite_and_below_the_cap():
    X = load_digits().data
    embedder = small(encoder=MLP(), similarity=VonMisesFisher(), max_epochs=500).fit(X)
    kappa = embedder.concentration(X)
    assert np.isfinite(embedder.history_[:, "train_loss"]).all() and np.isfinite(kappa).all()
    assert (kappa > 0.99 * embedder.similarity_.kappa_max).mean() < 0.05
