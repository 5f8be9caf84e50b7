"""Every public door of the package, and values that should not get through it in silence.

A door is an argument of something public, together with a call that uses it: an object whose
parameters are checked where they are used, such as a loss, is used. `attack` passes values
through doors and says how each was taken; test_errors.py says what is admissible.
"""

from __future__ import annotations

import datetime
import decimal
import fractions
import inspect
import itertools
import linecache
import pathlib
import re
import signal
import tempfile
import warnings
from collections import OrderedDict
from functools import cache
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
import pandas as pd
import scipy.sparse
import torch
from sklearn.exceptions import NotFittedError

import skcontrast
from skcontrast import (
    ContrastiveEmbedder,
    augmentation,
    callbacks,
    contrastive_loss,
    datasets,
    encoders,
    estimation,
    frameworks,
    graphs,
    kinds,
    losses,
    metrics,
    optimizers,
    plotting,
    schedules,
    similarity,
    simulation,
)

N = 12
Y = np.arange(N) % 3
VECTORS = np.random.default_rng(0).normal(size=(N, 4))
PICTURES = np.random.default_rng(1).random((N, 3, 8, 8)).astype(np.float32)
GRAPHS = [nx.gnp_random_graph(6, 0.6, seed=k) for k in range(N)]
Z = tuple(torch.from_numpy(VECTORS + 0.1 * k) for k in range(2))
LABELS = torch.from_numpy(Y)


class Door(NamedTuple):
    """An argument of something public.

    Attributes
    ----------
    name : str
        What is called.
    argument : str
        Which of its arguments receives a value.
    call : callable
        Uses what is called with this value, all other arguments being valid.
    words : tuple of str
        What a message may call the argument.
    """

    name: str
    argument: str
    call: Any
    words: tuple[str, ...]

    def __repr__(self):
        return f"{self.name}({self.argument})"


def bad_values():
    """Return values by name, each made when it is needed."""
    ragged = np.empty(2, dtype=object)
    ragged[:] = [np.zeros(2), np.zeros(3)]
    return {
        "None": lambda: None,
        "a string": lambda: "a",
        "an empty string": lambda: "",
        "bytes": lambda: b"a",
        "True": lambda: True,
        "False": lambda: False,
        "numpy True": lambda: np.bool_(True),
        "-1": lambda: -1,
        "0": lambda: 0,
        "0.5": lambda: 0.5,
        "-0.5": lambda: -0.5,
        "1e30": lambda: 1e30,
        "nan": lambda: float("nan"),
        "inf": lambda: float("inf"),
        "2**70": lambda: 2**70,
        "-2**70": lambda: -(2**70),
        "a complex number": lambda: 1j,
        "a Decimal": lambda: decimal.Decimal("0.5"),
        "a Fraction": lambda: fractions.Fraction(1, 2),
        "an empty list": list,
        "an empty tuple": tuple,
        "an empty dict": dict,
        "a dict": lambda: {"a": 1},
        "an ordered dict of arrays": lambda: OrderedDict(a=VECTORS, b=VECTORS),
        "a set": lambda: {1, 2},
        "a generator": lambda: (x for x in [1, 2]),
        "a range": lambda: range(3),
        "a list of strings": lambda: ["a", "b"],
        "a list of None": lambda: [None, None],
        "ragged lists": lambda: [[1.0, 2.0], [3.0]],
        "a mixed list": lambda: [[1, 2], [3, "a"]],
        "an image and None": lambda: [PICTURES[0], None],
        "an image and a string": lambda: [PICTURES[0], "a"],
        "a tensor and an array": lambda: [torch.zeros(3, 8, 8), np.zeros((3, 8, 8))],
        "a graph and a string": lambda: [GRAPHS[0], "a"],
        "graphs and arrays": lambda: [*GRAPHS[:3], VECTORS],
        "graphs": lambda: list(GRAPHS),
        "nested lists": lambda: [[[[[1.0]]]]],
        "an empty array": lambda: np.empty((0, 4)),
        "no features": lambda: np.empty((N, 0)),
        "a scalar array": lambda: np.array(5.0),
        "a row": lambda: np.arange(float(N)),
        "five dimensions": lambda: np.zeros((2, 1, 1, 1, 1)),
        "an array with nan": lambda: np.where(VECTORS > 1, np.nan, VECTORS),
        "an array with inf": lambda: np.where(VECTORS > 1, np.inf, VECTORS),
        "a complex array": lambda: VECTORS + 1j,
        "strings as an array": lambda: np.full((N, 4), "a"),
        "objects as an array": lambda: np.full((N, 4), object()),
        "ragged objects": lambda: ragged,
        "a structured array": lambda: np.zeros(N, dtype=[("a", float), ("b", int)]),
        "dates": lambda: np.zeros((N, 4), dtype="datetime64[s]"),
        "a masked array": lambda: np.ma.masked_greater(VECTORS, 0),
        "a sparse matrix": lambda: scipy.sparse.csr_matrix(np.eye(N)),
        "a frame of strings": lambda: pd.DataFrame({"a": ["x"] * N, "b": ["y"] * N}),
        "a bool tensor": lambda: torch.ones(N, 4, dtype=torch.bool),
        "a half tensor": lambda: torch.ones(N, 4, dtype=torch.float16),
        "a complex tensor": lambda: torch.ones(N, 4, dtype=torch.complex64),
        "a quantized tensor": lambda: torch.quantize_per_tensor(
            torch.ones(N, 4), 0.1, 0, torch.quint8
        ),
        "a meta tensor": lambda: torch.ones(N, 4, device="meta"),
        "a sparse tensor": lambda: torch.eye(N).to_sparse(),
        "a Dataset of dicts": lambda: _Rows([{"image": torch.zeros(3, 8, 8)}] * N),
        "a Dataset of empty tuples": lambda: _Rows([()] * N),
        "a Dataset of strings": lambda: _Rows(["a"] * N),
        "a complex Dataset": lambda: _Rows([torch.zeros(4) + 1j] * N),
        "a class": lambda: losses.DCL,
        "the class dict": lambda: dict,
        "a function of nothing": lambda: lambda: None,
        "a function that returns a string": lambda: lambda *args, **kwargs: "a",
        "a module": lambda: torch.nn.Identity(),
        "a loss": lambda: losses.InfoNCE(),
        "an unfitted embedder": lambda: ContrastiveEmbedder(),
        "a date": lambda: datetime.date(2020, 1, 1),
        "a path": lambda: pathlib.Path("/nowhere/at/all"),
        "a dtype": lambda: torch.float32,
        "an exception": lambda: ValueError("a"),
        "Ellipsis": lambda: ...,
        "a slice": lambda: slice(0, 2),
        "an object": object,
    }


