"""What is no array of samples, or may be something else, is never read in silence."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from skcontrast import ContrastiveEmbedder
from skcontrast.augmentation import GaussianNoise

RNG = np.random.default_rng(0)
GRAPHS = [nx.gnp_random_graph(5 + k % 4, 0.5, seed=k) for k in range(12)]
LONG = pd.DataFrame(
    {"id": np.repeat(np.arange(6), 9), "t": np.tile(np.arange(9), 6), "v": RNG.normal(size=54)}
)


def small(**kwargs):
    return ContrastiveEmbedder(max_epochs=1, random_state=0, device="cpu", **kwargs)


@pytest.mark.parametrize(
    ("X", "advice"),
    [
        (["CCO", "CCC"] * 5, r"texts, such as 'CCO'.*'Molecules' .* user guide.*TfidfVectorizer"),
        (np.array(["to be or not"] * 9), "texts, such as 'to be or not'.*a language model"),
        (pd.Series(["to be", "or not"] * 9), "texts, such as 'to be'"),
        (LONG.to_dict("records"), r"pass pandas\.DataFrame\(X\)"),
        ([nx.node_link_data(g) for g in GRAPHS], "networkx.node_link_graph"),
    ],
    ids=[
        "SMILES", "texts", "a Series of texts", "records", "node-link data",
    ],
)  # fmt: skip
def test_what_must_be_read_first_is_refused_with_the_line_that_does(X, advice):
    with pytest.raises(TypeError, match=advice):
        small().fit(X)


@pytest.mark.parametrize("n_channels", [2, 9, 32])
def test_lists_of_unequal_lengths_are_series_of_any_number_of_channels(n_channels):
    X = [RNG.normal(size=(n_channels, n)) for n in RNG.integers(17, 29, 12)]
    fitted = small(augmentation=GaussianNoise()).fit(X)
    assert fitted._model.schema.sample_shape == (n_channels, None)
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
