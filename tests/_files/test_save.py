"""A saved embedder is the same embedder, and a file of a stranger runs no code."""

import os
import pickle

import joblib
import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import save_file
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from skorch.callbacks import Callback
from torch import nn

import skcontrast
from skcontrast import ContrastiveEmbedder
from skcontrast._files._values import qualified_name  # private: names that files store
from skcontrast._safetensors import pack, read_file  # private: the bytes of the format
from skcontrast.augmentation import (
    Augmentation,
    FunctionAugmentation,
    GaussianNoise,
    MarginalCorruption,
)
from skcontrast.datasets import Modalities
from skcontrast.encoders import GIN, MLP, ConvNet, PatchNet, ResNet, SeriesNet
from skcontrast.frameworks import CMC, InfoGraph, MoCo
from skcontrast.losses import BCL, DCL, HCL, InfoNCE
from skcontrast.optimizers import Optimizer
from skcontrast.schedules import Linear
from skcontrast.similarity import DotProduct, VonMisesFisher
from tests.common import Numbers, in_a_process, reloaded

RNG = np.random.default_rng(0)
VECTORS = RNG.normal(size=(40, 6))
IMAGES = RNG.integers(0, 256, (24, 3, 16, 16)).astype(np.uint8)
GRAPHS = [nx.gnp_random_graph(8, 0.4, seed=k) for k in range(20)]
BONDED = [graph.copy() for graph in GRAPHS]
for number, graph in enumerate(BONDED):
    for (u, v), data in graph.edges.items():
        data |= {"x": [u + v, 1.0], "weight": 1.0 + number, "label": "single" if u else 2}
SERIES = RNG.normal(size=(24, 2, 40))
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
    "graphs by default": (GRAPHS, {}),
    "series": (SERIES, {"encoder": SeriesNet((4,), 2)}),
    "series by default": (SERIES, {}),
    "infograph": (GRAPHS, {"encoder": GIN(width=4), "framework": InfoGraph()}),
    "moco": (VECTORS, {**SMALL, "framework": MoCo(queue_size=16)}),
    "cmc": (IMAGES, {**CONV, "framework": CMC()}),
    "images with vectors": (Modalities(IMAGES, VECTORS[: len(IMAGES)]), {"framework": CMC()}),
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
    return read_file(path, "skcontrast")


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


@pytest.mark.parametrize(
    "case", [pytest.param(c, marks=pytest.mark.slow) if c == LONG else c for c in CASES]
)
def test_a_loaded_embedder_is_the_saved_one(case, tmp_path):
    X, params = CASES[case]
    embedder = fitted(X, **params)
    loaded = reloaded(embedder, tmp_path)
    np.testing.assert_array_equal(loaded.transform(X), embedder.transform(X))
    assert loaded.score(X) == embedder.score(X)
    assert repr(loaded) == repr(embedder)
    assert list(loaded.history_) == list(embedder.history_)
    assert list(loaded.get_feature_names_out()) == list(embedder.get_feature_names_out())
    if case == "frame":
        assert list(loaded.feature_names_in_) == list("abcdef")
    # It can be saved again, fitted anew and trained further.
    again = reloaded(loaded, tmp_path)
    np.testing.assert_array_equal(again.transform(X), embedder.transform(X))
    np.testing.assert_array_equal(clone(loaded).fit(X).transform(X), embedder.transform(X))
    assert np.isfinite(loaded.partial_fit(X).transform(X)).all()


@pytest.mark.parametrize("framework", [None, MoCo(queue_size=16), CMC()], ids=str)
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_a_file_is_for_inference_and_training_on_starts_with_a_fresh_optimizer(
    framework, method, tmp_path
):
    warm = fitted(framework=framework, warm_start=True, augmentation=GaussianNoise(), **SMALL)
    fresh = warm._as_fitted(warm._model)
    assert warm._states["optimizer"] is not None
    skcontrast.save(warm, tmp_path / "a")
    assert not any("exp_avg" in name for name in header_of(tmp_path / "a")[1])
    loaded = skcontrast.load(tmp_path / "a")
    assert loaded._states is None
    for embedder in (loaded, fresh):
        getattr(embedder, method)(VECTORS)
    assert loaded.n_epochs_ == len(loaded.history_) == 2
    np.testing.assert_array_equal(loaded.transform(VECTORS), fresh.transform(VECTORS))


