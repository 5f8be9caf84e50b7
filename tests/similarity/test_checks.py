"""Similarities of one's own that would silently train something else are refused by name."""

import pytest
import torch

from skcontrast import ContrastiveEmbedder, contrastive_loss
from skcontrast.estimation import ScoreSample
from skcontrast.frameworks import MoCo, SimCLR
from skcontrast.similarity import (
    Cauchy,
    Cosine,
    DotProduct,
    Similarity,
    VonMisesFisher,
    check_similarity,
)
from skcontrast.similarity._checks import try_similarity
from tests.common import random_views, small, vectors


def normalized(self, z):
    return torch.nn.functional.normalize(z, dim=-1)


def own(**methods):
    return type("Own", (Similarity,), {"embed": normalized, **methods})()


RETURNED = [
    ("embed", lambda self, z: z.detach().numpy(), r"\(2, 6, 4\), got ndarray"),
    ("embed", lambda self, z: z.sum(0), r"\(2, 6, 4\), got shape \(6, 4\)"),
    ("bank_vectors", lambda self, z: z.mean(0), r"\(2, 6, 4\), got shape \(6, 4\)"),
    ("scores", lambda self, u, v: (u @ v.T).tolist(), r"\(6, 6\), got list"),
    (
        "scores",
        lambda self, u, v: (u * v[:1]).sum(1, keepdim=True),
        r"\(6, 6\), got shape \(6, 1\)",
    ),
    ("pairs", lambda self, u, v: float((u * v).sum()), r"\(6,\), got float"),
    (
        "pairs",
        lambda self, u, v: (u * v).sum(1, keepdim=True),
        r"\(6,\), got shape \(6, 1\)",
    ),
]


@pytest.mark.parametrize("method, function, message", RETURNED)
def test_a_method_that_returns_anything_but_its_scores_is_refused_by_name(
    method, function, message
):
    message = rf"Own\.{method} must return a tensor of shape {message}"
    with pytest.raises((TypeError, ValueError), match=message):
        contrastive_loss(*random_views(3, 4), similarity=own(**{method: function}))


@pytest.mark.parametrize("framework", [SimCLR(), MoCo()], ids=repr)
@pytest.mark.parametrize(
    "method, function",
    [
        ("embed", lambda self, z: (z - 9).log()),
        ("scores", lambda self, u, v: (u @ v.T - 9).log()),
        ("pairs", lambda self, u, v: ((u * v).sum(-1) - 9).log()),
    ],
)
def test_nan_is_laid_to_the_method_that_returned_it(framework, method, function):
    similarity = own(**{method: function})
    message = rf"Own\.{method} returns (NaN|a score of nan) for finite"
    with pytest.raises(ValueError, match=message):
        small(framework=framework, similarity=similarity).fit(vectors())
    with pytest.raises(ValueError, match=message):
        contrastive_loss(*random_views(3, 4), similarity=similarity)


@pytest.mark.parametrize(
    "method, function",
    [
        ("embed", lambda self, z: z.div_(2)),
        ("scores", lambda self, u, v: u.mul_(2) @ v.T),
        ("pairs", lambda self, u, v: u.mul_(v).sum(-1)),
    ],
)
def test_a_method_that_changes_its_arguments_is_refused(method, function):
    with pytest.raises(ValueError, match=rf"Own\.{method} changes its arguments in place"):
        check_similarity(own(**{method: function}))


def squared(self, u, v):
    return (u[:, None] - v).square().sum(-1)


@pytest.mark.parametrize(
    ("methods", "message"),
    [
        (
            {"embed": lambda self, z: torch.nn.functional.normalize(z, dim=0)},
            r"Own\.embed must not depend",
        ),
        ({"embed": lambda self, z: z - z.mean(-2, keepdim=True)}, r"Own\.embed must not depend"),
        ({"scores": lambda self, u, v: (u @ v.T).softmax(1)}, r"Own\.scores must not depend"),
        ({"scores": lambda self, u, v: v @ u.T}, r"Own\.scores must .* \(4, 3\), got .* \(3, 4\)"),
        ({"embed": lambda self, z: z.detach()}, "that autograd can differentiate"),
        ({"scores": squared}, "put a minus before a distance"),
    ],
)
def test_a_similarity_that_would_train_something_else_is_refused(methods, message):
    with pytest.raises(ValueError, match=message):
        contrastive_loss(*random_views(3, 4), similarity=own(**methods))


def test_pairs_must_agree_with_scores_outside_of_a_fit_too():
    similarity = own(pairs=lambda self, u, v: -(u - v).norm(dim=-1))
    message = r"Own\.pairs\(u, v\) must be the diagonal of scores"
    with pytest.raises(ValueError, match=message):
        contrastive_loss(*random_views(3, 4), similarity=similarity)
    with pytest.raises(ValueError, match=message):
        ScoreSample.from_views(*random_views(4, 4), y=[0, 0, 1, 1], similarity=similarity)


def test_scores_are_computed_once_for_each_tile():
    calls = []

    def scores(self, u, v):
        calls.append((len(u), len(v)))
        return u @ v.T

    similarity, views = own(scores=scores), [v.requires_grad_() for v in random_views(8, 4)]
    contrastive_loss(*views, similarity=similarity)
    calls.clear()
    contrastive_loss(*views, similarity=similarity).backward()
    assert calls[-1] == (16, 16) and calls.count((16, 16)) == 1
    calls.clear()
    small(similarity=similarity, max_epochs=2).fit(vectors())
    assert calls.count((6, 6)) == 2  # scores, and pairs as their diagonal


def test_a_similarity_of_another_width_or_dtype_is_tried_again():
    widths = []

    def embed(self, z):
        widths.append((z.shape[-1], z.dtype))
        return z

    for width in (3, 3, 4):
        for view in random_views(3, width), random_views(3, width, dtype=torch.float32):
            contrastive_loss(*view, similarity=own(embed=embed))
    assert len(set(widths)) == 4


@pytest.mark.parametrize("name", ["scores_of", "embed_all", "score", "pairs_"])
def test_a_misspelled_hook_is_refused_when_the_class_is_defined(name):
    with pytest.raises(TypeError, match=rf"Own\.{name} would never be used: did you mean"):
        own(**{name: lambda self, u, v: u @ v.T})


def test_a_helper_that_begins_like_a_hook_and_is_called_is_admitted():
    similarity = own(
        scores=lambda self, u, v: self.scores_of(u, v), scores_of=lambda self, u, v: u @ v.T
    )
    check_similarity(similarity)


@pytest.mark.parametrize("similarity", [Cosine(), DotProduct(), Cauchy(), VonMisesFisher()])
def test_the_similarities_of_the_package_pass(similarity):
    check_similarity(similarity)
    derived = type("Derived", (type(similarity),), {})()
    for width in (3, 64, 65):
        check_similarity(derived, width)
        try_similarity(derived, width, torch.float64, torch.device("cpu"))


def test_what_is_no_similarity_is_refused():
    with pytest.raises(TypeError, match="'similarity' parameter of check_similarity must be an"):
        check_similarity(torch.nn.CosineSimilarity())


def test_a_fit_uses_the_width_of_its_projections():
    class Halves(Similarity):
        def embed(self, z):
            return torch.cat(z.split(z.shape[-1] // 2, -1)[::-1], -1)

    for width in (6, 10):
        ContrastiveEmbedder(
            similarity=Halves(), projection_dim=width, max_epochs=1, random_state=0
        ).fit(vectors())
