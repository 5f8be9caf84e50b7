"""The mutual likelihood score: values, limits, accuracy in float32, memory."""

import math
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from skcontrast import contrastive_loss
from skcontrast._objective import _mean_loss  # private: the size of the tiles

# private: the value of a contrast that no public call forms
from skcontrast._objective._mean_loss import objective_value
from skcontrast.frameworks import in_batch
from skcontrast.losses import InfoNCE
from skcontrast.similarity import Cosine, VonMisesFisher

# private: values of the printed equation
from skcontrast.similarity._mutual_likelihood import log_partition, mutual_score
from tests.common import golden_vmf, random_views
from tests.similarity.common import some

DIMENSIONS = [2, 3, 5, 8, 64, 128, 512]


def by_definition(first, second):
    """Return h(κ̃) − h(κ_i) − h(κ_j) of all pairs."""
    (mu, kappa), (nu, rho) = first, second
    d = mu.shape[1]
    joint = (kappa[:, None] * mu)[:, None] + rho[:, None] * nu
    h = log_partition(joint.norm(dim=-1), d)
    return h - log_partition(kappa, d)[:, None] - log_partition(rho, d)


@pytest.mark.parametrize("d", DIMENSIONS)
def test_is_the_mutual_likelihood_score_over_the_temperature(d):
    for kappa_max in [0.1, 10, 300, 1e4]:
        first, second = some(7, d, kappa_max), some(5, d, kappa_max, seed=1)
        scores = VonMisesFisher(2.0, kappa_max)(first, second)
        torch.testing.assert_close(scores, by_definition(first, second) / 2, rtol=1e-9, atol=1e-9)