class _Rows(torch.utils.data.Dataset):
    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, k):
        return self.rows[k]


# Containers that hold what the package has computed and check nothing, base classes, whose
# parameters are those of a class derived from them, and warnings.
CONTAINERS = {
    estimation.Estimate,
    estimation.Reliability,
    frameworks.Batch,
    frameworks.Contrast,
    frameworks.FitContext,
    graphs.GraphBatch,
    metrics.PairedComparison,
    simulation.EstimatorComparison,
    simulation.EstimatorCurve,
    simulation.ScoreSample,
}
# Parts of a framework of one's own, which the engine calls with what it has made.
PARTS = {
    frameworks.KeyQueue,
    frameworks.MomentumNetwork,
    frameworks.Session,
    frameworks.in_batch,
}
BASES = {
    augmentation.Augmentation,
    encoders.Encoder,
    frameworks.Framework,
    kinds.Kind,
    losses.Loss,
    schedules.Schedule,
    similarity.ProbabilisticSimilarity,
    similarity.Similarity,
}

# What messages call the samples or the embeddings, wherever they are passed.
_SAMPLES = ("X", "sample", "samples", "graph", "Graph", "Dataset", "array", "pair", "expects")
_WORDS = {
    "X": _SAMPLES,
    "X1": _SAMPLES,
    "X2": _SAMPLES,
    "base": _SAMPLES,
    "graphs": _SAMPLES,
    "batch": ("batch", "sample", "samples", "expects"),
    "view": ("view", "views", "Tuples"),
    "views": ("view", "views", "Tuples"),
    "queue": ("queue", "Tuples"),
    "sample_shape": ("sample_shape", "shape"),
    "shape": ("shape",),
    "embedder": ("embedder", "estimator", "ContrastiveEmbedder"),
    "estimator": ("estimator", "embedder", "augmentation"),
    "augmentations": ("augmentation", "augmentations"),
    "values": ("values", "alpha"),
    "scoring": ("scoring", "scorer"),
    "path": ("path", "file", "folder", "directory", "No such file"),
    "data_home": ("data_home", "folder", "directory", "No such file"),
    "folder": ("folder", "directory", "No such file"),
}


_OF_VIEWS = _WORDS["views"]


