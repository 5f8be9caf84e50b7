"""Random fits, each made from its number: a choice on every axis, most of them the plainest.

A case is a dict that names the choice on each axis, so that it can be printed, repeated from its
number, and made simpler one axis at a time. It is not drawn by hypothesis, which would have to be
kept from the global generators that the laws are about, stops at its first finding, and names
cases by blobs that a new version of it or of an axis makes void. Each axis draws from a generator
of its own, so that a new axis leaves the others as they were.
"""

from __future__ import annotations

import random
from typing import Any

import networkx as nx
import numpy as np
import torch
from torch import nn
from torch.utils.data import TensorDataset

from skcontrast import ContrastiveEmbedder, augmentation, losses
from skcontrast.encoders import GIN, MLP, ConvNet, Encoder
from skcontrast.frameworks import CMC, InfoGraph, MoCo, SimCLR
from skcontrast.graphs import pack_graphs
from skcontrast.kinds import Graphs, Images, Kind, Vectors
from skcontrast.schedules import Linear
from skcontrast.similarity import Cosine, DotProduct, VonMisesFisher


class Series(Kind):
    """A kind of one's own: series of several channels."""

    name = "series"

    def check(self, X):
        X = np.asarray(X)
        if X.ndim != 3 or X.dtype.kind not in "iuf" or not np.isfinite(X).all():
            raise ValueError("X must hold series, finite numbers of shape (n, channels, length).")
        return X

    def to_tensor(self, X, device):
        return torch.from_numpy(np.ascontiguousarray(X)).to(device, torch.float32)


class Convolution(Encoder):
    """Encodes series."""

    kind = Series()

    def build(self, sample_shape, n_components=None):
        return nn.Sequential(
            nn.Conv1d(sample_shape[0], n_components or 4, 2), nn.AdaptiveAvgPool1d(1), nn.Flatten()
        )


class Scaled(augmentation.Augmentation):
    """A view of series."""

    kind = Series()

    def augment(self, batch, generator=None):
        return batch * (1 + torch.rand(len(batch), 1, 1, generator=generator))


class OwnNetwork(nn.Module):
    """A module of one's own, with dropout."""

    def __init__(self):
        super().__init__()
        self.layer = nn.LazyLinear(4)
        self.dropout = nn.Dropout(0.3)

    def forward(self, x):
        return self.dropout(self.layer(x.flatten(1)))


# The choices on each axis, the plainest first, and how often it is not the plainest.
AXES: dict[str, tuple[float, list[Any]]] = {
    "kind": (0.9, ["vectors", "tensor", "grey", "colour", "bytes", "dataset", "image dataset",
                   "networkx", "attributed", "packed", "pair", "image pair", "series", "list"]),
    "dtype": (0.12, ["float64", "float32", "float16", "int64", "bool", "object", "complex"]),
    "n": (0.3, [20, 2, 3, 7, 33, 1]),
    "n_features": (0.2, [5, 1, 2, 9]),
    "numbers": (0.25, ["normal", "large", "small", "constant", "subnormal", "huge", "one far",
                      "column far", "equal rows", "largest", "NaN", "infinity"]),
    "y": (0.4, ["classes", "none", "partly known", "strings", "all different", "one class",
                "unknown", "floats", "too short", "NaN"]),
    "sample_weight": (0.1, ["none", "ones", "some zero", "huge", "tiny", "zeros", "negative",
                            "too short", "NaN"]),
    "loss": (0.9, [losses.InfoNCE(), losses.DCL(), losses.DCL(tau_plus=0.999),
                   losses.HCL(tau_plus=0.1, beta=1.0), losses.HCL(tau_plus=1e-6, beta=20.0),
                   losses.PUCL(), losses.Ring(), losses.Ring(outer=1.0, inner=0.0),
                   losses.BCL(), losses.BCL(alpha=1.0, beta=2.0, tau_plus=0.9),
                   losses.BCL(alpha="auto"), losses.NonparametricBCL(), losses.BCL.paper(),
                   losses.NonparametricBCL.paper(), losses.SoftRing(),
                   losses.SoftRing(sharpness=2.0, tau_plus="auto"), losses.SoftSupCon(),
                   losses.PositiveDebiased(),
                   losses.PositiveDebiased(tau_plus=0.001, negatives=losses.DCL()),
                   losses.Supervised(), losses.SupCon(), losses.SemiSupCon(every=1),
                   losses.HCL(tau_plus=Linear(0, 0.5), beta=Linear(2, 0))]),
    "framework": (0.5, [SimCLR(), MoCo(8), MoCo(4, 0.5, True), MoCo("auto"), CMC(),
                        CMC("random", 3), InfoGraph(), InfoGraph("contrastive")]),
    "similarity": (0.35, [None, Cosine(0.05), Cosine(1e-3), Cosine(1e-30), Cosine(1e30),
                         DotProduct(), VonMisesFisher(), VonMisesFisher(0.01, 1e6)]),
    "augmentation": (0.2, ["default", "none", "noise", "corruption", "affine", "jitter",
                           "nodes", "attributes"]),
    "encoder": (0.2, ["small", "default", "plain", "module", "wrong"]),
    "n_components": (0.2, [None, 1, 2, 7]),
    "projection_dim": (0.2, [8, 0, 1, 2, 64]),
    "output": (0.2, ["representation", "projection"]),
    "n_views": (0.15, [2, 3, 5]),
    "batch_size": (0.3, [128, 2, 3, 7]),
    "max_epochs": (0.4, [1, 2, 3]),
    "optimizer": (0.3, ["adam", "adamw", "sgd", torch.optim.RMSprop]),
    "lr": (0.15, [1e-3, 0.1, 1.0, 1e3, 1e30, 1e-30]),
    "weight_decay": (0.04, [1e-6, 0.0, 1.0, 1e30]),
    "lr_schedule": (0.1, ["cosine", "constant", Linear(1, 0)]),
    "prepared": (0.25, ["auto", "unscaled", "degree", "constant"]),
    "memory_budget": (0.1, [None, 0.0]),
    "precision": (0.1, ["auto", "bf16", "float32"]),
    "warm_start": (0.1, [False, True]),
    "invalid": (0.15, ["none", "n_views", "batch_size", "n_components", "lr", "loss", "similarity",
                       "max_epochs", "projection_dim", "output", "kind", "optimizer"]),
    "then": (1.0, ["again", "pickle", "save", "partial_fit", "fails", "score", "far samples"]),
}  # fmt: skip
PARAMETERS = (
    "loss", "framework", "similarity", "n_components", "projection_dim", "output", "n_views",
    "batch_size", "max_epochs", "optimizer", "lr", "weight_decay", "lr_schedule",
    "memory_budget", "precision", "warm_start",
)  # fmt: skip
_GRAPHS = ("networkx", "attributed", "packed")
_IMAGES = ("grey", "colour", "bytes", "image dataset", "image pair")


