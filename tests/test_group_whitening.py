"""GroupWhitening: its formula, limits and invariances, missing groups, routing and files."""

import pickle

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.sparse import csr_array
from sklearn import config_context
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import skcontrast
from skcontrast import GroupWhitening, ViewWhitening
from skcontrast._checks import InvalidParameterError
from skcontrast.augmentation import GaussianNoise
from tests.common import check_sklearn_contract

RNG = np.random.default_rng(0)
D = 6
# 60 groups of 1 to 7 rows, ten of them of one row.
GROUPS = RNG.permutation(np.repeat(np.arange(60), [1] * 10 + list(RNG.integers(2, 8, size=50))))
BETWEEN, WITHIN = RNG.normal(size=(2, D, D))
X = RNG.normal(size=(60, D))[GROUPS] @ BETWEEN + RNG.normal(size=(len(GROUPS), D)) @ WITHIN + 5
FEW_GROUPS = "fewer than 40"
CENTRES = "only centres X"


def fitted(X=X, groups=GROUPS, **params):
    return GroupWhitening(**params).fit(X, groups=groups)


def naive(X, groups, shrinkage):
    """Return the output and b, in descending order, by loops over the groups."""
    members = [X[groups == g] for g in np.unique(groups)]
    n, d, n_groups = len(X), X.shape[1], len(members)
    W = sum((m - m.mean(0)).T @ (m - m.mean(0)) for m in members)
    W /= sum(len(m) - 1 for m in members)
    shrunk = (1 - shrinkage) * W + shrinkage * np.trace(W) / d * np.eye(d)
    e, V = np.linalg.eigh(shrunk)
    A = V @ np.diag(e**-0.5) @ V.T
    mu = X.mean(0)
    B = sum(len(m) / n * np.outer(m.mean(0) - mu, m.mean(0) - mu) for m in members)
    n_0 = (n - sum(len(m) ** 2 for m in members) / n) / (n_groups - 1)
    b, U = np.linalg.eigh(A @ B @ A)
    b = np.array([max(0, b[j] - U[:, j] @ A @ W @ A @ U[:, j] / n_0) for j in range(d)])
    order = np.argsort(-b)
    b, U = b[order], U[:, order]
    return (X - mu) @ A @ U * np.sqrt(b / (b + 1)), b


def assert_equal_up_to_signs(Z, expected, **tolerance):
    np.testing.assert_allclose(Z * np.sign((Z * expected).sum(0)), expected, **tolerance)


@pytest.mark.parametrize("estimator", [GroupWhitening(), GroupWhitening(1)], ids=repr)
@pytest.mark.filterwarnings(f"ignore:GroupWhitening {CENTRES}")
def test_estimator_checks(estimator):
    check_sklearn_contract(estimator)


@pytest.mark.parametrize("shrinkage", [0.01, 0.5, 1.0])
@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_it_is_the_naive_formula_at_any_scale(shrinkage, scale):
    model = fitted(X * scale, shrinkage=shrinkage)
    expected, b = naive(X, GROUPS, shrinkage)
    np.testing.assert_allclose(model.variances_, b, rtol=1e-7, atol=1e-10)
    assert_equal_up_to_signs(model.transform(X * scale), expected, rtol=1e-6, atol=1e-8)


def test_more_columns_than_rows_are_whitened():
    wide = np.random.default_rng(1).normal(size=(60, 300))[GROUPS]
    wide = wide + np.random.default_rng(2).normal(size=wide.shape)
    model = fitted(wide)
    expected, b = naive(wide, GROUPS, 0.5)
    n_kept = (b > 0).sum()
    assert 0 < n_kept < 60 and not model.transform(wide)[:, n_kept:].any()
    np.testing.assert_allclose(model.variances_, b, atol=1e-8)
    assert_equal_up_to_signs(
        model.transform(wide)[:, :n_kept], expected[:, :n_kept], atol=1e-5 * expected.max()
    )


# Limits


def test_with_all_shrinkage_it_divides_by_the_mean_variance_within_groups():
    model = fitted(shrinkage=1.0)
    b = model.variances_[model.variances_ > 0]
    axes = model.components_[: len(b)] / np.sqrt(b / (b + 1))[:, None]
    deviations = X - pd.DataFrame(X).groupby(GROUPS).transform("mean").to_numpy()
    mean = (deviations**2).sum() / (len(X) - 60) / D
    np.testing.assert_allclose(axes @ axes.T, np.eye(len(b)) / mean, atol=1e-9)


