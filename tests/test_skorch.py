"""skorch, imported without PyTorch Geometric, knows the data of PyTorch Geometric all the same."""

from __future__ import annotations

import importlib
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
import skorch.utils

from skcontrast._skorch import _Hidden


def test_only_the_thread_that_hides_a_package_does_not_find_it(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch_geometric", raising=False)
    hidden, finders = _Hidden(), list(sys.meta_path)
    with hidden, ThreadPoolExecutor() as pool:
        with pytest.raises(ModuleNotFoundError, match="torch_geometric is not imported"):
            importlib.import_module("torch_geometric")
        assert hidden.find_spec("networkx") is None
        assert pool.submit(hidden.find_spec, "torch_geometric").result() is None
    assert sys.meta_path == finders


def test_data_of_pytorch_geometric_are_tensors_for_skorch_once_it_is_imported():
    data = pytest.importorskip("torch_geometric.data").Data(num_nodes=2)
    assert skorch.utils.TORCH_GEOMETRIC_INSTALLED
    assert skorch.utils.to_tensor(data, "cpu") is data


def test_skorch_does_without_pytorch_geometric_until_it_is_imported(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch_geometric", raising=False)
    assert not skorch.utils.TORCH_GEOMETRIC_INSTALLED
