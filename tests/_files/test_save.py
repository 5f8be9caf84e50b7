"""A saved embedder is the same embedder, and a file of a stranger can do nothing."""

import json
import os
import pickle
import sys
from dataclasses import replace
from pathlib import Path

import joblib
import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from torch import nn

import skcontrast
from skcontrast import ContrastiveEmbedder
from skcontrast._files import _save
from skcontrast._storage._file import pack
from skcontrast._storage._user_objects import own_name
from skcontrast.augmentation import (
    Augmentation,
    FunctionAugmentation,
    GaussianNoise,
    MarginalCorruption,
)
from skcontrast.datasets import Parts
from skcontrast.encoders import GIN, MLP, ConvNet, PatchNet, ResNet
from skcontrast.frameworks import CMC, InfoGraph, MoCo
from skcontrast.graphs import pack_graphs
from skcontrast.kinds import Kind
from skcontrast.losses import BCL, DCL, HCL
from skcontrast.optimizers import Optimizer
from skcontrast.schedules import Linear
from skcontrast.similarity import DotProduct, VonMisesFisher
from tests.common import in_a_process
from tests.golden import releases

RNG = np.random.default_rng(0)
VECTORS = RNG.normal(size=(40, 6))
IMAGES = RNG.integers(0, 256, (24, 3, 16, 16)).astype(np.uint8)
GRAPHS = [nx.gnp_random_graph(8, 0.4, seed=k) for k in range(20)]
BONDED = [graph.copy() for graph in GRAPHS]
for number, graph in enumerate(BONDED):
    for (u, v), data in graph.edges.items():
        data |= {"x": [u + v, 1.0], "weight": 1.0 + number, "label": "single" if u else 2}
SMALL = {"encoder": MLP((16,)), "projection_dim": 8}
CONV = {"encoder": ConvNet((4, 8)), "projection_dim": 8}
PATCHES = PatchNet(n_patches=4, patch_size=3, widths=(4,))


class Net(nn.Module):
    """A network that is neither of skcontrast nor of torch."""

    def __init__(self, width=3):
        super().__init__()
        self.linear = nn.Linear(6, width)
        self.norm = nn.BatchNorm1d(width)

    def forward(self, x):
        return self.norm(self.linear(x))


def jitter(x):
    """A function that is none of skcontrast's."""
    return x + torch.randn_like(x)


class Halved(Augmentation):
    """An augmentation that is none of skcontrast's."""

    kind = "vectors"

    def augment(self, batch, generator=None):
        return batch / 2


CASES = {
    "vectors": (VECTORS, SMALL),
    "vectors by default": (VECTORS, {}),
    "frame": (pd.DataFrame(VECTORS, columns=list("abcdef")), SMALL),
    "images": (IMAGES, CONV),
    "patches": (IMAGES, {**CONV, "encoder": PATCHES}),
    "patches of two parts": (IMAGES, {**CONV, "encoder": PATCHES, "framework": CMC()}),
    "grey images": (IMAGES[:, 0], CONV),
    "grey images by default": (IMAGES[:, 0, :8, :8], {}),
    "images as one column of features": (IMAGES[:, 0], {"encoder": MLP((8,))}),
    "resnet": (IMAGES, {"encoder": ResNet(18, width=4), "projection_dim": 8}),
    "graphs": (GRAPHS, {"encoder": GIN(width=4), "projection_dim": 8}),
    "graphs with edges": (BONDED, {"encoder": GIN(width=4), "projection_dim": 8}),
    "infograph": (GRAPHS, {"encoder": GIN(width=4), "framework": InfoGraph()}),
    "moco": (VECTORS, {**SMALL, "framework": MoCo(queue_size=16)}),
    "cmc": (IMAGES, {**CONV, "framework": CMC()}),
    "images with vectors": (Parts(IMAGES, VECTORS[: len(IMAGES)]), {"framework": CMC()}),
    "two arrays": ((VECTORS, VECTORS[:, :3]), {**SMALL, "framework": CMC()}),
    "concentrations": (VECTORS, {**SMALL, "similarity": VonMisesFisher()}),
    "projection": (VECTORS, {**SMALL, "output": "projection", "similarity": DotProduct()}),
    "schedule": (VECTORS, {**SMALL, "loss": HCL(beta=Linear(1.0, 0.0))}),
    "layers of torch": (VECTORS, {"encoder": nn.Sequential(nn.Linear(6, 4), nn.ReLU())}),
    "optimizer": (VECTORS, {**SMALL, "optimizer": Optimizer("adam", betas=(0.9, 0.95))}),
    "optimizer class": (VECTORS, {**SMALL, "optimizer": torch.optim.SGD}),
}
LONG = "images with vectors"  # by default networks


