"""What must hold for every fit, whatever it is given.

- It ends with a finite embedding or with a clear error: a ValueError or TypeError that a line of
  skcontrast or of scikit-learn's validation has raised on purpose, and whose message names a
  parameter or an array of the call.
- The same seed gives the same bits.
- X, y, the parameters and the state of the program, such as global generators, stay as they were.
- Warnings are issued on purpose too, at the line of the caller.
- A call that fails leaves a fitted embedder as it was.
"""

from __future__ import annotations

import inspect
import pickle
import random
import re
import tempfile
import traceback
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import sklearn
import torch
from sklearn.base import clone
from torch.utils.data import TensorDataset

import skcontrast
from skcontrast import ContrastiveEmbedder
from skcontrast.augmentation import Augmentation
from skcontrast.encoders import Encoder
from skcontrast.frameworks import Framework
from skcontrast.graphs import PackedGraphs
from skcontrast.losses import Loss
from skcontrast.similarity import Similarity
from tests.fuzz import fit_cases
from tests.fuzz.fit_cases import make_embedder, make_labels, make_samples, make_weights, simpler

# Files whose lines raise errors on purpose.
_ON_PURPOSE = (
    str(Path(skcontrast.__file__).parent),
    str(Path(sklearn.__file__).parent / "utils"),
    fit_cases.__file__,
)
# What scikit-learn's estimator checks require to be said of X in these words.
_OF_SKLEARN = re.compile(
    r"Found array with \d+ (sample|feature)\(s\) .*required by \w+\.$|Complex data not supported"
)


def _names() -> set[str]:
    """Return the names of all parameters, and of the classes that are passed as such."""
    classes = [ContrastiveEmbedder]
    for base in (Loss, Framework, Similarity, Encoder, Augmentation):
        package = import_module(base.__module__.rpartition(".")[0])
        classes += [c for c in vars(package).values() if inspect.isclass(c)]
    found = {name for c in classes for name in getattr(c, "_get_param_names", list)()}
    return found | {c.__name__ for c in classes[1:]} | {fit_cases.OwnNetwork.__name__}


_NAMES = _names()


class Broken(AssertionError):
    """A law does not hold."""


def is_clear(error: BaseException) -> bool:
    """Return whether an error was raised on purpose, and names a parameter or an array."""
    if not isinstance(error, (ValueError, TypeError)):
        return False
    innermost = traceback.extract_tb(error.__traceback__)[-1].filename
    return innermost.startswith(_ON_PURPOSE) and names_something(str(error))


def names_something(message: str) -> bool:
    """Return whether a message names an array, or a parameter or what was passed as one.

    A parameter stands in quotes, as name=value or as parameters.name. What was passed is named by
    its class.
    """
    if _OF_SKLEARN.match(message):
        return True
    words = re.findall(r"(?<![\w'])(X|y|sample_weight|descriptions)(?![\w'])", message)
    found = re.findall(r"'(\w+)'|\b(\w+)=|\bparameters\.(\w+)|\b([A-Z]\w+)\b", message)
    return bool(words) or any(name in _NAMES for names in found for name in names)


def run(case: dict[str, Any]) -> str:
    """Return "fitted" or "refused", or raise Broken."""
    try:
        X, y, weights = make_samples(case), make_labels(case), make_weights(case)
    except ValueError as error:  # of PackedGraphs
        if not is_clear(error):
            raise Broken(f"unclear {error!r}") from error
        return "refused"
    metadata = {} if weights is None else {"sample_weight": weights}
    embedder = make_embedder(case)
    watched = _Watched(X, y, weights, embedder)

    def call(function: Callable[[], Any]) -> Any:
        result = _observed(function)
        watched.check()
        return result

    if isinstance(fitted := call(lambda: embedder.fit(X, y, **metadata)), Exception):
        if hasattr(embedder, "encoder_"):
            raise Broken("a fit that failed has left an encoder")
        return "refused"
    h = call(lambda: fitted.transform(X))
    if isinstance(h, Exception):
        return "refused"
    if not np.isfinite(h).all():
        raise Broken("the embedding is not finite")
    _THEN[case["then"]](case, embedder, call, h, (X, y, metadata))
    return "fitted"


