"""An exported network is `transform`, in a process that does not have skcontrast."""

import errno
import importlib.util
import signal
import subprocess
import sys

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch
from scipy.sparse import csr_matrix
from torch import nn

from skcontrast import ContrastiveEmbedder, export
from skcontrast._files import _export  # private: what the check of a file computes
from skcontrast.encoders import MLP, ConvNet, PatchNet, Pretrained
from skcontrast.frameworks import CMC
from skcontrast.kinds import Images, Vectors
from skcontrast.similarity import VonMisesFisher
from tests.common import in_a_process

RNG = np.random.default_rng(0)
VECTORS = RNG.normal(size=(40, 6))
PHOTOS = RNG.integers(0, 256, (24, 3, 16, 16)).astype(np.uint8)
SMALL = {"encoder": MLP((16,)), "projection_dim": 8}
CONV = {"encoder": ConvNet((4, 8)), "projection_dim": 8}
PATCHES = PatchNet(n_patches=4, patch_size=3, widths=(4,))
CASES = {
    "vectors": (VECTORS, SMALL),
    "float32": (VECTORS.astype(np.float32), SMALL),
    "far from zero": (VECTORS + 1e7, SMALL),
    "integers": (RNG.integers(0, 9, (40, 6)), SMALL),
    "vectors of uint8": (RNG.integers(0, 256, (40, 6), dtype=np.uint8), SMALL),
    "vectors of int8": (RNG.integers(-9, 9, (40, 6), dtype=np.int8), SMALL),
    "vectors of booleans": (RNG.integers(0, 2, (40, 6)).astype(bool), SMALL),
    "unscaled uint8": (
        RNG.integers(0, 2, (40, 6), dtype=np.uint8),
        {**SMALL, "kind": Vectors(standardize=False)},
    ),
    "series of uint8": (RNG.integers(0, 256, (24, 2, 30), dtype=np.uint8), {"projection_dim": 8}),
    "projection": (VECTORS, {**SMALL, "output": "projection"}),
    "mean directions": (
        VECTORS,
        {**SMALL, "output": "projection", "similarity": VonMisesFisher()},
    ),
    "two parts": (VECTORS, {**SMALL, "framework": CMC()}),
    "a network of one's own": (VECTORS, {"encoder": nn.Sequential(nn.Linear(6, 4), nn.Tanh())}),
    "uint8": (PHOTOS, CONV),
    "floats from 0 to 255": (PHOTOS.astype(np.float32), CONV),
    "floats": (PHOTOS / 255, {**CONV, "kind": Images(standardize=False)}),
    "patches": (PHOTOS, {**CONV, "encoder": PATCHES}),
    "projection of patches": (PHOTOS, {**CONV, "encoder": PATCHES, "output": "projection"}),
    "grey": (PHOTOS[:, 0], CONV),
    "lightness and colour": (PHOTOS, {**CONV, "framework": CMC()}),
}
QUICK = ("patches",)
HAS_ONNX = all(importlib.util.find_spec(name) for name in ("onnx", "onnxscript", "onnxruntime"))
pytestmark = pytest.mark.skipif(not HAS_ONNX, reason="needs onnxruntime")


def slow(case):
    """Return a case that is run with -m slow."""
    return pytest.param(case, marks=pytest.mark.slow)


ALONE = """
import sys
sys.modules["skcontrast"] = None
import numpy as np
import onnxruntime
X = np.load(sys.argv[2])
h = onnxruntime.InferenceSession(sys.argv[1]).run(None, {"X": X})[0]
np.save(sys.argv[3], h)
"""


def fitted(X, **params):
    """Return an embedder after an epoch."""
    return ContrastiveEmbedder(max_epochs=1, random_state=0, device="cpu", **params).fit(X)


def run(path, X):
    """Return what an exported network makes of samples."""
    return _export._run_onnx(path.read_bytes(), X)


def close(h, expected):
    """Compare to 1e-5 of the largest number."""
    np.testing.assert_allclose(h, expected, atol=1e-5 * max(1, np.abs(expected).max()))


@pytest.mark.parametrize("case", [case if case in QUICK else slow(case) for case in CASES])
def test_the_exported_network_is_transform(case, tmp_path):
    X, params = CASES[case]
    embedder = fitted(X, **params)
    path = tmp_path / "network.onnx"
    export(embedder, path, X)
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]
    rows = _export._as_exported_dtype(embedder, X)
    for n in (1, 3, len(X)):
        close(run(path, rows[:n]), embedder.transform(X[:n]))


@pytest.mark.parametrize(
    ("fitted_on", "passed"),
    [(PHOTOS, PHOTOS / 1.0), (PHOTOS / 255, (PHOTOS > 99).astype("uint8"))],
)
def test_images_may_be_exported_in_another_dtype_of_the_same_unit(fitted_on, passed, tmp_path):
    embedder = fitted(fitted_on, **CONV)
    export(embedder, tmp_path / "network.onnx", passed)
    close(run(tmp_path / "network.onnx", passed), embedder.transform(passed))


def test_a_pretrained_network_is_exported(tmp_path):
    noise = np.random.default_rng(0).integers(0, 256, (60, 3, 40, 40), dtype=np.uint8)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = nn.Sequential(nn.Conv2d(3, 8, 3, 2), nn.ReLU(), nn.Conv2d(8, 16, 3, 2))
    embedder = fitted(noise, encoder=Pretrained(network, mean=0.5, std=0.25))
    export(embedder, tmp_path / "network.onnx", noise)
    found = run(tmp_path / "network.onnx", noise[:9])
    expected = embedder.transform(noise[:9])
    np.testing.assert_allclose(found, expected, atol=1e-3 * np.abs(expected).max())