def test_agrees_with_the_reference_table():
    for row in golden_vmf()["mls"]["rows"]:
        d, cos = row["d"], row["cos"]
        mu = F.pad(torch.tensor([[1.0, 0.0]], dtype=torch.float64), (0, d - 2))
        nu = torch.zeros_like(mu)
        nu[0, 0], nu[0, 1] = cos, math.sqrt(1 - cos**2)
        kappas = [torch.tensor([row[k]], dtype=torch.float64) for k in ("kappa_i", "kappa_j")]
        kappas = [kappa.requires_grad_() for kappa in kappas]
        score = VonMisesFisher(1.0, kappa_max=1e6)((mu, kappas[0]), (nu, kappas[1]))
        # The paper's constants: minus the area of the sphere, minus d log r.
        area = math.log(2) + d / 2 * math.log(math.pi) - math.lgamma(d / 2)
        constant = -area - d * math.log(row["r"])
        assert score.item() + constant == pytest.approx(row["s"], rel=1e-9, abs=1e-9)
        slopes = torch.autograd.grad(score, kappas)
        for slope, name in zip(slopes, ("ds_dki", "ds_dkj"), strict=True):
            assert slope.item() == pytest.approx(row[name], rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("kappa_max", [1e-3, 0.05, 0.5])
def test_small_concentrations_are_a_cosine_in_float32_too(kappa_max):
    mu, nu = (some(30, 64, 1.0, seed=seed, dtype=torch.float32)[0] for seed in (0, 1))
    kappa = torch.full((30,), kappa_max)
    temperature = kappa_max**2 / 64
    scores = VonMisesFisher(temperature, kappa_max)((mu, kappa), (nu, kappa))
    tolerance = 2e-3 if kappa_max < 0.1 else 0.02
    torch.testing.assert_close(scores.float(), mu @ nu.T, rtol=0, atol=tolerance)


@pytest.mark.parametrize("requires_grad", [False, True])
def test_autocast_does_not_reach_the_scores(requires_grad):
    mu, kappa = some(50, 16, 900.0, dtype=torch.float32)
    view = mu.requires_grad_(requires_grad), kappa
    with torch.autocast("cpu", torch.bfloat16):
        scores, cosines = VonMisesFisher(1.0)(view, view), Cosine()(mu, mu)
    torch.testing.assert_close(scores, VonMisesFisher(1.0)(view, view))
    torch.testing.assert_close(cosines, Cosine()(mu, mu))


def test_an_embedding_that_knows_nothing_scores_zero_with_everything():
    mu, kappa = some(5, 16, 100.0)
    similarity = VonMisesFisher(1.0)
    scores = similarity((mu, torch.zeros_like(kappa)), (mu, kappa))
    torch.testing.assert_close(scores, torch.zeros_like(scores), atol=1e-12, rtol=0)


@pytest.mark.parametrize("d", DIMENSIONS)
def test_scores_lie_between_the_limits_and_these_between_the_bounds(d):
    for kappa_max in [1.0, 30.0, 1000.0]:
        similarity = VonMisesFisher(0.5, kappa_max)
        mu = torch.eye(d, dtype=torch.float64)[:2]
        kappa = torch.full((2,), kappa_max, dtype=torch.float64)
        same, opposite = (similarity((mu, kappa), (sign * mu, kappa)) for sign in (1, -1))
        u = similarity.embed((mu, kappa))
        low, high = similarity.bounds(u.shape[1])
        assert opposite.min().item() == pytest.approx(low, rel=1e-9)
        assert same.max().item() == pytest.approx(high, rel=1e-9)
        assert low < high
        torch.testing.assert_close(similarity.self_scores(u), same.diagonal())
        scores = similarity(some(50, d, kappa_max), some(50, d, kappa_max, seed=1))
        assert low <= scores.min() and scores.max() <= high


def linked(first, second, d, dtype, kappa_max=1000.0):
    """Return the scores and slopes as the engine computes them, float64."""
    similarity = VonMisesFisher(1.0, kappa_max=kappa_max)
    u, v = (similarity.embed(tuple(t.to(dtype) for t in view)) for view in (first, second))
    products = (u[:, :d] @ v[:, :d].T).requires_grad_()
    scores = mutual_score(products, u[:, None, d:], v[:, d:], d)
    (slopes,) = torch.autograd.grad(scores.sum(), products)
    return scores.detach().double(), slopes.double()


@pytest.mark.parametrize("d", [*DIMENSIONS, 2048])
def test_float32_is_as_good_as_float64(d):
    for kappa_max in [0.5, 30.0, 1000.0]:
        first = some(60, d, kappa_max, dtype=torch.float32)
        second = some(70, d, kappa_max, dtype=torch.float32, seed=1)
        exact, exact_slopes = linked(first, second, d, torch.float64)
        scores, slopes = linked(first, second, d, torch.float32)
        # Nearly opposite directions of high concentration leave rounding of κ̃², of scores that low
        # that nobody sees.
        seen = first[0] @ second[0].T > -0.9
        tolerance = {"rtol": 0, "atol": 1e-6 * max(1, kappa_max)}
        torch.testing.assert_close(scores[seen], exact[seen], **tolerance)
        torch.testing.assert_close(slopes[seen], exact_slopes[seen], rtol=3e-5, atol=0)
        assert ((scores - exact).abs() <= 1e-3 * (1 + exact.abs())).all()


@pytest.mark.parametrize("d", [2, 16, 64, 128, 512])
def test_differences_of_scores_at_concentrations_of_ten_thousand(d):
    # Of embeddings close enough to be told from their scores.
    mu, _ = some(1, d, 1.0)
    step = torch.randn(200, d, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    mu = F.normalize(mu + 0.1 / math.sqrt(d) * step, dim=1).float()
    view = mu, torch.linspace(5e3, 1e4, 200)
    exact, _ = linked(view, view, d, torch.float64, 1e4)
    scores, _ = linked(view, view, d, torch.float32, 1e4)
    error = scores - exact
    assert (error - error[:, :1]).abs().max() < 1e-3


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_opposite_directions_of_high_concentration_are_harmless(dtype):
    mu = F.normalize(torch.randn(4, 3, generator=torch.Generator().manual_seed(0)), dim=1)
    mu = mu.to(dtype).requires_grad_()
    kappa = torch.full((4,), 1e5, dtype=dtype, requires_grad=True)
    similarity = VonMisesFisher(1.0, kappa_max=1e6)
    scores = similarity((mu, kappa), (-mu, kappa))
    scores.sum().backward()
    assert scores.isfinite().all() and mu.grad.isfinite().all() and kappa.grad.isfinite().all()
    value = contrastive_loss((mu, kappa), (-mu, kappa), similarity=similarity)
    value.backward()
    assert value.isfinite() and mu.grad.isfinite().all() and kappa.grad.isfinite().all()


def test_no_concentration_and_no_direction_have_finite_gradients():
    mu = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.6, 0.8]], requires_grad=True)
    kappa = torch.tensor([5.0, 0.0, 3.0], requires_grad=True)
    value = contrastive_loss((mu, kappa), (mu, kappa), similarity=VonMisesFisher(1.0))
    value.backward()
    assert value.isfinite() and mu.grad.isfinite().all() and kappa.grad.isfinite().all()


