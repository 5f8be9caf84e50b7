"""Each benchmark runs, at toy size: what it prints has figures."""

import importlib
import io
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.datasets import load_digits

import benchmarks
from benchmarks._synthetic_graphs import made_graphs
from skcontrast.encoders import Pretrained
from skcontrast.losses import InfoNCE

ROOT = Path(benchmarks.__file__).parents[1]
MODULES = {
    f"{path.parent.name}.{path.stem}"
    for path in ROOT.glob("benchmarks/s*/*.py")
    if not path.name.startswith("_")
}


def few_digits(args):
    """Return a set of a study: images, classes, and the share to test on."""
    X, y = load_digits(return_X_y=True)
    return (X[:240] / 16).astype(np.float32).reshape(-1, 1, 8, 8), y[:240], 0.5


def small_table(name, n_most, seed):
    """Return what `tables.load` returns."""
    import pandas as pd
    from sklearn.model_selection import train_test_split

    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": rng.normal(size=60), "b": rng.choice(["x", "y"], 60)})
    return train_test_split(X, np.arange(60) % 2, random_state=seed)


def small_network(name):
    """Return what `pretrained_network` returns."""
    return torch.nn.Sequential(torch.nn.Conv2d(3, 8, 5, 4), torch.nn.BatchNorm2d(8))


def small_trust(name):
    """Return what `trust.load` returns."""
    X, y = load_digits(return_X_y=True)
    return X[:200], y[:200] % 2


def small_metadata(name, folder, seed):
    """Return what `metadata.load` returns."""
    X, y = load_digits(return_X_y=True)
    if name.endswith("network"):
        X = np.repeat(X.reshape(-1, 1, 8, 8) * 15, 3, axis=1).astype(np.uint8)
    g = np.arange(120) // 2 % 10 + 10 * y[:120]
    return *(a[:60] for a in (X, y % 2, g)), *(a[60:120] for a in (X, y % 2, g))


def small_quadrants(name, seed):
    """Return images whose colour depends on their group, their classes and groups."""
    rng, g = np.random.default_rng(seed), np.arange(240) // 4
    X = rng.integers(0, 200, (60, 3, 1, 1))[g] + rng.integers(0, 50, (240, 3, 16, 16))
    return X.astype(np.uint8), g % 3, g


def small_vectors(seed):
    """Return what the functions of `five_labels.SETS` return."""
    X, y, groups, X_test, y_test, _ = small_metadata("digits", None, seed)
    return X, y, X_test, y_test, {"groups": groups}


SMALL = {"SETS": {"digits": few_digits, "Fashion-MNIST": few_digits}}


def small_encoder(name, kind=Pretrained, **parameters):
    """Return what `pretrained_encoder` returns."""
    return kind(small_network(name), mean=0.5, std=0.5, **parameters)


