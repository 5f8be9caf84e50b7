"""scikit-learn's checks and tools with graphs for samples."""

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
from tests.graphs.common import FRAMEWORKS, GRAPHS, N, Y, embedded, small


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


@pytest.mark.parametrize("estimator", VARIANTS, ids=lambda e: repr(e.framework))
def test_the_laws_of_checks_that_bring_arrays_hold_for_graphs(estimator):
    estimator = clone(estimator)
    for method in (estimator.transform, estimator.score):
        with pytest.raises(NotFittedError):
            method(GRAPHS)
    parameters, before = repr(estimator.get_params()), set(vars(estimator))
    assert estimator.fit(GRAPHS, Y) is estimator
    h, fitted = estimator.transform(GRAPHS), dict(vars(estimator))
    assert h.dtype == np.float32 and h.shape == (N, len(set(estimator.get_feature_names_out())))
    assert all(name.startswith("_") or name.endswith("_") for name in fitted.keys() - before)
    estimator.score(GRAPHS)
    assert vars(estimator) == fitted and not hasattr(estimator, "n_features_in_")
    order = np.random.default_rng(0).permutation(N)
    permuted = estimator.transform([GRAPHS[k] for k in order])
    np.testing.assert_allclose(permuted, h[order], atol=1e-5)
    alone = np.concatenate([estimator.transform([graph]) for graph in GRAPHS])
    np.testing.assert_allclose(alone, h, atol=1e-5)
    copied = clone(estimator)
    assert not hasattr(copied, "encoder_") and repr(copied.get_params()) == parameters
    np.testing.assert_array_equal(copied.fit_transform(GRAPHS, Y), h)
    np.testing.assert_array_equal(estimator.fit(GRAPHS, Y).transform(GRAPHS), h)
    assert estimator.partial_fit(GRAPHS) is estimator
