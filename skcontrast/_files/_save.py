"""``save`` and ``load``: what is fitted as one safetensors file, whose header is JSON."""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping
from dataclasses import fields
from numbers import Integral
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

import numpy as np
import torch
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from .._checks import Interval, checked
from .._runtime._device import resolve_device
from .._storage._file import (
    MALFORMED,
    file_path,
    pack,
    problem_in,
    read_file,
    replace_file,
    unpack,
    without_batches,
)
from .._storage._values import Reader, Writer
from .._version import versions
from ..classifier import ContrastiveClassifier
from ..embedder import ContrastiveEmbedder
from ..kinds._base import Kind
from ._classes import LINEAR, classes

if TYPE_CHECKING:
    from .._fit._setup import Fitted, Setup

# Raised when a change makes older versions misread the files of this one.
FORMAT = 1
_HEADER = "skcontrast"
_FIELDS = {
    "format", "versions", "class", "parameters", "fitted", "output", "classifier", "own",
    "outputs",
}  # fmt: skip
_PACKAGES = ("skcontrast", "torch", "numpy", "scikit-learn", "skorch")
# What annotations mean in a file.
_WIDER: dict[Any, Any] = {Any: object, float: (int, float)}
# What a file has of a fit besides its setup; the rest is needed to train on, or about its end.
_OF_A_FIT = ("history", "estimates", "n_samples")
# What set_output leaves in an estimator.
_OUTPUTS = (None, "default", "pandas", "polars")
# Numbers in one sample, of which networks are tried on two.
_LARGEST_SAMPLE = 2**28
# Parameters that belong to one run of one program.
_NOT_SAVED = ("callbacks", "checkpoint", "n_workers")
# Suffixes that promise a different format.
_OTHER_FORMATS = (".joblib", ".npz", ".onnx", ".pickle", ".pkl", ".pt", ".pt2", ".pth", ".skops")
# What a path may be.
_PATH = [str, os.PathLike]
# What a device may be.
_DEVICE = [str, torch.device, Interval(Integral, 0, None, closed="left"), None]


def check_model(model: Any, function: str) -> None:
    """Raise an error for what is neither a fitted embedder nor a fitted classifier."""
    if not isinstance(model, (ContrastiveEmbedder, ContrastiveClassifier)):
        raise TypeError(
            f"{function} writes a ContrastiveEmbedder or a ContrastiveClassifier, got "
            f"{type(model).__name__}. Of a Pipeline, {function} the embedder, and keep the other "
            "steps with joblib or skops."
        )
    check_is_fitted(model)