NETWORK = {"pretrained_network": small_network}
ONE = ["--seeds", "1", "--epochs", "1"]
# module: (its options, its constants that are replaced)
TOY = {
    "speed.augmentation": (["--rounds", "1"], {}),
    "speed.gpu": (
        ["--out", "OUT", "--device", "cpu", "--toy", "--pieces", "loss", "train", "summary"],
        {},
    ),
    "speed.embedding_rate": (
        ["--rounds", "1"],
        {"IMAGES": [("default", 8, 16)] * 3 + [("lite0", 32, 16)], "N_VECTORS": 50} | NETWORK,
    ),
    "speed.first_fit": (["--rounds", "1"], {}),
    "speed.graph_epoch": (["--data-home", "DATA", "--set", "toy", "--rounds", "1"], {}),
    "speed.growth": (
        ["--axes", "channels", "--largest", "4", "--rounds", "1"],
        {"SHAPES": [(4, 1, 128)]},
    ),
    "speed.loss_engine": (["--batches", "16", "--rounds", "1", "--losses", "BCL", "SupCon"], {}),
    "speed.overhead": (["--repeats", "1", "--size", "20"], {"BATCH": 2, "EPOCHS": 1}),
    "speed.peers_end_to_end": (["--sets", "digits", "--seeds", "2", "--epochs", "1"], SMALL),
    "speed.processes": (["--batches", "8", "--steps", "1"], {}),
    "speed.search": (["--rounds", "1", "--n", "60", "--epochs", "1"], {"LOSSES": [InfoNCE()]}),
    "speed.soak": (["--only", "transform", "--share", "0.001"], {}),
    "speed.threads": (["--rounds", "1", "--only", "images of 8"], {"BATCH": 8}),
    "speed.streams": (["--only", "partial_fit, MoCo", "--file", "DATA/rows.npy"], {}),
    "studies.adapt_groups": (
        ["DATA", "--rows", "OUT/rows.jsonl"],
        {"SETS": ("steel",), "ROWS": {"frozen": {}, "views": {}}, "N_SEEDS": 1, "N_TRAINED": 40}
        | {"N_DRAWS": 1, "quadrants": small_quadrants, "pretrained_encoder": small_encoder},
    ),
    "studies.classifier": (["--sets", "iris"], {"N_TRAIN": 60, "N_LABELS": 2, "N_DRAWS": 2}),
    "studies.components": (
        ["DATA", "--rows", "OUT/components.jsonl", "--sets", "wine"],
        {"N_SEEDS": 1, "N_EPOCHS": 1},
    ),
    "studies.epochs": (
        ["DATA", "--rows", "OUT/rows.jsonl"],
        {"TUNED": ("digits",), "CONFIRMED": (), "STEPS": {250: (2,)}, "N_DRAWS": 1},
    ),
    "studies.estimation": (["--n-positives", "100", "--lengths", "1"], {"BATCH": 32}),
    "studies.few_label_recipes": (["--rows", "DATA/v.npz", "--per-class", "1", *ONE], {}),
    "studies.five_labels": (
        ["--rows", "OUT/rows.jsonl"],
        {"SETS": {"digits": (small_vectors, "vectors")}, "N_SEEDS": 1},
    ),
    "studies.gap_closed": (
        ["DATA", "--rows", "OUT/rows.jsonl"],
        {
            "SETS": {"digits": range(2)},
            "VIEWS": {"usual": (0.1, 0.0)},
            "TEMPERATURES": (0.5,),
            "SOURCES": ("neighbours", "groups"),
            "N_SEEDS": 1,
            "N_TRAIN": 120,
            "STEPS": 4,
            "BATCH": 30,
        },
    ),
    "studies.graph_worth": (["--sets", "molecules", "--n", "40", *ONE], {}),
    "studies.groups": (["--rows", "default", "groups, positive", *ONE], SMALL),
    "studies.image_sizes": (["--sets", "steel", "--side", "16"], {}),
    "studies.image_views": (
        ["--sets", "steel", "--start", "pretrained", "--epochs", "1"],
        NETWORK,
    ),
    "studies.long_series": (["--sets", "electrocardiogram", "--epochs", "1"], {"N": 16}),
    "studies.paper_losses": (["--sets", "digits", "--fits", "OUT/fits", *ONE], SMALL),
    "studies.papers_axes": (["--axes", "theorem", "--seeds", "2"], {}),
    "studies.pretrained": (
        ["--sets", "steel", "--variants", "max_epochs=1", "--fine-tune", "LP-FT", "--classifiers"],
        {"pretrained_encoder": small_encoder, "STEPS_OF_FINE_TUNING": 1},
    ),
    "studies.metadata": (
        ["DATA", "--rows", "OUT/groups.jsonl", "--sets", "digits", "steel, network"],
        {"N_SEEDS": 1, "N_LABELS": 4, "load": small_metadata, "pretrained_encoder": small_encoder},
    ),
    "studies.objectives": (
        ["--sets", "steel"],
        {"pretrained_encoder": small_encoder, "N_STEPS": 1, "N_CLUSTERS": 4},
    ),
    "studies.real_scores": (["--sets", "digits", "--seeds", "1", "--lengths", "0", "1"], {}),
    "studies.series": (["--sets", "CBF", "--rows", "default", "--data-home", "DATA", *ONE], {}),
    "studies.simulation": (["--n-anchors", "4"], {}),
    "studies.tables": (["--sets", "vote", *ONE], {"load": small_table, "N_LABELS": (5,)}),
    "studies.time_to_quality": (["--sets", "digits", "--rows", "raw", "untrained"], SMALL),
    "studies.trust": (
        ["--study", "trust", "choose", "--rows", "OUT/trust.jsonl"],
        {"SETS": ("digits",), "CHOICES": ("digits",), "LABELS": (30,), "FEW": (30,)}
        | {"N_SEEDS": 1, "N_DRAWS": 1, "EPOCHS": 1, "load": small_trust},
    ),
    "studies.vectors": (
        ["--sets", "digits", "--seeds", "1", "--rows", "OUT/vectors.jsonl"],
        {"N_EPOCHS": 1, "DRAWS": {5: 1}, "load": small_trust},
    ),
    "studies.worth": (["--sets", "digits", "--rows", "default", "untrained", *ONE], SMALL),
}