def tiny(**kwargs):
    """Return an embedder that trains in a moment."""
    defaults = {"encoder": encoders.MLP(4), "max_epochs": 1, "device": "cpu", "random_state": 0}
    return ContrastiveEmbedder(**{**defaults, "projection_dim": 4, **kwargs})


@cache
def fitted():
    return tiny().fit(VECTORS)


@cache
def fitted_vmf():
    return tiny(similarity=similarity.VonMisesFisher()).fit(VECTORS)


@cache
def fitted_on_graphs():
    return tiny(encoder=encoders.GIN(1, 4)).fit(GRAPHS)


@cache
def score_sample():
    return simulation.ScoreModel().sample(20, 8, random_state=0)


@cache
def curve():
    return simulation.estimator_curve(
        simulation.ScoreModel(), "alpha", [0.6, 0.8], n_anchors=50, random_state=0
    )


@cache
def folder():
    from PIL import Image

    place = pathlib.Path(tempfile.mkdtemp())
    for name in ("a", "b"):
        (place / name).mkdir()
        for k in range(3):
            Image.fromarray(np.full((8, 8, 3), 40 * k, np.uint8)).save(place / name / f"{k}.png")
    return place


def doors():
    """Yield every door."""
    for family in (
        _functional,
        _embedder,
        _losses,
        _similarities,
        _frameworks,
        _schedules,
        _augmentations,
        _encoders,
        _graphs_and_kinds,
        _estimation,
        _simulation,
        _metrics,
        _plotting,
        _files,
        _others,
    ):
        yield from family()


def _of(target, use=None, *, called=None, **valid):
    """Yield the doors of a callable: one for each of its arguments.

    Parameters
    ----------
    target : callable
        Its signature gives the arguments.
    use : callable, default=None
        Called with the arguments; None is `target` itself.
    **valid : dict
        Valid arguments where the defaults do not suffice; an argument whose name ends in an
        underscore is called when it is needed.
    """
    use = target if use is None else use
    name = called or getattr(target, "__qualname__", str(target))
    for argument, parameter in inspect.signature(target).parameters.items():
        if argument == "self" or parameter.kind in (
            parameter.VAR_KEYWORD,
            parameter.VAR_POSITIONAL,
        ):
            continue
        yield _door(name, argument, use, valid)


def _door(name, argument, use, valid):
    def call(value):
        given = {key: make() for key, make in valid.items() if key != argument}
        return use(**given, **{argument: value})

    return Door(name, argument, call, (argument, *_WORDS.get(argument, ())))


def _now(**values):
    """Return valid arguments as functions that return them."""
    return {name: lambda value=value: value for name, value in values.items()}


def _functional():
    def loss_of(**kwargs):
        return contrastive_loss(*Z, **kwargs)

    yield from _of(contrastive_loss, loss_of)
    yield Door("contrastive_loss", "view", lambda value: contrastive_loss(Z[0], value), _OF_VIEWS)
    yield Door(
        "contrastive_loss", "views", lambda value: contrastive_loss(value, value), ("view",)
    )
    yield Door(
        "contrastive_loss with a queue",
        "queue_y",
        lambda value: contrastive_loss(
            *Z, loss=losses.Supervised(), y=LABELS, queue=Z[0], queue_y=value
        ),
        ("queue_y",),
    )
    yield Door(
        "contrastive_loss of classes",
        "y",
        lambda value: contrastive_loss(*Z, loss=losses.Supervised(), y=value),
        ("y",),
    )
    yield Door(
        "contrastive_loss of distributions",
        "kappa",
        lambda value: contrastive_loss(
            *((z, value) for z in Z), similarity=similarity.VonMisesFisher()
        ),
        ("view", "concentrations"),
    )