@checked(path=_PATH)
def save(embedder: ContrastiveEmbedder | ContrastiveClassifier, path: str | os.PathLike) -> None:
    """Write a fitted embedder or classifier to a file that runs no code when it is loaded.

    Numbers are stored as safetensors; parameters, shapes, history and versions as JSON in the
    header of the same file. Whatever is not a class of skcontrast, a layer or an optimizer of
    torch is stored by its name and must be passed to :func:`load`: of a custom module the file has
    the ``state_dict``, of a custom loss, augmentation or the like its parameters, and of a
    function only the name. The file is written under a temporary name and then moved to its place,
    so that a file that was there is kept if anything fails.

    Parameters
    ----------
    embedder : ContrastiveEmbedder or ContrastiveClassifier
        A fitted embedder; or a fitted classifier whose `classifier_` is a ``LogisticRegression``
        or ``LinearSVC``.
    path : str or path-like
        Where to write, usually ``NAME.safetensors``. A file that is there is replaced.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        If the embedder is not fitted.
    OSError
        If the file cannot be written.
    TypeError
        If the embedder holds something that cannot be written, such as a layer of torch with a
        hook or a parametrization (``weight_norm``), or a different classifier.
    ValueError
        If `path` does not name a file, or everything except arrays, such as the history, takes
        more than 16 MiB as JSON.

    See Also
    --------
    load : Reads the file.

    Notes
    -----
    The file is for inference: it has no state of the optimizer and of the framework, and not the
    training samples that an augmentation holds, such as the up to 10,000 of
    :class:`~skcontrast.augmentation.MarginalCorruption`, the default for vectors. Training a
    loaded embedder further, by `partial_fit` or with ``warm_start=True``, continues with its
    network, history and number of epochs, but with a fresh optimizer and an empty memory of the
    framework, such as the queue of ``MoCo``. To continue an unfinished fit exactly, use the
    parameter `checkpoint` of the embedder.

    `callbacks`, `checkpoint` and `n_workers` are not saved, and a `random_state` only if it is an
    int.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import skcontrast
    >>> X = np.random.default_rng(0).normal(size=(40, 5))
    >>> embedder = skcontrast.ContrastiveEmbedder(max_epochs=1, random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     skcontrast.save(embedder, f"{folder}/embedder.safetensors")
    ...     loaded = skcontrast.load(f"{folder}/embedder.safetensors")
    >>> np.array_equal(loaded.transform(X), embedder.transform(X))
    True
    """
    check_model(embedder, "save")
    place = file_path(path, "save")
    if place.suffix in _OTHER_FORMATS:
        raise ValueError(
            f"save writes safetensors, but path ends in {place.suffix!r}: end it in .safetensors. "
            "Pickles are written by joblib.dump, .onnx and .pt2 by skcontrast.export."
        )
    writer = Writer(classes())
    model = _model(embedder) if isinstance(embedder, ContrastiveClassifier) else None
    if isinstance(embedder, ContrastiveClassifier):
        embedder = embedder.embedder_
    given = embedder.get_params(deep=False).items()
    parameters = {key: value for key, value in given if key not in _NOT_SAVED}
    if not isinstance(parameters.get("random_state", 0), Integral):
        parameters["random_state"] = None
    if isinstance(parameters.get("device"), torch.device):
        parameters["device"] = str(parameters["device"])
    fitted = embedder._fitted.on_cpu()
    content = {
        "format": FORMAT,
        "versions": versions(_PACKAGES),
        "class": writer.write(type(embedder), "class"),
        "parameters": writer.write(parameters, "parameters"),
        "fitted": writer.write(_inference_parts(fitted), "fitted"),
        "output": _output(embedder),
        "classifier": writer.write(model, "classifier"),
        "own": writer.own,
    }
    # What a custom network returns, to notice a different one.
    outputs = _outputs(fitted.setup, "cpu") if writer.own else None
    content["outputs"] = writer.write(outputs, "outputs")
    replace_file(place, pack(content, writer.tensors, _HEADER))


