"""What random fits have found: each failed before it was mended."""

import warnings

import networkx as nx
import numpy as np
import pytest
import torch
from torch.utils.data import TensorDataset

from skcontrast import load, save
from skcontrast.augmentation import MarginalCorruption
from skcontrast.encoders import GIN
from skcontrast.graphs import pack_graphs
from tests.common import images, small, small_images, vectors
from tests.fuzz.fit_cases import OwnNetwork


def test_a_warning_of_transform_points_to_the_caller():
    embedder = small_images().fit(images() / 255.0)
    with pytest.warns(UserWarning, match="X has values from 0 to") as caught:
        embedder.transform(images() * 1e6)
    assert {warning.filename for warning in caught} == {__file__}


def test_finite_numbers_near_the_limit_in_a_dataset_leak_no_warning():
    X = np.where(np.arange(100).reshape(20, 5) % 2, 1.7e308, -1.7e308)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match="X must be numbers of finite variance"):
            small().fit(TensorDataset(torch.from_numpy(X)))


def test_complex_numbers_are_refused_wherever_they_come_from():
    with pytest.raises(TypeError, match="numbers, but sample 0 is not: its dtype is complex128"):
        small().fit(TensorDataset(torch.from_numpy(vectors() + 1j)))
    graph = nx.path_graph(2)
    nx.set_node_attributes(graph, 1j, "x")
    with pytest.raises(ValueError, match=r"in X.*'x' must be a number.*complex"):
        small(encoder=GIN(1, 4)).fit([graph] * 4)


def test_an_augmentation_of_vectors_that_learns_refuses_graphs_by_name():
    graphs = pack_graphs([nx.path_graph(3)] * 4)
    with pytest.raises(ValueError, match=r"MarginalCorruption expects.*got graphs"):
        small(encoder=GIN(1, 4), augmentation=MarginalCorruption()).fit(graphs)


def test_a_module_with_lazy_layers_is_saved_with_the_weights_that_it_got(tmp_path):
    embedder = small(encoder=OwnNetwork()).fit(vectors())
    embedder.encoder(torch.from_numpy(vectors()[:1]).float())
    save(embedder, tmp_path / "embedder.safetensors")
    own = {f"{OwnNetwork.__module__}.OwnNetwork": OwnNetwork()}
    loaded = load(tmp_path / "embedder.safetensors", custom_objects=own)
    assert np.array_equal(loaded.transform(vectors()), embedder.transform(vectors()))


def test_images_far_beyond_a_tiny_range_leak_no_warning_of_numpy():
    embedder = small_images().fit(images() * 1e-310)
    with pytest.warns(UserWarning) as caught:
        assert np.isfinite(embedder.transform(images() * 1e30)).all()
    assert ["X has values" in str(w.message) for w in caught] == [True] * len(caught)