def _observed(function: Callable[[], Any]) -> Any:
    """Return what a call returns, or its error, which must be clear, as its warnings must be."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = function()
        except Exception as error:
            if not is_clear(error):
                last = traceback.extract_tb(error.__traceback__)[-1]
                where = f"{last.filename}:{last.lineno}"
                raise Broken(f"unclear {type(error).__name__}: {error} ({where})") from error
            result = error
    for warning in caught:
        is_ours = issubclass(warning.category, UserWarning) and warning.filename == __file__
        if not (is_ours and names_something(str(warning.message))):
            raise Broken(f"leaked {warning.category.__name__}: {warning.message}")
    return result


class _Watched:
    """Everything that a call must leave as it was."""

    def __init__(self, X: Any, y: Any, weights: Any, embedder: ContrastiveEmbedder):
        self.arrays, self.embedder = (X, y, weights), embedder
        self.before = self._state()

    def _state(self) -> dict[str, Any]:
        parameters = self.embedder.get_params(deep=True)
        return {
            "X, y or sample_weight": [_content(array) for array in self.arrays],
            "a parameter": {name: id(value) for name, value in parameters.items()},
            "the encoder": _weights_of(parameters["encoder"]),
            "torch's generator": torch.get_rng_state().numpy().tobytes(),
            "numpy's generator": pickle.dumps(np.random.get_state()),  # noqa: NPY002
            "python's generator": random.getstate(),
            "a setting": (torch.get_default_dtype(), torch.is_grad_enabled(), np.geterr()),
        }

    def check(self) -> None:
        after = self._state()
        for name, value in self.before.items():
            if after[name] != value:
                raise Broken(f"{name} has changed")


def _content(data: Any) -> Any:
    """Return all numbers of X, y or sample_weight."""
    if isinstance(data, (list, tuple)):
        return [_content(item) for item in data]
    if isinstance(data, nx.Graph):
        return repr((list(data.nodes(data=True)), list(data.edges(data=True))))
    if isinstance(data, PackedGraphs):
        return _content(list(data.arrays()))
    if isinstance(data, TensorDataset):
        return _content(data.tensors)
    if isinstance(data, torch.Tensor):
        data = data.numpy()
    if not isinstance(data, np.ndarray):
        return repr(data)
    return data.dtype.str, data.shape, repr(data) if data.dtype == object else data.tobytes()


def _weights_of(encoder: Any) -> Any:
    if not isinstance(encoder, torch.nn.Module):
        return None
    return [repr(value) for value in encoder.state_dict().values()]


def _same_bits(first: Any, second: Any, what: str) -> None:
    if isinstance(second, Exception):
        raise Broken(f"{what}: {second!r}")
    if not np.array_equal(first, second):
        raise Broken(f"{what}: the embedding has changed")


def _again(case: Any, embedder: Any, call: Any, h: Any, data: Any) -> None:
    X, y, metadata = data
    other = call(lambda: clone(embedder).fit(X, y, **metadata).transform(X))
    _same_bits(h, other, "the same seed")


def _pickle(case: Any, embedder: Any, call: Any, h: Any, data: Any) -> None:
    other = pickle.loads(pickle.dumps(embedder))
    _same_bits(h, call(lambda: other.transform(data[0])), "pickle")


def _save(case: Any, embedder: Any, call: Any, h: Any, data: Any) -> None:
    ours = (fit_cases.Series, fit_cases.Convolution, fit_cases.Scaled, fit_cases.OwnNetwork)
    names = {f"{cls.__module__}.{cls.__qualname__}": cls for cls in ours}
    own = {name + more: cls() for name, cls in names.items() for more in ("", "#2", "#3")}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "embedder.safetensors"
        if isinstance(call(lambda: skcontrast.save(embedder, path)), Exception):
            return
        loaded = call(lambda: skcontrast.load(path, custom_objects=own))
    if isinstance(loaded, Exception):
        raise Broken(f"load: {loaded!r}")
    _same_bits(h, call(lambda: loaded.transform(data[0])), "save and load")


def _partial_fit(case: Any, embedder: Any, call: Any, h: Any, data: Any) -> None:
    X, y, metadata = data
    if isinstance(call(lambda: embedder.partial_fit(X, y, **metadata)), Exception):
        _same_bits(h, embedder.transform(X), "a failed partial_fit")
        return
    other = call(lambda: embedder.transform(X))
    if not (isinstance(other, Exception) or np.isfinite(other).all()):
        raise Broken("the embedding is not finite after partial_fit")


def _fails(case: Any, embedder: Any, call: Any, h: Any, data: Any) -> None:
    X = data[0]
    before = {name: id(value) for name, value in vars(embedder).items()}
    for function in (embedder.fit, embedder.partial_fit):
        for arguments in ((np.full((4, 2, 2, 2, 2), 1.0),), (X, np.zeros(99)), ("a",), (None,)):
            if not isinstance(call(lambda f=function, a=arguments: f(*a)), Exception):
                raise Broken(f"{function.__name__} accepts {arguments[-1]!r}")
    if {name: id(value) for name, value in vars(embedder).items()} != before:
        raise Broken("a failed call has changed the embedder")
    _same_bits(h, embedder.transform(X), "failed calls")


def _score(case: Any, embedder: Any, call: Any, h: Any, data: Any) -> None:
    score = call(lambda: embedder.score(data[0]))
    if not (isinstance(score, Exception) or 0 <= score <= 1):
        raise Broken(f"the score is {score!r}")
    if not isinstance(score, Exception) and score != embedder.score(data[0]):
        raise Broken("the score is another one at the second call")


def _far_samples(case: Any, embedder: Any, call: Any, h: Any, data: Any) -> None:
    for numbers in ("large", "largest", "NaN", "huge"):
        X = make_samples({**case, "numbers": numbers, "n": 5}, seed=1)
        other = _observed(lambda X=X: embedder.transform(X))
        if not (isinstance(other, Exception) or np.isfinite(other).all()):
            raise Broken(f"the embedding of {numbers} samples is not finite")


_THEN = {
    "again": _again,
    "pickle": _pickle,
    "save": _save,
    "partial_fit": _partial_fit,
    "fails": _fails,
    "score": _score,
    "far samples": _far_samples,
}


def reduced(case: dict[str, Any]) -> dict[str, Any]:
    """Return a case that breaks a law with as few unusual choices as possible."""
    for candidate in simpler(case):
        try:
            run(candidate)
        except Exception:
            return reduced(candidate)
    return case
