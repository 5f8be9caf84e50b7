"""Tables: what is a category, a gap, a time; names, order, and what fit did not see."""

import datetime
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

import skcontrast
from skcontrast.augmentation import FunctionAugmentation, GaussianNoise, MarginalCorruption
from skcontrast.encoders import MLP
from skcontrast.features import Raw
from skcontrast.frameworks import CMC, MoCo
from skcontrast.kinds import Images, Tables, Vectors, _tables
from skcontrast.kinds._base import Request
from skcontrast.kinds._recognise import recognised
from skcontrast.losses import Supervised
from skcontrast.similarity import VonMisesFisher
from tests.common import small, vectors


def frame(n=60, seed=0):
    """Return a table with every type of column and gaps in each."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "age": rng.normal(40, 10, n),
            "port": rng.choice(["Rome", "Oslo", "Bonn"], n),
            "member": pd.array(rng.integers(0, 2, n), dtype="boolean"),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 10**8, n), "s"),
            "visits": pd.array(rng.integers(0, 9, n), dtype="Int64"),
            "wait": pd.to_timedelta(rng.integers(0, 10**4, n), "s"),
        }
    )
    for column in table.columns:
        table.loc[rng.choice(n, n // 10, replace=False), column] = None
    return table


FRAME = frame()
READ, SCHEMA = Tables()._read(FRAME, Request(small()))
y = np.arange(60) % 2


def read(X, **params):
    """Return what a kind reads in training samples."""
    return Tables(**params)._read(X, Request(small()))


# Which data is a table


def test_an_array_of_other_columns_belongs_in_a_dataframe():
    with pytest.raises((TypeError, ValueError), match="columns of other types in a DataFrame"):
        small().fit(FRAME.to_numpy())


def test_a_dataframe_with_gaps_or_categories_is_guessed_to_be_a_table():
    for X in (FRAME, pl.from_pandas(FRAME), FRAME[["age"]], FRAME[["port"]].dropna()):
        assert isinstance(recognised(X)[0], Tables)
    for X in (FRAME[["age", "visits"]].dropna(), vectors()):
        assert isinstance(recognised(X)[0], Vectors)


def test_an_array_with_gaps_is_a_table_where_it_is_declared():
    X = vectors()
    X[::7, 1] = np.nan
    with pytest.raises(ValueError, match=r"contains NaN.*pass kind='tables'"):
        small().fit(X)
    h = small(kind="tables").fit_transform(X)
    assert np.isfinite(h).all()
    np.testing.assert_array_equal(small(kind=Tables()).fit_transform(X.tolist()), h)
    with pytest.raises(ValueError, match=r"contains NaN.*pass kind='tables'"):
        small().fit(vectors()).transform(X)


# Embeddings


def test_a_table_is_embedded_as_it_is():
    embedder = small(n_components=7).fit(FRAME)
    h = embedder.transform(FRAME)
    assert h.shape == (60, 7) and h.dtype == np.float32 and np.isfinite(h).all()
    assert embedder.n_features_in_ == 6
    assert embedder.feature_names_in_.tolist() == FRAME.columns.tolist()


def test_pandas_polars_and_any_order_of_columns_give_one_embedding():
    embedder = small().fit(FRAME)
    h = embedder.transform(FRAME)
    for X in (FRAME[FRAME.columns[::-1]], pl.from_pandas(FRAME), FRAME.convert_dtypes()):
        np.testing.assert_array_equal(embedder.transform(X), h)
    np.testing.assert_array_equal(small().fit(pl.from_pandas(FRAME)).transform(FRAME), h)


def test_a_row_does_not_depend_on_the_other_rows():
    embedder = small().fit(FRAME)
    h = embedder.transform(FRAME)
    np.testing.assert_array_equal(embedder.transform(FRAME[10:11]), h[10:11])


@pytest.mark.parametrize(
    "params",
    [
        {"framework": MoCo(queue_size=32)},
        {"similarity": VonMisesFisher()},
        {"loss": Supervised()},
        {"augmentation": GaussianNoise()},
        {"kind": Tables(standardize=False)},
        {"memory_budget": 0},
        {"encoder": lambda shape: torch.nn.Linear(*shape, 4)},
    ],
    ids=lambda params: next(iter(params)),
)
def test_tables_work_with_the_other_choices(params):
    assert np.isfinite(small(**params).fit(FRAME, y).transform(FRAME)).all()


def test_tables_streamed_are_tables_in_memory():
    streamed = small(memory_budget=0).fit(FRAME)
    np.testing.assert_array_equal(streamed.transform(FRAME), small().fit_transform(FRAME))


def test_a_framework_that_splits_samples_refuses_tables():
    with pytest.raises(ValueError, match="X holds tables, whose samples cannot be split"):
        small(framework=CMC()).fit(FRAME)


# What fit did not see


def test_an_unseen_category_counts_as_a_rare_one():
    X = pd.DataFrame({"a": ["once", *["x", "y"] * 22], "b": np.arange(45)})
    embedder = small().fit(X)
    new = X[:2].assign(a=["new", "once"], b=0)
    h = embedder.transform(new)
    np.testing.assert_array_equal(h[0], h[1])


def test_a_category_and_a_gap_that_fit_did_not_see_are_zeros():
    schema = read(pd.DataFrame({"a": ["x", "y"] * 3, "b": [1.0, 2.0] * 3}))[1]
    scaler = schema.kind.scaler().fit(np.array([[0.0, 1.0], [1.0, 2.0]]))
    layer = schema.kind._first_layer(None, scaler, channels_last=False)
    rows = torch.tensor([[2.0, 0.5], [torch.nan, torch.nan], [1.0, 0.5]])
    assert layer(rows).tolist() == [[0.5, 0, 0], [0, 0, 0], [0.5, 0, 1]]


def test_a_type_that_differs_from_fit_is_refused_by_name():
    embedder = small().fit(FRAME)
    with pytest.raises(ValueError, match=r"Column 'age' of X held .*'number' in fit.*'category'"):
        embedder.transform(FRAME.assign(age="old"))
    with pytest.raises(ValueError, match=r"Column 'since' of X held .*'time' in fit.*'number'"):
        embedder.transform(FRAME.assign(since=1.0))


def test_a_column_may_be_all_gaps_later_and_in_fit():
    embedder = small().fit(FRAME)
    for column in FRAME:
        assert np.isfinite(embedder.transform(FRAME.assign(**{column: None}))).all()
        assert np.isfinite(small().fit_transform(FRAME.assign(**{column: None}))).all()


def test_flags_may_be_numbers_or_booleans():
    X = pd.DataFrame({"flag": [0, 1] * 10, "name": ["x", "y"] * 10})
    embedder = small().fit(X)
    np.testing.assert_array_equal(
        embedder.transform(X.astype({"flag": bool})), embedder.transform(X)
    )


@pytest.mark.parametrize("dtype", ["float64", "Int64", "Int8", object, "polars"])
def test_booleans_of_fit_may_be_zeros_and_ones_later(dtype):
    X = pd.DataFrame({"flag": [True, False, True] * 8}).astype("boolean")
    X.loc[:1, "flag"] = None
    embedder = small().fit(X)
    numbers = X.astype("Int64")
    later = pl.from_pandas(numbers) if dtype == "polars" else numbers.astype(dtype)
    np.testing.assert_array_equal(embedder.transform(later), embedder.transform(X))


def test_numbers_where_text_or_booleans_were_are_refused():
    X = pd.DataFrame({"name": ["x", "y"] * 10, "flag": [True, False] * 10})
    embedder = small().fit(X)
    with pytest.raises(ValueError, match=r"Column 'name' of X held .*'category'.*'number'"):
        embedder.transform(X.assign(name=1))
    with pytest.raises(ValueError, match=r"Column 'flag' of X held .*'category'.*'number'"):
        embedder.transform(X.assign(flag=2))
    digits = X.assign(name=["1", "2"] * 10)
    embedder = small().fit(digits)
    np.testing.assert_array_equal(
        embedder.transform(digits.astype({"name": int})), embedder.transform(digits)
    )


UTC = pd.date_range("2020-01-01", periods=20, freq="7h", tz="UTC")


@pytest.mark.parametrize(
    "convert",
    [
        pd.DataFrame,
        lambda X: pd.DataFrame(X).astype(object),
        lambda X: pl.from_pandas(pd.DataFrame(X)),
    ],
)
def test_times_of_another_zone_are_reported(convert, tmp_path):
    embedder = small().fit(convert({"t": UTC}))
    skcontrast.save(embedder, tmp_path / "a")
    embedder = skcontrast.load(tmp_path / "a")
    h = embedder.transform(convert({"t": UTC}))
    np.testing.assert_array_equal(embedder.transform(convert({"t": UTC.tz_localize(None)})), h)
    with pytest.warns(UserWarning, match="'t' of X held times of the zone UTC in fit, now of As"):
        embedder.transform(convert({"t": UTC.tz_convert("Asia/Tokyo")}))


# Names


def test_names_are_those_of_fit():
    embedder = small().fit(FRAME)
    with pytest.raises(ValueError, match=r"should match.*missing: \['age'\]"):
        embedder.transform(FRAME.drop(columns="age"))
    with pytest.raises(ValueError, match=r"should match.*not seen in fit: \['new'\]"):
        embedder.transform(FRAME.assign(new=1))
    with pytest.warns(UserWarning, match="X has no feature names, but ContrastiveEmbedder was"):
        h = embedder.transform(FRAME.to_numpy(dtype=object))
    np.testing.assert_array_equal(h, embedder.transform(FRAME))


def test_columns_of_the_embedding_that_are_columns_of_x_keep_their_names(tmp_path):
    embedder = small(encoder=None, max_epochs=1).set_output(transform="pandas").fit(FRAME)
    found = embedder.transform(FRAME)
    assert list(found.columns[:2]) == ["contrastiveembedder0", "contrastiveembedder1"]
    age = (FRAME["age"] - FRAME["age"].mean()) / FRAME["age"].std(ddof=0)
    assert abs(found["age"].corr(age.astype(float).fillna(0))) > 0.999
    for name in ("Bonn", "Oslo", "Rome", "missing"):
        is_so = FRAME["port"].isna() if name == "missing" else FRAME["port"].eq(name)
        assert (found[f"port_{name}"] > 0).eq(is_so).all()
    assert (found["wait_missing"] > 0).eq(FRAME["wait"].isna()).all()
    assert {"since", "since_day_sin", "since_week_cos", "since_year_sin"} <= set(found.columns)
    skcontrast.save(embedder, tmp_path / "a")
    assert list(skcontrast.load(tmp_path / "a").get_feature_names_out()) == list(found.columns)
    classifier = skcontrast.ContrastiveClassifier(embedder).fit(FRAME, y)
    assert list(classifier.get_feature_names_out()) == list(found.columns)
    embedder.set_params(output="projection")
    assert (
        embedder.get_feature_names_out()[-1] == f"contrastiveembedder{embedder.projection_dim - 1}"
    )


def test_names_of_embedded_rare_and_ambiguous_columns():
    codes = [f"c{k}" for k in range(300)] * 2
    table = pd.DataFrame({"code": codes, "port": ["Rome"] * 599 + ["Oslo"]})
    names = list(Raw().fit(table).get_feature_names_out())
    assert names == ["port_Rome", "port_rare", *(f"code_{k}" for k in range(len(names) - 2))]
    table = pd.DataFrame({"port": ["Rome", "Oslo"] * 9, "port_Rome": np.arange(18.0)})
    assert list(Raw().fit(table).get_feature_names_out()) == ["raw0", "raw1", "raw2"]


def test_tables_without_names_are_taken_in_order():
    X = FRAME.to_numpy(dtype=object)
    embedder = small(kind="tables").fit(X)
    assert not hasattr(embedder, "feature_names_in_") and embedder.n_features_in_ == 6
    with pytest.warns(UserWarning, match="X has valid feature names, but .* without"):
        embedder.transform(FRAME)
    with pytest.raises(ValueError, match=r"X has 5 features, but .* is expecting 6"):
        embedder.transform(X[:, :5])


def test_the_output_has_the_index_of_the_table():
    X = FRAME.set_axis(np.arange(60) + 1000)
    out = small(n_components=3).set_output(transform="pandas").fit(X).transform(X)
    assert out.index.equals(X.index) and out.shape == (60, 3)
    out = small(n_components=3).set_output(transform="polars").fit_transform(pl.from_pandas(FRAME))
    assert isinstance(out, pl.DataFrame) and out.shape == (60, 3)


# Codes


def test_codes_are_places_among_the_categories_that_are_not_rare():
    X = pd.DataFrame({"a": ["y", "x", None, "y", "x", "once"]})
    coded, schema = read(X)
    np.testing.assert_array_equal(coded[:, 0], [1, 0, np.nan, 1, 0, 2])
    column = schema.kind.columns_[0]
    assert (column.categories, column.has_rare, column.has_gaps) == (("x", "y"), True, True)


def test_categories_that_occur_nowhere_are_no_categories():
    X = pd.DataFrame({"a": pd.Categorical(["x", "y"] * 3, ["x", "never", "y"])})
    assert read(X)[1].kind.columns_[0].categories == ("x", "y")


def test_the_most_frequent_categories_are_kept(monkeypatch):
    X = pd.DataFrame({"a": ["x"] * 5 + ["y"] * 4 + ["z"] * 3 + ["w"]})
    assert read(X, min_frequency=1)[1].kind.columns_[0].categories == ("w", "x", "y", "z")
    monkeypatch.setattr(_tables, "_MOST_CATEGORIES", 2)
    assert read(X)[1].kind.columns_[0].categories == ("x", "y")


def test_numbers_are_categories_where_they_are_declared():
    X = pd.DataFrame({"a": [3, 1, 3, 1], "b": [1.0, 2.0, 3.0, 4.0]})
    for categorical in (["a"], [0], np.array([0])):
        coded, schema = read(X, categorical=categorical)
        np.testing.assert_array_equal(coded, [[1, 1], [0, 2], [1, 3], [0, 4]])
        assert schema.kind.columns_[0].categories == ("1", "3")
    for wrong in (["c"], [2], [-1], [0.5], [True]):
        with pytest.raises(ValueError, match="'categorical' parameter of Tables must name"):
            read(X, categorical=wrong)


def test_a_column_of_names_is_reported_and_harmless():
    X = FRAME.assign(name=[f"person {k}" for k in range(60)])
    with pytest.warns(UserWarning, match="In column 'name' of X, no category occurs 2 times"):
        embedder = small().fit(X)
    np.testing.assert_array_equal(
        embedder.transform(X), embedder.transform(X.assign(name="somebody"))
    )


def test_a_huge_number_of_categories_takes_an_embedding_of_moderate_width():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.integers(0, 5000, 20_000).astype(str), "b": 1.0})
    kind = read(X)[1].kind
    assert len(kind.columns_[0].categories) == 1000
    assert kind._encoded_shape((2,)) == (round(1.6 * 1000**0.56) + 1,)


def test_infinity_is_refused_by_name():
    with pytest.raises(ValueError, match="Column 'age' of X contains infinity"):
        small().fit(FRAME.assign(age=np.inf))


@pytest.mark.parametrize(
    "X, found",
    [(FRAME[:0], r"0 sample\(s\)"), (FRAME[[]], r"0 feature\(s\)"), (FRAME[:1], r"1 sample\(s\)")],
    ids=["no rows", "no columns", "one row"],
)
def test_too_few_rows_or_columns_are_refused(X, found):
    with pytest.raises(ValueError, match=f"Found .*{found} .* a minimum of"):
        small(kind="tables").fit(X)


@pytest.mark.parametrize("number", [1e300, -1e-310, 1e6])
def test_extreme_and_constant_columns_give_finite_embeddings(number):
    X = FRAME.assign(constant=number)
    X.loc[0, "constant"] = None
    X["outlier"] = np.where(np.arange(60) == 3, number, 1.0)
    embedder = small().fit(X)
    assert np.isfinite(embedder.transform(X)).all()
    assert np.isfinite(embedder.history_[:, "train_loss"]).all()


# Views


def test_views_are_rows_of_values_that_occur_in_their_column():
    first, _ = small(augmentation=MarginalCorruption(0.5)).views(FRAME, random_state=0)
    for j, column in enumerate(["port", "member"], start=1):
        known = {str(v) for v in FRAME[column].dropna()} | {"None"}
        assert {str(v) for v in first[:, j]} == known
    ages, drawn = FRAME["age"].dropna().to_numpy(), first[:, 0][first[:, 0] != None]  # noqa: E711
    assert np.abs(ages[:, None] - drawn.astype(float)).min(axis=0).max() < 1e-4
    assert len(drawn) < 60
    assert {type(value) for value in first[:, 3]} == {datetime.datetime, type(None)}
    assert {type(value) for value in first[:, 5]} == {datetime.timedelta, type(None)}


def test_views_of_nothing_swapped_are_the_table():
    embedder = small(augmentation=MarginalCorruption(0.0), kind=Tables(standardize=False))
    X = FRAME[["port", "visits"]].assign(name="x")
    views = embedder.views(X, 1, random_state=0)[0]
    expected = X.astype(object).where(X.notna(), None).to_numpy()
    assert views.tolist() == expected.tolist()


# scikit-learn


def test_cross_validation_and_searches_cut_tables_by_rows():
    pipe = make_pipeline(small(encoder=None, max_epochs=1), LogisticRegression())
    assert len(cross_val_score(pipe, FRAME, y, cv=3)) == 3
    search = GridSearchCV(pipe, {"contrastiveembedder__kind__min_frequency": [1, 3]}, cv=2)
    search.set_params(estimator__contrastiveembedder__kind=Tables()).fit(FRAME, y)
    assert search.best_estimator_.predict(FRAME).shape == (60,)


def test_augmentation_steps_take_tables():
    pipe = make_pipeline(MarginalCorruption(0.3), small()).fit(FRAME)
    at_once = small(augmentation=MarginalCorruption(0.3)).fit(FRAME)
    np.testing.assert_array_equal(pipe.transform(FRAME), at_once.transform(FRAME))


def test_an_augmentation_that_read_other_codes_is_fitted_again():
    X = pd.DataFrame({"a": [3, 1] * 10, "b": ["x", "y"] * 10})
    kind = Tables(categorical=["a"])
    pipe = make_pipeline(MarginalCorruption(0.5), small(kind=kind)).fit(X)
    embedder = pipe[-1]
    assert embedder.augmentation_[0].marginals_[:, 0].max() == 1
    numbers = X[["a"]]
    pipe = make_pipeline(MarginalCorruption(0.5), small(kind=kind)).fit(numbers)
    assert pipe[-1].augmentation_[0].marginals_[:, 0].max() == 1
    later = X.replace({"b": {"x": "z"}})
    embedder.partial_fit(MarginalCorruption(0.5).fit_transform(later))
    assert embedder.augmentation_[0].marginals_[:, 1].max() == 2


def test_augmentations_of_vectors_and_images_refuse_tables():
    for kind in ("vectors", "images"):
        augmentation = FunctionAugmentation(lambda x: x, kind=kind)
        with pytest.raises(ValueError, match="got tables"):
            small(augmentation=augmentation).fit(FRAME)

    def zeroed(x):
        return torch.where(torch.rand(x.shape) < 0.3, 0.0, x)

    augmentation = FunctionAugmentation(zeroed, kind="tables")
    assert np.isfinite(small(augmentation=augmentation).fit_transform(FRAME)).all()


def test_an_encoder_of_another_kind_of_samples_is_refused():
    with pytest.raises(ValueError, match=r"failed|expects images"):
        small(encoder=skcontrast.encoders.ConvNet()).fit(FRAME)
    with pytest.raises(ValueError):
        small(kind=Images()).fit(FRAME)


def test_warm_start_keeps_the_codes():
    embedder = small(warm_start=True).fit(FRAME)
    columns = embedder._fitted.setup.schema.kind.columns_
    embedder.fit(FRAME[FRAME["port"] != "Bonn"])
    assert embedder._fitted.setup.schema.kind.columns_ == columns and embedder.n_epochs_ == 4


def test_a_clone_is_not_fitted_and_a_pickle_is(tmp_path):
    embedder = small(kind=Tables(min_frequency=3)).fit(FRAME)
    h = embedder.transform(FRAME)
    assert not hasattr(clone(embedder).kind, "columns_") and not hasattr(embedder.kind, "columns_")
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(embedder)).transform(FRAME), h)
    skcontrast.save(embedder, tmp_path / "e.safetensors")
    loaded = skcontrast.load(tmp_path / "e.safetensors")
    np.testing.assert_array_equal(loaded.transform(pl.from_pandas(FRAME)), h)
    loaded.partial_fit(FRAME)


def test_tables_cannot_be_exported(tmp_path):
    with pytest.raises(ValueError, match="embedder of tables cannot be exported"):
        skcontrast.export(small().fit(FRAME), tmp_path / "e.onnx", FRAME)


def test_reading_a_table_twice_warns_about_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        small(encoder=MLP((4,))).fit(FRAME).transform(FRAME)


@pytest.mark.parametrize("categorical", [np.array(1), dict])
def test_categorical_columns_that_are_no_list_are_refused_by_name(categorical):
    with pytest.raises(ValueError, match="'categorical' parameter of Tables must be a list"):
        small(kind=Tables(categorical=categorical)).fit(frame())
