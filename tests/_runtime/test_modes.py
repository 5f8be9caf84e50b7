"""Autocast, default dtypes and default devices change neither a fit nor what it returns."""

from contextlib import contextmanager
from functools import cache

import networkx as nx
import numpy as np
import pytest
import torch

from skcontrast import contrastive_loss
from skcontrast.encoders import GIN
from skcontrast.estimation import project_views
from skcontrast.frameworks import CMC, InfoGraph, MoCo
from skcontrast.losses import BCL
from skcontrast.similarity import VonMisesFisher
from tests.common import images, random_views, small, small_images, vectors


@contextmanager
def default_dtype(dtype):
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
        assert torch.get_default_dtype() == dtype
    finally:
        torch.set_default_dtype(before)


MODES = {
    "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    "float64": lambda: default_dtype(torch.float64),
    "bfloat16": lambda: default_dtype(torch.bfloat16),
    "float16": lambda: default_dtype(torch.float16),
    "meta": lambda: torch.device("meta"),
}
GRAPHS = [nx.gnp_random_graph(5, 0.5, seed=k) for k in range(12)]
FITS = {
    "vectors": (small, {}, vectors()),
    "CMC": (small, {"framework": CMC(), "loss": BCL()}, vectors()),
    "MoCo": (small, {"framework": MoCo(16)}, vectors()),
    "VonMisesFisher": (small, {"similarity": VonMisesFisher()}, vectors()),
    "images": (small_images, {}, images()),
    "grey images": (small_images, {}, images()[:, 0] / 255),
    "graphs": (small, {"encoder": GIN(4, 1)}, GRAPHS),
    "InfoGraph": (small, {"encoder": GIN(4, 1), "framework": InfoGraph()}, GRAPHS),
}


# Every fit with a default device, and every mode in one fit.
PAIRS = [(fit, "meta") for fit in FITS] + [("images", mode) for mode in MODES if mode != "meta"]


@cache
def everything(name):
    """Return what an embedder can say of X after a fit and a further epoch."""
    make, params, X = FITS[name]
    embedder = make(**params).fit(X).partial_fit(X)
    said = [embedder.transform(X), embedder.score(X), *project_views(embedder, X)]
    if hasattr(embedder, "concentration"):
        said += [embedder.concentration(X), embedder.log_score(X)]
    if not isinstance(X, list):
        said += [*embedder.views(X, random_state=0), *make(**params).views(X, random_state=0)]
    return said


@pytest.mark.parametrize("fit, mode", PAIRS)
def test_a_mode_of_the_program_does_not_change_a_bit(fit, mode):
    expected = everything(fit)
    with MODES[mode]():
        found = everything.__wrapped__(fit)
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
@pytest.mark.parametrize("similarity", [None, VonMisesFisher()], ids=["cosine", "vmf"])
def test_a_mode_of_the_program_does_not_change_the_loss(similarity, mode):
    views = random_views(8, 5, dtype=torch.float32)
    expected = contrastive_loss(*views, loss=BCL(), similarity=similarity)
    with mode():
        found = contrastive_loss(*views, loss=BCL(), similarity=similarity)
    assert found.dtype == torch.float32
    assert torch.equal(found.cpu(), expected)


def test_the_default_dtype_comes_back_after_an_error():
    with default_dtype(torch.float64), pytest.raises(ValueError, match="'lr'"):
        small(lr=-1).fit(vectors())
    with default_dtype(torch.float64), pytest.raises(ValueError, match="diverged"):
        small(similarity=None, lr=1e30, optimizer="sgd").fit(vectors())