SLOW = {"speed.augmentation", "speed.gpu", "speed.loss_engine", "speed.overhead"}
SLOW |= {"studies.classifier", "studies.five_labels", "studies.tables", "studies.worth"}
SLOW |= {"speed.growth", "studies.adapt_groups"}
SLOW |= {"studies.estimation", "studies.groups", "studies.time_to_quality"}
SLOW |= {"speed.first_fit", "speed.peers_end_to_end", "speed.processes", "speed.soak"}
SLOW |= {"studies.graph_worth", "studies.paper_losses", "studies.simulation"}
SLOW |= {"studies.image_sizes", "studies.image_views", "studies.pretrained", "studies.metadata"}
SLOW |= {"studies.long_series", "studies.papers_axes", "studies.real_scores", "studies.objectives"}


def private_constants():
    """Return the numbers and texts that the modules of skcontrast are written with."""
    return {
        (module, name): value
        for module in list(sys.modules)
        if module.startswith("skcontrast")
        for name, value in vars(sys.modules[module]).items()
        if name.isupper() and isinstance(value, int | float | str | tuple)
    }


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Return a folder of made sets."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    np.save(folder / "rows.npy", rng.integers(0, 99, (500, 8)).astype(np.int16))
    V, y = load_digits(return_X_y=True)
    parts = {"X_train": V[:80], "y_train": y[:80], "X_test": V[80:120], "y_test": y[80:120]}
    np.savez(folder / "v.npz", **parts)
    for part in ("X_train", "X_test"):
        images = parts[part].reshape(-1, 8, 8).astype(np.uint8)
        parts[part] = np.pad(images, ((0, 0), (10, 10), (10, 10)))
    np.savez(folder / "fashion_mnist.npz", **parts)
    np.savez(folder / "CBF.npz", X=rng.normal(size=(40, 1, 32)), y=np.arange(40) % 2)
    graphs, y = made_graphs("molecules", 40)
    edges = graphs.topology.edge_index.numpy()
    np.savez(folder / "tu_toy.npz", edge_index=edges, node_ptr=graphs.topology.node_ptr, y=y)
    (folder / "images").mkdir()
    with zipfile.ZipFile(folder / "images" / "neu.zip", "w") as file:
        for k in range(48):
            image = io.BytesIO()
            Image.fromarray(rng.integers(0, 256, (16, 16), np.uint8)).save(image, "png")
            file.writestr(f"{k % 3}/{k}.png", image.getvalue())
    return folder


def test_each_benchmark_has_a_toy_size():
    assert TOY.keys() == MODULES


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in TOY]
)
def test_a_benchmark_runs_at_toy_size(name, data, tmp_path, monkeypatch, capsys):
    module = importlib.import_module(f"benchmarks.{name}")
    options, constants = TOY[name]
    options = [word.replace("DATA", str(data)).replace("OUT", str(tmp_path)) for word in options]
    for constant, value in constants.items():
        monkeypatch.setattr(module, constant, value)
    monkeypatch.setattr(sys, "argv", [module.__file__, *options])
    monkeypatch.setenv("SKCONTRAST_BENCHMARK_DATA", str(data))
    n_threads, before = torch.get_num_threads(), private_constants()
    try:
        module.main()
    finally:
        torch.set_num_threads(n_threads)
    # Other tests of this process have the same library.
    assert before.items() <= private_constants().items()
    lines = capsys.readouterr().out.splitlines()
    is_row = [line.startswith(("| ", "[")) and any(map(str.isdigit, line)) for line in lines]
    assert any(is_row)