def test_without_shrinkage_it_is_discriminant_analysis_with_groups_as_classes():
    groups = np.repeat(np.arange(50), 4)
    rows = X[: len(groups)] + 3 * np.random.default_rng(1).normal(size=(50, D))[groups]
    model = fitted(rows, groups, shrinkage=1e-12)
    reference = LinearDiscriminantAnalysis("eigen").fit(rows, groups)
    n_kept = (model.variances_ > 0).sum()
    assert n_kept > 3
    for ours, its in zip(model.components_[:n_kept], reference.scalings_.T, strict=False):
        cosine = ours @ its / np.linalg.norm(ours) / np.linalg.norm(its)
        assert abs(cosine) > 1 - 1e-6


def test_far_groups_are_white_within():
    far = X + 1e5 * np.random.default_rng(1).normal(size=(60, D))[GROUPS]
    Z = fitted(far, shrinkage=1e-12).transform(far)
    deviations = Z - pd.DataFrame(Z).groupby(GROUPS).transform("mean").to_numpy()
    np.testing.assert_allclose(deviations.T @ deviations / (len(X) - 60), np.eye(D), atol=1e-4)


def test_directions_in_which_groups_do_not_differ_are_zero():
    # Of the last two columns, the mean of each group is 0; one is constant.
    noise = RNG.normal(size=len(X))
    noise -= pd.Series(noise).groupby(GROUPS).transform("mean").to_numpy()
    rows = np.column_stack([X, noise, np.full(len(X), 7.0)])
    model = fitted(rows)
    assert (model.variances_ == 0).sum() >= 2
    assert not model.transform(rows)[:, model.variances_ == 0].any()
    moved = rows + np.eye(D + 2)[-1] * 100
    np.testing.assert_allclose(model.transform(moved), model.transform(rows), atol=1e-8)


def test_groups_that_do_not_differ_at_all_give_zeros_and_a_warning():
    pairs = np.random.default_rng(1).normal(size=(50, 3))
    with pytest.warns(UserWarning, match="groups have means that differ no more") as found:
        model = fitted(np.concatenate([pairs, -pairs]), np.tile(np.arange(50), 2))
    assert len(found) == 1 and found[0].filename == __file__
    assert not model.transform(pairs).any()


def test_b_estimates_the_variance_between_groups():
    rng, groups = np.random.default_rng(0), np.repeat(np.arange(2000), 2)
    rows = rng.normal(size=(2000, 3))[groups] * [2, 1, 0] + rng.normal(size=(4000, 3))
    np.testing.assert_allclose(fitted(rows, groups).variances_, [4, 1, 0], atol=0.25)


# Invariances


def test_neither_the_order_of_rows_nor_the_names_of_groups_matter():
    expected = fitted().transform(X)
    order = np.random.default_rng(1).permutation(len(X))
    names = np.array([f"patient {(7 * g) % 60}" for g in GROUPS])
    for groups in (names, list(names), pd.Series(names), GROUPS * 1.0, torch.tensor(GROUPS)):
        np.testing.assert_allclose(fitted(groups=groups).transform(X), expected, rtol=1e-7)
    shuffled = fitted(X[order], GROUPS[order]).transform(X)
    np.testing.assert_allclose(shuffled, expected, rtol=1e-6, atol=1e-9)


