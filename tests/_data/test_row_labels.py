"""Row labels: every transformer of ours keeps the index of a table, by itself and in Pipelines."""

import pickle

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skcontrast import augmentation as augmentations

# private: batches and labels of modalities
from skcontrast._data._modalities import LabeledArray, label_rows, row_labels
from skcontrast.graphs import pack_graphs
from tests.augmentation.common import BUILT_IN
from tests.common import small

PIXELS = augmentations.Unflatten((1, 4, 4))
VECTOR_CHAINS = [
    [],
    [augmentations.GaussianNoise()],
    [augmentations.MarginalCorruption()],
    [StandardScaler(), augmentations.GaussianNoise(), augmentations.MarginalCorruption()],
    [PIXELS],
    *[[PIXELS, augmentation] for augmentation in BUILT_IN["images"]],
    [PIXELS, augmentations.RandomFlip(), augmentations.ColorJitter()],
]
GRAPH_CHAINS = [
    [],
    [augmentations.NodeDrop()],
    [augmentations.EdgePerturb()],
    [augmentations.RandomWalkSubgraph()],
    [augmentations.NodeDrop(), augmentations.AttributeMask()],
]


def names(chain):
    return "+".join(type(step).__name__ for step in chain) or "alone"


def embedding(chain, encoder=None):
    return make_pipeline(*map(clone, chain), small(encoder=encoder, max_epochs=1))


@pytest.fixture
def table():
    """Rows in random order, under their old labels."""
    X = np.random.default_rng(0).uniform(size=(40, 16))
    frame = pd.DataFrame(X, columns=[f"f{k}" for k in range(16)])
    return frame.sample(frac=0.8, random_state=0)


@pytest.fixture
def graphs():
    items = [nx.cycle_graph(4 + k % 5) for k in range(20)]
    for graph in items:
        nx.set_node_attributes(graph, 1.0, "x")
    return pd.Series(items).sample(frac=0.8, random_state=0)


@pytest.mark.parametrize("chain", VECTOR_CHAINS, ids=names)
def test_fit_transform_is_fit_and_transform_in_index_and_values(chain, table):
    pipe = embedding(chain).set_output(transform="pandas")
    at_once = pipe.fit_transform(table)
    pd.testing.assert_frame_equal(at_once, pipe.transform(table))
    pd.testing.assert_index_equal(at_once.index, table.index)
    np.testing.assert_array_equal(
        at_once, clone(pipe).set_output(transform="default").fit_transform(table)
    )
    frame = pl.from_pandas(table)
    of_polars = clone(pipe).set_output(transform="polars").fit_transform(frame)
    assert isinstance(of_polars, pl.DataFrame) and of_polars.equals(pl.from_pandas(at_once))


@pytest.mark.parametrize("chain", GRAPH_CHAINS, ids=names)
def test_graphs_in_a_series_keep_its_index(chain, graphs):
    pipe = embedding(chain).set_output(transform="pandas")
    at_once = pipe.fit_transform(graphs)
    pd.testing.assert_frame_equal(at_once, pipe.transform(graphs))
    pd.testing.assert_index_equal(at_once.index, graphs.index)


@pytest.mark.parametrize("chain", VECTOR_CHAINS, ids=names)
def test_a_column_transformer_joins_each_row_with_its_own(chain, table):
    other = table.rename(columns=lambda name: f"{name}_again")
    both = ColumnTransformer(
        [("embed", embedding(chain), list(table)), ("raw", "passthrough", list(other))]
    ).set_output(transform="pandas")
    X = pd.concat([table, other], axis=1)
    joined = both.fit_transform(X)
    pd.testing.assert_frame_equal(joined, both.transform(X))
    raw = joined.filter(like="again").set_axis(other.columns, axis=1)
    pd.testing.assert_frame_equal(raw, other)


def test_steps_after_the_embedder_see_the_index(table):
    pipe = make_pipeline(augmentations.GaussianNoise(), small(max_epochs=1), FunctionTransformer())
    out = pipe.set_output(transform="pandas").fit_transform(table)
    pd.testing.assert_index_equal(out.index, table.index)


def test_without_set_output_arrays_come_back(table):
    for chain in ([], [PIXELS]):
        out = embedding(chain).fit_transform(table)
        assert type(out) is np.ndarray


def test_rows_of_views_and_of_packed_graphs_keep_their_labels(table, graphs):
    views = make_pipeline(clone(PIXELS), augmentations.RandomFlip()).fit_transform(table)
    pd.testing.assert_index_equal(views[[3, 1]].index, table.index[[3, 1]])
    pd.testing.assert_index_equal(pack_graphs(graphs)[[3, 1]].index, graphs.index[[3, 1]])


def test_the_index_that_pandas_gives_counts_as_none(table):
    assert row_labels(table.reset_index(drop=True)) is None
    assert row_labels([1, 2]) is None and row_labels(np.ones(3)) is None
    named = table.reset_index(drop=True).rename_axis("row")
    assert row_labels(named) is named.index
    images = clone(PIXELS).fit_transform(table.reset_index(drop=True))
    assert type(images) is np.ndarray


def test_labels_survive_a_pickle_and_are_lost_by_computing(table):
    images = clone(PIXELS).fit_transform(table)
    assert isinstance(images, LabeledArray)
    again = pickle.loads(pickle.dumps(images))
    pd.testing.assert_index_equal(again.index, table.index)
    np.testing.assert_array_equal(again, images)
    assert images[:3].index is None and (images + 1).index is None


def test_a_cached_pipeline_keeps_the_index(table, tmp_path):
    pipe = embedding([PIXELS, augmentations.RandomFlip()]).set_params(memory=str(tmp_path))
    pipe.set_output(transform="pandas")
    for _ in range(2):
        pd.testing.assert_index_equal(clone(pipe).fit_transform(table).index, table.index)


def test_no_labels_no_labeled_array():
    array = np.ones((2, 3))
    assert label_rows(array, None) is array
    assert augmentations.Views(array, ()).index is None
