"""What is no array of samples, or may be something else, is never read in silence."""

import warnings

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from skcontrast import ContrastiveEmbedder
from skcontrast.augmentation import GaussianNoise
from skcontrast.kinds import Images
from tests.common import vectors

RNG = np.random.default_rng(0)
GRAPHS = [nx.gnp_random_graph(5 + k % 4, 0.5, seed=k) for k in range(12)]
EQUAL = [nx.gnp_random_graph(6, 0.5, seed=k) for k in range(12)]
MATRICES = np.stack([nx.to_numpy_array(graph) for graph in EQUAL])
LONG = pd.DataFrame(
    {"id": np.repeat(np.arange(6), 9), "t": np.tile(np.arange(9), 6), "v": RNG.normal(size=54)}
)
Molecule = type("Mol", (), {"__module__": "rdkit.Chem.rdchem"})


def small(**kwargs):
    return ContrastiveEmbedder(max_epochs=1, random_state=0, device="cpu", **kwargs)


@pytest.mark.parametrize(
    ("X", "advice"),
    [
        (["CCO", "CCC"] * 5, r"texts, such as 'CCO'.*'Molecules' .* user guide.*TfidfVectorizer"),
        (np.array(["to be or not"] * 9), "texts, such as 'to be or not'.*a language model"),
        (np.array([["to be"], ["or not"]] * 9), "texts, such as 'to be'"),
        (pd.Series(["to be", "or not"] * 9), "texts, such as 'to be'"),
        ([Molecule() for _ in range(9)], "molecules of RDKit.*become graphs"),
        (LONG.to_dict("records"), r"pass pandas\.DataFrame\(X\)"),
        ([nx.node_link_data(g) for g in GRAPHS], "networkx.node_link_graph"),
        ([LONG, LONG], r"list of DataFrames.*x.to_numpy\(\).T.*pandas.concat\(X\)"),
        ([nx.to_scipy_sparse_array(g) for g in GRAPHS], "networkx.from_scipy_sparse_array"),
        ([[(0, 1), (1, 2)]] * 9, r"networkx.Graph\(x\) for x in X"),
    ],
    ids=[
        "SMILES", "texts", "a column of texts", "a Series of texts", "molecules", "records",
        "node-link data", "frames", "sparse adjacency matrices", "lists of edges",
    ],
)  # fmt: skip
def test_what_must_be_read_first_is_refused_with_the_line_that_does(X, advice):
    with pytest.raises(TypeError, match=advice):
        small().fit(X)


@pytest.mark.parametrize(
    "X",
    [
        [nx.to_numpy_array(graph) for graph in GRAPHS],
        MATRICES,
        list(MATRICES),
        MATRICES.astype(bool),
        np.triu(MATRICES),
        np.stack([np.corrcoef(RNG.normal(size=(5, 20))) for _ in range(9)]),
    ],
    ids=["unequal", "one size", "list", "booleans", "directed", "correlations"],
)
def test_adjacency_matrices_are_not_images(X):
    with pytest.raises(ValueError, match=r"pass \[networkx.from_numpy_array\(x\) for x in X\]"):
        small().fit(X)
    if len({x.shape for x in X}) == 1:
        assert isinstance(small(kind="images").fit(X)._fitted.setup.schema.kind, Images)


def test_the_largest_images_are_no_matrices_and_no_warning():
    X = 1.7e308 * RNG.uniform(-1, 1, size=(9, 5, 5))
    assert small().fit(X).n_features_in_ == 25


@pytest.mark.parametrize(
    "X",
    [
        [vectors(30), vectors(30)],
        [vectors(30), vectors(20)],
        [RNG.uniform(size=(20, 6, 6)) for _ in range(3)],
    ],
    ids=["vectors", "unequal", "images"],
)
def test_a_list_of_batches_is_not_a_list_of_samples(X):
    with pytest.raises(ValueError, match=r"may be batches.*np.concatenate\(X\).*kind='images'"):
        small().fit(X)


def test_two_images_in_colour_are_samples():
    small().fit([RNG.uniform(size=(3, 8, 8)) for _ in range(2)])


def test_a_long_table_is_reported():
    X = LONG
    with pytest.warns(UserWarning, match=r"long table of series: 't' grows .*\.groupby\(series"):
        small().fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        small(kind="vectors").fit(X)
        small().fit(X.sample(frac=1, random_state=0))
        small().fit(X.sort_values("t"))
        small().fit(X.assign(t=RNG.normal(size=54)))


@pytest.mark.parametrize("n_channels", [2, 9, 32])
def test_lists_of_unequal_lengths_are_series_of_any_number_of_channels(n_channels):
    X = [RNG.normal(size=(n_channels, n)) for n in RNG.integers(17, 29, 12)]
    fitted = small(augmentation=GaussianNoise()).fit(X)
    assert fitted._fitted.setup.schema.sample_shape == (n_channels, None)
    with pytest.raises(ValueError, match=r"\[x.T for x in X\]; if they are batches.*concatenate"):
        small().fit([x.T for x in X])


def test_images_with_nan_are_refused_without_advice_on_trees():
    X = RNG.uniform(size=(9, 1, 6, 6))
    X[3, 0, 2, 2] = np.nan
    for given in (X, X.astype(np.float32), X[:, 0]):
        with pytest.raises(ValueError, match=r"contains NaN.*np.nan_to_num\(X\)"):
            small().fit(given)
    fitted = small().fit(np.nan_to_num(X))
    with pytest.raises(ValueError, match=r"contains NaN.*np.nan_to_num\(X\)"):
        fitted.transform(X)
