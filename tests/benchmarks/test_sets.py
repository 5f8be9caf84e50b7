"""Data of benchmarks: read as they are published."""

import os

import numpy as np
import pytest

from benchmarks import _image_sets, _series_sets
from benchmarks._graph_sets import load_graphs
from benchmarks._image_sets import load_images
from benchmarks._series_sets import load_series
from benchmarks.studies._digit_fits import N_FEW_CLASSES, split

# A triangle, a path of four nodes and an edge, of the classes 3, −1 and 3, with labels of nodes.
TEXTS = {
    "A": "1, 2\n2, 1\n2, 3\n3, 2\n3, 1\n1, 3\n4, 5\n5, 4\n5, 6\n6, 5\n6, 7\n7, 6\n8, 9\n9, 8\n",
    "graph_indicator": "1\n1\n1\n2\n2\n2\n2\n3\n3\n",
    "graph_labels": "3\n-1\n3\n",
    "node_labels": "5\n5\n9\n5\n9\n9\n9\n5\n5\n",
}


@pytest.mark.filterwarnings("ignore")  # of PyTorch Geometric's own
def test_arrays_and_what_pytorch_geometric_loads_are_read_alike(tmp_path):
    pytest.importorskip("torch_geometric")
    raw = tmp_path / "SET" / "raw"
    raw.mkdir(parents=True)
    for name, text in TEXTS.items():
        (raw / f"SET_{name}.txt").write_text(text)
    loaded, y = load_graphs("SET", tmp_path)
    arrays = {"edge_index": loaded.topology.edge_index, "node_ptr": [0, 3, 7, 9]}
    np.savez(tmp_path / "tu_SET.npz", **arrays, node_labels=loaded.labels, y=[1, 0, 1])
    graphs, same_y = load_graphs("SET", tmp_path)
    assert y.tolist() == same_y.tolist() == [1, 0, 1]
    assert loaded.labels.tolist() == [0, 0, 1, 0, 1, 1, 1, 0, 0]
    for one, other in zip(graphs.arrays(), loaded.arrays(), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("name", "n_graphs", "n_nodes", "n_edges", "n_classes"),
    [
        ("PTC_MR", 344, 14.29, 14.69, 2),
        ("ENZYMES", 600, 32.63, 62.14, 6),
        ("DD", 1178, 284.32, 715.66, 2),
        ("REDDIT-BINARY", 2000, 429.63, 497.75, 2),
    ],
)
def test_real_sets_have_their_published_statistics(name, n_graphs, n_nodes, n_edges, n_classes):
    home = os.environ.get("SKCONTRAST_DATA")
    if not home:
        pytest.skip("SKCONTRAST_DATA names no folder with the sets of TUDataset")
    graphs, y = load_graphs(name, home)
    assert len(graphs) == len(y) == n_graphs and set(y) == set(range(n_classes))
    assert graphs.topology.n_nodes / n_graphs == pytest.approx(n_nodes, abs=0.005)
    assert len(graphs.topology.sources) / n_graphs / 2 == pytest.approx(n_edges, abs=0.005)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv(_image_sets.FOLDER, str(tmp_path))
    load_images.cache_clear()
    yield tmp_path
    load_images.cache_clear()


def test_fashion_mnist_is_as_it_was_stored(folder):
    stored = {"X_train": np.arange(12, dtype=np.uint8).reshape(3, 2, 2), "y_train": [0, 1, 2]}
    stored |= {"X_test": np.ones((1, 2, 2), dtype=np.uint8), "y_test": [9]}
    np.savez(folder / "fashion_mnist.npz", **stored)
    for loaded, array in zip(load_images("Fashion-MNIST"), stored.values(), strict=True):
        np.testing.assert_array_equal(loaded, array)


def test_cifar_is_decoded_from_differences(folder):
    X = np.random.default_rng(0).integers(0, 256, (12, 3, 32, 32), dtype=np.uint8)
    red, green, blue = X.transpose(1, 0, 2, 3)
    planes = np.stack([green, red - green, blue - green])
    differences = np.diff(np.diff(planes, axis=2, prepend=0), axis=3, prepend=0)
    for k, name in enumerate([*(f"batch_{k}" for k in range(1, 6)), "test"]):
        rows = slice(2 * k, 2 * k + 2)
        coded = {"d": differences[:, rows].astype(np.uint8), "y": np.arange(12)[rows]}
        np.savez(folder / f"cifar10_{name}.npz", **coded)
    X_train, y_train, X_test, y_test = load_images("CIFAR-10")
    np.testing.assert_array_equal(np.concatenate([X_train, X_test]), X)
    assert [*y_train, *y_test] == list(range(12)) and len(X_train) == 10


@pytest.mark.parametrize("folder", [".", "series"])
def test_both_parts_of_a_set_are_pooled_and_padded_to_the_longer(tmp_path, folder):
    (tmp_path / "series").mkdir()
    stored = {"X_train": np.ones((2, 3, 4)), "y_train": ["b", "a"]}
    stored |= {"X_test": np.full((1, 3, 6), 2.0), "y_test": ["b"]}
    np.savez(tmp_path / folder / "set.npz", **stored)
    X, y, n_train = load_series("set", tmp_path)
    assert n_train == 2
    assert X.shape == (3, 3, 6) and X.dtype == np.float32
    assert (X[:2, :, :4] == 1).all() and np.isnan(X[:2, :, 4:]).all() and (X[2] == 2).all()
    assert y.tolist() == [1, 0, 1]


def test_a_set_may_have_one_part_in_the_folder_of_the_environment(tmp_path, monkeypatch):
    np.savez(tmp_path / "set.npz", X=np.ones((5, 1, 4), np.float16), y=np.arange(5))
    monkeypatch.setenv(_series_sets.FOLDER, str(tmp_path))
    X, y, n_train = load_series("set")
    assert n_train == 5 and X.shape == (5, 1, 4) and y.tolist() == [0, 1, 2, 3, 4]


def test_without_a_folder_the_option_is_named(monkeypatch):
    monkeypatch.delenv(_series_sets.FOLDER, raising=False)
    with pytest.raises(SystemExit, match="--data-home"):
        load_series("set")


@pytest.mark.parametrize("n_classes", [2, 3, 5, 10])
def test_digits_of_few_classes_are_as_many_whatever_their_number(n_classes):
    for seed in range(5):
        _, y_train, _, y_test = split(seed, n_classes)
        counts = np.unique(y_train, return_counts=True)[1]
        assert set(counts) == {N_FEW_CLASSES // n_classes} and len(counts) == n_classes
        assert set(y_test) == set(y_train)
