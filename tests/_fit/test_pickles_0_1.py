"""What 0.1.0 pickled differently is converted, not approximated."""

import subprocess
import sys
import warnings
from pathlib import Path

import joblib
import numpy as np
import pytest
from sklearn.exceptions import InconsistentVersionWarning

from skcontrast._fit._pickles_0_1 import NormalizedReadout
from skcontrast.frameworks import CMC
from skcontrast.graphs import PackedGraphs
from skcontrast.kinds import Graphs, Images, Several, Vectors
from skcontrast.kinds._scaling import Standardize

FILES = Path(__file__).parents[1] / "golden" / "files" / "0.1.0"


def load(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InconsistentVersionWarning)
        return joblib.load(FILES / f"{name}.joblib")


@pytest.mark.parametrize(
    "name, kind, reader",
    [
        ("vectors", Vectors, Vectors),
        ("grey", Images, Images),
        ("infograph", Graphs, Graphs),
        ("cmc", Vectors, Several),
    ],
)
def test_the_shape_of_a_sample_has_become_a_kind(name, kind, reader):
    schema = load(name)._fitted.schema
    assert type(schema.kind) is kind and type(schema.reader) is reader


def test_nothing_of_the_old_layout_is_left():
    names = vars(load("moco")).keys()
    assert not names & {"_scaler", "_sample_shape", "_built_from", "_width", "_optimizer_state"}
    assert load("pipeline")[0]._schema.n_features_in == 6


def test_the_memory_format_has_become_a_flag():
    first = load("colour").encoder_[0]
    assert type(first) is Standardize and first.channels_last is True
    assert load("vectors").encoder_[0].channels_last is False


def test_degrees_stay_one_hot_codes_and_outputs_stay_normalised():
    embedder = load("infograph")
    graphs = PackedGraphs.from_arrays([[0, 1], [1, 0]], [0, 3])
    codes = embedder._fitted.scaler.to_tensor(graphs, "cpu").x
    assert codes.sum(1).tolist() == [1, 1, 1]
    layers = embedder.encoder_.message_passing
    assert type(layers) is NormalizedReadout and len(layers.norms) == len(layers.layers)


@pytest.mark.parametrize("name, module", [("moco", "momentum_network"), ("cmc", "bank")])
def test_what_a_framework_and_the_optimizer_remember_is_taken_up(name, module):
    embedder = load(name)
    with np.load(FILES / f"{name}.npz") as arrays:
        samples = arrays["in_X"]
    fitted = embedder._fitted
    assert fitted.optimizer_state["n_parameters"] == len(fitted.optimizer_state["state"])
    assert any(key.startswith(module) for key in fitted.framework_state["state"])
    steps = max(int(state["step"]) for state in fitted.optimizer_state["state"].values())
    after = embedder.fit(samples)._fitted.optimizer_state["state"]
    assert max(int(state["step"]) for state in after.values()) == 2 * steps


def test_parts_are_still_compared():
    embedder = load("cmc")
    assert isinstance(embedder.framework_, CMC) and embedder._fitted.widths.n_parts == 2
    with pytest.raises(ValueError, match="X has 2 parts, but in fit it was one array"):
        embedder.transform((np.zeros((3, 2)), np.zeros((3, 4))))


def test_a_process_that_has_imported_nothing_can_load_a_file():
    code = f"""
import joblib, warnings
warnings.simplefilter("ignore")
embedder = joblib.load({str(FILES / "vmf.joblib")!r})
assert embedder.projector_[-1].__class__.__module__ == "skcontrast.encoders._projection"
"""
    subprocess.run([sys.executable, "-c", code], check=True)
