"""Random changes of a file, under a valid checksum: refused by name, or an embedder that works."""

import contextlib
import copy
import json
import random

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save as safetensors_bytes

import skcontrast
from skcontrast import ContrastiveEmbedder
from skcontrast._files._classes import classes
from skcontrast._storage._file import pack
from skcontrast.encoders import GIN, MLP, ConvNet, PatchNet, SeriesNet, Wide
from skcontrast.features import (
    GraphProfile,
    MiniRocket,
    OrientedGradients,
    PatchDictionary,
    WeisfeilerLehman,
)
from skcontrast.frameworks import CMC, InfoGraph, MoCo
from skcontrast.losses import HCL
from skcontrast.similarity import VonMisesFisher

RNG = np.random.default_rng(0)
VECTORS = RNG.normal(size=(30, 5))
TABLE = pd.DataFrame({"a": VECTORS[:, 0], "b": RNG.choice([False, True], 30)})
IMAGES = RNG.random((12, 3, 8, 8))
PHOTOS = RNG.random((12, 1, 9, 9))
SERIES = RNG.random((12, 2, 9))
GRAPHS = [nx.gnp_random_graph(5, 0.5, seed=k) for k in range(12)]
CASES = {
    "vectors": (VECTORS, {"encoder": MLP(8), "loss": HCL()}),
    "images": (IMAGES, {"encoder": ConvNet((4,)), "framework": MoCo(8)}),
    "graphs": (GRAPHS, {"encoder": GIN(1, 4), "framework": InfoGraph()}),
    "parts": (VECTORS, {"encoder": MLP(4), "framework": CMC(), "similarity": VonMisesFisher()}),
    "patches": (
        PHOTOS,
        {"encoder": Wide(PatchNet(4, 3, (4,)), [PatchDictionary(4, 3), OrientedGradients()])},
    ),
    "series": (SERIES, {"encoder": Wide(SeriesNet((4,), 2), [MiniRocket()])}),
    "wide graphs": (
        GRAPHS,
        {"encoder": Wide(GIN(1, 4), [GraphProfile(), WeisfeilerLehman(n_components=8)])},
    ),
    "table": (TABLE, {"encoder": MLP(4)}),
}
PARTS = {"class", "parameters", "fitted", "output", "own", "outputs", "format", "versions"}


def is_written(dtype):
    """Return whether safetensors writes a dtype: complex numbers from its version 0.7 on."""
    with contextlib.suppress(KeyError):
        return bool(safetensors_bytes({"x": torch.zeros(1, dtype=dtype)}))
    return False


DTYPES = [torch.float64, torch.int64, torch.uint8, torch.float16, torch.bool, torch.complex64]
DTYPES = list(filter(is_written, DTYPES))
KEYS = ["x", "__class__", "__dict__", "forward", "to_tensor", "_modules", "$tuple", "checkpoint"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Return the samples, the content and the tensors of a file of each kind."""
    path, found = tmp_path_factory.mktemp("files") / "a", {}
    for name, (X, params) in CASES.items():
        embedder = ContrastiveEmbedder(projection_dim=4, max_epochs=1, random_state=0, **params)
        skcontrast.save(embedder.fit(X), path)
        with safe_open(path, framework="pt") as file:
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
            found[name] = X, json.loads(file.metadata()["skcontrast"][64:]), tensors
    return found


def odd(draw):
    """Return something that should not be anywhere."""
    name = draw.choice(sorted(classes()))
    parts = {"state": {}, "_parameters": {}, "_buffers": {}, "_modules": {}, "volatile": []}
    numbers = [0, -1, 1.5, 1e308, 2**31, 2**62, -(2**63), 10**30, True, None]
    tagged = (
        {"$tuple": [2**40]},
        {"$float": "x"},
        {"$pairs": [[1]]},
        {"$same": 0},
        {"$same": -1},
    )
    objects = {"$class": name}, {"$object": name, "state": {}}, {"$object": name, "state": parts}
    own = {"$own": "os.system"}, {"$own": "a", "params": {}}, {"$own": "a", "state_dict": {}}
    return draw.choice([*numbers, "", "cpu", [], {}, [[]], [1, 1], *tagged, *objects, *own])


def places(value, path=()):
    """Yield the place of everything in nested values."""
    yield path
    if isinstance(value, (dict, list)):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*path, key))


def at(value, path):
    """Return what is at a place."""
    for key in path:
        value = value[key]
    return value


def change_tensor(draw, tensors):
    """Change one tensor."""
    name = draw.choice(sorted(tensors))
    tensor = tensors[name]
    changed = [
        tensor.to(draw.choice(DTYPES)),
        tensor.reshape(-1),
        tensor.new_zeros(0, *tensor.shape[1:]),
        torch.tensor(3),
        torch.full_like(tensor, torch.inf) if tensor.is_floating_point() else tensor - 100,
        tensors[draw.choice(sorted(tensors))],
        None,
    ]
    tensors[name] = draw.choice(changed)
    if tensors[name] is None:
        del tensors[name]


def change_content(draw, content):
    """Change, remove, rename or copy one value."""
    path = draw.choice([path for path in places(content) if path and path[0] in PARTS])
    owner, key = at(content, path[:-1]), path[-1]
    how = draw.choice(["odd", "odd", "odd", "delete", "rename", "copy", "class"])
    if how == "delete":
        del owner[key]
    elif how == "rename" and isinstance(owner, dict):
        owner[draw.choice(KEYS)] = owner.pop(key)
    elif how == "copy":
        owner[key] = copy.deepcopy(at(content, draw.choice(list(places(content)))))
    elif how == "class":
        named = [p for p in places(content) if p and p[-1] in ("$object", "$class")]
        place = draw.choice(named)
        at(content, place[:-1])[place[-1]] = draw.choice(sorted(classes()))
    else:
        owner[key] = odd(draw)


def attack(seed, files, path):
    """Return whether a file that was changed at random is loaded."""
    draw = random.Random(seed)
    X, content, tensors = files[draw.choice(sorted(files))]
    content, tensors = copy.deepcopy(content), dict(tensors)
    for _ in range(draw.choice([1, 1, 2, 3])):
        if draw.random() < 0.25 and tensors:
            change_tensor(draw, tensors)
        else:
            change_content(draw, content)
    tensors = {name: tensor.contiguous().clone() for name, tensor in tensors.items()}
    path.write_bytes(pack(content, tensors, "skcontrast"))
    try:
        loaded = skcontrast.load(path)
    except ValueError as error:
        assert str(path) in str(error)
        return False
    # Numbers that do not fit together are errors of Python here, and never end the process.
    for call in (loaded.transform, loaded.partial_fit, loaded.score):
        with contextlib.suppress(Exception):
            call(X)
    return True


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "seeds", [range(150), pytest.param(range(150, 5300), marks=pytest.mark.slow)], ids=len
)
def test_a_file_that_was_changed_at_random_is_refused_or_works(seeds, files, tmp_path):
    loaded = [attack(seed, files, tmp_path / "a") for seed in seeds]
    assert 0.1 < np.mean(loaded) < 0.9