def _embedder():
    def fit(**kwargs):
        return tiny(**kwargs).fit(VECTORS)

    yield from _of(ContrastiveEmbedder, fit, called="ContrastiveEmbedder")
    yield from _of(
        ContrastiveEmbedder,
        lambda **kwargs: tiny(**{"encoder": None, **kwargs}).fit(PICTURES),
        called="ContrastiveEmbedder of images",
    )
    yield from _of(
        ContrastiveEmbedder,
        lambda **kwargs: tiny(**{"encoder": encoders.GIN(1, 4), **kwargs}).fit(GRAPHS),
        called="ContrastiveEmbedder of graphs",
    )
    for method in ("fit", "partial_fit"):
        for argument in ("X", "y", "sample_weight"):

            def call(value, method=method, argument=argument):
                given = {"X": VECTORS, argument: value}
                loss = losses.SupCon() if argument == "y" else None
                return getattr(tiny(loss=loss), method)(**given)

            words = (argument, *_WORDS.get(argument, ()))
            yield Door(f"ContrastiveEmbedder.{method}", argument, call, words)
    yield Door("fit of pairs", "X", _fit_pairs, _WORDS["X"])
    yield Door("fit of a pair", "X", lambda value: _fit_pairs((VECTORS, value)), _WORDS["X"])
    for kind in ("vectors", "images", "graphs"):
        yield Door(
            f"fit of {kind}",
            "X",
            lambda value, kind=kind: tiny(kind=kind, encoder=None).fit(value),
            _WORDS["X"],
        )
    for method in ("transform", "score", "views"):
        for model in (fitted, fitted_on_graphs):

            def call(value, method=method, model=model):
                return getattr(model(), method)(value)

            yield Door(f"{model.__name__}.{method}", "X", call, _WORDS["X"])
    for argument in ("n_views", "rows", "random_state"):
        yield _door("ContrastiveEmbedder.views", argument, fitted().views, _now(X=VECTORS))
    for argument in ("X", "n", "random_state"):
        yield _door("ContrastiveEmbedder.sample", argument, fitted_vmf().sample, _now(X=VECTORS))
    for argument in ("X1", "X2"):
        yield _door(
            "ContrastiveEmbedder.log_score", argument, fitted_vmf().log_score, _now(X1=VECTORS)
        )
    yield _door("ContrastiveEmbedder.concentration", "X", fitted_vmf().concentration, {})
    yield _door(
        "ContrastiveEmbedder.set_params",
        "loss__tau_plus",
        lambda loss__tau_plus: (
            tiny(loss=losses.DCL()).set_params(loss__tau_plus=loss__tau_plus).fit(VECTORS)
        ),
        {},
    )._replace(words=("tau_plus",))


def _fit_pairs(X):
    return tiny(framework=frameworks.CMC()).fit(X)


def _public(module, base):
    """Return the public classes of a module that derive from a base class."""
    things = [getattr(module, name) for name in module.__all__]
    return [thing for thing in things if inspect.isclass(thing) and issubclass(thing, base)]


def _losses():
    for cls in _public(losses, losses.Loss):

        def use(cls=cls, **kwargs):
            y = LABELS if cls().requires_y else None
            return contrastive_loss(*Z, loss=cls(**kwargs), y=y)

        yield from _of(cls, use)

    def fit(**kwargs):
        return tiny(loss=losses.BCL(**kwargs)).fit(VECTORS)

    yield from _of(losses.BCL, fit, called="BCL in fit")


def _similarities():
    for cls in _public(similarity, similarity.Similarity):

        def use(cls=cls, **kwargs):
            return contrastive_loss(*Z, similarity=cls(**kwargs))

        if cls is similarity.VonMisesFisher:

            def use(**kwargs):
                chosen = similarity.VonMisesFisher(**kwargs)
                return contrastive_loss(*((z, torch.ones(N)) for z in Z), similarity=chosen)

        yield from _of(cls, use)
        if cls not in BASES:
            yield Door(
                f"{cls.__name__}()",
                "z2",
                lambda value, cls=cls: cls()(Z[0], value),
                ("z1", "z2", "Tuples"),
            )


def _frameworks():
    for cls in _public(frameworks, frameworks.Framework):

        def use(cls=cls, **kwargs):
            X, encoder = VECTORS, encoders.MLP(4)
            if cls is frameworks.InfoGraph:
                X, encoder = GRAPHS, encoders.GIN(1, 4)
            return tiny(framework=cls(**kwargs), encoder=encoder).fit(X)

        yield from _of(cls, use)


def _schedules():
    yield from _of(
        schedules.Linear, lambda **kw: schedules.Linear(**kw)(0.5), **_now(start=0.0, stop=1.0)
    )
    yield from _of(schedules.CosineDecay, lambda **kw: schedules.CosineDecay(**kw)(0.5))
    yield from _of(
        schedules.Steps,
        lambda **kw: schedules.Steps(**kw)(0.5),
        **_now(values=[0.1, 0.2], milestones=[0.5]),
    )
    yield from _of(
        schedules.Auto,
        lambda **kw: tiny(loss=losses.DCL(schedules.Auto(**kw))).fit(VECTORS),
    )
    for cls, some in (
        (schedules.Linear, (0, 1)),
        (schedules.CosineDecay, ()),
        (schedules.Steps, ([0.1], [])),
    ):
        yield Door(
            f"{cls.__name__}()",
            "progress",
            lambda value, cls=cls, some=some: cls(*some)(value),
            ("progress",),
        )
    yield from _of(schedules.at_progress, **_now(obj=losses.DCL(), progress=0.5))
    yield from _of(schedules.interval, **_now(low=0.0, high=1.0, closed="both"))


