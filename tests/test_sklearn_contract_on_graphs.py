"""scikit-learn's checks and tools with graphs for samples."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.svm import SVC
from sklearn.utils import estimator_checks

from skcontrast.augmentation import AttributeMask, EdgePerturb, NodeDrop, RandomWalkSubgraph
from skcontrast.frameworks import InfoGraph, MoCo
from skcontrast.graphs import pack_graphs
from skcontrast.losses import BCL, DCL, PUCL
from tests.graphs.common import FRAMEWORKS, GRAPHS, N, Y, attributed, embedded, small


def pipeline(**kwargs):
    embed = small(**{"framework": InfoGraph(), "loss": PUCL(), "max_epochs": 8, **kwargs})
    return Pipeline([("drop", NodeDrop()), ("embed", embed), ("svc", SVC())])


def test_pipeline_of_augmentation_embedder_and_classifier():
    train, test, y_train, y_test = train_test_split(GRAPHS, Y, random_state=0)
    pipe = pipeline().fit(train, y_train)
    assert pipe.predict(test).shape == y_test.shape
    assert [type(step) for step in pipe["embed"].augmentation_] == [NodeDrop]
    assert pipe.score(GRAPHS, Y) > 0.8


def test_chained_augmentations_through_both_doors_are_the_same():
    chain = [NodeDrop(0.1), EdgePerturb(0.1), AttributeMask(0.1), RandomWalkSubgraph(0.9)]
    expected = make_pipeline(*chain, small()).fit(GRAPHS).transform(GRAPHS)
    np.testing.assert_array_equal(embedded(augmentation=chain), expected)


def test_grid_search_reaches_all_choices():
    search = GridSearchCV(
        pipeline(max_epochs=1),
        {
            "embed__loss": [PUCL(), DCL()],
            "embed__loss__tau_plus": [0.2],
            "embed__framework__objective": ["jensen-shannon", "contrastive"],
            "embed__encoder__pooling": ["mean"],
            "drop__rate": [0.1],
        },
        cv=2,
        error_score="raise",
    )
    search.fit(GRAPHS, Y)
    best, embedder = search.best_params_, search.best_estimator_["embed"]
    assert embedder.loss_.tau_plus == best["embed__loss__tau_plus"]
    assert embedder.framework_.objective == best["embed__framework__objective"]
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@pytest.mark.parametrize("as_", [list, pack_graphs], ids=["list", "packed"])
def test_cross_val_score(as_):
    scores = cross_val_score(pipeline(), as_(GRAPHS), Y, cv=3, error_score="raise")
    assert scores.shape == (3,) and scores.mean() > 0.7


@pytest.mark.parametrize("framework", FRAMEWORKS, ids=repr)
def test_saved_and_loaded(framework):
    pipe = pipeline(framework=framework, max_epochs=1).fit(GRAPHS, Y)
    loaded = pickle.loads(pickle.dumps(pipe))
    np.testing.assert_array_equal(loaded[:-1].transform(GRAPHS), pipe[:-1].transform(GRAPHS))
    np.testing.assert_array_equal(loaded.predict(GRAPHS), pipe.predict(GRAPHS))
    assert loaded["embed"].score(GRAPHS) == pipe["embed"].score(GRAPHS)
    loaded.fit(GRAPHS, Y)


# scikit-learn's checks. Those that bring data bring arrays; their laws are written for graphs.


VARIANTS = [small(framework=framework, loss=BCL()) for framework in (MoCo(), InfoGraph())]
WITHOUT_DATA = [
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_get_params_invariance",
    "check_mixin_order",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_set_params",
    "check_valid_tag_types",
]


@pytest.mark.parametrize("estimator", VARIANTS, ids=lambda e: repr(e.framework))
def test_estimator_checks(estimator):
    for name in WITHOUT_DATA:
        getattr(estimator_checks, name)("ContrastiveEmbedder", clone(estimator))


def check_estimators_fit_returns_self(estimator):
    assert estimator.fit(GRAPHS) is estimator
    assert estimator.partial_fit(GRAPHS) is estimator


def check_fit_idempotent(estimator):
    first = estimator.fit(GRAPHS, Y).transform(GRAPHS)
    np.testing.assert_array_equal(estimator.fit(GRAPHS, Y).transform(GRAPHS), first)


def check_estimators_overwrite_params(estimator):
    before = {name: copy.deepcopy(value) for name, value in estimator.get_params().items()}
    estimator.fit(GRAPHS)
    after = estimator.get_params()
    assert {k: repr(v) for k, v in after.items()} == {k: repr(v) for k, v in before.items()}


def check_dont_overwrite_parameters(estimator):
    before = set(vars(estimator))
    added = set(vars(estimator.fit(GRAPHS))) - before
    assert all(name.startswith("_") or name.endswith("_") for name in added)


def check_dict_unchanged(estimator):
    before = dict(vars(estimator.fit(GRAPHS)))
    estimator.transform(GRAPHS), estimator.score(GRAPHS)
    assert vars(estimator) == before


def check_estimators_unfitted(estimator):
    for method in (estimator.transform, estimator.score):
        with pytest.raises(NotFittedError):
            method(GRAPHS)


def check_n_features_in(estimator):
    assert not hasattr(estimator, "n_features_in_")
    assert not hasattr(estimator.fit(GRAPHS), "n_features_in_")


def check_transformer_general(estimator):
    h = estimator.fit_transform(GRAPHS, Y)
    np.testing.assert_array_equal(estimator.transform(GRAPHS), h)
    assert len(h) == N


def check_transformer_get_feature_names_out(estimator):
    h = estimator.fit_transform(GRAPHS)
    names = estimator.get_feature_names_out()
    assert len(set(names)) == h.shape[1]


def check_transformer_preserve_dtypes(estimator):
    graphs = [attributed(graph, lambda k: np.float64(k)) for graph in GRAPHS]
    assert estimator.fit_transform(graphs).dtype == np.float32


def check_methods_sample_order_invariance(estimator):
    order = np.random.default_rng(0).permutation(N)
    h = estimator.fit(GRAPHS).transform(GRAPHS)
    np.testing.assert_allclose(
        estimator.transform([GRAPHS[k] for k in order]), h[order], atol=1e-5
    )


def check_methods_subset_invariance(estimator):
    h = estimator.fit(GRAPHS).transform(GRAPHS)
    one_by_one = [estimator.transform([graph]) for graph in GRAPHS]
    np.testing.assert_allclose(np.concatenate(one_by_one), h, atol=1e-5)


def check_estimator_cloneable(estimator):
    copied = clone(estimator.fit(GRAPHS))
    assert not hasattr(copied, "encoder_")
    np.testing.assert_array_equal(
        copied.fit(GRAPHS).transform(GRAPHS), estimator.transform(GRAPHS)
    )


ON_GRAPHS = [value for name, value in list(globals().items()) if name.startswith("check_")]


@pytest.mark.parametrize("check", ON_GRAPHS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("estimator", VARIANTS, ids=lambda e: repr(e.framework))
def test_estimator_checks_on_graphs(estimator, check):
    check(clone(estimator))
