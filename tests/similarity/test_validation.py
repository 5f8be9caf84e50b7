"""Views that a similarity cannot compare are refused by name."""

import math

import pytest
import torch

from skcontrast import contrastive_loss
from skcontrast.schedules import Linear
from skcontrast.similarity import Cosine, Similarity, VonMisesFisher
from tests.similarity.common import KAPPA, MU, VMF


@pytest.mark.parametrize(
    "views, kwargs, error, message",
    [
        ([(MU, KAPPA), (MU, -KAPPA)], {}, ValueError, r"of view 2 .* \[0, kappa_max=10\]"),
        ([(MU, KAPPA), (MU, 11 * KAPPA)], {}, ValueError, "concentrations of view 2"),
        ([(MU, KAPPA), (MU, KAPPA / 0)], {}, ValueError, "concentrations of view 2"),
        ([(MU, KAPPA), (MU, KAPPA * math.nan)], {}, ValueError, "concentrations of view 2"),
        ([(MU, KAPPA), (MU, KAPPA[:2])], {}, ValueError, r"must have shape \(3,\), got \(2,\)"),
        ([(MU, KAPPA), (MU, KAPPA[:, None])], {}, ValueError, r"must have shape \(3,\)"),
        ([(MU, KAPPA), (MU, [1.0, 1.0])], {}, TypeError, "concentrations of view 2 must be"),
        ([(MU, KAPPA), (MU.long(), KAPPA)], {}, TypeError, "directions of view 2 must be"),
        ([(MU, KAPPA), MU], {}, TypeError, "all be tuples .*view 2 is Tensor"),
        ([(MU, KAPPA), (MU, KAPPA, KAPPA)], {}, TypeError, "view 2 is tuple"),
        ([(MU, KAPPA), (MU[:, :2], KAPPA)], {}, ValueError, r"view 2 must have shape \(n, 3\)"),
        ([(MU, KAPPA), (MU[:2], KAPPA[:2])], {}, ValueError, "must hold the same samples"),
        ([(MU, KAPPA)] * 2, {"queue": MU}, TypeError, "queue is Tensor"),
        ([(MU, KAPPA)] * 2, {"queue": (MU, -KAPPA)}, ValueError, "concentrations of queue"),
        ([(MU, KAPPA)] * 2, {"similarity": Cosine()}, TypeError, "need similarity=VonMisesFisher"),
        ([(MU[:, :1], KAPPA)] * 2, {}, ValueError, "at least 2 dimensions, got 1"),
        ([MU[:, :1], MU[:, :1]], {}, ValueError, "at least 2 dimensions, got 0"),
        ([MU, MU], {"similarity": VonMisesFisher(0)}, ValueError, "'temperature' parameter"),
        ([MU, MU], {"similarity": VonMisesFisher(1, -3.0)}, ValueError, "'kappa_max' parameter"),
        ([MU, MU], {"similarity": VonMisesFisher(1, 2e6)}, ValueError, r"\(0.0, 1000000.0\]"),
        ([MU, MU], {"similarity": VonMisesFisher(Linear(1, 2))}, ValueError, "is a schedule"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_by_name(views, kwargs, error, message):
    with pytest.raises(error, match=message):
        contrastive_loss(*views, **{"similarity": VMF, **kwargs})


@pytest.mark.parametrize(
    "first, second, error, message",
    [
        ((MU, -KAPPA), (MU, KAPPA), ValueError, r"concentrations of z1 .* \[0, kappa_max=10\]"),
        ((MU, KAPPA), (MU, 11 * KAPPA), ValueError, "concentrations of z2"),
        ((MU, KAPPA), (MU, KAPPA * math.nan), ValueError, "concentrations of z2 .* got nan"),
        ((MU, KAPPA), (MU, KAPPA[:2]), ValueError, r"must have shape \(3,\), got \(2,\)"),
        ((MU, KAPPA), (MU[:, :2], KAPPA), ValueError, r"z2 must have shape \(n, 3\)"),
        ((MU, KAPPA), (MU.numpy(), KAPPA), TypeError, "directions of z2 must be .* got ndarray"),
        ((MU, KAPPA), [MU, KAPPA], TypeError, "z1, z2 must all be tuples .* z2 is list"),
        (MU[0], MU, ValueError, "z1 must have shape"),
    ],
)
def test_a_call_refuses_bad_input_by_name(first, second, error, message):
    with pytest.raises(error, match=message):
        VMF(first, second)


def test_a_subclass_of_two_similarities_has_the_methods_of_the_nearer():
    base = type("Base", (Similarity,), {"embed": lambda self, z: z})
    left = type("Left", (base,), {})
    right = type("Right", (base,), {"embed": lambda self, z: 2 * z})
    assert type("Both", (left, right), {})().embed(torch.ones(1, 1)).item() == 2
