"""Similarities of one's own that would silently train something else are refused by name."""

import math

import pytest
import torch
import torch.nn.functional as F

from skcontrast import contrastive_loss
from skcontrast.frameworks import MoCo, SimCLR
from skcontrast.schedules import Linear
from skcontrast.similarity import (
    Cauchy,
    Cosine,
    DotProduct,
    Similarity,
    VonMisesFisher,
    check_similarity,
)
from tests.common import small, vectors
from tests.similarity.common import KAPPA, MU, VMF


def normalized(self, z):
    return F.normalize(z, dim=-1)


def own(**methods):
    return type("Own", (Similarity,), {"embed": normalized, **methods})()


RETURNED = [
    ("embed", lambda self, z: z.detach().numpy(), r"\(2, 6, 4\), got ndarray"),
    ("embed", lambda self, z: z.sum(0), r"\(2, 6, 4\), got shape \(6, 4\)"),
    ("bank_vectors", lambda self, z: z.mean(0), r"\(2, 6, 4\), got shape \(6, 4\)"),
    ("scores", lambda self, u, v: (u @ v.T).tolist(), r"\(6, 6\), got list"),
    ("scores", lambda self, u, v: (u * v[:1]).sum(1, keepdim=True), r"\(6, 6\), got .* \(6, 1"),
    ("pairs", lambda self, u, v: float((u * v).sum()), r"\(6,\), got float"),
    ("pairs", lambda self, u, v: (u * v).sum(1, keepdim=True), r"\(6,\), got shape \(6, 1\)"),
]


@pytest.mark.parametrize("method, function, message", RETURNED)
def test_a_method_that_returns_anything_but_its_scores_is_refused_by_name(
    method, function, message
):
    message = rf"Own\.{method} must return a tensor of shape {message}"
    with pytest.raises((TypeError, ValueError), match=message):
        check_similarity(own(**{method: function}), 4)


@pytest.mark.parametrize("framework", [SimCLR(), MoCo()], ids=repr)
@pytest.mark.parametrize(
    "function, message",
    [
        (lambda self, u, v: (u @ v.T).tolist(), r"Own\.scores must return .* got list"),
        (lambda self, u, v: u * v[:1], r"Own\.scores must return .* got shape"),
        (lambda self, u, v: (u @ v.T - 9).log(), "have a score of nan for finite vectors"),
    ],
)
def test_fit_refuses_scores_of_a_wrong_shape_and_nan(framework, function, message):
    similarity = own(scores=function, pairs=lambda self, u, v: (u * v).sum(-1))
    with pytest.raises((TypeError, ValueError), match=message):
        small(framework=framework, similarity=similarity).fit(vectors())


def squared(self, u, v):
    return (u[:, None] - v).square().sum(-1)


@pytest.mark.parametrize(
    ("methods", "message"),
    [
        ({"embed": lambda self, z: F.normalize(z, dim=0)}, r"Own\.embed must not depend"),
        ({"embed": lambda self, z: z - z.mean(-2, keepdim=True)}, r"Own\.embed must not depend"),
        ({"scores": lambda self, u, v: (u @ v.T).softmax(1)}, r"Own\.scores must not depend"),
        ({"scores": lambda self, u, v: v @ u.T}, r"Own\.scores must .* \(4, 3\), got .* \(3, 4\)"),
        ({"embed": lambda self, z: z.detach()}, "must return differentiable scores"),
        ({"scores": squared}, "negate a distance"),
        ({"pairs": lambda self, u, v: -(u - v).norm(dim=-1)}, r"pairs\(u, v\) must be the diago"),
        ({"embed": lambda self, z: z.div_(2)}, r"Own\.embed changes its arguments in place"),
        ({"scores": lambda self, u, v: u.mul_(2) @ v.T}, r"Own\.scores changes its arguments in"),
        ({"pairs": lambda self, u, v: u.mul_(v).sum(-1)}, r"Own\.pairs changes its arguments in"),
        ({"embed": lambda self, z: (z - 9).log()}, r"Own\.embed returns NaN for finite"),
        ({"scores": lambda self, u, v: (u @ v.T - 9).log()}, r"Own\.scores returns a score of"),
        (
            {"pairs": lambda self, u, v: ((u * v).sum(-1) - 9).log()},
            r"Own\.pairs returns NaN for f",
        ),
    ],
)
def test_a_similarity_that_would_train_something_else_is_refused(methods, message):
    with pytest.raises(ValueError, match=message):
        check_similarity(own(**methods), 4)


@pytest.mark.parametrize("similarity", [Cosine(), DotProduct(), Cauchy(), VonMisesFisher()])
def test_the_similarities_of_the_package_pass(similarity):
    check_similarity(similarity)
    derived = type("Derived", (type(similarity),), {})()
    for width in (3, 64, 65):
        check_similarity(derived, width)


def test_what_is_no_similarity_is_refused():
    with pytest.raises(TypeError, match="'similarity' parameter of check_similarity must be an"):
        check_similarity(torch.nn.CosineSimilarity())


# Views that a similarity cannot compare


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
