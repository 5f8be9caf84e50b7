"""``save`` and ``load``: fitted models in safetensors files with a header of JSON."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator, Mapping
from copy import copy
from functools import cache
from importlib import import_module
from numbers import Integral
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

import torch
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.validation import check_is_fitted
from torch import nn

from .._group_whitening import GroupWhitening
from .._model._model import Model
from .._runtime import guarded, resolve_device
from .._safetensors import MALFORMED, pack, problem_in, read_file, replace_file
from .._version import versions
from .._whitening import ViewWhitening
from ..classifier import ContrastiveClassifier
from ..embedder import ContrastiveEmbedder
from ..features import Features
from ..metrics import EstimatedAccuracy, GroupAgreement
from ..metrics._scorers import thawed
from ._values import Reader, Writer

# Increased when other versions would misread the files of this one.
_FORMAT = 1
_HEADER = "skcontrast"
_VERSIONED = ("skcontrast", "torch", "numpy", "scikit-learn", "skorch")
# Parameters that only concern the running program.
_NOT_SAVED = ("callbacks", "checkpoint", "n_workers")
# Linear classifiers of scikit-learn, whose fitted state is a few arrays.
LINEAR = (LinearSVC, LogisticRegression)
# A fitted embedder consists of objects of their classes.
_PACKAGES_OF_CLASSES = (
    "_layers", "_model._network", "augmentation", "encoders", "features", "frameworks", "graphs",
    "kinds", "losses", "optimizers", "schedules", "similarity", "_group_whitening", "_whitening",
)  # fmt: skip
# Packages of torch and base classes; nn.modules.linear has a class that attention uses.
_TORCH_PACKAGES = (
    (nn.modules, nn.Module), (torch.optim, torch.optim.Optimizer), (nn.modules.linear, nn.Linear),
)  # fmt: skip
# They hold weak references to their weights, which cannot be written.
_RECURRENT = (nn.RNNBase, nn.RNNCellBase)


def check_model(model: Any, function: str) -> None:
    """Raise an error unless the model is a fitted embedder or a fitted classifier."""
    if not isinstance(model, (ContrastiveEmbedder, ContrastiveClassifier)):
        models = "an embedder or a classifier"
        models += ", features, a GroupWhitening or a ViewWhitening" if function == "save" else ""
        raise TypeError(
            f"{function} writes {models} of skcontrast, got {type(model).__name__}. From a "
            f"Pipeline, {function} the embedder, pipe.named_steps[name]; with its classifier, fit "
            "a ContrastiveClassifier(embedder, classifier)."
        )
    check_is_fitted(model)


def _check_features(features: Any) -> None:
    """Raise an error for features that are not fitted or not of the package."""
    check_is_fitted(features)
    inner = thawed(getattr(features, "transformer_", None) or features)
    if not isinstance(inner, (Features, GroupWhitening)) or type(inner) not in classes().values():
        raise TypeError(
            f"save writes features of skcontrast.features, got {inner!r}. Save others with joblib "
            "or skops."
        )


@guarded()
def save(
    embedder: ContrastiveEmbedder
    | ContrastiveClassifier
    | Features
    | GroupWhitening
    | ViewWhitening,
    path: str | os.PathLike,
) -> None:
    """Write a fitted model to a file that runs no code when it is loaded.

    Numbers are stored as safetensors; parameters, shapes, history and versions as JSON in the
    header of the same file. Custom objects, which are neither classes of skcontrast nor layers or
    optimizers of torch, are stored by their names and must be passed to :func:`load`: for a
    custom module, the file contains the ``state_dict``; for a custom loss, augmentation or other
    object, its parameters; for a function, only the name. An existing file is kept if saving
    fails.

    Parameters
    ----------
    embedder : ContrastiveEmbedder, ContrastiveClassifier, Features, GroupWhitening or \
            ViewWhitening
        The fitted model. The `classifier_` of a classifier must be a ``LogisticRegression`` or a
        ``LinearSVC``; features and an embedder may be whitened.
    path : str or path-like
        The file to write, usually ``NAME.safetensors``. An existing file is replaced.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        If the model is not fitted.
    OSError
        If the file cannot be written.
    TypeError
        If the model holds something that cannot be written, such as a lazy layer without weights
        or another classifier.

    See Also
    --------
    load : Reads the file.

    Notes
    -----
    The file is for inference: it contains neither the state of the optimizer and of the framework
    nor the training samples of an augmentation, such as the up to 10,000 of
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
    if isinstance(embedder, (str, os.PathLike)):
        raise TypeError("save takes the model first: save(embedder, path).")
    target, embedder = Path(path), thawed(embedder)
    writer = Writer(classes())
    content = {"format": _FORMAT, "versions": versions(_VERSIONED)}
    model = thawed(getattr(embedder, "transformer_", None) or embedder)
    if isinstance(model, (Features, GroupWhitening, ViewWhitening)):
        _check_features(embedder)
        content["features"] = writer.write(embedder, "features")
    else:
        check_model(model, "save")
        content |= _model_content(model, writer)
        if model is not embedder:
            whitening = copy(embedder)
            whitening.transformer = whitening.transformer_ = None
            content["whitening"] = writer.write(whitening, "whitening")
    content["custom_objects"] = writer.custom
    replace_file(target, pack(content, writer.tensors, _HEADER))