@checked(path=_PATH, own=[Mapping, None], device=_DEVICE)
def load(
    path: str | os.PathLike,
    *,
    own: Mapping[str, Any] | None = None,
    device: str | int | torch.device | None = None,
) -> Any:
    """Read a fitted embedder or classifier from a file that :func:`save` has written.

    Nothing in the file is executed: it can only name classes of skcontrast, layers and optimizers
    of torch, and what you pass as `own`. So files of strangers can be opened.

    Parameters
    ----------
    path : str or path-like
        The file.
    own : dict of str to object, default=None
        The objects that the file names but does not hold, by these names. For a module, pass an
        object of its class; in a copy of it, the weights are replaced by those of the file, whose
        names, shapes and dtypes must be the same. For a loss, an augmentation or another object
        with parameters, pass an object of its class; a copy gets the parameters of the file.
        Functions and classes are taken as they are. The second object of a class has the name
        ``"mymodule.Block#2"``, and so on. Without `own`, the error says which names are expected,
        and where each is used.
    device : str, int or torch.device, default=None
        The parameter `device` of the embedder; None takes that of the file.

    Returns
    -------
    embedder : ContrastiveEmbedder or ContrastiveClassifier
        Its embeddings and predictions equal those of what was saved.

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        If it was not written by :func:`save`, is damaged or comes from a later format, if
        something is missing in `own` or differs, if a custom network does not return what it
        returned in `save`, or if `device` is not available.

    See Also
    --------
    save : Writes the file, and has an example.

    Examples
    --------
    A custom network is named in the file and passed:

    >>> import tempfile
    >>> import numpy as np
    >>> import skcontrast
    >>> from torch import nn
    >>> class Net(nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.linear = nn.Linear(5, 3)
    ...
    ...     def forward(self, x):
    ...         return self.linear(x)
    >>> X = np.random.default_rng(0).normal(size=(40, 5))
    >>> embedder = skcontrast.ContrastiveEmbedder(Net(), max_epochs=1, random_state=0).fit(X)
    >>> name = f"{Net.__module__}.Net"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     skcontrast.save(embedder, f"{folder}/embedder.safetensors")
    ...     loaded = skcontrast.load(f"{folder}/embedder.safetensors", own={name: Net()})
    >>> np.array_equal(loaded.transform(X), embedder.transform(X))
    True
    """
    if device is not None:
        resolve_device(device, "load")
    content, tensors = _read(file_path(path, "load"))
    own = {} if own is None else dict(own)
    if missing := sorted(content["own"].keys() - own.keys()):
        expected = ", ".join(f"{name!r}: ..." for name in missing)
        places = ", ".join(f"{name} at {content['own'][name]}" for name in missing)
        raise ValueError(
            f"{path} names something that it does not hold, {places}: pass "
            f"load(path, own={{{expected}}})."
        )
    # Whatever fails from here on is a fault of the file, also within classes that it names.
    reader = Reader(classes(), tensors, own)
    try:
        parameters, fitted = reader.read(content["parameters"]), reader.read(content["fitted"])
        embedder = _embedder(reader.read(content["class"]), parameters, fitted)
        _check_network(embedder._fitted.setup, reader.read(content["outputs"]), not content["own"])
        _set_output(embedder, content["output"])
        if device is not None:
            embedder.set_params(device=device)
        if content["classifier"] is not None:
            return _classifier(embedder, reader.read(content["classifier"]))
    except MALFORMED as error:
        raise ValueError(f"{path} cannot be loaded: {problem_in(error)}.") from error
    return embedder


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return the header and the tensors of a file."""
    try:
        content, tensors = unpack(read_file(path), _HEADER, FORMAT, _FIELDS)
        own = content["own"]
        if not isinstance(own, dict) or not all(isinstance(place, str) for place in own.values()):
            raise ValueError("its field 'own' does not say where its names are used")
        return content, tensors
    except MALFORMED as error:
        raise ValueError(f"{path} cannot be loaded: {problem_in(error)}.") from error


def _output(estimator: Any) -> str | None:
    """Return what set_output has left in an estimator."""
    return getattr(estimator, "_sklearn_output_config", {}).get("transform")


def _set_output(estimator: Any, output: str | None) -> Any:
    """Return an estimator after set_output, or raise ValueError for what it does not know."""
    if output not in _OUTPUTS:
        raise ValueError(f"its field 'output' is {str(output)[:60]}")
    return estimator.set_output(transform=output)


def _inference_parts(fitted: Fitted) -> dict[str, Any]:
    """Return what inference needs, by name; the history without its batches.

    The order is that of the parameters, so that custom objects have the same names in both.
    """
    alike = {"network": "encoder", "schema": "kind"}
    parts = vars(fitted.setup) | {name: getattr(fitted, name) for name in _OF_A_FIT}
    parts["history"] = without_batches(fitted.history)
    return dict(sorted(parts.items(), key=lambda item: alike.get(item[0], item[0])))


def _model(model: ContrastiveClassifier) -> dict[str, Any]:
    """Return what a classifier has besides its embedder."""
    if type(model.classifier_) not in LINEAR:
        raise TypeError(
            "save writes a classifier whose classifier_ is a LogisticRegression or a LinearSVC, "
            f"got {model.classifier_!r}. Save its embedder_, and the rest with joblib or skops."
        )
    given, seed = model.get_params(deep=False), model.random_state
    given["random_state"] = int(seed) if isinstance(seed, Integral) else None
    if model.embedder is not None:  # for which embedder_ stands, as it is or to be trained
        is_used = getattr(model.embedder, "estimator", model.embedder) is model.embedder_
        given["embedder"] = "fitted" if is_used else "trained"
    parts = {"parameters": given, "scaler": model.scaler_, "fitted": model.classifier_}
    return parts | {"output": _output(model)}


def _classifier(embedder: ContrastiveEmbedder, parts: dict[str, Any]) -> ContrastiveClassifier:
    """Return a classifier from what is read of a file."""
    parameters, scaler, fitted = parts["parameters"], parts["scaler"], parts["fitted"]
    if type(scaler) is not StandardScaler or type(fitted) not in LINEAR:
        raise ValueError("its scaler or classifier has a wrong type")
    made = {"fitted": FrozenEstimator, "trained": clone, None: lambda embedder: None}
    embedders = {"embedder": made[parameters["embedder"]](embedder)}
    model = ContrastiveClassifier(**{**parameters, **embedders})
    _set_output(model, parts["output"])
    model.embedder_, model.scaler_, model.classifier_ = embedder, scaler, fitted
    model.classes_ = fitted.classes_
    scores = fitted.decision_function(scaler.transform(np.zeros((1, embedder._n_features_out))))
    if scores.size != (1 if len(model.classes_) == 2 else len(model.classes_)):
        raise ValueError("its classifier does not score its classes")
    return model


def _embedder(cls: type, parameters: dict[str, Any], parts: dict[str, Any]) -> ContrastiveEmbedder:
    """Return an embedder with parameters and all that inference needs."""
    if not (issubclass(cls, ContrastiveEmbedder) and isinstance(parts, dict)):
        raise ValueError("it holds no fitted embedder")
    if of_a_run := sorted(parameters.keys() & set(_NOT_SAVED)):
        raise ValueError(f"it sets {', '.join(of_a_run)}, which a file must not set")
    from skorch.history import History

    from .._fit._setup import Fitted, Setup

    of_setup = [field.name for field in fields(Setup)]
    if wrong := sorted(parts.keys() ^ {*of_setup, *_OF_A_FIT}):
        raise ValueError(f"its fitted parts lack or have unknown {', '.join(wrong)}")
    parts = {**parts, "history": History(parts["history"])}
    # A class that a file may name is not yet one that belongs in this place.
    hints = {**get_type_hints(Setup), **get_type_hints(Fitted)}
    for name, value in parts.items():
        _check_type(name, value, hints[name])
    _check_type("schema", parts["schema"].kind, Kind)
    _check_type("history", list(parts["history"]), list[dict])
    setup = Setup(**{name: parts[name] for name in of_setup})
    return cls(**parameters)._adopt(Fitted(setup, **{name: parts[name] for name in _OF_A_FIT}))


def _check_type(name: str, value: Any, hint: Any) -> None:
    """Raise ValueError unless a part is what an annotation says, with all that it holds."""
    if get_origin(hint) is UnionType:  # of something and None
        hint = NoneType if value is None else get_args(hint)[0]
    kind, of = _WIDER.get(hint, get_origin(hint) or hint), get_args(hint)
    if not isinstance(value, kind):
        raise ValueError(f"its {name} is or holds a {type(value).__name__}")
    held: Any = value.values() if kind is dict else value
    for item in held if of else ():
        _check_type(name, item, of[kind is dict])


def _check_network(setup: Setup, before: Any, is_ours: bool) -> None:
    """Raise ValueError if the network does not map samples to embeddings of its widths.

    If all of the network is of skcontrast or torch, it is tried without numbers, so that no layer
    of a stranger's takes memory. A custom network must return what it returned in `save`.
    """
    widths, shape = setup.widths, setup.schema.sample_shape
    if not setup.schema.kind.float_batches:
        return
    # Of our own classes the shapes are enough, on the meta device, where nothing is computed. What
    # was passed as own runs, and its outputs are compared with those in the file.
    try:
        with torch.device("meta"):
            size = setup.schema.kind._example_batch(shape)[0].numel() if len(shape) <= 3 else 0
        if not 0 < size <= _LARGEST_SAMPLE:
            raise ValueError(f"its samples have the shape {shape[:4]}")
        outputs = _outputs(setup, "meta" if is_ours else "cpu")
    except Exception as error:
        raise ValueError(f"its network does not work, {problem_in(error)}") from error
    shapes = tuple(tuple(output.shape) for output in outputs)
    extra = widths.n_parts * setup.similarity.n_extra
    expected = (2, widths.representation), (2, widths.projection + extra)
    if shapes != expected:
        raise ValueError(f"its network returns shapes {shapes} instead of {expected}")
    if not is_ours and not all(map(_are_close, outputs, before)):
        raise ValueError(
            "its network returns different embeddings than when it was saved: what was passed as "
            "own differs in an attribute or in code"
        )


@torch.inference_mode()
def _outputs(setup: Setup, device: str) -> list[Tensor]:
    """Return representation and projection of two samples; of kinds other than arrays nothing."""
    network, kind = setup.network, setup.schema.kind
    if not kind.float_batches:
        return []
    if device == "meta":
        tensors = [*network.parameters(), *network.buffers()]
        network = copy.deepcopy(network, {id(tensor): tensor.to(device) for tensor in tensors})
    with torch.device(device):
        zeros = kind._example_batch(setup.schema.sample_shape)
        h = network.encoder(torch.linspace(0, 0.9, zeros.numel()).reshape(zeros.shape))
        return [h, network.projector(h)]


def _are_close(output: Tensor, before: Any) -> bool:
    """Return whether an output equals that of `save` up to rounding on a different machine."""
    scale = float(before.abs().max())
    return torch.allclose(output, before, rtol=1e-3, atol=1e-3 * scale, equal_nan=True)