@pytest.mark.slow
@pytest.mark.parametrize("case", ["vectors", "uint8"])
def test_it_runs_without_skcontrast(case, tmp_path):
    X, params = CASES[case]
    embedder = fitted(X, **params)
    export(embedder, tmp_path / "network.onnx", X)
    np.save(tmp_path / "X.npy", X)
    files = [str(tmp_path / name) for name in ("network.onnx", "X.npy", "h.npy")]
    subprocess.run([sys.executable, "-c", ALONE, *files], check=True)
    close(np.load(files[2]), embedder.transform(X))


def test_what_has_no_fixed_shape_is_refused(tmp_path):
    graphs = [nx.cycle_graph(4 + k % 3) for k in range(8)]
    embedder = ContrastiveEmbedder(max_epochs=1, random_state=0).fit(graphs)
    with pytest.raises(ValueError, match="embedder of graphs cannot be exported"):
        export(embedder, tmp_path / "a.onnx", np.zeros((2, 3)))


def test_bad_arguments_are_named(tmp_path):
    embedder = fitted(VECTORS, **SMALL)
    with pytest.raises(ValueError, match=r"suffix of path must be \.onnx"):
        export(embedder, tmp_path / "network.bin", VECTORS)
    with pytest.raises(ValueError, match="X must have at least 2 samples, got 1"):
        export(embedder, tmp_path / "network.onnx", VECTORS[:1])


@pytest.mark.parametrize(
    "X, message",
    [
        (None, "X must be an array of samples, got None"),
        ("abc", "X must hold samples, got 'abc'"),
        ([["a", "b"]] * 2, "X must be vectors of real numbers.*item 0"),
        (VECTORS + 1j, "Complex data not supported"),
        (VECTORS[:, :3], "X has 3 features"),
    ],
    ids=["None", "text", "texts", "complex", "narrow"],
)
def test_samples_that_transform_refuses_are_refused(X, message, tmp_path):
    with pytest.raises((TypeError, ValueError), match=message):
        export(fitted(VECTORS, **SMALL), tmp_path / "a.onnx", X)
    assert not any(tmp_path.iterdir())


def test_only_an_embedder_is_exported(tmp_path):
    message = r"writes an embedder or a classifier of skcontrast, got .* From a Pipe"
    with pytest.raises(TypeError, match=message):
        export(5, tmp_path / "a.onnx", VECTORS)


def test_columns_keep_their_names_and_their_order_and_a_file_for_ints_takes_float64(tmp_path):
    X = (10 * VECTORS).astype(int)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    embedder = fitted(frame, **SMALL)
    export(embedder, tmp_path / "a.onnx", frame)
    close(run(tmp_path / "a.onnx", X.astype(float)), embedder.transform(frame))
    with pytest.raises(ValueError, match="names must be in the same order"):
        export(embedder, tmp_path / "b.onnx", frame[list("fedcba")])
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.onnx"]


def export_without_room(path):
    """Return the number and the file of the error, on a disk that has room for 200 kB."""
    import resource

    embedder = fitted(VECTORS)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
    try:
        export(embedder, path, VECTORS)
    except OSError as error:
        return error.errno, error.filename


@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="needs limits of processes")
@pytest.mark.slow
def test_without_room_nothing_is_left_and_the_error_names_the_file(tmp_path):
    path = str(tmp_path / "network.onnx")
    assert in_a_process(export_without_room, path) == (errno.EFBIG, path)
    assert not any(tmp_path.iterdir())


def test_sparse_samples_are_named(tmp_path):
    embedder = fitted(VECTORS, **SMALL)
    with pytest.raises(ValueError, match=r"X must be a dense array, got a sparse matrix"):
        export(embedder, tmp_path / "network.onnx", csr_matrix(VECTORS))


@pytest.mark.parametrize("name", ["onnx", "onnxscript", "onnxruntime"])
def test_a_missing_package_is_named_with_what_to_install(name, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, name, None)
    message = r"needs the package \w+: pip install 'skcontrast\[export\]'"
    with pytest.raises(ImportError, match=message):
        export(fitted(VECTORS, **SMALL), tmp_path / "a.onnx", VECTORS)


def test_parts_of_one_array_can_be_exported_and_several_arrays_are_refused(tmp_path):
    pair = (VECTORS, VECTORS[:, :3])
    embedder = fitted(pair, framework=CMC(), **SMALL)
    with pytest.raises(ValueError, match="several modalities cannot be exported"):
        export(embedder, tmp_path / "a.onnx", pair)
    embedder = fitted(VECTORS, framework=CMC(split=2), **SMALL)
    export(embedder, tmp_path / "a.onnx", VECTORS)
    close(run(tmp_path / "a.onnx", VECTORS), embedder.transform(VECTORS))


@pytest.mark.slow
def test_a_network_that_differs_is_not_written(tmp_path, monkeypatch):
    embedder = fitted(VECTORS, **SMALL)
    path = tmp_path / "network.onnx"
    path.write_bytes(b"before")
    of_onnx = _export._run_onnx
    for error in (0.1, -0.1, np.nan):
        monkeypatch.setattr(
            _export, "_run_onnx", lambda data, X, error=error: of_onnx(data, X) + error
        )
        with pytest.raises(ValueError, match=r"network\.onnx was not written: .* differs"):
            export(embedder, path, VECTORS)
    assert path.read_bytes() == b"before"
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]