def _model_content(embedder: Any, writer: Writer) -> dict[str, Any]:
    """Return the content of the file for an embedder, or for a classifier with its embedder."""
    model = _classifier_content(embedder) if isinstance(embedder, ContrastiveClassifier) else None
    if isinstance(embedder, ContrastiveClassifier):
        embedder = embedder.embedder_
    parameters = embedder.get_params(deep=False)
    parameters = {key: value for key, value in parameters.items() if key not in _NOT_SAVED}
    if not isinstance(parameters.get("random_state", 0), Integral):
        parameters["random_state"] = None
    if isinstance(parameters.get("device"), torch.device):
        parameters["device"] = str(parameters["device"])
    return {
        "class": writer.write(type(embedder), "class"),
        "parameters": writer.write(parameters, "parameters"),
        "fitted": writer.write(_attributes(embedder._model.on_cpu()), "fitted"),
        "output": _output_config(embedder),
        "classifier": writer.write(model, "classifier"),
    }


@guarded()
def load(
    path: str | os.PathLike,
    *,
    custom_objects: Mapping[str, Any] | None = None,
    device: str | int | torch.device | None = None,
) -> Any:
    """Read a fitted model from a file that :func:`save` has written.

    Nothing in the file is executed: it can only name classes of skcontrast, layers and optimizers
    of torch, networks of timm and transformers, and what you pass as `custom_objects`. So it is
    safe to open files that you do not trust.

    Parameters
    ----------
    path : str or path-like
        The file.
    custom_objects : dict of str to object, default=None
        The objects that the file names but does not contain, by name. For a module, pass an object
        of its class; a copy of it gets the weights of the file, whose names and shapes must match.
        For a loss, an augmentation or another object with parameters, pass an object of its class;
        a copy gets the parameters of the file. Functions and classes are used unchanged. The
        second object of a class has the name ``"mymodule.Block#2"``, and so on. If an object is
        missing, the error lists the names, and where each is used.
    device : str, int or torch.device, default=None
        The parameter `device` of the embedder; None takes that of the file.

    Returns
    -------
    model : ContrastiveEmbedder, ContrastiveClassifier, Features, GroupWhitening or ViewWhitening
        The model, with the same output as the saved one.

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        If the file was not written by :func:`save`, is damaged or has another format, if an object
        is missing in `custom_objects` or differs in its weights or parameters, or if `device` is
        not available.

    See Also
    --------
    save : Writes the file.

    Examples
    --------
    Pass a custom network:

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
    >>> custom_objects = {f"{Net.__module__}.Net": Net()}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = f"{folder}/embedder.safetensors"
    ...     skcontrast.save(embedder, path)
    ...     loaded = skcontrast.load(path, custom_objects=custom_objects)
    >>> np.array_equal(loaded.transform(X), embedder.transform(X))
    True
    """
    if device is not None:
        resolve_device(device, "load")
    custom = dict(custom_objects or {})
    # Any error here is due to the file, or to the objects that were passed.
    try:
        content, tensors = read_file(Path(path), _HEADER)
        if content["format"] != _FORMAT:
            raise ValueError(
                f"its format is {content['format']}, of skcontrast "
                f"{content['versions']['skcontrast']}, and this version reads {_FORMAT}"
            )
        if missing := sorted(content["custom_objects"].keys() - custom.keys()):
            expected = ", ".join(f"{name!r}: ..." for name in missing)
            where = ", ".join(f"{name} at {content['custom_objects'][name]}" for name in missing)
            raise ValueError(
                f"it names custom objects, {where}. Pass them: "
                f"load(path, custom_objects={{{expected}}})"
            )
        reader = Reader(classes(), tensors, custom)
        if "features" in content:
            return reader.read(content["features"])
        model = _model(content, reader, device)
        if "whitening" not in content:
            return model
        whitening = reader.read(content["whitening"])
        whitening.transformer = whitening.transformer_ = FrozenEstimator(model)
        return whitening
    except MALFORMED as error:
        raise ValueError(f"{path} cannot be loaded: {problem_in(error)}.") from error


