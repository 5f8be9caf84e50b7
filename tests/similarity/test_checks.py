"""Similarities of one's own that would silently train something else are refused by name."""

import pytest
import torch
import torch.nn.functional as F

from skcontrast.frameworks import MoCo, SimCLR
from skcontrast.similarity import (
    Cauchy,
    Cosine,
    DotProduct,
    Similarity,
    VonMisesFisher,
    check_similarity,
)
from tests.common import small, vectors


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
