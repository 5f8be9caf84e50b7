"""Values that should not get through a public door in silence, and how a call takes them."""

from __future__ import annotations

import datetime
import decimal
import fractions
import linecache
import pathlib
import re
import signal
import warnings
from collections import OrderedDict
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
import pandas as pd
import scipy.sparse
import torch
from sklearn.exceptions import NotFittedError

from skcontrast import ContrastiveEmbedder, losses

N = 12
Y = np.arange(N) % 3
VECTORS = np.random.default_rng(0).normal(size=(N, 4))
PICTURES = np.random.default_rng(1).random((N, 3, 8, 8)).astype(np.float32)
SERIES = np.random.default_rng(2).normal(size=(N, 3, 20))
GRAPHS = [nx.gnp_random_graph(6, 0.6, seed=k) for k in range(N)]
Z = tuple(torch.from_numpy(VECTORS + 0.1 * k) for k in range(2))
LABELS = torch.from_numpy(Y)


class _Rows(torch.utils.data.Dataset):
    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, k):
        return self.rows[k]


def _ragged():
    ragged = np.empty(2, dtype=object)
    ragged[:] = [np.zeros(2), np.zeros(3)]
    return ragged


SCALARS = (
    None, "a", "", b"a", True, False, np.bool_(True), -1, 0, 0.5, -0.5, 1e30, float("nan"),
    float("inf"), 2**70, -(2**70), 1j, decimal.Decimal("0.5"), fractions.Fraction(1, 2), ...,
    slice(0, 2), torch.float32, ValueError("a"), datetime.date(2020, 1, 1),
)  # fmt: skip
# Values by name, each made when it is needed.
OBJECTS = {
    "an empty list": list, "an empty tuple": tuple, "an empty dict": dict, "an object": object,
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
    "ragged objects": _ragged,
    "a structured array": lambda: np.zeros(N, dtype=[("a", float), ("b", int)]),
    "dates": lambda: np.zeros((N, 4), dtype="datetime64[s]"),
    "a masked array": lambda: np.ma.masked_greater(VECTORS, 0),
    "a sparse matrix": lambda: scipy.sparse.csr_matrix(np.eye(N)),
    "a frame of strings": lambda: pd.DataFrame({"a": ["x"] * N, "b": ["y"] * N}),
    "a bool tensor": lambda: torch.ones(N, 4, dtype=torch.bool),
    "a half tensor": lambda: torch.ones(N, 4, dtype=torch.float16),
    "a complex tensor": lambda: torch.ones(N, 4, dtype=torch.complex64),
    "a quantized tensor": lambda: torch.quantize_per_tensor(Z[0].float(), 0.1, 0, torch.quint8),
    "a meta tensor": lambda: torch.ones(N, 4, device="meta"),
    "a sparse tensor": lambda: torch.eye(N).to_sparse(),
    "a Dataset of dicts": lambda: _Rows([{"image": torch.zeros(3, 8, 8)}] * N),
    "a Dataset of empty tuples": lambda: _Rows([()] * N),
    "a Dataset of strings": lambda: _Rows(["a"] * N),
    "a complex Dataset": lambda: _Rows([torch.zeros(4) + 1j] * N),
    "a class": lambda: losses.DCL, "the class dict": lambda: dict,
    "a function of nothing": lambda: lambda: None,
    "a function that returns a string": lambda: lambda *args, **kwargs: "a",
    "a module": torch.nn.Identity, "a loss": losses.InfoNCE,
    "an unfitted embedder": ContrastiveEmbedder,
    "a path": lambda: pathlib.Path("/nowhere/at/all"),
}  # fmt: skip


def bad_values(constraints=()):
    """Return values by name, each made when it is needed, with those at the ends of intervals."""
    scalars = {repr(value): lambda value=value: value for value in SCALARS}
    edges = {f"{value!r}, an edge": lambda value=value: value for value in _edges(constraints)}
    return {**scalars, **OBJECTS, **edges}


def _edges(constraints):
    """Yield the ends of intervals and numbers just beyond them, and misspelt options."""
    for constraint in constraints if isinstance(constraints, (list, tuple)) else [constraints]:
        for side, beyond in (("left", -1), ("right", 1)):
            end = getattr(constraint, side, None)
            if end is not None and np.isfinite(float(end)):
                yield end + beyond
                if abs(end) < 1000:  # more epochs than that take too long
                    yield from (end, float(np.nextafter(float(end), beyond * np.inf)))
        yield from (f"{option}?" for option in getattr(constraint, "options", ()))


class Outcome(NamedTuple):
    """How a value was taken: "accepted", "clear", "unclear" or "endless"."""

    door: Any
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
    "sklearn/model_selection/_split.py",
    "sklearn/base.py",
)
_CLEAR_TYPES = (ValueError, TypeError, NotFittedError, OSError, NotImplementedError, ImportError)


def is_clear(error, words):
    """Return whether somebody raised an error on purpose that names the argument, or a file.

    An error of the user's own code, such as that of a function of the tests, is theirs.
    """
    *_, frame = _frames(error)
    file = frame.tb_frame.f_code.co_filename
    if pathlib.Path(file).parent == pathlib.Path(__file__).parent:
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