_OF_GRAPHS = {name for name in augmentation.__all__ if name in augmentation._graphs.__all__}
_OF_VECTORS = set(augmentation._vectors.__all__) - set(augmentation._images.__all__)


def _samples_of(cls):
    if cls.__name__ in _OF_GRAPHS:
        return GRAPHS
    if cls.__name__ in _OF_VECTORS or cls is augmentation.FunctionAugmentation:
        return VECTORS
    return PICTURES


def _noise(x):
    return x + 0.1 * torch.randn(x.shape)


_NEEDED = {augmentation.FunctionAugmentation: _now(func=_noise)}


def _augmentations():
    for cls in _public(augmentation, augmentation.Augmentation):
        if cls in (augmentation.Augmentation, augmentation.PerPart):
            continue
        X, needed = _samples_of(cls), _NEEDED.get(cls, {})

        def use(cls=cls, X=X, **kwargs):
            return tiny(augmentation=cls(**kwargs), encoder=None).views(X, rows=slice(2))

        yield from _of(cls, use, **needed)
        for method in ("fit", "fit_transform"):

            def call(value, cls=cls, method=method, needed=needed):
                made = cls(**{name: make() for name, make in needed.items()})
                return getattr(made, method)(value)

            yield Door(f"{cls.__name__}.{method}", "X", call, _WORDS["X"])

        def transform(value, cls=cls, X=X, needed=needed):
            return cls(**{name: make() for name, make in needed.items()}).fit(X).transform(value)

        yield Door(f"{cls.__name__}.transform", "X", transform, _WORDS["X"])
        yield from _augment(cls, X, needed)
    yield from _of(
        augmentation.Unflatten,
        lambda **kw: augmentation.Unflatten(**kw).fit_transform(VECTORS),
        **_now(shape=(1, 2, 2)),
    )
    for method in ("fit", "fit_transform"):
        yield Door(
            f"Unflatten.{method}",
            "X",
            getattr(augmentation.Unflatten((1, 2, 2)), method),
            _WORDS["X"],
        )
    yield Door(
        "Unflatten.transform",
        "X",
        augmentation.Unflatten((1, 2, 2)).fit(VECTORS).transform,
        _WORDS["X"],
    )
    yield from _per_part()
    yield from _of(augmentation.Views, **_now(base=VECTORS, chain=()))
    yield from _of(
        augmentation.compose,
        lambda **kw: augmentation.compose(**kw)(torch.zeros(2, 3, 8, 8), torch.Generator()),
        **_now(augmentations=[augmentation.RandomFlip()], sample_shape=(3, 8, 8)),
    )


def _per_part():
    parts, step = datasets.Parts(VECTORS, PICTURES), [augmentation.GaussianNoise(), None]
    yield Door("Parts", "parts", lambda value: datasets.Parts(VECTORS, value), _SAMPLES)
    yield from _of(
        augmentation.PerPart, lambda **kw: augmentation.PerPart(**kw).fit_transform(parts)
    )
    for method in ("fit", "fit_transform"):
        yield Door(
            f"PerPart.{method}", "X", getattr(augmentation.PerPart(step), method), _WORDS["X"]
        )
    fitted_step = augmentation.PerPart(step).fit(parts)
    yield Door("PerPart.transform", "X", fitted_step.transform, _WORDS["X"])
    batch = fitted_step._schema.kind.to_tensor(parts, "cpu")
    yield Door(
        "PerPart.augment",
        "batch",
        lambda value: fitted_step.augment(value, torch.Generator()),
        _WORDS["batch"],
    )
    yield Door(
        "PerPart.augment",
        "generator",
        lambda value: fitted_step.augment(batch, value),
        ("generator",),
    )


def _augment(cls, X, needed):
    def made():
        return cls(**{name: make() for name, make in needed.items()}).fit(X)

    batch = torch.zeros(2, *np.shape(X[0])) if X is not GRAPHS else fitted_on_graphs_batch()
    yield Door(
        f"{cls.__name__}.augment",
        "batch",
        lambda value: made().augment(value, torch.Generator()),
        _WORDS["batch"],
    )
    yield Door(
        f"{cls.__name__}.augment",
        "generator",
        lambda value: made().augment(batch, value),
        ("generator",),
    )