def _model(content: dict[str, Any], reader: Reader, device: Any) -> Any:
    """Return an embedder, or a classifier with its embedder, from the content of a file."""
    parameters, fitted = reader.read(content["parameters"]), reader.read(content["fitted"])
    embedder = reader.read(content["class"])(**parameters)._adopt(Model(**fitted))
    embedder.set_output(transform=content["output"])
    if device is not None:
        embedder.set_params(device=device)
    if content["classifier"] is None:
        return embedder
    return _classifier(embedder, reader.read(content["classifier"]))


def _output_config(estimator: Any) -> str | None:
    """Return the setting that set_output has stored in an estimator."""
    return getattr(estimator, "_sklearn_output_config", {}).get("transform")


def _attributes(model: Model) -> dict[str, Any]:
    """Return the attributes of a model by name.

    They are in the order of the parameters, so that custom objects have the same names in both.
    """
    sort_names = {"network": "encoder", "schema": "kind"}
    return dict(sorted(vars(model).items(), key=lambda item: sort_names.get(item[0], item[0])))


def _classifier_content(model: ContrastiveClassifier) -> dict[str, Any]:
    """Return the content of the file for a classifier, without its embedder."""
    if type(model.classifier_) not in LINEAR:
        raise TypeError(
            "save supports a classifier_ that is a LogisticRegression or a LinearSVC, "
            f"got {model.classifier_!r}. Save its embedder_, and the rest with joblib or skops."
        )
    parameters, seed = model.get_params(deep=False), model.random_state
    parameters["random_state"] = int(seed) if isinstance(seed, Integral) else None
    if model.embedder is not None:  # `embedder_` is saved in its place
        is_used = getattr(model.embedder, "estimator", model.embedder) is model.embedder_
        parameters["embedder"] = "fitted" if is_used else "trained"
    if model.blocks is not None:
        parameters["blocks"] = []  # `load` clones the fitted blocks
    for transformer in model.transformers_:
        _check_features(transformer)
    content = {"parameters": parameters, "scaler": model.scaler_, "fitted": model.classifier_}
    blocks = {"blocks": model.blocks_, "transformers": model.transformers_}
    estimate = model.accuracy_ and list(model.accuracy_)
    content |= {"accuracy": estimate, "temperature": model.temperature_}
    content["agreement"] = model.group_agreement_ and list(model.group_agreement_)
    return content | blocks | {"output": _output_config(model)}


def _classifier(embedder: ContrastiveEmbedder, content: dict[str, Any]) -> ContrastiveClassifier:
    """Return a classifier from the content of a file."""
    parameters, fitted = content["parameters"], content["fitted"]
    embedder_factories = {"fitted": FrozenEstimator, "trained": clone, None: lambda embedder: None}
    parameters["embedder"] = embedder_factories[parameters["embedder"]](embedder)
    model = ContrastiveClassifier(**parameters)
    model.set_output(transform=content["output"])
    model.embedder_, model.scaler_, model.classifier_ = embedder, content["scaler"], fitted
    model.blocks_, model.transformers_ = content["blocks"], content["transformers"]
    if model.blocks is not None:
        model.blocks = [clone(transformer) for transformer in model.transformers_]
    model.classes_, model.uncertainty_ = fitted.classes_, None
    # Older files have none of these.
    estimate, model.temperature_ = content.get("accuracy"), content.get("temperature", 1.0)
    model.accuracy_ = estimate and EstimatedAccuracy(*estimate)
    agreement = content.get("agreement")
    model.group_agreement_ = agreement and GroupAgreement(*agreement)
    return model


# Names of classes in files do not depend on modules.
@cache
def classes() -> dict[str, type]:
    """Return the classes that a file may name, by name."""
    own_classes = [cls for module in _modules() for cls in _defined_in(module)]
    torch_classes = [
        cls
        for package, base in _TORCH_PACKAGES
        for _, cls in inspect.getmembers(package, inspect.isclass)
        if issubclass(cls, base) and not issubclass(cls, _RECURRENT)
    ]
    named = (ContrastiveEmbedder, FrozenEstimator, StandardScaler, *LINEAR, *own_classes)
    by_name = {cls.__name__: cls for cls in named}
    return by_name | {f"torch.{cls.__name__}": cls for cls in torch_classes}


def _modules() -> Iterator[ModuleType]:
    """Yield the packages and their modules."""
    for name in _PACKAGES_OF_CLASSES:
        package = import_module(f"skcontrast.{name}")
        yield package
        for module in iter_modules(getattr(package, "__path__", ()), f"skcontrast.{name}."):
            yield import_module(module.name)


def _defined_in(module: ModuleType) -> list[type]:
    members = inspect.getmembers(module, inspect.isclass)
    return [cls for _, cls in members if cls.__module__ == module.__name__]
