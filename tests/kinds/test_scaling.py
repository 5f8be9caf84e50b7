"""How samples are brought to one scale, here or in the network."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch
from scipy.sparse import csr_array

from skcontrast.datasets import Modalities
from skcontrast.encoders import GIN, MLP, SeriesNet
from skcontrast.features import Frozen, GraphProfile, OrientedGradients, PartialWhitening, Raw
from skcontrast.frameworks import CMC
from skcontrast.kinds._images import ImageScaler  # private: the scaler alone
from skcontrast.kinds._scaling import Standardize, channel_statistics  # private: the scaler alone
from skcontrast.kinds._vectors import VectorScaler  # private: the scaler alone
from tests.common import Items, small, small_images


def rng():
    return np.random.default_rng(0)


CPU = torch.device("cpu")


def standardised(X, fitted_on):
    scaler = VectorScaler().fit(fitted_on)
    statistics = (torch.as_tensor(v, dtype=torch.float32) for v in (scaler.mean_, scaler.std_))
    return Standardize(*statistics)(scaler.to_tensor(X, CPU))


@pytest.mark.parametrize("offset", [[1.0, 0.0, -1e12], [1.0, 0.0, -2e9]])
def test_vectors_get_zero_mean_and_unit_variance_here_or_in_the_network(offset):
    X = rng().normal(size=(200, 3)) * [1e-9, 1.0, 1e9] + offset
    tensor = standardised(X, X)
    assert tensor.dtype == torch.float32
    np.testing.assert_allclose(tensor.mean(0), 0, atol=1e-4)
    np.testing.assert_allclose(tensor.std(0, correction=0), 1, atol=1e-4)


def test_ordinary_vectors_are_only_cast():
    X = rng().normal(5, 2, size=(50, 3)).astype(np.float32)
    tensor = VectorScaler().fit(X).to_tensor(X, CPU)
    assert np.shares_memory(tensor.numpy(), X)


def test_constant_features_become_zero_and_stay_comparable():
    X = np.full((10, 2), 7.0)
    assert torch.equal(standardised(X, X), torch.zeros(10, 2))
    assert standardised(X + 1, X).max() == 1


@pytest.mark.parametrize("offset", [0.0, 1e9])
def test_far_outliers_stay_finite(offset):
    far = standardised(np.array([[1e300, -1e300]]), rng().normal(size=(50, 2)) + offset)
    assert far.abs().max() == 1e6


def test_uint8_images_stay_uint8_without_a_copy():
    X = rng().integers(0, 256, size=(4, 3, 5, 5), dtype=np.uint8)
    tensor = ImageScaler().fit(X).to_tensor(X, CPU)
    assert tensor.dtype == torch.uint8
    assert np.shares_memory(tensor.numpy(), X)


def test_float_images_are_mapped_to_the_unit_interval():
    X = rng().uniform(-3, 5, size=(4, 3, 5, 5))
    scaler = ImageScaler().fit(X)
    tensor = scaler.to_tensor(X, CPU)
    assert tensor.min() == 0 and tensor.max() == 1
    with pytest.warns(UserWarning, match="rescale X as in fit"):
        beyond = scaler.to_tensor(X * 100, CPU)
    assert beyond.min() == 0 and beyond.max() == 1


def test_all_images_decide_which_intensities_are_outliers():
    X = rng().uniform(size=(1100, 32, 32)).astype(np.float32)
    X[1000:] *= 100  # behind the first million
    tensor = ImageScaler().fit(X).to_tensor(X, CPU)
    np.testing.assert_allclose(tensor[:, 0], X / 100, atol=1e-4)


def test_without_standardising_values_are_only_cast():
    X = rng().normal(size=(5, 3))
    tensor = VectorScaler(standardize=False).fit(X).to_tensor(X, CPU)
    np.testing.assert_array_equal(tensor, X.astype(np.float32))
    with pytest.raises(ValueError, match="too large for float32"):
        VectorScaler(standardize=False).fit(X).to_tensor(X * 1e300, CPU)


def test_read_only_arrays_are_taken_without_a_warning():
    X = rng().integers(0, 256, size=(4, 1, 5, 5), dtype=np.uint8)
    X.flags.writeable = False
    assert ImageScaler().fit(X).to_tensor(X, CPU).shape == X.shape


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_channels_get_zero_mean_and_unit_variance(dtype):
    generator = torch.Generator().manual_seed(0)
    images = torch.randint(0, 256, (50, 3, 6, 5), generator=generator).to(torch.uint8)
    if dtype == torch.float32:
        images = images / 255
    out = Standardize(*channel_statistics(images))(images)
    torch.testing.assert_close(out.mean((0, 2, 3)), torch.zeros(3), atol=1e-5, rtol=0)
    torch.testing.assert_close(out.std((0, 2, 3)), torch.ones(3), atol=1e-3, rtol=0)


def test_constant_channels_become_zero():
    images = torch.full((4, 1, 3, 3), 0.5)
    assert Standardize(*channel_statistics(images))(images).abs().max() == 0


def test_input_is_not_changed():
    x = torch.ones(3, 2)
    Standardize(torch.ones(2), torch.ones(2))(x)
    assert x.equal(torch.ones(3, 2))


# E(X + c) = E(X): where zero is does not count, in any kind that standardises.


def numbers(*shape, whole=False):
    """Return random numbers with so few digits that they plus an offset are exact."""
    found = np.round(1024 * np.random.default_rng(0).normal(size=shape))
    return found.astype(np.int64) if whole else found / 1024


VECTORS, SERIES, IMAGES = numbers(40, 4), numbers(20, 2, 12), numbers(20, 6, 6)
WHOLE, WHOLE_SERIES = numbers(40, 4, whole=True), numbers(20, 2, 12, whole=True)


def cut(series):
    """Return series of unequal lengths."""
    return [one[:, : 5 + row % 8] for row, one in enumerate(series)]


def described(of, c, *, whole=False):
    """Return graphs whose nodes or edges have numbers around c."""
    graphs, x = [], iter((numbers(1000, whole=whole) + (int(c) if whole else c)).tolist())
    for k in range(12):
        graph = nx.cycle_graph(4 + k % 3)
        items = graph.nodes if of == "node" else graph.edges
        getattr(nx, f"set_{of}_attributes")(graph, {item: [next(x), 1] for item in items}, "x")
        graphs.append(graph)
    return graphs


def data(name, c, *, whole=False):
    """Return graphs of PyTorch Geometric with numbers around c in an attribute."""
    Data = pytest.importorskip("torch_geometric.data").Data
    edges = torch.tensor([[0, 1, 2, 1, 2, 3], [1, 2, 3, 0, 1, 2]])
    rows = [0, 1, 2, 3] if name == "x" else [0, 1, 2, 0, 1, 2]
    x = torch.from_numpy(numbers(12, 4, 1, whole=whole) + (int(c) if whole else c))[:, rows]
    return [Data(edge_index=edges, num_nodes=4, **{name: one}) for one in x]


GRAPHS, NET, PROFILE = small(encoder=GIN(8)), SeriesNet(), GraphProfile()
WITH_ZERO_AT = {
    "vectors": (small(), lambda c: VECTORS + c),
    "whole numbers": (small(), lambda c: WHOLE + int(c)),
    "objects": (small(), lambda c: (VECTORS + c).astype(object)),
    "one column": (small(), lambda c: np.c_[VECTORS[:, 0] + c, VECTORS]),
    "table": (small(), lambda c: pd.DataFrame(WHOLE + int(c)).astype("Int64")),
    "sparse": (small(), lambda c: csr_array(VECTORS + c)),
    "Dataset": (small(), lambda c: Items(VECTORS + c)),
    "streamed": (small(memory_budget=1), lambda c: VECTORS + c),
    "series": (small(encoder=NET), lambda c: SERIES + c),
    "unequal series": (small(encoder=NET), lambda c: cut(SERIES + c)),
    "whole series": (small(encoder=NET), lambda c: cut(WHOLE_SERIES + int(c))),
    "tensors": (small(encoder=NET), lambda c: [torch.from_numpy(x) for x in cut(SERIES + c)]),
    "Dataset of series": (small(encoder=NET, kind="series"), lambda c: Items(cut(SERIES + c))),
    "images": (small_images(), lambda c: IMAGES + c),
    "nodes": (GRAPHS, lambda c: described("node", c)),
    "whole nodes": (GRAPHS, lambda c: described("node", c, whole=True)),
    "edges": (GRAPHS, lambda c: described("edge", c)),
    "x of Data": (GRAPHS, lambda c: data("x", c)),
    "whole x of Data": (GRAPHS, lambda c: data("x", c, whole=True)),
    "edge_attr of Data": (GRAPHS, lambda c: data("edge_attr", c)),
    "parts": (
        small(encoder=None, framework=CMC()),
        lambda c: Modalities(VECTORS[:20] + c, SERIES + c),
    ),
    "profile": (PROFILE, lambda c: described("node", c)),
    "profile of Data": (PROFILE, lambda c: data("x", c, whole=True)),
    "Raw": (Raw(), lambda c: SERIES + c),
    "Frozen": (Frozen(MLP(), random_state=0), lambda c: VECTORS + c),
    "OrientedGradients": (OrientedGradients(), lambda c: IMAGES + c),
    "PartialWhitening": (PartialWhitening(2), lambda c: VECTORS + c),
}


@pytest.mark.parametrize("name", WITH_ZERO_AT)
def test_where_zero_is_does_not_count(name):
    embedder, at = WITH_ZERO_AT[name]
    expected = np.asarray(embedder.fit_transform(at(0.0)))
    assert expected.std() > 0
    for c in [1.7e9, -4.5e6]:
        found = np.asarray(embedder.fit_transform(at(c)))
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-2 * np.abs(expected).max())
