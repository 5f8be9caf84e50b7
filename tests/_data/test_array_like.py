"""Arrays in the forms in which users pass them."""

from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from scipy.sparse import csr_matrix, dok_matrix
from torch.utils.data import DataLoader, Dataset, TensorDataset

from skcontrast import ContrastiveEmbedder
from skcontrast._data._array_like import as_array_like  # private: what counts as an array
from skcontrast._data._arrays import LazySamples  # private: that samples stay lazy
from skcontrast.augmentation import GaussianNoise
from skcontrast.kinds import Series, Vectors

# private: how samples are read, before any fit
from skcontrast.kinds._recognise import read_samples, recognised
from tests.common import small

IMAGE = np.arange(12.0, dtype=np.float32).reshape(1, 3, 4)


def test_what_scikit_learn_reads_is_passed_on():
    for data in (np.eye(3), [[1.0, 2.0]], csr_matrix(np.eye(3)), dok_matrix(np.eye(3))):
        assert as_array_like(data) is data


def test_a_dataset_and_what_scikit_learn_cuts_from_it_are_lazy():
    dataset = TensorDataset(torch.from_numpy(np.stack([IMAGE] * 5)))
    for data in (dataset, [dataset[0], dataset[3]]):
        lazy = as_array_like(data)
        assert isinstance(lazy, LazySamples) and lazy.shape == (len(data), 1, 3, 4)


@pytest.mark.parametrize(
    "X, error, message",
    [
        (None, ValueError, "must be an array of samples, got None"),
        (iter([1, 2]), TypeError, r"got a list_iterator\. .* pass list\(X\)"),
        ({"a": 1}, TypeError, r"got a dict\."),
        ({1, 2}, TypeError, r"got a set\."),
        ((np.eye(3), np.eye(3)), ValueError, r"If they are modalities, pass framework=CMC\(\);"),
        ([IMAGE, IMAGE, IMAGE[:, 1:]], ValueError, r"one shape, got \[\(1, 2, 4\), \(1, 3, 4"),
    ],
    ids=["None", "iterator", "mapping", "set", "pair of arrays", "several shapes"],
)
def test_what_has_no_order_or_no_shape_is_refused(X, error, message):
    with pytest.raises(error, match=message):
        as_array_like(X)


def test_graphs_are_refused_where_arrays_were_declared():
    graphs = [nx.path_graph(3), nx.path_graph(4)]
    with pytest.raises(ValueError, match=r"X holds graphs, but .* expects vectors"):
        small(kind="vectors").fit(graphs)


def test_an_array_of_objects_that_are_images_is_stacked():
    images = np.empty(3, dtype=object)
    images[:] = [np.full((3, 4, 4), float(k)) for k in range(3)]
    assert as_array_like(images).shape == (3, 3, 4, 4)
    assert as_array_like(pd.Series(list(images), index=[5, 6, 7])).shape == (3, 3, 4, 4)
    images[1] = np.zeros((3, 5, 4))
    with pytest.raises(ValueError, match=r"one shape, got \[\(3, 4, 4\), \(3, 5, 4\)"):
        as_array_like(images)


def test_what_holds_no_samples_is_refused_with_advice():
    loader = DataLoader(TensorDataset(torch.zeros(4, 3)))
    with pytest.raises(TypeError, match=r"got a DataLoader\. .* loader\.dataset"):
        as_array_like(loader)
    with pytest.raises(TypeError, match="X is a list of dicts"):
        small().fit([{"image": np.eye(2), "label": 2}] * 9)


@pytest.mark.parametrize("X", ["photos", Path("photos")], ids=["str", "Path"])
def test_a_folder_is_refused_with_the_class_that_reads_it(X):
    with pytest.raises(TypeError, match=r"got 'photos': .*datasets\.ImageFolder\(folder\)"):
        small().fit(X)


class Items:
    """What is indexed, without any base class."""

    def __init__(self, item):
        self.item = item

    def __len__(self):
        return 4

    def __getitem__(self, row):
        return self.item


class ItemsOfDataset(Items, Dataset):
    pass


@pytest.mark.parametrize("kind", [Items, ItemsOfDataset])
def test_what_is_indexed_is_read_as_a_dataset(kind):
    for item in (IMAGE, (torch.from_numpy(IMAGE), 7)):
        np.testing.assert_array_equal(as_array_like(kind(item))[:], np.stack([IMAGE] * 4))
    with pytest.raises(TypeError, match=r"got a dict with the keys \['image', 'label'\]\. Pass "):
        as_array_like(kind({"image": IMAGE, "label": 1}))


def test_tables_of_dask_are_refused_with_the_line_to_write():
    dask = pytest.importorskip("dask.dataframe")
    table = pd.DataFrame(np.eye(9, 3), columns=list("abc"))
    embedder = small().fit(table)
    for method in (small().fit, embedder.transform):
        with pytest.raises(TypeError, match=r"got a DataFrame\. .* Dask, pass X\.compute\(\)"):
            method(dask.from_pandas(table, npartitions=2))