def fitted(X=VECTORS, **params):
    """Return an embedder after an epoch."""
    return ContrastiveEmbedder(**{"max_epochs": 1, "random_state": 0, **params}).fit(X)


def header_of(path):
    """Return the JSON and the tensors of a file."""
    with safe_open(path, framework="pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        return json.loads(file.metadata()["skcontrast"][64:]), tensors


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The bytes of a file of a small embedder."""
    path = tmp_path_factory.mktemp("saved") / "a"
    skcontrast.save(fitted(**SMALL), path)
    return path.read_bytes()


@pytest.fixture
def path(saved, tmp_path):
    """A file of a small embedder, which a test may change."""
    path = tmp_path / "embedder.safetensors"
    path.write_bytes(saved)
    return path


@pytest.fixture
def tampered(path):
    """Return a function that changes the header and the tensors of the file."""

    def tamper(change):
        content, tensors = header_of(path)
        change(content, tensors)
        path.write_bytes(pack(content, tensors, "skcontrast"))
        return path

    return tamper


@pytest.mark.parametrize(
    "case", [pytest.param(c, marks=pytest.mark.slow) if c == LONG else c for c in CASES]
)
def test_a_loaded_embedder_is_the_saved_one(case, tmp_path):
    X, params = CASES[case]
    embedder = fitted(X, **params)
    skcontrast.save(embedder, tmp_path / "a")
    loaded = skcontrast.load(tmp_path / "a")
    np.testing.assert_array_equal(loaded.transform(X), embedder.transform(X))
    assert loaded.score(X) == embedder.score(X)
    assert repr(loaded) == repr(embedder)
    assert list(loaded.history_) == list(embedder.history_)
    assert list(loaded.get_feature_names_out()) == list(embedder.get_feature_names_out())
    if case == "frame":
        assert list(loaded.feature_names_in_) == list("abcdef")
    # It can be saved again, fitted anew and trained further.
    skcontrast.save(loaded, tmp_path / "b")
    np.testing.assert_array_equal(
        skcontrast.load(tmp_path / "b").transform(X), embedder.transform(X)
    )
    np.testing.assert_array_equal(clone(loaded).fit(X).transform(X), embedder.transform(X))
    assert np.isfinite(loaded.partial_fit(X).transform(X)).all()


@pytest.mark.parametrize("framework", [None, MoCo(queue_size=16), CMC()], ids=str)
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_a_file_is_for_inference_and_training_on_starts_with_a_fresh_optimizer(
    framework, method, tmp_path
):
    warm = fitted(framework=framework, warm_start=True, augmentation=GaussianNoise(), **SMALL)
    fresh = warm._as_fitted(replace(warm._fitted, optimizer_state=None, framework_state=None))
    assert warm._fitted.optimizer_state is not None
    skcontrast.save(warm, tmp_path / "a")
    assert not any("exp_avg" in name for name in header_of(tmp_path / "a")[1])
    loaded = skcontrast.load(tmp_path / "a")
    assert loaded._fitted.optimizer_state is loaded._fitted.framework_state is None
    for embedder in (loaded, fresh):
        getattr(embedder, method)(VECTORS)
    assert loaded.n_epochs_ == len(loaded.history_) == 2
    np.testing.assert_array_equal(loaded.transform(VECTORS), fresh.transform(VECTORS))


def test_estimates_and_output_containers_are_kept(tmp_path):
    y = np.arange(40) % 2
    embedder = ContrastiveEmbedder(loss=BCL(alpha="auto"), max_epochs=6, random_state=0, **SMALL)
    embedder.fit(VECTORS, y).set_output(transform="pandas")
    skcontrast.save(embedder, tmp_path / "a")
    loaded = skcontrast.load(tmp_path / "a")
    assert loaded.estimates_ == embedder.estimates_
    pd.testing.assert_frame_equal(loaded.transform(VECTORS), embedder.transform(VECTORS))


def test_packed_graphs_are_embedded_alike(tmp_path):
    embedder = fitted(GRAPHS, encoder=GIN(width=4))
    skcontrast.save(embedder, tmp_path / "a")
    packed = pack_graphs(GRAPHS)
    np.testing.assert_array_equal(
        skcontrast.load(tmp_path / "a").transform(packed), embedder.transform(GRAPHS)
    )


def test_training_samples_stay_out(tmp_path):
    marked = VECTORS.copy()
    marked[:, 0] = np.pi * np.arange(1, 41)
    embedder = fitted(marked, augmentation=MarginalCorruption(), **SMALL)
    values = [marked[k, 0].tobytes() for k in range(40)]
    skcontrast.save(embedder, tmp_path / "without")
    without = (tmp_path / "without").read_bytes()
    assert not any(value in without for value in values)


def test_custom_objects_are_named_and_passed(tmp_path):
    embedder = fitted(encoder=Net(), augmentation=Halved())
    skcontrast.save(embedder, tmp_path / "a")
    own = {f"{__name__}.Net": Net(), f"{__name__}.Halved": Halved().fit(VECTORS)}
    with pytest.raises(ValueError, match=r"Halved': \.\.\., '.*Net': \.\.\."):
        skcontrast.load(tmp_path / "a")
    loaded = skcontrast.load(tmp_path / "a", own=own)
    np.testing.assert_array_equal(loaded.transform(VECTORS), embedder.transform(VECTORS))
    assert not torch.equal(own[f"{__name__}.Net"].linear.weight, loaded.encoder_[1].linear.weight)
    with pytest.raises(ValueError, match=r"(?s)Net'\] differs: .*linear\.weight"):
        skcontrast.load(tmp_path / "a", own={**own, f"{__name__}.Net": Net(width=4)})
    with pytest.raises(ValueError, match=r"own\['.*Net'\] must be a module, an object of its"):
        skcontrast.load(tmp_path / "a", own={**own, f"{__name__}.Net": Net})


class Scale(nn.Module):
    """A network with a number that is not a parameter."""

    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        return x * self.factor


class Block(nn.Sequential):
    """A network of any shape."""

    def __init__(self, n_in, n_out):
        super().__init__(nn.Linear(n_in, n_out), nn.ReLU())


def test_modules_of_one_class_have_a_name_each(tmp_path):
    layers = Scale(100.0), nn.Linear(6, 4), nn.Tanh(), Scale(0.01)
    embedder = fitted(encoder=nn.Sequential(*layers))
    skcontrast.save(embedder, tmp_path / "a")
    own = {f"{__name__}.Scale": Scale(100.0)}
    with pytest.raises(ValueError, match=r"Scale#2 at parameters\.encoder\.3: .*Scale#2': \.\.\."):
        skcontrast.load(tmp_path / "a", own=own)
    loaded = skcontrast.load(tmp_path / "a", own={**own, f"{__name__}.Scale#2": Scale(0.01)})
    np.testing.assert_array_equal(loaded.transform(VECTORS), embedder.transform(VECTORS))
    assert [module.factor for module in loaded.encoder if hasattr(module, "factor")] == [100, 0.01]


@pytest.mark.parametrize("X", [VECTORS, IMAGES / 255], ids=["vectors", "images"])
def test_a_custom_network_that_differs_in_an_attribute_is_refused(X, tmp_path):
    head = [nn.Flatten(), nn.Linear(X[0].size, 4)]
    skcontrast.save(fitted(X, encoder=nn.Sequential(Scale(0.5), *head)), tmp_path / "a")
    assert skcontrast.load(tmp_path / "a", own={f"{__name__}.Scale": Scale(0.5)}).n_epochs_ == 1
    with pytest.raises(ValueError, match="its network returns different embeddings than when"):
        skcontrast.load(tmp_path / "a", own={f"{__name__}.Scale": Scale(0.6)})


def test_lazy_layers_are_refused_until_they_have_seen_a_sample(tmp_path):
    embedder = fitted(encoder=nn.Sequential(nn.LazyLinear(4), nn.ReLU()))
    with pytest.raises(TypeError, match=r"encoder has a lazy layer, .*call the module once"):
        skcontrast.save(embedder, tmp_path / "a")
    embedder.encoder(torch.zeros(1, VECTORS.shape[1]))
    skcontrast.save(embedder, tmp_path / "a")
    loaded = skcontrast.load(tmp_path / "a")
    np.testing.assert_array_equal(loaded.transform(VECTORS), embedder.transform(VECTORS))


def test_modules_of_one_class_may_have_other_shapes(tmp_path):
    embedder = fitted(encoder=nn.Sequential(Block(6, 16), Block(16, 4)))
    skcontrast.save(embedder, tmp_path / "a")
    own = {f"{__name__}.Block": Block(6, 16), f"{__name__}.Block#2": Block(16, 4)}
    loaded = skcontrast.load(tmp_path / "a", own=own)
    np.testing.assert_array_equal(loaded.transform(VECTORS), embedder.transform(VECTORS))


class Lists(Kind):
    """A kind that is none of skcontrast's."""

    name = "lists"

    def __init__(self, scale=1.0):
        self.scale = scale

    def check(self, X):
        return np.asarray(X, dtype=np.float32)

    def to_tensor(self, X, device):
        return self.scale * torch.from_numpy(X).to(device)


class LearnedLists(Lists):
    """A kind whose scaler learns a number that no file would have."""

    def scaler(self):
        scaler = Learned()
        scaler.kind = self
        return scaler


class Learned:
    """A scaler that is none of skcontrast's."""

    def fit(self, X):
        self.mean_ = X.mean()
        return self

    def to_tensor(self, X, device):
        return self.kind.to_tensor(X - self.mean_, device)


def test_custom_objects_get_the_parameters_of_the_file(tmp_path):
    X = VECTORS.tolist()
    embedder = fitted(X, encoder=nn.Linear(6, 3), kind=Lists(2.0), augmentation=[])
    skcontrast.save(embedder, tmp_path / "a")
    loaded = skcontrast.load(tmp_path / "a", own={f"{__name__}.Lists": Lists()})
    np.testing.assert_array_equal(loaded.transform(X), embedder.transform(X))
    assert loaded.kind.scale == 2


def test_a_scaler_whose_numbers_would_be_lost_is_refused(tmp_path):
    embedder = fitted(VECTORS, encoder=nn.Linear(6, 3), kind=LearnedLists(), augmentation=[])
    with pytest.raises(TypeError, match=r"fitted\.scaler is a Learned, whose attributes cannot"):
        skcontrast.save(embedder, tmp_path / "a")
    assert not any(tmp_path.iterdir())


def test_two_functions_of_one_name_have_a_name_each(tmp_path):
    functions = [lambda x: x + 0.1 * torch.randn_like(x), lambda x: x * 2]
    chain = [FunctionAugmentation(function, kind="vectors") for function in functions]
    embedder = fitted(augmentation=chain, **SMALL)
    skcontrast.save(embedder, tmp_path / "a")
    name = own_name(functions[0])
    own = {name: functions[0], f"{name}#2": functions[1]}
    loaded = skcontrast.load(tmp_path / "a", own=own)
    for chain in (loaded.augmentation, loaded._fitted.setup.augmentation):
        assert [step.func for step in chain] == functions


def test_a_seed_of_numpy_is_kept(tmp_path):
    embedder = fitted(random_state=np.int64(3), **SMALL)
    skcontrast.save(embedder, tmp_path / "a")
    loaded = skcontrast.load(tmp_path / "a")
    assert loaded.random_state == 3
    np.testing.assert_array_equal(
        clone(loaded).fit(VECTORS).transform(VECTORS), embedder.transform(VECTORS)
    )


def test_a_device_of_torch_is_stored_as_text(tmp_path):
    skcontrast.save(fitted(device=torch.device("cpu"), **SMALL), tmp_path / "a")
    assert skcontrast.load(tmp_path / "a").device == "cpu"


@pytest.mark.parametrize(
    "path, problem", [("", "does not name"), ("/", "does not name"), ("a\0b", "NUL")]
)
def test_a_path_that_no_file_can_have_is_named(path, problem):
    with pytest.raises(ValueError, match=f"'path' parameter of save must be a file, .*{problem}"):
        skcontrast.save(fitted(**SMALL), path)
    with pytest.raises(ValueError, match=f"'path' parameter of load must be a file, .*{problem}"):
        skcontrast.load(path)


def test_a_file_with_more_tensors_than_any_network_is_refused(path):
    save_file({f"{k}": torch.zeros(0) for k in range(50_001)}, path)
    with pytest.raises(ValueError, match="cannot be loaded: it has more than 50000 tensors"):
        skcontrast.load(path)


def test_a_file_loads_in_a_process_that_knows_nothing_of_this_one(path):
    loaded, expected = in_a_process(skcontrast.load, path), skcontrast.load(path)
    np.testing.assert_array_equal(loaded.transform(VECTORS), expected.transform(VECTORS))


def test_a_function_is_passed(tmp_path):
    embedder = fitted(augmentation=FunctionAugmentation(jitter, kind="vectors"), **SMALL)
    skcontrast.save(embedder, tmp_path / "a")
    loaded = skcontrast.load(tmp_path / "a", own={f"{__name__}.jitter": jitter})
    np.testing.assert_array_equal(loaded.transform(VECTORS), embedder.transform(VECTORS))


def test_transformers_are_saved_and_name_their_activation(tmp_path):
    layer = nn.TransformerEncoderLayer(2, 1, 4, batch_first=True)
    encoder = nn.Sequential(nn.Unflatten(1, (3, 2)), layer, nn.Flatten())
    embedder = fitted(encoder=encoder)
    skcontrast.save(embedder, tmp_path / "a")
    own = {"torch.nn.functional.relu": nn.functional.relu}
    loaded = skcontrast.load(tmp_path / "a", own=own)
    np.testing.assert_array_equal(loaded.transform(VECTORS), embedder.transform(VECTORS))


def test_a_file_with_a_flipped_bit_is_refused(path):
    damaged = bytearray(path.read_bytes())
    damaged[-5] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(ValueError, match=r"embedder\.safetensors cannot be loaded: .*checksum"):
        skcontrast.load(path)


def test_nothing_is_unpickled(path, monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("unpickled")

    for module, name in [(pickle, "load"), (pickle, "loads"), (torch, "load")]:
        monkeypatch.setattr(module, name, refuse)
    assert skcontrast.load(path).transform(VECTORS).shape == (40, 128)


def test_only_a_fitted_embedder_is_saved(tmp_path):
    with pytest.raises(NotFittedError):
        skcontrast.save(ContrastiveEmbedder(), tmp_path / "a")
    with pytest.raises(TypeError, match="ContrastiveClassifier, got GaussianNoise"):
        skcontrast.save(GaussianNoise(), tmp_path / "a")


def test_a_failed_save_keeps_the_file_that_was_there(path, monkeypatch):
    before = path.read_bytes()

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"No space left .*embedder\.safetensors"):
        skcontrast.save(fitted(**SMALL), path)
    assert path.read_bytes() == before
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_what_is_not_a_regular_file_is_refused_and_not_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, Path("/dev/zero")):
        with pytest.raises(ValueError, match=f"{path} cannot be loaded: it is not a regular file"):
            skcontrast.load(path)


