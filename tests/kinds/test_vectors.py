"""Vectors: forms, scales, extremes, DataFrames."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from skcontrast import GroupWhitening
from skcontrast.augmentation import MarginalCorruption
from skcontrast.encoders import MLP
from skcontrast.kinds import Vectors
from skcontrast.kinds._recognise import recognised  # private: the kind without a fit
from tests.common import small, vectors


@pytest.mark.parametrize(
    "X",
    [
        vectors(),
        vectors().astype(np.float32),
        vectors().tolist(),
        (vectors() * 10).astype(int),
        torch.from_numpy(vectors()),
        np.asfortranarray(vectors()),
        vectors()[::2, ::-1],
    ],
    ids=["float64", "float32", "list", "int", "tensor", "fortran", "strided"],
)
def test_vectors_of_every_form(X):
    h = small(n_components=7).fit_transform(X)
    assert h.shape == (len(X), 7) and h.dtype == np.float32 and np.isfinite(h).all()


def test_units_of_the_features_do_not_matter():
    X = vectors(d=4)
    scaled = X * [1e-6, 1.0, 1e6, 1e12] + [0, 5.0, 1e6, -1e13]
    plain, other = small().fit(X).transform(X), small().fit(scaled).transform(scaled)
    np.testing.assert_allclose(plain, other, atol=2e-2)


def test_half_precision_tensors_are_taken():
    X = torch.from_numpy(vectors())
    for dtype in (torch.bfloat16, torch.float16):
        assert np.isfinite(small().fit_transform(X.to(dtype).requires_grad_())).all()


def test_standardize_false_takes_vectors_as_they_are():
    X = 5 + 3 * vectors()
    embedder = small(
        kind=Vectors(standardize=False), encoder=MLP(widths=(), batch_norm=False)
    ).fit(X)
    expected = embedder.encoder_(torch.from_numpy(X).float()).detach().numpy()
    np.testing.assert_allclose(embedder.transform(X), expected, rtol=1e-5)


@pytest.mark.filterwarnings("ignore:All samples in X are alike")
@pytest.mark.parametrize(
    "X",
    [
        np.ones((10, 4)),
        np.zeros((10, 4)),
        np.repeat(vectors(1, 4), 12, axis=0),
        vectors(2, 3),
        vectors(3, 1),
        vectors(257, 3),
        vectors(513, 3),
        vectors(20, 3) * 1e30,
        vectors(20, 3) * 1e150,
        vectors(20, 3) * 1e-30,
        vectors(20, 3) * 1e-310,
        np.where(np.arange(60).reshape(20, 3) == 0, 1e150, vectors(20, 3)),
        vectors(20, 3).astype(np.float32) * 1e37,
    ],
    ids=[
        "ones", "zeros", "equal rows", "2 samples", "3 samples", "n = B + 1", "n = 2 B + 1",
        "1e30", "1e150", "1e-30", "denormal", "one outlier", "float32 1e37",
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:The representation is the same for all samples")
def test_extreme_vectors_give_finite_embeddings(X):
    embedder = small().fit(X)
    assert np.isfinite(embedder.transform(X)).all()
    assert np.isfinite(embedder.history_[:, "train_loss"]).all()
    assert np.isfinite(embedder.transform(X * 0 + 1e300 if X.dtype == float else X)).all()


@pytest.mark.parametrize("kind", ["vectors", "series"])
def test_tiny_numbers_are_scaled_as_others_and_huge_ones_refused(kind):
    X = vectors(20, 3)[:, None] if kind == "series" else vectors(20, 3)
    found = small(kind=kind, encoder=None).fit_transform(X * 2.0**-480)
    normal = small(kind=kind, encoder=None).fit_transform(X * 2.0**-200)
    np.testing.assert_allclose(found, normal, atol=1e-2)
    assert np.ptp(found) > 0.1
    with pytest.raises(ValueError, match="X must be numbers of finite variance"):
        small(kind=kind).fit(X * 1e300)


def test_at_most_two_dimensions_are_detected_as_vectors():
    for X in (vectors(), [[1.0]]):
        assert isinstance(recognised(X)[0], Vectors)
    assert not isinstance(recognised(np.ones((2, 4, 4)))[0], Vectors)


# DataFrames


A, B = vectors(40, 2).T
C = np.arange(40) % 3
FLAGS = C > 0
NUMBERS = pd.DataFrame({"a": A, "b": B, "c": C, "flag": FLAGS})
MIXED = pd.DataFrame(
    {
        "age": np.where(C, 30 + 5 * A, np.nan),
        "port": np.array(["Cherbourg", None, "Southampton"], dtype=object)[C],
        "born": pd.date_range("1870-01-01", periods=40, freq="100D"),
    }
)


@pytest.mark.parametrize(
    "X",
    [
        NUMBERS.assign(c=pd.array(C, "Int64"), flag=pd.array(FLAGS, "boolean")),
        NUMBERS.convert_dtypes(dtype_backend="pyarrow"),
        NUMBERS.assign(c=[Decimal(int(c)) for c in C], flag=FLAGS.astype(object)),
        pl.from_pandas(NUMBERS),
        pa.Table.from_pandas(NUMBERS),
    ],
    ids=["nullable", "pyarrow dtypes", "objects", "polars", "pyarrow"],
)
def test_a_dataframe_of_numbers_and_booleans_is_vectors_with_names(X):
    embedder = small(max_epochs=1).fit(NUMBERS.to_numpy(float))
    named = small(max_epochs=1).fit(X)
    assert named.feature_names_in_.tolist() == list(NUMBERS)
    assert isinstance(named._model.schema.kind, Vectors)
    np.testing.assert_array_equal(named.transform(X), embedder.transform(NUMBERS.to_numpy(float)))
    with pytest.raises(ValueError, match="Feature names must be in the same order"):
        named.transform(NUMBERS[["b", "a", "c", "flag"]])


def test_a_dataset_with_columns_as_hugging_face_has_it_is_its_dataframe():
    class Columns:
        column_names = list(NUMBERS)

        def __len__(self):
            return len(NUMBERS)

        def __getitem__(self, row):
            return NUMBERS.iloc[row].to_dict()

        def __iter__(self):
            return map(self.__getitem__, range(len(self)))

        def to_pandas(self):
            return NUMBERS

    H = small(max_epochs=1).fit_transform(Columns())
    np.testing.assert_array_equal(H, small(max_epochs=1).fit_transform(NUMBERS))


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(["x", "y"] * 20),
        pd.Series(["x", "y"] * 20, dtype=object),
        pd.Series(["x", "y"] * 20, dtype="string[pyarrow]"),
        pd.Series(["True", "False"] * 20),
        pd.Series(pd.Categorical([1, 2] * 20)),
        pd.Series(["x", 1] * 20, dtype=object),
        pd.Series(pd.date_range("2020", periods=40)),
        pd.Series(pd.period_range("2020", periods=40)),
        pd.Series(pd.to_timedelta(range(40), "h")),
        pd.Series([datetime.date(2020, 1, 1)] * 40),
        pl.Series(["x", "y"] * 20),
        pl.Series(["1", "2"] * 20, dtype=pl.Categorical),
        pl.Series([datetime.date(2020, 1, 1)] * 40),
        pl.Series([datetime.time(3)] * 40),
    ],
    ids=lambda column: f"{type(column).__module__.split('.')[0]} {column.dtype}",
)
def test_columns_that_are_not_numbers_are_refused_with_the_line_that_works(column):
    X = NUMBERS.assign(u=column) if isinstance(column, pd.Series) else None
    X = pl.from_pandas(NUMBERS).with_columns(u=column) if X is None else X
    match = r"Column 'u' of X must hold numbers.* make_pipeline\(skrub\.TableVectorizer\(\), "
    fitted = small(max_epochs=1).fit(NUMBERS)
    for use in (
        small().fit,
        small(kind="vectors").fit,
        fitted.transform,
        MarginalCorruption().fit,
    ):
        with pytest.raises(TypeError, match=match):
            use(X)


@pytest.mark.parametrize(
    "X",
    [
        np.where(C[:, None], vectors(40, 2), np.nan),
        NUMBERS.assign(a=NUMBERS.a.where(C > 0)),
        NUMBERS.assign(c=pd.array([None, *C[1:]], "Int64")),
        NUMBERS.assign(c=pd.Series([pd.NA, *C[1:]], dtype=object)),
        NUMBERS.assign(c=pd.Series([None] * 40, dtype="string")),
        NUMBERS.assign(c=pd.NaT),
        pl.from_pandas(NUMBERS).with_columns(c=pl.lit(None)),
        pa.table({"a": [1.0, None], "b": [1, 2]}),
    ],
    ids=["array", "NaN", "NA", "NA in objects", "no text", "NaT", "polars", "pyarrow"],
)
def test_missing_values_are_refused_with_the_line_that_works(X):
    with pytest.raises(ValueError, match=r"X contains NaN.*TableVectorizer\(\), .*SimpleImputer"):
        small().fit(X)


def test_numbers_as_text_are_refused_with_the_conversion():
    for column in (["1.5", "n/a"] * 20, [1.5, 2.5, "n/a", None] * 10):
        message = r"got '.*pandas.to_numeric\(X\['a'\], errors='coerce'"
        with pytest.raises(TypeError, match=message):
            small().fit(NUMBERS.assign(a=column))


def test_arrays_in_cells_are_refused_with_their_stack():
    for cells in (pd.Series(list(vectors(40))), pl.Series(vectors(40).tolist())):
        frame = (pd if isinstance(cells, pd.Series) else pl).DataFrame({"u": cells})
        with pytest.raises(TypeError, match=r"Column 'u' of X holds arrays: .*np.stack\(X\['u'\]"):
            small().fit(frame)
        small(max_epochs=1).fit(np.stack(frame["u"]))


def test_names_that_are_not_strings_are_ignored_as_scikit_learn_does():
    embedder = small(max_epochs=1).fit(NUMBERS.set_axis(range(4), axis=1))
    assert not hasattr(embedder, "feature_names_in_") and embedder.n_features_in_ == 4
    with pytest.raises(TypeError, match="only supported if all input features have string names"):
        small().fit(NUMBERS.set_axis(["a", "b", "c", 3], axis=1))


def test_mixed_columns_are_embedded_behind_a_table_vectorizer():
    skrub = pytest.importorskip("skrub")
    for convert in (pd.DataFrame, pl.from_pandas):
        pipe = make_pipeline(skrub.TableVectorizer(), SimpleImputer(), small())
        H = pipe.fit_transform(convert(MIXED))
        assert len(H) == 40 and np.isfinite(H).all()
        assert np.isfinite(pipe.transform(convert(MIXED.assign(age=np.nan, port=None)))).all()


def test_an_embedder_may_be_one_transformer_of_columns():
    transformer = make_column_transformer(
        (small(n_components=2), ["a", "b", "c"]), (OneHotEncoder(sparse_output=False), ["port"])
    )
    X = NUMBERS.assign(port=MIXED.port)
    transformer.set_output(transform="pandas")
    H = transformer.fit_transform(X)
    assert H.shape == (40, 5) and transformer.transform(X[X.columns[::-1]]).equals(H)
    names = ["contrastiveembedder0", "contrastiveembedder1", "port_Cherbourg"]
    assert [name.split("__")[1] for name in H.columns[:3]] == names


# Principal components

CORRELATED = np.random.default_rng(0).normal(size=(200, 12)) @ np.random.default_rng(1).normal(
    size=(12, 12)
)
COMPONENTS = {
    "of the same rows": lambda: PCA().fit_transform(CORRELATED),
    "of other rows": lambda: PCA().fit(CORRELATED[:100]).transform(CORRELATED[100:]),
    "float32": lambda: PCA(10).fit_transform(CORRELATED.astype(np.float32)),
    "and constant columns": lambda: np.hstack(
        [PCA().fit_transform(CORRELATED), np.ones((200, 3))]
    ),
    "not centred": lambda: TruncatedSVD(11, random_state=0).fit_transform(CORRELATED),
    "of groups": lambda: GroupWhitening().fit_transform(
        CORRELATED[:50].repeat(4, axis=0) + 0.3 * CORRELATED, groups=np.arange(200) // 4
    ),
}


@pytest.mark.parametrize("of", COMPONENTS)
def test_principal_components_are_reported_since_standardisation_whitens_them(of):
    P = COMPONENTS[of]()
    with pytest.warns(UserWarning, match="look like principal components") as found:
        small(max_epochs=1).fit(P)
    assert len(found) == 1 and found[0].filename == __file__
    small(max_epochs=1, kind=Vectors(standardize=False)).fit(P / P.std())  # a warning is an error
    small(max_epochs=1, kind="vectors").fit(P)


@pytest.mark.parametrize(
    "X",
    [
        CORRELATED,
        np.random.default_rng(0).normal(size=(200, 12)),
        PCA(whiten=True).fit_transform(CORRELATED),
        PCA(7).fit_transform(CORRELATED),
        CORRELATED * np.linspace(9, 1, 12),  # correlated
        np.eye(12),
        np.random.default_rng(0).normal(size=(2, 12)),
        # counts in order of frequency; few rows, whose columns are correlated by chance
        np.random.default_rng(0).poisson(2.0 ** -np.arange(9), size=(300, 9)),
        np.random.default_rng(0).normal(size=(20, 12)) * np.linspace(9, 1, 12),
    ],
)
def test_other_vectors_are_not(X):
    small(max_epochs=1).fit(X)
