"""Every public door of the package, and values that should not get through it in silence.

A door is an argument of something public, together with a call that uses it: an object whose
parameters are checked where they are used, such as a loss, is used. Doors come from the public
names and their signatures, and values from the declared constraints; the tables hold valid
arguments by name, and what cannot be derived. test_errors.py says what is admissible.
"""

from __future__ import annotations

import inspect
import pathlib
import tempfile
import warnings
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import skorch.callbacks
import torch

import skcontrast
from skcontrast import (
    ContrastiveClassifier,
    ContrastiveEmbedder,
    LabeledFolds,
    augmentation,
    callbacks,
    contrastive_loss,
    datasets,
    encoders,
    estimation,
    features,
    frameworks,
    graphs,
    kinds,
    losses,
    metrics,
    optimizers,
    plotting,
    schedules,
    similarity,
)
from tests.bad_values import GRAPHS, LABELS, PICTURES, SERIES, VECTORS, N, Y, Z, bad_values

MODULES = (
    *(skcontrast, augmentation, callbacks, datasets, encoders, estimation, features, frameworks),
    *(graphs, kinds, losses, metrics, optimizers, plotting, schedules, similarity),
)
PAIRS = datasets.Parts(VECTORS, PICTURES)


class Door(NamedTuple):
    """An argument of something public.

    Attributes
    ----------
    name : str
        What is called.
    argument : str
        Which of its arguments receives a value.
    use : callable
        What is called, or what makes it and uses it.
    valid : dict
        Valid arguments for `use`.
    constraints : list, default=()
        What the argument has to be, where the package declares it.
    """

    name: str
    argument: str
    use: Any
    valid: dict
    constraints: Any = ()

    @property
    def words(self):
        """What a message may call the argument."""
        return self.argument, *WORDS.get(self.argument, ())

    def call(self, value):
        """Use what is called with this value, all other arguments being valid."""
        return self.use(**{**self.valid, self.argument: value})

    def __repr__(self):
        return f"{self.name}({self.argument})"


# Public names without doors: containers that hold what the package has computed and check nothing;
# parts of a custom framework, which the engine calls with what it has made; base classes, whose
# parameters are those of a class derived from them; what needs a package that tests do not have.
NO_DOORS = {
    *(
        estimation.Estimate,
        estimation.Reliability,
        metrics.PairedComparison,
        metrics.BaselineComparison,
    ),
    *(estimation.ScoreSample, augmentation.ImageSymmetries),
    *(frameworks.Batch, frameworks.Contrast, frameworks.FitContext, graphs.GraphBatch),
    *(frameworks.KeyQueue, frameworks.MomentumNetwork, frameworks.Session, frameworks.in_batch),
    *(augmentation.Augmentation, encoders.Encoder, frameworks.Framework, kinds.Kind, losses.Loss),
    *(schedules.Schedule, similarity.Similarity),
    *(features.Features, graphs.PackedGraphs, skcontrast.export),
}
# Methods that users call; the embedder's are in `_embedder`.
METHODS = (
    *("fit", "fit_transform", "transform", "augment", "build", "density", "cdf"),
    *("summary", "plot", "load", "__call__"),
)