def test_a_large_file_is_not_read_before_its_header_is_known(tmp_path):
    tracemalloc = pytest.importorskip("tracemalloc")
    with (tmp_path / "large").open("wb") as file:
        file.truncate(2**28)
    tracemalloc.start()
    try:
        for start in (b"", (2**27).to_bytes(8, "little"), b"something"):
            with (tmp_path / "large").open("r+b") as file:
                file.write(start)
            with pytest.raises(ValueError, match=r"large cannot be loaded: .*[Hh]eader"):
                skcontrast.load(tmp_path / "large")
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


def test_a_file_that_is_missing_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nothing\.safetensors"):
        skcontrast.load(tmp_path / "nothing.safetensors")


@pytest.mark.parametrize("share", np.linspace(0, 0.99, 12))
def test_a_truncated_file_is_refused(path, share):
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(ValueError, match=r"embedder.safetensors cannot be loaded: "):
        skcontrast.load(path)


def test_files_of_others_are_refused(path):
    path.write_bytes(pickle.dumps(fitted(**SMALL)))
    message = r"cannot be loaded: .* pickle, which runs code, .*joblib\.load or torch\.load\.$"
    with pytest.raises(ValueError, match=message):
        skcontrast.load(path)
    for compress in (0, 3, ("gzip", 3), ("bz2", 3), ("xz", 3)):
        joblib.dump(fitted(**SMALL), path, compress=compress)
        with pytest.raises(ValueError, match=message):
            skcontrast.load(path)
    torch.save({"weight": torch.zeros(3)}, path)
    with pytest.raises(ValueError, match=message):
        skcontrast.load(path)
    path.write_bytes(b"something else entirely")
    with pytest.raises(ValueError, match="it has no whole header of safetensors"):
        skcontrast.load(path)
    save_file({"weight": torch.zeros(3)}, path)
    with pytest.raises(ValueError, match=r"it was not written as a file of skcontrast"):
        skcontrast.load(path)


