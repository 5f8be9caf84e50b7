"""A pickle of an earlier release is the same embedder, and says that it is an earlier one."""

import copy
import json
import pickle
import re
import warnings
from importlib.metadata import version
from pathlib import Path

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import InconsistentVersionWarning

import skcontrast
from skcontrast import ContrastiveEmbedder
from skcontrast._storage import _pickles
from skcontrast.encoders import MLP
from skcontrast.graphs import PackedGraphs
from skcontrast.losses import Loss

GOLDEN = Path(__file__).parents[1] / "golden" / "files"
RELEASES = sorted(path for path in GOLDEN.iterdir() if path.is_dir())
FILES = sorted(path for path in GOLDEN.rglob("*") if path.suffix in (".joblib", ".pickle"))
EMBEDDERS = [path for path in FILES if path.stem not in ("pipeline", "search", "unfitted")]
X = np.random.default_rng(0).normal(size=(20, 4))


def name_of(path):
    return f"{path.parent.name}-{path.name}"


def parts(package):
    return tuple(int(number) for number in re.findall(r"\d+", package)[:3])


def load(path):
    """Return what a pickle holds, without the warnings about versions."""
    written = json.loads((path.parent / "versions.json").read_text())["scikit-learn"]
    if path.stem in ("pipeline", "search") and parts(version("scikit-learn")) < parts(written):
        pytest.skip(f"its other steps are those of scikit-learn {written}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InconsistentVersionWarning)
        return joblib.load(path) if path.suffix == ".joblib" else pickle.loads(path.read_bytes())


def data_of(path):
    """Return the samples of a file, and by the names of methods what they returned."""
    with np.load(path.with_suffix(".npz")) as arrays:
        inputs = {key[3:]: arrays[key] for key in arrays if key.startswith("in_")}
        outputs = {key[4:]: arrays[key] for key in arrays if key.startswith("out_")}
    return inputs["X"] if "X" in inputs else PackedGraphs.from_arrays(**inputs), outputs


def fitted():
    return ContrastiveEmbedder(MLP((4,)), max_epochs=1, random_state=0).fit(X)


def test_every_release_has_left_its_files():
    changelog = Path(__file__).parents[2] / "CHANGELOG.md"
    released = re.findall(r"^## \[(\d\S*)\]", changelog.read_text("utf-8"), flags=re.MULTILINE)
    assert {path.name for path in RELEASES} == set(released)


@pytest.mark.parametrize("path", [p for p in FILES if p.stem != "unfitted"], ids=name_of)
def test_an_earlier_release_is_read_to_the_same_numbers(path):
    samples, outputs = data_of(path)
    model = load(path)
    assert outputs
    for method, expected in outputs.items():
        found = getattr(model, method)(samples)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("path", EMBEDDERS, ids=name_of)
def test_an_embedder_of_an_earlier_release_can_be_saved_pickled_and_trained(path, tmp_path):
    samples, _ = data_of(path)
    embedder = load(path)
    skcontrast.save(embedder, tmp_path / "a")
    for again in (
        skcontrast.load(tmp_path / "a"),
        pickle.loads(pickle.dumps(embedder)),
        copy.deepcopy(embedder),
    ):
        np.testing.assert_array_equal(again.transform(samples), embedder.transform(samples))
    assert 0 <= embedder.score(samples) <= 1
    embedder.partial_fit(samples)
    assert embedder.n_epochs_ == 3
    assert np.isfinite(embedder.transform(samples)).all()
    refitted = clone(embedder).fit(samples, np.arange(len(samples)) % 2)
    assert np.isfinite(refitted.transform(samples)).all()


@pytest.mark.parametrize("path", [p for p in FILES if p.stem == "unfitted"], ids=name_of)
def test_parameters_of_an_earlier_release_can_be_fitted(path):
    embedder = load(path)
    assert embedder.get_params()["loss__alpha"] == "auto"
    assert clone(embedder).set_params(max_epochs=6).fit(X).transform(X).shape == (20, 128)


@pytest.mark.parametrize("release", RELEASES, ids=lambda path: path.name)
def test_a_search_of_an_earlier_release_can_be_run_again(release):
    search = load(release / "search.joblib")
    samples, _ = data_of(release / "search.joblib")
    assert clone(search).fit(samples).transform(samples).shape == (len(samples), 4)


def test_a_pickle_of_a_different_version_says_so(monkeypatch):
    embedder = fitted()
    written = pickle.dumps(embedder)
    monkeypatch.setattr(_pickles, "_current", lambda: "99.1")
    with pytest.warns(InconsistentVersionWarning, match=r"skcontrast .*, and this is 99\.1"):
        loaded = pickle.loads(written)
    np.testing.assert_array_equal(loaded.transform(X), embedder.transform(X))
    with pytest.warns(InconsistentVersionWarning, match=r"skcontrast 0\.1\.0"):
        joblib.load(GOLDEN / "0.1.0" / "unfitted.joblib")


def test_copies_within_one_version_say_nothing_and_carry_no_stamp():
    embedder = fitted()
    for copied in (pickle.loads(pickle.dumps(embedder)), copy.copy(embedder), clone(embedder)):
        assert not [name for name in vars(copied) if "version" in name]
    assert vars(copy.deepcopy(embedder)).keys() == vars(embedder).keys()
    assert embedder.__getstate__()["_skcontrast_version"] == version("skcontrast")


class Tempered(Loss):
    """A loss that has gained the parameter `power`, and keeps `hidden` to itself."""

    def __init__(self, needed, power=2.0, hidden=None):
        self.needed, self.power = needed, power

    @property
    def hidden(self):
        """Nothing that could be set."""


def test_a_parameter_that_a_class_has_gained_takes_its_default():
    written = Tempered(1.0)
    del written.power
    loaded = pickle.loads(pickle.dumps(written))
    assert (loaded.needed, loaded.power, loaded.hidden) == (1.0, 2.0, None)
    del written.needed
    assert not hasattr(pickle.loads(pickle.dumps(written)), "needed")


def test_a_renamed_parameter_keeps_its_value():
    written = MLP((4, 5))
    vars(written)["hidden"] = vars(written).pop("widths")
    loaded = pickle.loads(pickle.dumps(written))
    assert loaded.get_params()["widths"] == (4, 5) and "hidden" not in vars(loaded)