_INVALID = {
    "n_views": 1,
    "batch_size": 1,
    "n_components": 0,
    "lr": 0.0,
    "loss": losses.DCL(tau_plus=1.0),
    "similarity": Cosine(0.0),
    "max_epochs": 0,
    "projection_dim": -1,
    "output": "encoder",
    "kind": "yes",
    "optimizer": "Adamm",
}


def make_case(number: int) -> dict[str, Any]:
    """Return the case of a number: the choice on each axis."""
    case = {}
    for axis, (share, choices) in AXES.items():
        rng = random.Random(f"fit {number} {axis}")
        case[axis] = rng.choice(choices) if rng.random() < share else choices[0]
    return case


def simpler(case: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the cases in which one axis is at its plainest."""
    plainest = {axis: choices[0] for axis, (_, choices) in AXES.items()}
    return [
        {**case, axis: plainest[axis]} for axis in AXES if repr(case[axis]) != repr(plainest[axis])
    ]


def unusual(case: dict[str, Any]) -> dict[str, Any]:
    """Return the choices that are not the plainest."""
    return {k: v for k, v in case.items() if repr(v) != repr(AXES[k][1][0])}


def make_embedder(case: dict[str, Any]) -> ContrastiveEmbedder:
    """Return the embedder of a case, not fitted."""
    parameters = {name: case[name] for name in PARAMETERS}
    if case["kind"] in ("pair", "image pair") and isinstance(case["framework"], SimCLR):
        parameters["framework"] = CMC()  # the plainest that takes pairs
    parameters["kind"] = _kind(case)
    if case["invalid"] != "none":
        parameters[case["invalid"]] = _INVALID[case["invalid"]]
    return ContrastiveEmbedder(
        encoder=_encoder(case),
        augmentation=_augmentation(case),
        random_state=3,
        device="cpu",
        **parameters,
    )


def _kind(case: dict[str, Any]) -> Any:
    """Return the kind of a case that is not prepared as usual."""
    of_graphs, how = case["kind"] in _GRAPHS, case["prepared"]
    is_one_array = case["kind"] not in ("series", "pair", "image pair")
    if how == "auto" or not is_one_array or (not of_graphs and how != "unscaled"):
        return "auto"
    if of_graphs:
        return Graphs(standardize=False) if how == "unscaled" else Graphs(node_features=how)
    return (Images if case["kind"] in _IMAGES else Vectors)(standardize=False)


def _encoder(case: dict[str, Any]) -> Any:
    kind, which = case["kind"], case["encoder"]
    if which == "default" and kind != "series":
        return None
    if which == "module":
        return OwnNetwork()
    of_graphs = kind in _GRAPHS
    if which == "wrong":
        return MLP((4,)) if of_graphs else GIN(1, 4)
    plain = which == "plain"
    if of_graphs:
        return GIN(1, 4, batch_norm=not plain)
    if kind == "series":
        return Convolution()
    return (ConvNet if kind in _IMAGES else MLP)((4,), batch_norm=not plain)


def _augmentation(case: dict[str, Any]) -> Any:
    if case["kind"] == "series" and case["augmentation"] == "default":
        return Scaled()
    return {
        "default": None,
        "none": [],
        "noise": augmentation.GaussianNoise(),
        "corruption": augmentation.MarginalCorruption(0.6),
        "affine": [augmentation.RandomAffine(), augmentation.GaussianNoise(0.1)],
        "jitter": augmentation.ColorJitter(),
        "nodes": augmentation.NodeDrop(0.5),
        "attributes": [augmentation.AttributeMask(), augmentation.NodeDrop()],
    }[case["augmentation"]]


def make_samples(case: dict[str, Any], seed: int = 0) -> Any:
    """Return X."""
    rng, n, kind = np.random.default_rng(seed), case["n"], case["kind"]
    if kind in _GRAPHS:
        return _graphs(rng, kind, n, case)
    width = case["n_features"]
    if kind == "series" or kind in _IMAGES:
        shapes = {"series": (2, 6), "grey": (width + 1,) * 2}
        channels = 2 if kind == "image pair" else 3
        X = rng.normal(size=(n, *shapes.get(kind, (channels, width + 1, width + 1))))
    else:
        X = rng.normal(size=(n, width))
    X = _as_dtype(_extreme(X, case["numbers"]), "uint8" if kind == "bytes" else case["dtype"])
    if kind in ("tensor", "dataset", "image dataset"):
        X = torch.as_tensor(X.astype(np.float64) if X.dtype == object else X)
    if kind in ("dataset", "image dataset"):
        return TensorDataset(X, torch.arange(len(X)))
    if kind in ("pair", "image pair"):
        return X[:, :1], X[:, 1:]
    return X.tolist() if kind == "list" else X


def _extreme(X: np.ndarray, numbers: str) -> np.ndarray:
    if numbers in ("large", "small", "subnormal", "huge", "largest"):
        factors = {"large": 1e30, "small": 1e-30, "subnormal": 1e-310, "huge": 1e18}
        return X.clip(-1, 1) * factors.get(numbers, 1.7e308)
    if numbers == "constant":
        return np.full_like(X, 3.0)
    if numbers == "equal rows":
        return np.repeat(X[:1], len(X), axis=0)
    if X.size and numbers in ("one far", "NaN", "infinity"):
        X.flat[X.size // 2] = {"one far": 1e25, "NaN": np.nan, "infinity": -np.inf}[numbers]
    if numbers == "column far":
        X[..., :1] = 1e12 + X[..., :1]
    return X


def _as_dtype(X: np.ndarray, dtype: str) -> np.ndarray:
    with np.errstate(all="ignore"):
        return (np.abs(X) * 60 if dtype == "uint8" else X).astype(dtype)


def _graphs(rng: np.random.Generator, kind: str, n: int, case: dict[str, Any]) -> Any:
    numbers, graphs = case["numbers"], []
    for k in range(n):
        n_nodes = int(rng.integers(0 if numbers == "infinity" else 1, 7))
        p = {"constant": 0.0, "large": 1.0}.get(numbers, 0.4)
        graph = nx.gnp_random_graph(n_nodes, p, seed=k, directed=numbers == "column far")
        if kind == "attributed":
            x = _as_dtype(
                _extreme(rng.normal(size=(n_nodes, case["n_features"])), numbers), case["dtype"]
            )
            for node, row in enumerate(x):
                graph.nodes[node]["x"] = row
        graphs.append(graph)
    return pack_graphs(graphs) if kind == "packed" else graphs


def make_labels(case: dict[str, Any]) -> Any:
    """Return y."""
    n, which = case["n"], case["y"]
    classes = np.arange(n) % 3
    return {
        "none": None,
        "classes": classes,
        "partly known": np.where(np.arange(n) % 2, -1, classes),
        "strings": np.array(["a", "b", "c"])[classes],
        "all different": np.arange(n),
        "one class": np.zeros(n, dtype=int),
        "unknown": np.full(n, -1),
        "floats": np.linspace(0, 1, n),
        "too short": classes[:-1],
        "NaN": np.where(np.arange(n) == 0, np.nan, classes),
    }[which]


def make_weights(case: dict[str, Any]) -> Any:
    """Return sample_weight."""
    n = case["n"]
    return {
        "none": None,
        "ones": np.ones(n),
        "some zero": (np.arange(n) % 2).astype(float),
        "huge": np.full(n, 1e30),
        "tiny": np.full(n, 1e-30),
        "zeros": np.zeros(n),
        "negative": -np.ones(n),
        "too short": np.ones(n + 1),
        "NaN": np.full(n, np.nan),
    }[case["sample_weight"]]