def test_rotations_and_one_scale_of_all_columns_do_not_matter():
    rotation = np.linalg.qr(np.random.default_rng(1).normal(size=(D, D)))[0]
    expected = fitted().transform(X)
    for factor, offset in ((1e-6, 0), (3, 1e6)):
        other = factor * X @ rotation + offset
        Z = fitted(other).transform(other)
        assert_equal_up_to_signs(Z, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("missing", [-1, None, np.nan, pd.NA], ids=repr)
def test_rows_without_a_group_only_move_the_mean(missing):
    others = np.random.default_rng(1).normal(9, 50, size=(30, D))
    rows, groups = np.concatenate([X, others]), [*GROUPS.tolist(), *[missing] * 30]
    model, expected = fitted(rows, groups), fitted()
    np.testing.assert_allclose(model.components_, expected.components_, rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(model.variances_, expected.variances_, rtol=1e-7)
    np.testing.assert_allclose(model.mean_, rows.mean(axis=0))


# Without enough groups


@pytest.mark.parametrize(
    "groups, got",
    [
        (None, "groups=None"),
        (np.arange(len(X)), f"{len(X)} group.s. of {len(X)} row"),
        (np.zeros(len(X)), f"1 group.s. of {len(X)} row"),
        (np.full(len(X), -1), r"0 group.s. of 0 row"),
    ],
    ids=["None", "single rows", "one group", "no group"],
)
def test_without_groups_it_centres_and_says_what_to_pass(groups, got):
    with pytest.warns(UserWarning, match=CENTRES) as found:
        model = fitted(groups=groups)
    assert len(found) == 1 and found[0].filename == __file__
    found[0].message.args[0].index("Pass fit(X, groups=...)")
    with pytest.warns(UserWarning, match=got):
        fitted(groups=groups)
    np.testing.assert_array_equal(model.transform(X), X - X.mean(axis=0))
    assert model.components_ is None and len(model.get_feature_names_out()) == D


def test_few_groups_warn():
    groups = np.where(GROUPS < 49, GROUPS, -1)  # 39 of them have 2 rows
    with pytest.warns(UserWarning, match=f"groups has {FEW_GROUPS} groups of 2 rows") as found:
        fitted(groups=groups)
    assert len(found) == 1
    fitted(groups=np.where(GROUPS < 50, GROUPS, -1))  # a warning is an error here


# scikit-learn


def test_groups_reach_it_in_a_pipeline():
    y = GROUPS % 2
    expected = fitted().transform(X)
    pipe = make_pipeline(GroupWhitening(), LogisticRegression())
    pipe.fit(X, y, groupwhitening__groups=GROUPS)
    np.testing.assert_array_equal(pipe[0].transform(X), expected)
    with config_context(enable_metadata_routing=True):
        pipe = make_pipeline(GroupWhitening().set_fit_request(groups=True), LogisticRegression())
        np.testing.assert_array_equal(pipe.fit(X, y, groups=GROUPS)[0].transform(X), expected)
    np.testing.assert_array_equal(GroupWhitening().fit_transform(X, groups=GROUPS), expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("convert", [np.asarray, csr_array], ids=["dense", "sparse"])
def test_the_output_has_the_precision_of_x(convert, dtype):
    model = fitted(convert(X.astype(dtype)))
    Z = model.transform(convert(X.astype(dtype)))
    assert Z.dtype == dtype and model.components_.dtype == np.float64
    np.testing.assert_allclose(Z, fitted().transform(X), atol=1e-4)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_tables_keep_their_names_and_index(library):
    pytest.importorskip(library)
    table = pd.DataFrame(X, columns=list("abcdef"), index=range(100, 100 + len(X)))
    with config_context(transform_output=library):
        model = fitted(table)
        Z = model.transform(table)
    assert type(Z).__module__.startswith(library)
    assert library == "polars" or list(Z.index) == list(table.index)
    assert list(model.feature_names_in_) == list("abcdef")
    assert list(Z.columns) == [f"groupwhitening{k}" for k in range(D)]
    np.testing.assert_allclose(Z, fitted().transform(X), rtol=1e-7, atol=1e-9)


def test_with_a_transformer_the_columns_are_those_of_x():
    from sklearn.decomposition import PCA

    table = pd.DataFrame(X, columns=list("abcdef"))
    model = GroupWhitening(transformer=PCA(3)).fit(table, groups=GROUPS)
    assert model.n_features_in_ == 6 and list(model.feature_names_in_) == list("abcdef")
    assert model.transform(table).shape == (len(X), 3)
    expected = fitted(model.transformer_.transform(table)).transform(
        model.transformer_.transform(table)
    )
    np.testing.assert_allclose(model.transform(table), expected, atol=1e-9)
    frozen = GroupWhitening(transformer=FrozenEstimator(model.transformer_))
    again = frozen.fit_transform(table, groups=GROUPS)
    np.testing.assert_array_equal(again, model.transform(table))
    with pytest.raises(ValueError, match="feature names"):
        model.transform(table[list("abcdeg"[::-1][1:] + "f")])
    model.set_params(transformer=None).fit(X, groups=GROUPS)
    assert not hasattr(model, "feature_names_in_")


@pytest.mark.parametrize("groups", [GROUPS, None], ids=["groups", "None"])
@pytest.mark.filterwarnings(f"ignore:GroupWhitening {CENTRES}")
def test_a_file_and_a_pickle_keep_it(groups, tmp_path):
    with config_context(enable_metadata_routing=True):
        model = GroupWhitening(0.3).set_fit_request(groups=True)
    model.set_output(transform="pandas").fit(X, groups=groups)
    skcontrast.save(model, tmp_path / "model.safetensors")
    for copy in (
        skcontrast.load(tmp_path / "model.safetensors"),
        pickle.loads(pickle.dumps(model)),
    ):
        pd.testing.assert_frame_equal(copy.transform(X), model.transform(X))
        assert repr(copy) == repr(model)
        clone(copy).fit(X, groups=groups)


@pytest.mark.filterwarnings(f"ignore:GroupWhitening {CENTRES}")
def test_a_file_keeps_it_within_view_whitening(tmp_path):
    model = ViewWhitening(GroupWhitening(), GaussianNoise(), random_state=0).fit(X)
    skcontrast.save(model, tmp_path / "model.safetensors")
    loaded = skcontrast.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(loaded.transform(X), model.transform(X))


# Errors


@pytest.mark.parametrize("bad", [0, 1.5, None, "auto", True])
def test_a_shrinkage_outside_its_range_is_named(bad):
    with pytest.raises(InvalidParameterError, match="'shrinkage' parameter of GroupWhitening"):
        fitted(shrinkage=bad)


@pytest.mark.parametrize(
    "groups, message",
    [
        (GROUPS[:5], f"groups must have one entry per sample, {len(X)}, got 5"),
        (X, r"groups must be an array of groups, shape \(n_samples,\), got shape"),
        ("patient", "got the text 'patient'"),
        (["a", 1] * (len(X) // 2) + ["a"] * (len(X) % 2), "groups must hold numbers or strings"),
    ],
    ids=["short", "matrix", "text", "mixed"],
)
def test_groups_that_do_not_fit_are_refused(groups, message):
    with pytest.raises(ValueError, match=message):
        fitted(groups=groups)


def test_with_equal_rows_in_each_group_it_only_centres():
    for rows in (RNG.normal(size=(60, D))[GROUPS], np.full(X.shape, 0.1)):
        with pytest.warns(UserWarning, match=CENTRES + ".* different rows"):
            found = fitted(rows)
        np.testing.assert_allclose(found.transform(rows), rows - rows.mean(0), atol=1e-12)


def test_a_failed_fit_changes_nothing():
    whitening = GroupWhitening(transformer=StandardScaler())
    with pytest.raises(ValueError, match="groups must have one entry per sample"):
        whitening.fit(np.eye(4).repeat(2, axis=0), groups=np.arange(7) // 2)
    with pytest.raises(NotFittedError):
        whitening.transform(np.eye(4))


def test_samples_that_are_no_matrix_of_finite_numbers_are_refused_by_name():
    with pytest.raises(ValueError, match="Input X contains NaN"):
        GroupWhitening().fit([[1.0, np.nan], [1.0, 2.0]])
    with pytest.raises(ValueError, match="minimum of 2 is required by GroupWhitening"):
        GroupWhitening().fit([[1.0, 2.0]])
    with pytest.raises(ValueError, match="X must be an array of numbers"):
        GroupWhitening().fit([["a", "b"]] * 3)
    with pytest.raises(ValueError, match="at most 4,096 columns, got 4,097: reduce it first"):
        GroupWhitening().fit(np.zeros((2, 4097)))
    with pytest.raises(ValueError, match=r"or TruncatedSVD\(512\) if it is sparse"):
        GroupWhitening().fit(csr_array((2, 10**9)))  # refused before it is made dense
    with pytest.raises(ValueError, match="X must be numbers of finite variance"):
        fitted(np.full(X.shape, 1.7e308))
    with pytest.raises(ValueError, match="X has 2 features, but GroupWhitening is expecting 6"):
        fitted().transform(X[:, :2])
    with pytest.raises(NotFittedError):
        GroupWhitening().transform(X)