RELEASED = sorted(releases.FOLDER.glob("*/*.safetensors"))


@pytest.mark.parametrize("path", RELEASED, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_files_of_each_release_load(path):
    expected = np.load(path.with_suffix(".npy"))
    found = releases.outputs(skcontrast.load(path), path.stem)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_there_are_files_of_this_format():
    assert _save.FORMAT in {header_of(path)[0]["format"] for path in RELEASED}
    assert {path.stem for path in RELEASED} == set(releases.SAMPLES)


def test_a_later_format_says_so(tampered):
    def change(content, tensors):
        content["format"] = 99

    with pytest.raises(ValueError, match=r"format 99 of skcontrast, .* reads up to 1; upgrade"):
        skcontrast.load(tampered(change))


def members(module, of="_modules"):
    """Return the children of a module in JSON, its parameters or buffers."""
    return module["state"][of]


def module_of(content):
    """Return the JSON of the first linear layer."""
    return members(members(content["fitted"]["network"])["projector"])["0"]


def layer(name, children=(), **state):
    """Return the JSON of a layer of torch without parameters."""
    parts = {"_parameters": {}, "_buffers": {}, "_modules": dict(children), "volatile": []}
    return {"$object": f"torch.nn.{name}", "state": {**state, **parts}}


def put_first(content, added):
    """Put a layer before the encoder."""
    network = members(content["fitted"]["network"])["encoder"]
    network["state"]["_modules"] = {"added": added, **members(network)}


def doubled(depth, *, as_attributes=False):
    """Return a layer that holds everything below it twice; no module is complete before it."""
    below = layer("Identity")
    for place in range(depth):
        both = {"a": below, "b": {"$same": place}}
        below = layer("Sequential", **both) if as_attributes else layer("Sequential", both)
    return below


def schema_of(content):
    """Return the JSON of what X was."""
    return content["fitted"]["schema"]["state"]


ATTACKS = {
    "repetitions of repetitions": (
        lambda c, t: put_first(c, doubled(60)),
        "more than 100000 modules",
    ),
    "repetitions in attributes": (
        lambda c, t: put_first(c, doubled(60, as_attributes=True)),
        "more than 100000 modules",
    ),
    "a module within itself": (
        lambda c, t: put_first(c, layer("Sequential", {"a": {"$same": 2}})),
        "list index out of range",
    ),
    "a module that does not exist": (
        lambda c, t: put_first(c, {"$same": 1e300}),
        "list indices must be integers",
    ),
    "a layer that takes memory": (
        lambda c, t: put_first(c, layer("ConstantPad1d", padding=[10**12] * 2, value=0.0)),
        "its network does not work",
    ),
    "samples that take memory": (
        lambda c, t: schema_of(c).update(sample_shape={"$tuple": [10**12]}),
        r"its samples have the shape \(1000000000000,\)",
    ),
    "samples of many dimensions": (
        lambda c, t: schema_of(c).update(sample_shape={"$tuple": [1] * 10**4}),
        "its samples have the shape",
    ),
    "no scaler": (lambda c, t: c["fitted"].update(scaler=None), "scaler is or holds a NoneType"),
    "no augmentation": (
        lambda c, t: c["fitted"].update(augmentation=[1]),
        "augmentation is or holds a int",
    ),
    "no kind": (lambda c, t: schema_of(c).update(kind=1), "schema is or holds a int"),
    "a loss as a layer": (
        lambda c, t: members(c["fitted"]["network"]).update(projector=c["fitted"]["loss"]),
        "'projector' as one of its modules",
    ),
    "a loss as a similarity": (
        lambda c, t: c["fitted"].update(similarity=c["fitted"]["loss"]),
        "similarity is or holds a InfoNCE",
    ),
    "a method of a scaler": (
        lambda c, t: c["fitted"]["scaler"]["state"].update(to_tensor="x"),
        "VectorScaler an attribute 'to_tensor'",
    ),
    "names that are a number": (lambda c, t: c.update(own=5), "'own' does not say where"),
    "names that stand nowhere": (lambda c, t: c.update(own={"a": []}), "'own' does not say where"),
    "an unknown output": (lambda c, t: c.update(output="xx"), "'output' is xx"),
    "an output that is a list": (lambda c, t: c.update(output=[1]), r"'output' is \[1\]"),
    "a history of numbers": (
        lambda c, t: c["fitted"].update(history=[1, 2]),
        "history is or holds a int",
    ),
    "an estimate that is a text": (
        lambda c, t: c["fitted"].update(estimates={"tau_plus": "x"}),
        "estimates is or holds a str",
    ),
    "a short pair": (
        lambda c, t: c["parameters"].update(loss={"$pairs": [[1]]}),
        "cannot be loaded",
    ),
    "an unknown field": (lambda c, t: c.update(extra=1), "unknown fields: extra"),
    "a missing field": (lambda c, t: c.pop("own"), "unknown fields: own"),
    "no dictionary": (lambda c, t: c.update(fitted=[1]), "holds no fitted embedder"),
    "a function": (
        lambda c, t: c["parameters"].update(loss={"$object": "os.system", "state": {}}),
        "names 'os.system', which this version",
    ),
    "a module that is empty": (
        lambda c, t: c["parameters"].update(loss={"$object": "torch.nn.Linear", "state": {}}),
        "it lacks 'volatile'",
    ),
    "an object as a module": (
        lambda c, t: module_of(c).update({"$object": "losses.DCL"}),
        "unexpected keyword argument",
    ),
    "an unknown tag": (
        lambda c, t: c["parameters"].update(loss={"$reduce": "os.system"}),
        "holds something unknown",
    ),
    "a method": (
        lambda c, t: module_of(c)["state"].update(forward="x"),
        "an attribute 'forward', which it may not have",
    ),
    "a dunder": (lambda c, t: module_of(c)["state"].update(__class__="x"), "'__class__'"),
    "a hook": (lambda c, t: module_of(c)["state"].update(_forward_hooks={}), "_forward_hooks"),
    "no parameter": (
        lambda c, t: members(module_of(c), "_parameters").update(weight=5),
        "'weight' as one of its parameters",
    ),
    "no tensor": (lambda c, t: t.pop(next(iter(t))), "it lacks"),
    "a weight of a different size": (
        lambda c, t: t.update({"fitted.network.projector.0.weight": torch.zeros(3, 3)}),
        "its network does not work",
    ),
    "strides beyond the tensor": (
        lambda c, t: members(module_of(c), "_parameters")["weight"].update(stride=[10**9, 1]),
        "strides .* do not fit",
    ),
    "another width": (
        lambda c, t: c["fitted"]["widths"]["state"].update(projection=7),
        "instead of",
    ),
    "an unknown parameter": (
        lambda c, t: c["parameters"].update(
            loss={"$object": "losses.DCL", "state": {"tau_plus": 0.1, "power": 2}}
        ),
        "unexpected keyword argument .power.",
    ),
    "a missing attribute": (
        lambda c, t: c["fitted"].pop("scaler"),
        "lack or have unknown scaler",
    ),
    "a state of the optimizer": (
        lambda c, t: c["fitted"].update(optimizer_state={}),
        "lack or have unknown optimizer_state",
    ),
    "a fit that was interrupted": (
        lambda c, t: c["fitted"].update(interrupted=True),
        "lack or have unknown interrupted",
    ),
    "a folder to write to": (
        lambda c, t: c["parameters"].update(checkpoint="~/.config", n_workers=1),
        "sets checkpoint, n_workers, which a file must not set",
    ),
    "callbacks": (lambda c, t: c["parameters"].update(callbacks=[5]), "it sets callbacks, "),
    "processes": (lambda c, t: c["parameters"].update(n_workers=10**6), "it sets n_workers, "),
    "a layer that crashes": (
        lambda c, t: put_first(c, layer("LSTM", hidden_size=0)),
        "names 'torch.nn.LSTM', which this version",
    ),
    "depth": (
        lambda c, t: c["parameters"].update(loss=json.loads("[" * 900 + "]" * 900)),
        "cannot be loaded",
    ),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_damaged_or_hostile_header_is_refused(attack, tampered):
    change, message = ATTACKS[attack]
    path = tampered(change)
    limit = sys.getrecursionlimit()
    try:
        if attack == "depth":
            sys.setrecursionlimit(600)
        with pytest.raises(ValueError, match=message):
            skcontrast.load(path)
    finally:
        sys.setrecursionlimit(limit)


def test_a_parameter_that_the_file_does_not_know_has_its_default(tampered):
    def change(content, tensors):
        content["parameters"]["loss"] = {"$object": "losses.HCL", "state": {"beta": 2.0}}
        content["parameters"].pop("precision")

    loaded = skcontrast.load(tampered(change))
    assert repr(loaded.loss) == repr(HCL(beta=2.0))
    assert loaded.precision == ContrastiveEmbedder().precision


@pytest.mark.parametrize("device", ["gpu", -1, 99])
def test_a_device_that_is_not_there_is_refused_at_once(path, device):
    with pytest.raises(ValueError, match=r"'device' parameter of .*load must be"):
        skcontrast.load(path, device=device)


def test_the_device_can_be_chosen_when_a_file_is_loaded(tmp_path):
    skcontrast.save(fitted(loss=DCL(), device="cpu", **SMALL), tmp_path / "a")
    assert skcontrast.load(tmp_path / "a").device == "cpu"
    assert skcontrast.load(tmp_path / "a", device="auto").device == "auto"