@pytest.mark.parametrize("objective", ["contrastive", "jensen-shannon"])
@pytest.mark.parametrize("n_views, rows", [(2, 3), (3, 1), (2, 32)])
@pytest.mark.parametrize("with_queue", [False, True])
def test_tiled_equals_autograd_on_all_scores(monkeypatch, objective, n_views, rows, with_queue):
    views = torch.stack(random_views(9, 6, n_views)).requires_grad_()
    keys = torch.cat(random_views(8, 6, seed=5)).requires_grad_()
    similarity = VonMisesFisher(4.0, 50.0)
    monkeypatch.setattr(_mean_loss, "_TILE_ELEMENTS", 1)
    monkeypatch.setattr(_mean_loss, "_MIN_ROWS", rows)

    def value(of_engine):
        contrast = in_batch(similarity.embed(views))
        every = similarity.scores(contrast.anchors, contrast.candidates)
        positives = contrast.scores_of_positives(slice(None), every)
        if with_queue:
            none, candidates = contrast.excluded[:, :0], similarity.embed(keys)
            new = {"candidates": candidates, "excluded": none, "positives": positives}
            contrast = replace(contrast, **new)
        if of_engine:
            return objective_value(contrast, InfoNCE(), similarity, objective)
        u, v, d = contrast.anchors, contrast.candidates, 5
        scores = mutual_score(u[:, :d] @ v[:, :d].T, u[:, None, d:], v[:, d:], d)
        scores = scores / similarity.temperature
        apart = torch.ones_like(scores).scatter(1, contrast.excluded, 0) > 0
        rest = scores[apart].view(len(scores), -1)
        if objective == "jensen-shannon":
            return (F.softplus(-positives).mean(1) + F.softplus(rest).mean(1)).mean()
        return (rest.logsumexp(1, keepdim=True) - positives).exp().log1p().mean()

    leaves = [views, keys] if with_queue else [views]
    results = [(v, torch.autograd.grad(v, leaves)) for v in (value(True), value(False))]
    torch.testing.assert_close(*results, rtol=1e-9, atol=1e-12)


def peak_memory(function):
    """Return the most bytes that a call holds at a time."""
    with torch.profiler.profile(profile_memory=True) as profile:
        function()
    held = highest = 0
    for event in profile.profiler.kineto_results.events():
        if event.name() == "[memory]":
            held += event.nbytes()
            highest = max(highest, held)
    return highest


@pytest.mark.slow
def test_memory_grows_with_the_batch_and_not_with_its_square():
    def peak(n):
        z = torch.randn(2, n, 17, generator=torch.Generator().manual_seed(0)).requires_grad_()
        similarity = VonMisesFisher(1.0)
        return peak_memory(lambda: contrastive_loss(*z, similarity=similarity).backward())

    assert peak(8192) < 3 * peak(2048)
