"""The line of the guide by which mlflow saves an embedder, where mlflow is installed."""

import numpy as np
import pytest

from tests.common import small, vectors


def test_mlflow_saves_an_embedder_by_cloudpickle(tmp_path):
    mlflow_sklearn = pytest.importorskip("mlflow.sklearn")
    embedder = small().fit(vectors())
    path = str(tmp_path / "model")
    mlflow_sklearn.save_model(embedder, path, serialization_format="cloudpickle")
    loaded = mlflow_sklearn.load_model(path)
    np.testing.assert_array_equal(loaded.transform(vectors()), embedder.transform(vectors()))