@cache
def fitted_on_graphs_batch():
    model = fitted_on_graphs()
    return model._fitted.scaler.to_tensor(model._fitted.read(GRAPHS[:2], model), "cpu")


def _encoders():
    shapes = {encoders.MLP: (4,), encoders.GIN: (None, 3), encoders.GCN: (None, 3)}
    for cls in _public(encoders, encoders.Encoder):
        if cls is encoders.Encoder:
            continue
        shape = shapes.get(cls, (3, 8, 8))

        def use(cls=cls, shape=shape, **kwargs):
            return cls(**kwargs).build(shape)

        yield from _of(cls, use)
        yield from _of(cls.build, cls().build, **_now(sample_shape=shape))


def _graphs_and_kinds():
    yield from _of(graphs.pack_graphs)
    yield from _of(
        graphs.PackedGraphs.from_arrays,
        **_now(edge_index=[[0, 1], [1, 0]], node_ptr=[0, 2, 4]),
    )
    yield from _of(
        graphs.NodeFeatures, lambda **kw: graphs.NodeFeatures(**kw).fit(graphs.pack_graphs(GRAPHS))
    )
    for cls in _public(kinds, kinds.Kind):
        if cls is not kinds.Kind:
            yield Door(
                f"{cls.__name__}.read",
                "X",
                lambda value, cls=cls: cls().read(value, owner=ContrastiveEmbedder()),
                _WORDS["X"],
            )
    yield from _of(
        kinds.Several,
        lambda **kw: tiny(framework=frameworks.CMC(), kind=kinds.Several(**kw)).fit(
            datasets.Parts(VECTORS, VECTORS)
        ),
    )


def _estimation():
    ranks = np.linspace(0.05, 1, 50)
    yield from _of(estimation.alpha_from_auc, **_now(auc=0.7))
    yield from _of(estimation.sharpness_from_auc, **_now(auc=0.7, tau_plus=0.1))
    yield from _of(estimation.tau_plus_from_labels)
    for function in (
        estimation.estimate_alpha,
        estimation.estimate_tau_plus,
        estimation.estimate_alpha_and_tau_plus,
    ):
        yield from _of(function, **_now(ranks=ranks))
    yield from _of(estimation.estimate_soft_ring, **{"sample": score_sample})
    for function in (estimation.negative_bias, estimation.push_share, estimation.reliability):
        few = _now(n_bins=4) if function is estimation.reliability else {}
        yield from _of(function, **_now(loss=losses.DCL()), **few, sample=score_sample)
    yield from _of(estimation.macro_auc, lambda **kw: estimation.macro_auc(*Z, **kw), **_now(y=Y))
    yield Door("macro_auc", "views", lambda value: estimation.macro_auc(value, y=Y), _OF_VIEWS)
    yield from _of(estimation.positive_ranks, lambda **kw: estimation.positive_ranks(*Z, **kw))
    yield Door(
        "positive_ranks",
        "views",
        lambda value: estimation.positive_ranks(value, value),
        _OF_VIEWS,
    )
    yield from _of(estimation.project_views, **_now(X=VECTORS), embedder=fitted)


def _simulation():
    model = simulation.ScoreModel()
    yield from _of(
        simulation.ScoreModel,
        lambda **kw: (
            simulation.ScoreModel(**kw).sample(3, 4, random_state=0),
            simulation.ScoreModel(**kw).auc,
            simulation.ScoreModel(**kw).lower_bound,
        ),
    )
    yield from _of(
        simulation.ScoreModel,
        lambda **kw: simulation.ScoreModel(**kw).auc,
        called="ScoreModel().auc",
    )
    yield from _of(
        model.sample,
        called="ScoreModel.sample",
        **_now(n_anchors=3, n_candidates=4, n_positives=2),
    )
    for function in (model.density, model.cdf):
        yield from _of(function, **_now(x=[0.1]))
    yield from _of(
        simulation.ScoreSample.from_views,
        lambda **kw: simulation.ScoreSample.from_views(*Z, **kw),
        **_now(y=Y),
    )
    yield Door(
        "ScoreSample.from_views",
        "views",
        lambda value: simulation.ScoreSample.from_views(value, value, y=Y),
        (*_OF_VIEWS, "y"),
    )
    few = _now(model=model, n_anchors=20, n_candidates=8)
    yield from _of(simulation.compare_estimators, **few)
    yield from _of(
        simulation.estimator_curve,
        lambda **kw: simulation.estimator_curve(**kw, n_anchors=20),
        **_now(model=model, parameter="alpha", values=[0.6]),
    )
    yield from _of(simulation.estimate, **_now(loss=losses.DCL()), sample=score_sample)
    yield from _of(simulation.matched_estimators)
    yield from _of(
        simulation.EstimatorComparison.summary, lambda **kw: curve().comparisons[0].summary(**kw)
    )
    yield from _of(simulation.EstimatorCurve.summary, lambda **kw: curve().summary(**kw))
    yield from _of(
        simulation.EstimatorComparison.mse_difference,
        lambda **kw: curve().comparisons[0].mse_difference(**kw),
        **_now(first="DCL", second="HCL"),
    )