# What messages call the samples or the embeddings, wherever they are passed.
_SAMPLES = ("X", "sample", "samples", "graph", "Graph", "Dataset", "array", "pair", "expects")
WORDS = {
    "X": _SAMPLES,
    "X1": _SAMPLES,
    "X2": _SAMPLES,
    "base": _SAMPLES,
    "parts": _SAMPLES,
    "kappa": ("view", "concentrations"),
    "loss__tau_plus": ("tau_plus",),
    "graphs": _SAMPLES,
    "batch": ("batch", "sample", "samples", "expects"),
    "z1": ("z2", "Tuples"),
    "z2": ("z1", "Tuples"),
    "views": ("view", "views", "Tuples", "y"),
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


def tiny(**kwargs):
    """Return an embedder that trains in a moment."""
    defaults = {"encoder": encoders.MLP(4), "max_epochs": 1, "device": "cpu", "random_state": 0}
    return ContrastiveEmbedder(**{**defaults, "projection_dim": 4, **kwargs})


def of_samples(X, **kwargs):
    """Return an embedder with the default encoder of some samples."""
    framework = frameworks.CMC() if X is PAIRS else None
    return tiny(encoder=None, framework=framework, **kwargs)


@cache
def fitted():
    return tiny().fit(VECTORS)


@cache
def baselines():
    return metrics.compare_with_baselines(fitted(), VECTORS, Y, n_labels=1, n_repeats=2)


@cache
def fitted_vmf():
    return tiny(similarity=similarity.VonMisesFisher()).fit(VECTORS)


@cache
def fitted_on_graphs():
    return tiny(encoder=encoders.GIN(1, 4)).fit(GRAPHS)


@cache
def score_sample():
    return estimation.ScoreSample.from_views(*Z, y=LABELS)


@cache
def folder():
    from PIL import Image

    place = pathlib.Path(tempfile.mkdtemp())
    for name in ("a", "b"):
        (place / name).mkdir()
        for k in range(3):
            Image.fromarray(np.full((8, 8, 3), 40 * k, np.uint8)).save(place / name / f"{k}.png")
    skcontrast.save(fitted(), place / "a.skc")
    return place


@cache
def batch_of(k):
    """Return what an augmentation of two of ``SAMPLES[k]`` gets."""
    seen = []

    def augment(self, batch, generator=None):
        seen.append(batch)
        return -batch if isinstance(batch, torch.Tensor) else batch

    X = SAMPLES[k]
    plain = augmentation.Augmentation, ()
    base, given = (augmentation.PerPart, [[None, None]]) if X is PAIRS else plain
    own = {"augment": augment, "kind": {id(GRAPHS): "graphs", id(SERIES): "series"}.get(id(X))}
    of_samples(X, augmentation=type("Seen", (base,), own)(*given)).views(X, rows=slice(2))
    return seen[0]


def _noise(x):
    return x + 0.1 * torch.randn(x.shape)


SAMPLES = (VECTORS, PICTURES, GRAPHS, SERIES, PAIRS)
# Valid values of arguments without a default, by name, each made when it is needed.
VALID = {
    **dict.fromkeys(("X", "X1", "h", "H", "z", "base"), lambda: VECTORS),
    **dict.fromkeys(("embedder", "estimator"), fitted),
    "comparison": baselines, "folder": folder, "sample": score_sample,
    "generator": torch.Generator, "loss": losses.DCL, "obj": losses.DCL, "chain": tuple,
    "densities": lambda: {"TN": (np.arange(3.0), np.arange(3.0))},
    "losses": lambda: {"DCL": losses.DCL()},
    "path": lambda: folder() / "a.skc",
    "ranks": lambda: np.linspace(0.05, 1, 50),
    "reliabilities": lambda: {"DCL": estimation.reliability(losses.DCL(), score_sample(), 4)},
    "scoring": lambda: metrics.make_view_scorer(metrics.alignment),
}  # fmt: skip
VALUES = {
    "a": [0.1, 0.2, 0.3], "algorithm": "adamw", "auc": 0.7, "b": [0.2, 0.2, 0.5],
    "augmentations": [augmentation.RandomFlip()], "closed": "both", "deep": encoders.MLP(4),
    "encoder": encoders.MLP(4), "network": torch.nn.Conv2d(3, 4, 3),
    "edge_index": [[0, 1], [1, 0]], "first": "DCL", "func": _noise, "graphs": GRAPHS,
    "high": 1.0, "low": 0.0, "measure": metrics.alignment, "milestones": [0.5], "name": "MUTAG",
    "neighbors": [[2, 3], [4, 5]], "node_ptr": [0, 2, 4], "parameter": "alpha",
    "pictures": PICTURES, "points": VECTORS[:, :2], "progress": 0.5, "queries": [0, 1],
    "framework": frameworks.SimCLR(), "similarity": similarity.Cosine(),
    "samples": PICTURES[:3], "second": "HCL", "shape": (1, 2, 2), "start": 0.0, "stop": 1.0,
    "tau_plus": 0.1, "values": [0.6], "views": [PICTURES[:3]], "x": [0.1], "y": Y,
    "z1": Z[0], "z2": Z[1],
}  # fmt: skip
# Less than the default, wherever an argument has this name.
SMALL = {
    "n_neighbors": 2, "n_labels": 1, "n_draws": 2, "cv": 2, "n_bins": 4, "n_candidates": 8,
    "n_anchors": 20, "n_repeats": 2, "n_positives": 2, "n_patches": 4, "data_home": "nowhere",
    "download_if_missing": False,
}  # fmt: skip
# What a callable needs besides, by its name.
ALSO = {
    "Evaluation": {"X": VECTORS},
    "EmbeddingDisplay.from_embeddings": {"method": "pca"},
    "RetrievalDisplay.from_estimator": {"pictures": PICTURES},
    "ViewsDisplay.from_estimator": {"estimator": tiny(encoder=None), "X": PICTURES},
    "PerPart": {"augmentations": [augmentation.GaussianNoise(), None]},
    "Steps": {"values": [0.1, 0.2]},
    "compose": {"sample_shape": (3, 8, 8)},
    "image_symmetries": {"X": PICTURES},
    "Pretrained": {"mean": 0.5, "std": 0.5},
    "rows_to_label": {"n": 2, "random_state": 0},
    "make_embedding_scorer": {"measure": metrics.map_at_r},
    "save": {"path": pathlib.Path(tempfile.gettempdir()) / "doors.skc"},
}
# Arguments that take any number of things.
SEVERAL = {"views": Z, "parts": (VECTORS, PICTURES)}


def _probabilistic(cls, **kwargs):
    return contrastive_loss(*((z, torch.ones(N)) for z in Z), similarity=cls(**kwargs))


def _loss(cls, **kwargs):
    return contrastive_loss(*Z, loss=cls(**kwargs), y=LABELS if cls().requires_y else None)


def _views(X, cls, **kwargs):
    return of_samples(X, augmentation=cls(**kwargs)).views(X, rows=slice(2))


def _of_kind(X, cls, **kwargs):
    return of_samples(X, kind=cls(**kwargs)).fit(X)


def _framework(X, cls, **kwargs):
    return tiny(framework=cls(**kwargs), encoder=None).fit(X)


def _features(X, cls, **kwargs):
    return cls(**kwargs).fit(X).transform(X)


def _encoder(shape, cls, **kwargs):
    return cls(**kwargs).build(shape)


_SHAPES = (4,), (3, 8, 8), (None, 3), (3, None)
DISPLAYS = [getattr(plotting, name) for name in plotting.__all__]
# How the objects of a class are used, by a base class; the first of several that works.
USES = {
    losses.Loss: [_loss],
    similarity.VonMisesFisher: [_probabilistic],
    similarity.Similarity: [
        lambda cls, **kw: contrastive_loss(*Z, similarity=cls(**kw)),
    ],
    schedules.Auto: [lambda cls, **kw: tiny(loss=losses.DCL(cls(**kw))).fit(VECTORS)],
    schedules.Schedule: [lambda cls, **kw: cls(**kw)(0.5)],
    augmentation.Augmentation: [partial(_views, X) for X in SAMPLES],
    augmentation.Unflatten: [lambda cls, **kw: cls(**kw).fit_transform(VECTORS)],
    frameworks.Framework: [partial(_framework, X) for X in SAMPLES],
    kinds.Kind: [partial(_of_kind, X) for X in (*SAMPLES, pd.DataFrame(VECTORS))],
    encoders.Encoder: [partial(_encoder, shape) for shape in _SHAPES],
    skorch.callbacks.Callback: [
        lambda cls, **kw: tiny(callbacks=[cls(**kw)], max_epochs=2).fit(VECTORS)
    ],
    features.Features: [partial(_features, X) for X in SAMPLES],
    features.PartialWhitening: [partial(_features, VECTORS)],
    optimizers.Optimizer: [lambda cls, **kw: tiny(optimizer=cls(**kw)).fit(VECTORS)],
    **{cls: [lambda cls, **kw: cls(**kw).plot()] for cls in DISPLAYS},
    datasets.ImageFolder: [lambda cls, **kw: cls(**kw)[0]],
    ContrastiveClassifier: [lambda cls, **kw: cls(**{"embedder": tiny(), **kw}).fit(VECTORS, Y)],
    LabeledFolds: [lambda cls, **kw: list(cls(**kw).split(VECTORS, Y))],
}


@cache
def use_of(cls):
    """Return the function that uses an object of a class, given the class and its arguments."""
    uses = next((uses for base, uses in USES.items() if issubclass(cls, base)), [])
    for use in uses:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                use(cls, **valid_arguments(cls.__name__, cls))
            return use
        except (ValueError, TypeError):
            continue
    assert not uses, f"no use of {cls.__name__} works with its valid arguments"
    return lambda cls, *args, **kw: cls(*args, **kw)


def _used(cls, *args, **kwargs):
    """Use an object of a class; how is found out when that is done for the first time."""
    return use_of(cls)(cls, *args, **kwargs)


def valid_arguments(name, target):
    """Return valid arguments of a callable where its defaults do not suffice."""
    parameters = named_parameters(target)
    needed = {p.name for p in parameters if p.default is p.empty}
    return {
        **{name: make() for name, make in VALID.items() if name in needed},
        **{name: value for name, value in VALUES.items() if name in needed},
        **{p.name: SMALL[p.name] for p in parameters if p.name in SMALL},
        **ALSO.get(name, {}),
    }


def named_parameters(target):
    """Return the parameters of a callable that have a name of their own."""
    every = inspect.signature(target).parameters.values()
    every = (p for p in every if p.name != "self" and p.annotation != "None")
    return [p for p in every if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]


def constraints_of(target):
    """Return what the package declares about the arguments of a callable, by name."""
    if inspect.isclass(target):
        return getattr(target, "_parameter_constraints", {})
    function = getattr(target, "__func__", target)
    return inspect.getclosurevars(function).nonlocals.get("constraints", {})


def doors():
    """Yield every door."""
    for module in MODULES:
        for name in module.__all__:
            thing = getattr(module, name)
            if inspect.isclass(thing):
                yield from _of_class(thing)
            elif inspect.isroutine(thing) and thing not in NO_DOORS:
                yield from _of(name, thing)
    yield from _of_the_embedder()
    yield from _others()


def _of_class(cls):
    """Yield the doors of a class, of its methods and of its other constructors."""
    name = cls.__name__
    if cls is ContrastiveEmbedder or issubclass(cls, Warning):
        return
    if cls not in NO_DOORS:
        yield from _of(name, cls, partial(_used, cls))
    for method in dir(cls):
        function = getattr(cls, method)
        if cls in ENGINE or not str(getattr(function, "__module__", "")).startswith("skcontrast"):
            continue
        if method.startswith("from_"):
            yield from _of(f"{name}.{method}", function)
        elif method in METHODS and (cls not in NO_DOORS or cls in MADE):
            yield from _of(f"{name}.{method}", function, partial(_called, cls, method))


# Classes whose objects are fitted before a method is called.
FITTED = (augmentation.Augmentation, features.Features, features.PartialWhitening)
# Classes whose methods are called by the engine alone, and objects that cannot be made as others.
ENGINE = (optimizers.Optimizer,)
MADE = {
    augmentation.Unflatten: lambda: augmentation.Unflatten((1, 2, 2)).fit(VECTORS),
    datasets.ImageFolder: lambda: datasets.ImageFolder(folder(), 8),
    ContrastiveClassifier: lambda: ContrastiveClassifier(tiny()).fit(VECTORS, Y),
}


def _called(cls, method, **kwargs):
    """Call a method of an object with the defaults, fitted where it can be."""
    if cls in MADE:
        return getattr(MADE[cls](), method)(**kwargs)
    thing = cls(**valid_arguments(cls.__name__, cls))
    if isinstance(thing, encoders.Encoder):
        kwargs = {"sample_shape": use_of(cls).args[0], **kwargs}
    if isinstance(thing, FITTED):
        X = use_of(cls).args[0]
        thing.fit(X)
        if kwargs.get("X") is VECTORS:
            kwargs["X"] = X
        if method == "augment":
            k = next(k for k, samples in enumerate(SAMPLES) if samples is X)
            kwargs = {"batch": batch_of(k), "generator": torch.Generator(), **kwargs}
    return getattr(thing, method)(**kwargs)


def _of(name, target, use=None, only=None, **also):
    """Yield the doors of a callable: one for each of its arguments, or for those of `only`."""
    use, valid = use or target, {**valid_arguments(name, target), **also}
    declared = constraints_of(target)
    for parameter in inspect.signature(target).parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL and parameter.name in SEVERAL:
            argument, several = parameter.name, SEVERAL[parameter.name]
            for first in (several[:1], ()):
                yield Door(name, argument, partial(_among, use, first, argument), valid)
            use = partial(use, *several)
    for parameter in named_parameters(target):
        argument = parameter.name
        if only is None or argument in only:
            yield _door(name, argument, use, valid, declared.get(argument, ()))


def _among(use, first, argument, **kwargs):
    """Pass a value after a valid one, or twice, to what takes any number of things."""
    value = kwargs.pop(argument, SEVERAL[argument][1])
    return use(*(first or (value,)), value, **kwargs)


def _door(name, argument, use, valid=None, constraints=()):
    return Door(name, argument, use, valid or {}, constraints)


def _of_the_embedder():
    """Yield the doors of the embedder, with several kinds of samples, and of its methods."""

    def fit(encoder, X, **kwargs):
        return tiny(**{"encoder": encoder, **kwargs}).fit(X)

    def fit_pairs(X):
        return tiny(framework=frameworks.CMC()).fit(X)

    for of, encoder, X in (
        ("", encoders.MLP(4), VECTORS),
        (" of images", None, PICTURES),
        (" of graphs", encoders.GIN(1, 4), GRAPHS),
    ):
        name = f"ContrastiveEmbedder{of}"
        yield from _of(name, ContrastiveEmbedder, partial(fit, encoder, X))
    for method in ("fit", "partial_fit"):
        for argument in ("X", "y", "sample_weight"):

            def call(method=method, argument=argument, **given):
                loss = losses.SupCon() if argument == "y" else None
                return getattr(tiny(loss=loss), method)(**{"X": VECTORS, **given})

            yield _door(f"ContrastiveEmbedder.{method}", argument, call)
    for kind in ("vectors", "tables", "images", "graphs"):
        yield _door(f"fit of {kind}", "X", tiny(kind=kind, encoder=None).fit)
    yield _door("fit of pairs", "X", fit_pairs)
    yield _door("fit of a pair", "X", lambda X: fit_pairs((VECTORS, X)))
    for model in (fitted, fitted_on_graphs):
        for method in ("transform", "score", "views"):
            yield _door(f"{model.__name__}.{method}", "X", getattr(model(), method))
    for model, methods in ((fitted, ["views"]), (fitted_vmf, PROBABILISTIC)):
        for method in methods:
            function = getattr(model(), method)
            yield from _of(f"ContrastiveEmbedder.{method}", function)

    def set_params(loss__tau_plus):
        return tiny(loss=losses.DCL()).set_params(loss__tau_plus=loss__tau_plus).fit(VECTORS)

    yield _door("ContrastiveEmbedder.set_params", "loss__tau_plus", set_params)


PROBABILISTIC = ["log_score", "concentration"]


def _others():
    """Yield doors that no signature shows."""
    supervised = {"loss": losses.Supervised(), "y": LABELS}
    queued = {**supervised, "queue": Z[0], "queue_y": LABELS}
    vmf = similarity.VonMisesFisher()
    loss = partial(contrastive_loss, *Z)
    yield _door("contrastive_loss with a queue", "queue_y", loss, queued)
    yield _door("contrastive_loss of classes", "y", loss, supervised)
    yield _door(
        "contrastive_loss of distributions",
        "kappa",
        lambda kappa: contrastive_loss(*((z, kappa) for z in Z), similarity=vmf),
    )
    yield from _of("BCL in fit", losses.BCL, lambda **kw: tiny(loss=losses.BCL(**kw)).fit(VECTORS))
    for name in metrics.__all__:
        function = getattr(metrics, name)
        if "H_test" in inspect.signature(function).parameters:
            test = {"H_test": VECTORS, "y_test": Y}
            yield from _of(f"{name} with a test part", function, only=test, **test)


def cases():
    """Yield every door with the name of every value and the function that makes it."""
    for door in doors():
        for case in bad_values(door.constraints).items():
            yield door, case