def test_estimates_and_output_containers_are_kept(tmp_path):
    y = np.arange(40) % 2
    embedder = ContrastiveEmbedder(loss=BCL(alpha="auto"), max_epochs=6, random_state=0, **SMALL)
    embedder.fit(VECTORS, y).set_output(transform="pandas")
    loaded = reloaded(embedder, tmp_path)
    assert loaded.estimates_ == embedder.estimates_
    pd.testing.assert_frame_equal(loaded.transform(VECTORS), embedder.transform(VECTORS))


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
    loaded = skcontrast.load(tmp_path / "a", custom_objects=own)
    np.testing.assert_array_equal(loaded.transform(VECTORS), embedder.transform(VECTORS))
    assert not torch.equal(own[f"{__name__}.Net"].linear.weight, loaded.encoder_[1].linear.weight)
    with pytest.raises(ValueError, match=r"(?s)Net'\] differs: .*linear\.weight"):
        skcontrast.load(tmp_path / "a", custom_objects={**own, f"{__name__}.Net": Net(width=4)})
    with pytest.raises(ValueError, match=r"custom_objects\['.*Net'\] must be a module, got"):
        skcontrast.load(tmp_path / "a", custom_objects={**own, f"{__name__}.Net": Net})


class Scale(nn.Module):
    """A network with a number that is not a parameter."""

    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        return x * self.factor


class OwnLoss(InfoNCE):
    """A loss that has a module as its parameter."""

    def __init__(self, scale=None):
        self.scale = scale

    def coefficients(self):
        return 1.0, 0.0


def test_modules_of_one_class_have_a_name_each(tmp_path):
    layers = Scale(100.0), nn.Linear(6, 4), nn.Tanh(), Scale(0.01)
    embedder = fitted(encoder=nn.Sequential(*layers))
    skcontrast.save(embedder, tmp_path / "a")
    own, second = {f"{__name__}.Scale": Scale(100.0)}, {f"{__name__}.Scale#2": Scale(0.01)}
    with pytest.raises(ValueError, match=r"Scale#2 at parameters\.encoder\.3\. .*Scale#2': \."):
        skcontrast.load(tmp_path / "a", custom_objects=own)
    loaded = skcontrast.load(tmp_path / "a", custom_objects=own | second)
    np.testing.assert_array_equal(loaded.transform(VECTORS), embedder.transform(VECTORS))
    assert [module.factor for module in loaded.encoder if hasattr(module, "factor")] == [100, 0.01]


def test_lazy_layers_are_refused_until_they_have_seen_a_sample(tmp_path):
    embedder = fitted(encoder=nn.Sequential(nn.LazyLinear(4), nn.LazyBatchNorm1d()))
    with pytest.raises(TypeError, match=r"encoder.* is in a lazy layer, .*call the module once"):
        skcontrast.save(embedder, tmp_path / "a")
    embedder.encoder(torch.zeros(2, VECTORS.shape[1]))
    loaded = reloaded(embedder, tmp_path)
    np.testing.assert_array_equal(loaded.transform(VECTORS), embedder.transform(VECTORS))


class Lists(Numbers):
    """A kind that is none of skcontrast's."""

    def __init__(self, scale=1.0):
        self.scale = scale

    def to_tensor(self, X, device):
        return self.scale * super().to_tensor(np.float32(X), device)


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
    loaded = reloaded(embedder, tmp_path, custom_objects={f"{__name__}.Lists": Lists()})
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
    name = qualified_name(functions[0])
    own = {name: functions[0], f"{name}#2": functions[1]}
    loaded = reloaded(embedder, tmp_path, custom_objects=own)
    for chain in (loaded.augmentation, loaded._model.augmentation):
        assert [step.func for step in chain] == functions


def test_objects_of_one_class_in_several_parameters_are_not_mistaken_for_each_other(tmp_path):
    encoder = nn.Sequential(nn.Linear(6, 4), Scale(100.0))
    projecting = fitted(encoder=encoder, loss=OwnLoss(Scale(0.01)))
    own = {f"{__name__}.Scale": Scale(100.0), f"{__name__}.Scale#2": Scale(0.01)}
    own |= {f"{__name__}.OwnLoss": OwnLoss(Scale(1.0))}
    loaded = reloaded(projecting, tmp_path, custom_objects=own)
    (scale,) = [module for module in loaded.encoder_.modules() if isinstance(module, Scale)]
    assert scale.factor == 100 and loaded.loss_.scale.factor == 0.01