def _metrics():
    h = VECTORS
    two = _now(z1=h, z2=h + 0.1)
    for function in (
        metrics.alignment,
        metrics.bits_above_chance,
        metrics.linear_cka,
        metrics.neighbor_agreement,
        metrics.top_k,
    ):
        yield from _of(function, **two)
    for function in (metrics.effective_rank, metrics.uniformity):
        yield from _of(function, **_now(z=h))
    yield from _of(metrics.compare_paired, **_now(a=[0.1, 0.2, 0.3], b=[0.2, 0.2, 0.5]))
    few = {"n_neighbors": 2, "n_labels": 1, "n_draws": 2, "cv": 2}
    for function in (
        metrics.few_label_accuracy,
        metrics.knn_accuracy,
        metrics.linear_probe,
        metrics.map_at_r,
        metrics.recall_at_k,
    ):
        known = inspect.signature(function).parameters
        some = {name: value for name, value in few.items() if name in known}
        yield from _of(function, **_now(H=h, y=Y, **some))
        for argument in ("H_test", "y_test"):
            yield _door(
                f"{function.__name__} with a test part",
                argument,
                function,
                _now(H=h, y=Y, H_test=h, y_test=Y, **some),
            )
    yield from _of(
        metrics.make_embedding_scorer,
        lambda **kw: metrics.make_embedding_scorer(**kw)(fitted(), VECTORS, Y),
        **_now(measure=metrics.map_at_r),
    )
    yield from _of(
        metrics.make_view_scorer,
        lambda **kw: metrics.make_view_scorer(**kw)(fitted(), VECTORS),
        **_now(measure=metrics.alignment),
    )


def _plotting():
    h = VECTORS
    points = h[:, :2]
    rows = dict(reliability=lambda: estimation.reliability(losses.DCL(), score_sample(), 4))
    displays = [
        (plotting.EmbeddingDisplay, _now(points=points)),
        (
            plotting.ReliabilityDisplay,
            {"reliabilities": lambda: {"DCL": rows["reliability"]()}},
        ),
        (
            plotting.RetrievalDisplay,
            _now(pictures=PICTURES, queries=[0, 1], neighbors=[[2, 3], [4, 5]]),
        ),
        (
            plotting.SearchDisplay,
            _now(
                cv_results={
                    "params": [{"a": 1}, {"a": 2}],
                    "param_a": np.array([1, 2]),
                    "mean_test_score": np.array([0.1, 0.2]),
                    "std_test_score": np.array([0.1, 0.1]),
                    "split0_test_score": np.array([0.1, 0.2]),
                    "split1_test_score": np.array([0.1, 0.2]),
                }
            ),
        ),
        (plotting.TrainingCurveDisplay, _now(histories={"a": [{"epoch": 1, "train_loss": 1.0}]})),
        (plotting.ViewsDisplay, _now(samples=h[:3], views=[h[:3]])),
    ]
    for cls, valid in displays:
        yield from _of(cls, lambda cls=cls, **kw: cls(**kw).plot(), **valid)

        def plot(cls=cls, valid=valid, **kw):
            return cls(**{name: make() for name, make in valid.items()}).plot(**kw)

        yield from _of(cls.plot, plot)
    yield from _of(
        plotting.EmbeddingDisplay.from_embeddings,
        **_now(h=h, method="pca"),
    )
    yield from _of(plotting.EmbeddingDisplay.from_estimator, estimator=fitted, **_now(X=h))
    yield from _of(
        plotting.ReliabilityDisplay.from_estimator, embedder=fitted, **_now(X=h, y=Y, n_bins=4)
    )
    yield from _of(
        plotting.ReliabilityDisplay.from_sample,
        sample=score_sample,
        **_now(losses={"DCL": losses.DCL()}, n_bins=4),
    )
    yield from _of(
        plotting.RetrievalDisplay.from_embeddings, **_now(h=h, pictures=PICTURES, n_neighbors=2)
    )
    yield from _of(
        plotting.RetrievalDisplay.from_estimator,
        estimator=fitted,
        **_now(X=h, pictures=PICTURES),
    )
    yield from _of(plotting.SearchDisplay.from_estimator, search=_search)
    yield from _of(plotting.TrainingCurveDisplay.from_estimator, estimator=fitted)
    yield from _of(plotting.ViewsDisplay.from_estimator, estimator=fitted, **_now(X=h))