@pytest.mark.parametrize("convert", [np.asarray, torch.from_numpy])
def test_pairs_of_samples_are_refused_with_the_line_to_write(convert):
    pairs = [(convert(np.ones(5)), convert(np.zeros(5))) for _ in range(4)]
    with pytest.raises(TypeError, match=r"list of pairs of samples: .*groups=np\.tile"):
        as_array_like(pairs)
    with pytest.raises(TypeError, match=r"list of tuples of 3 samples: .*groups=np\.tile"):
        as_array_like([(*pair, pair[0]) for pair in pairs])
    with_classes = [(convert(np.ones(5)), 1) for _ in range(4)]
    assert len(as_array_like(with_classes)) == 4


UNEQUAL = [list(range(n)) for n in (5, 7, 4)]


@pytest.mark.parametrize(
    "convert", [list, pd.Series, pl.Series, pa.array], ids=["list", "pandas", "polars", "Arrow"]
)
def test_lists_of_unequal_lengths_are_series_and_of_equal_lengths_vectors(convert):
    expected = [np.array(row) for row in UNEQUAL]
    for kind in (None, Series()):
        series, schema = read_samples(convert(UNEQUAL), kind, estimator=small())
        np.testing.assert_array_equal(series, read_samples(expected, estimator=small())[0])
        assert isinstance(schema.kind, Series)
    vectors, schema = read_samples(convert([[1, 2], [3, 5]]), estimator=small())
    assert isinstance(schema.kind, Vectors) and np.array_equal(vectors, [[1, 2], [3, 5]])


def test_masked_values_are_refused_and_a_mask_without_any_is_no_mask():
    for ones in (np.ones((4, 3)), np.ones((4, 1, 30)), np.ones((4, 1, 8, 8))):
        masked = np.ma.MaskedArray(ones, np.zeros(ones.shape, bool))
        np.testing.assert_array_equal(as_array_like(masked), ones)
        masked.mask.flat[3] = True
        message = r"X has masked values\. Replace them, as X\.filled\(0\)"
        with pytest.raises(ValueError, match=message):
            as_array_like(masked)
        with pytest.raises(ValueError, match="X has masked values"):
            as_array_like(list(masked))


def test_a_panel_of_series_in_a_table_is_warned_of():
    for times in (pd.date_range("2020", periods=5), pd.Index(range(5), name="timepoints")):
        index = pd.MultiIndex.from_product([range(4), times])
        table = pd.DataFrame(np.ones((20, 2)), index, ["a", "b"])
        with pytest.warns(UserWarning, match=r"20 rows are read as vectors.*groupby\(level=0\)"):
            recognised(table)
    recognised(table.reset_index(drop=True))
    recognised(table.set_index(pd.MultiIndex.from_product([range(10), ["a", "b"]])))


def test_a_lazy_table_is_refused_with_the_method_that_reads_it():
    with pytest.raises(TypeError, match=r"LazyFrame: pass X\.collect\(\)"):
        as_array_like(pl.DataFrame({"a": [1.0, 2.0]}).lazy())


# What may be something else


RNG = np.random.default_rng(0)
GRAPHS = [nx.gnp_random_graph(5 + k % 4, 0.5, seed=k) for k in range(12)]


def default(**kwargs):
    return ContrastiveEmbedder(max_epochs=1, random_state=0, device="cpu", **kwargs)


@pytest.mark.parametrize(
    ("X", "advice"),
    [
        (["CCO", "CCC"] * 5, r"texts, such as 'CCO'.*'Molecules' .* user guide.*TfidfVectorizer"),
        (np.array(["to be or not"] * 9), "texts, such as 'to be or not'.*a language model"),
        (pd.Series(["to be", "or not"] * 9), "texts, such as 'to be'"),
        ([nx.node_link_data(g) for g in GRAPHS], "networkx.node_link_graph"),
    ],
    ids=[
        "SMILES", "texts", "a Series of texts", "node-link data",
    ],
)  # fmt: skip
def test_what_must_be_read_first_is_refused_with_the_line_that_does(X, advice):
    with pytest.raises(TypeError, match=advice):
        default().fit(X)


@pytest.mark.parametrize("n_channels", [2, 9, 32])
def test_lists_of_unequal_lengths_are_series_of_any_number_of_channels(n_channels):
    X = [RNG.normal(size=(n_channels, n)) for n in RNG.integers(17, 29, 12)]
    fitted = default(augmentation=GaussianNoise()).fit(X)
    assert fitted._model.schema.sample_shape == (n_channels, None)
    with pytest.raises(ValueError, match=r"\[x.T for x in X\]; if they are batches.*concatenate"):
        default().fit([x.T for x in X])


def test_images_with_nan_are_refused_without_advice_on_trees():
    X = RNG.uniform(size=(9, 1, 6, 6))
    X[3, 0, 2, 2] = np.nan
    for given in (X, X.astype(np.float32), X[:, 0]):
        with pytest.raises(ValueError, match=r"contains NaN.*np.nan_to_num\(X\)"):
            default().fit(given)
    fitted = default().fit(np.nan_to_num(X))
    with pytest.raises(ValueError, match=r"contains NaN.*np.nan_to_num\(X\)"):
        fitted.transform(X)