def test_a_seed_of_numpy_is_kept(tmp_path):
    embedder = fitted(random_state=np.int64(3), **SMALL)
    loaded = reloaded(embedder, tmp_path)
    assert loaded.random_state == 3
    np.testing.assert_array_equal(
        clone(loaded).fit(VECTORS).transform(VECTORS), embedder.transform(VECTORS)
    )


def test_what_only_concerns_the_running_program_is_not_saved(tmp_path):
    params = {"callbacks": [Callback()], "checkpoint": tmp_path / "folder", "n_workers": 1}
    seed = np.random.RandomState(0)
    loaded = reloaded(fitted(random_state=seed, **params, **SMALL), tmp_path)
    default = ContrastiveEmbedder()
    assert loaded.random_state is None
    assert all(getattr(loaded, name) == getattr(default, name) for name in params)


def test_a_device_of_torch_is_stored_as_text(tmp_path):
    assert reloaded(fitted(device=torch.device("cpu"), **SMALL), tmp_path).device == "cpu"


@pytest.mark.slow
def test_a_file_loads_in_a_process_that_knows_nothing_of_this_one(path):
    loaded, expected = in_a_process(skcontrast.load, path), skcontrast.load(path)
    np.testing.assert_array_equal(loaded.transform(VECTORS), expected.transform(VECTORS))


def test_transformers_are_saved_and_name_their_activation(tmp_path):
    layer = nn.TransformerEncoderLayer(2, 1, 4, batch_first=True)
    encoder = nn.Sequential(nn.Unflatten(1, (3, 2)), layer, nn.Flatten())
    embedder = fitted(encoder=encoder)
    own = {"torch.nn.functional.relu": nn.functional.relu}
    loaded = reloaded(embedder, tmp_path, custom_objects=own)
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
    with pytest.raises(TypeError, match="ViewWhitening of skcontrast, got GaussianNoise"):
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


def test_a_file_that_is_missing_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nothing\.safetensors"):
        skcontrast.load(tmp_path / "nothing.safetensors")


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
    with pytest.raises(ValueError, match="it is not a complete safetensors file"):
        skcontrast.load(path)
    save_file({"weight": torch.zeros(3)}, path)
    with pytest.raises(ValueError, match=r"it was not written as a file of skcontrast"):
        skcontrast.load(path)


CHANGES = {
    "a function": (
        lambda content: content["parameters"].update(loss={"$object": "os.system", "state": {}}),
        "names 'os.system', which is not in this version of skcontrast",
    ),
    "a class of another package": (
        lambda content: content["fitted"].update(scaler={"$class": "subprocess.Popen"}),
        "names 'subprocess.Popen', which is not in this version of skcontrast",
    ),
    "a custom object": (
        lambda content: content["parameters"].update(loss={"$custom": "os.system"}),
        "it lacks 'os.system'",
    ),
    "an unknown tag": (
        lambda content: content["parameters"].update(loss={"$reduce": "os.system"}),
        r"an unknown key '\$reduce'",
    ),
    "a missing part": (
        lambda content: content["fitted"].pop("scaler"),
        "missing .* argument: 'scaler'",
    ),
    "a missing field": (lambda content: content.pop("custom_objects"), "it lacks 'custom_obj"),
    "another format": (lambda content: content.update(format=99), "its format is 99, of skcontr"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_names_what_it_must_not_or_lacks_something_is_refused(change, path):
    change, message = CHANGES[change]
    content, tensors = header_of(path)
    change(content)
    path.write_bytes(pack(content, tensors, "skcontrast"))
    with pytest.raises(ValueError, match=f"embedder.safetensors cannot be loaded: .*{message}"):
        skcontrast.load(path)


@pytest.mark.parametrize("device", ["gpu", -1, 99])
def test_a_device_that_is_not_there_is_refused_at_once(path, device):
    with pytest.raises(ValueError, match=r"'device' parameter of .*load must be"):
        skcontrast.load(path, device=device)


def test_the_device_can_be_chosen_when_a_file_is_loaded(tmp_path):
    skcontrast.save(fitted(loss=DCL(), device="cpu", **SMALL), tmp_path / "a")
    assert skcontrast.load(tmp_path / "a").device == "cpu"
    assert skcontrast.load(tmp_path / "a", device="auto").device == "auto"
