"""What random fits have found: each failed before it was mended."""

import networkx as nx
import numpy as np
import pytest
import torch
from torch.utils.data import TensorDataset

from skcontrast.encoders import GIN
from tests.common import images, small, small_images, vectors


def test_a_warning_of_transform_points_to_the_caller():
    embedder = small_images().fit(images() / 255.0)
    with pytest.warns(UserWarning, match="X has values from 0 to") as caught:
        embedder.transform(images() * 1e6)
    assert {warning.filename for warning in caught} == {__file__}


def test_finite_numbers_near_the_limit_in_a_dataset_leak_no_warning():
    X = np.where(np.arange(100).reshape(20, 5) % 2, 1.7e308, -1.7e308)
    with pytest.raises(ValueError, match="X must be numbers of finite variance"):
        small().fit(TensorDataset(torch.from_numpy(X)))  # a warning is an error


def test_complex_numbers_are_refused_wherever_they_come_from():
    with pytest.raises(TypeError, match="numbers, but sample 0 is not: its dtype is complex128"):
        small().fit(TensorDataset(torch.from_numpy(vectors() + 1j)))
    graph = nx.path_graph(2)
    nx.set_node_attributes(graph, 1j, "x")
    with pytest.raises(ValueError, match=r"in X.*'x' must be a number.*complex"):
        small(encoder=GIN(1, 4)).fit([graph] * 4)


def test_images_far_beyond_a_tiny_range_leak_no_warning_of_numpy():
    embedder = small_images().fit(images() * 1e-310)
    with pytest.warns(UserWarning) as caught:
        assert np.isfinite(embedder.transform(images() * 1e30)).all()
    assert ["X has values" in str(w.message) for w in caught] == [True] * len(caught)