@cache
def _search():
    from sklearn.model_selection import GridSearchCV

    return GridSearchCV(tiny(), {"lr": [0.1, 0.01]}, cv=2).fit(VECTORS)


def _files():
    place = pathlib.Path(tempfile.mkdtemp())
    yield from _of(skcontrast.save, embedder=fitted, **_now(path=place / "a.skc"))

    def saved():
        path = place / "b.skc"
        if not path.exists():
            skcontrast.save(fitted(), path)
        return path

    yield from _of(skcontrast.load, path=saved)
    yield from _of(skcontrast.model_card, embedder=fitted)
    yield from _of(datasets.ImageFolder, lambda **kw: datasets.ImageFolder(**kw)[0], folder=folder)
    for method in ("load", "readable"):
        function = getattr(datasets.ImageFolder, method)
        yield from _of(
            function,
            lambda method=method, **kw: getattr(datasets.ImageFolder(folder(), 8), method)(**kw),
        )
    for name in datasets.__all__:
        if name.startswith("fetch_"):
            function = getattr(datasets, name)
            some = _now(data_home=place, download_if_missing=False, n_retries=0, timeout=0.01)
            more = _now(name="MUTAG") if name == "fetch_tudataset" else {}
            yield from _of(function, delay=lambda: 0.0, **some, **more)


def _others():
    def fit(cls, **kwargs):
        return tiny(callbacks=[cls(**kwargs)], max_epochs=2).fit(VECTORS)

    yield from _of(
        callbacks.Evaluation,
        lambda **kw: fit(callbacks.Evaluation, **kw),
        **_now(scoring=metrics.make_view_scorer(metrics.alignment), X=VECTORS),
    )
    yield from _of(
        optimizers.Optimizer, lambda **kw: tiny(optimizer=optimizers.Optimizer(**kw)).fit(VECTORS)
    )


class Outcome(NamedTuple):
    """How a value was taken: "accepted", "clear", "unclear" or "endless"."""

    door: Door
    value: str
    verdict: str
    message: str


class _Endless(BaseException):
    pass


def attack(door, name, make, seconds=10):
    """Pass a value through a door and return how it was taken."""

    def stop(*_):
        raise _Endless

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        with warnings.catch_warnings(record=True):
            warnings.simplefilter("always")
            door.call(make())
        return Outcome(door, name, "accepted", "")
    except _Endless:
        return Outcome(door, name, "endless", f"more than {seconds} s")
    except Exception as error:
        verdict = "clear" if is_clear(error, door.words) else "unclear"
        return Outcome(door, name, verdict, f"{type(error).__name__}: {error}")
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


# Where scikit-learn refuses values in its own words, which name the argument.
_REFUSERS = (
    "sklearn/utils/validation.py",
    "sklearn/utils/_param_validation.py",
    "sklearn/base.py",
)
_CLEAR_TYPES = (ValueError, TypeError, NotFittedError, OSError, NotImplementedError, ImportError)


def is_clear(error, words):
    """Return whether somebody raised an error on purpose that names the argument, or a file.

    An error of the user's own code, such as that of a function in this file, is theirs.
    """
    *_, frame = _frames(error)
    file = frame.tb_frame.f_code.co_filename
    if file == __file__:
        return True
    line = linecache.getline(file, frame.tb_lineno).strip()
    ours = "/skcontrast/" in file and line.startswith("raise")
    theirs = any(file.endswith(place) for place in _REFUSERS)
    named = isinstance(error, OSError) or any(
        re.search(rf"(?<!\w){re.escape(word)}(?!\w)", str(error)) for word in words
    )
    return isinstance(error, _CLEAR_TYPES) and (ours or theirs) and named


def _frames(error):
    frame = error.__traceback__
    while frame is not None:
        yield frame
        frame = frame.tb_next


def all_cases():
    """Return every door with every value."""
    return itertools.product(doors(), bad_values().items())
