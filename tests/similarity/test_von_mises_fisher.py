"""The mutual likelihood score: values, limits, gradients, accuracy, cost; golden values."""

import math

import pytest
import torch
import torch.nn.functional as F

from skcontrast import contrastive_loss
from skcontrast._objective import _tiles
from skcontrast._objective._contrast import in_batch
from skcontrast._objective._functional import Contrast, objective_value
from skcontrast.losses import InfoNCE
from skcontrast.schedules import Linear
from skcontrast.similarity import Cosine, VonMisesFisher
from skcontrast.similarity import _mutual_likelihood as mutual_likelihood
from skcontrast.similarity._bessel import log_partition
from tests.common import LOSSES, evaluate, golden_cases, golden_input, golden_vmf, random_views

DIMENSIONS = [2, 3, 5, 8, 64, 128, 512]


def some(n, d, kappa_max, *, dtype=torch.float64, seed=0):
    """Return directions and concentrations."""
    generator = torch.Generator().manual_seed(seed)
    mu = F.normalize(torch.randn(n, d, generator=generator, dtype=torch.float64), dim=1)
    kappa = kappa_max * torch.rand(n, generator=generator, dtype=torch.float64)
    return mu.to(dtype), kappa.to(dtype)


def by_definition(first, second):
    """Return h(κ̃) − h(κ_i) − h(κ_j) of all pairs."""
    (mu, kappa), (nu, rho) = first, second
    d = mu.shape[1]
    joint = (kappa[:, None] * mu)[:, None] + rho[:, None] * nu
    h = log_partition(joint.norm(dim=-1), d)
    return h - log_partition(kappa, d)[:, None] - log_partition(rho, d)


@pytest.mark.parametrize("d", DIMENSIONS)
@pytest.mark.parametrize("kappa_max", [0.1, 10, 300, 1e4])
def test_is_the_mutual_likelihood_score_over_the_temperature(d, kappa_max):
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


@pytest.mark.parametrize("d", DIMENSIONS)
def test_small_concentrations_are_a_cosine_with_a_temperature_for_each_pair(d):
    (mu, kappa), (nu, rho) = some(5, d, 1e-2), some(4, d, 1e-2, seed=1)
    scores = VonMisesFisher(1.0)((mu, kappa), (nu, rho))
    expected = kappa[:, None] * rho * (mu @ nu.T) / d
    torch.testing.assert_close(scores, expected, rtol=1e-3, atol=2e-9)


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


@pytest.mark.parametrize("d", [2, 3, 64])
def test_large_concentrations(d):
    # s → 2κ (cos(θ/2) − 1) + (d − 1)/2 · log(κ / cos(θ/2)) + const
    mu, nu = some(2, d, 1.0)[0]
    half = ((1 + mu @ nu) / 2).sqrt()
    kappas = torch.tensor([1e5, 4e5], dtype=torch.float64)
    similarity = VonMisesFisher(1.0, kappa_max=1e6)
    scores = similarity((mu.expand(2, d), kappas), (nu.expand(2, d), kappas)).diagonal()
    expected = 2 * 3e5 * (half - 1) + (d - 1) / 2 * math.log(4)
    assert (scores[1] - scores[0]).item() == pytest.approx(expected.item(), rel=1e-7)


@pytest.mark.parametrize("d, cos", [(64, 0.9), (8, 0.95)])
def test_the_score_rises_up_to_the_concentration_that_the_angle_warrants(d, cos):
    similarity = VonMisesFisher(1.0, kappa_max=1e6)
    kappa = torch.linspace(1, 3000, 3000, dtype=torch.float64)
    first = torch.zeros(3000, d, dtype=torch.float64)
    first[:, 0] = 1
    second = torch.zeros_like(first)
    second[:, 0], second[:, 1] = cos, math.sqrt(1 - cos**2)
    u, v = similarity.embed((first, kappa)), similarity.embed((second, kappa))
    best = kappa[similarity.pairs(u, v).argmax()].item()
    assert best == pytest.approx((d - 1) / (4 * (1 - math.sqrt((1 + cos) / 2))), rel=0.15)


def test_an_embedding_that_knows_nothing_scores_zero_with_everything():
    mu, kappa = some(5, 16, 100.0)
    similarity = VonMisesFisher(1.0)
    scores = similarity((mu, torch.zeros_like(kappa)), (mu, kappa))
    torch.testing.assert_close(scores, torch.zeros_like(scores), atol=1e-12, rtol=0)


def test_the_mean_over_uniform_directions_is_one():
    # What makes 0 the score of chance: E e^s = 1 for any two concentrations.
    mu, kappa = some(1, 3, 8.0)
    nu = F.normalize(some(200_000, 3, 1.0, seed=2)[0], dim=1)
    rho = torch.full((len(nu),), 5.0, dtype=torch.float64)
    scores = VonMisesFisher(1.0)((mu, kappa), (nu, rho))
    assert scores.exp().mean().item() == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize("d", DIMENSIONS)
@pytest.mark.parametrize("kappa_max", [1.0, 30.0, 1000.0])
def test_scores_lie_between_the_limits_and_these_between_the_bounds(d, kappa_max):
    similarity = VonMisesFisher(0.5, kappa_max)
    mu = torch.eye(d, dtype=torch.float64)[:2]
    kappa = torch.full((2,), kappa_max, dtype=torch.float64)
    same, opposite = similarity((mu, kappa), (mu, kappa)), similarity((mu, kappa), (-mu, kappa))
    u = similarity.embed((mu, kappa))
    low, high = similarity.limits(u)
    assert opposite.min().item() == pytest.approx(low, rel=1e-9)
    assert same.max().item() == pytest.approx(high, rel=1e-9)
    assert similarity.bounds[0] <= low < high <= similarity.bounds[1]
    torch.testing.assert_close(similarity.highest(u), same.diagonal())
    scores = similarity(some(50, d, kappa_max), some(50, d, kappa_max, seed=1))
    assert low <= scores.min() and scores.max() <= high


def linked(first, second, d, dtype, kappa_max=1000.0):
    """Return the scores and slopes as the engine computes them, float64."""
    similarity = VonMisesFisher(1.0, kappa_max=kappa_max)
    u, v = (similarity.embed(tuple(t.to(dtype) for t in view)) for view in (first, second))
    scores = u[:, :d] @ v[:, :d].T
    slopes = torch.empty_like(scores)
    similarity.link(scores, u[:, d:], v[:, d:], slopes, d=d)
    plain = similarity.scores(u.requires_grad_(), v).detach()
    return scores.double(), slopes.double(), plain.double()


@pytest.mark.parametrize("d", [*DIMENSIONS, 2048])
@pytest.mark.parametrize("kappa_max", [0.5, 30.0, 1000.0])
def test_float32_is_as_good_as_float64(monkeypatch, d, kappa_max):
    monkeypatch.setattr(mutual_likelihood, "_CHUNK", 100)  # several chunks
    first = some(60, d, kappa_max, dtype=torch.float32)
    second = some(70, d, kappa_max, dtype=torch.float32, seed=1)
    exact, exact_slopes, _ = linked(first, second, d, torch.float64)
    scores, slopes, plain = linked(first, second, d, torch.float32)
    # Nearly opposite directions of high concentration leave rounding of κ̃², of scores that low
    # that nobody sees.
    seen = first[0] @ second[0].T > -0.9
    tolerance = {"rtol": 0, "atol": 1e-6 * max(1, kappa_max)}
    torch.testing.assert_close(scores[seen], exact[seen], **tolerance)
    torch.testing.assert_close(plain[seen], exact[seen], **tolerance)
    torch.testing.assert_close(slopes[seen], exact_slopes[seen], rtol=3e-5, atol=0)
    assert ((scores - exact).abs() <= 1e-3 * (1 + exact.abs())).all()


@pytest.mark.parametrize("d", [2, 16, 64, 128, 512])
def test_differences_of_scores_at_concentrations_of_ten_thousand(d):
    # Of embeddings close enough to be told from their scores.
    mu, _ = some(1, d, 1.0)
    step = torch.randn(200, d, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    mu = F.normalize(mu + 0.1 / math.sqrt(d) * step, dim=1).float()
    view = mu, torch.linspace(5e3, 1e4, 200)
    exact, _, _ = linked(view, view, d, torch.float64, 1e4)
    scores, _, _ = linked(view, view, d, torch.float32, 1e4)
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


KAPPAS = {
    "kA=20+10*sin(1.3*i), kB=15+5*cos(0.7*i)": (20, 10, 15, 5),
    "kA=200+100*sin(1.3*i), kB=150+50*cos(0.7*i)": (200, 100, 150, 50),
    "kA=kB=0.5": (0.5, 0, 0.5, 0),
}


def golden_id(case):
    return f"{case['d']}-{case['settings']['mode']}-{case['settings']['kappa']}"


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize(
    "case", [c for c in golden_cases() if c["loss"] == "prob_mls_infonce"], ids=golden_id
)
def test_agrees_with_the_golden_values(case, dtype):
    i = torch.arange(case["B"], dtype=torch.float64)
    mean_a, sway_a, mean_b, sway_b = KAPPAS[case["settings"]["kappa"]]
    kappa_a, kappa_b = mean_a + sway_a * (1.3 * i).sin(), mean_b + sway_b * (0.7 * i).cos()
    mu_a, mu_b = (golden_input(v, case["B"], case["d"]) for v in "AB")
    leaves = [t.to(dtype).requires_grad_() for t in (mu_a, kappa_a, mu_b, kappa_b)]
    similarity, first, second = VonMisesFisher(1.0, kappa_max=301.0), leaves[:2], leaves[2:]
    if case["settings"]["mode"] == "simclr":
        value = contrastive_loss(tuple(first), tuple(second), similarity=similarity)
    else:  # the anchors are the second view, their candidates the first
        u, v = similarity.embed(tuple(second)), similarity.embed(tuple(first))
        own = torch.arange(len(u))[:, None]
        contrast = Contrast(u, v, similarity.pairs(u, v)[:, None], own)
        value = objective_value(contrast, InfoNCE(), similarity)
    exact = dtype == torch.float64
    # Values down to 1e-26: e^s of differences of scores of tens, to relative rounding.
    tolerance = 1e-8 if case["value"] > 1e-20 else 1e-5
    assert value.item() == pytest.approx(case["value"], rel=tolerance if exact else 1e-4, abs=0)
    grads = torch.autograd.grad(value, leaves)
    for grad, name in ((grads[1], "A"), (grads[3], "B")):
        reference = torch.tensor(case[f"grad_kappa_{name}"], dtype=torch.float64)
        assert (grad - reference).norm() < (1e-6 if exact else 1e-4) * reference.norm()
    if case["value"] > 1e-10:  # else the gradient along the sphere is lost in that across it
        for grad, mu, name in ((grads[0], mu_a, "A"), (grads[2], mu_b, "B")):
            reference = torch.tensor(case[f"grad_{name}_row0"], dtype=torch.float64)
            reference -= (reference @ mu[0]) * mu[0]
            assert (grad[0] - reference).norm() < (1e-6 if exact else 1e-4) * reference.norm()


@pytest.mark.parametrize(
    "loss", [s for s in LOSSES if not (s.hardness() and s.detach_weights)], ids=repr
)
def test_gradcheck_of_every_loss(loss):
    views = [z.requires_grad_() for z in random_views(5, 5, seed=1)]
    similarity = VonMisesFisher(2.0, 20.0)
    assert torch.autograd.gradcheck(
        lambda *z: evaluate(*z, loss=loss, similarity=similarity), views
    )


def test_gradcheck_of_directions_concentrations_and_queue():
    (mu, kappa), (nu, rho), queue = (some(4, 3, 20.0, seed=s) for s in range(3))
    leaves = [t.requires_grad_() for t in (mu, kappa, nu, rho, *queue)]

    def value(mu, kappa, nu, rho, *queue):
        similarity = VonMisesFisher(1.0)
        return contrastive_loss((mu, kappa), (nu, rho), similarity=similarity, queue=queue)

    assert torch.autograd.gradcheck(value, leaves)


def test_scores_can_be_differentiated_twice():
    views = [z.requires_grad_() for z in random_views(3, 4)]
    assert torch.autograd.gradgradcheck(lambda *z: VonMisesFisher(2.0, 20.0)(*z).sum(), views)


@pytest.mark.parametrize("objective", ["contrastive", "jensen-shannon"])
@pytest.mark.parametrize("n_views, rows", [(2, 3), (3, 1), (2, 32)])
@pytest.mark.parametrize("with_queue", [False, True])
def test_tiled_equals_autograd_on_all_scores(monkeypatch, objective, n_views, rows, with_queue):
    class ByAutograd(VonMisesFisher):
        n_terms = 0  # what the engine goes by

        def embed(self, z):
            return torch.cat(
                [*VonMisesFisher.embed(VonMisesFisher(4.0, 50.0), z).split(1, -1)], -1
            )

    views = torch.stack(random_views(9, 6, n_views)).requires_grad_()
    keys = torch.cat(random_views(8, 6, seed=5)).requires_grad_()
    similarity = VonMisesFisher(4.0, 50.0)
    monkeypatch.setattr(_tiles, "_TILE_ELEMENTS", 1)
    monkeypatch.setattr(_tiles, "_TILE_ROWS", rows)

    def value(of_engine):
        contrast = in_batch(similarity.embed(views), similarity)
        if with_queue:
            none = contrast.excluded[:, :0]
            contrast = contrast._replace(candidates=similarity.embed(keys), excluded=none)
        if of_engine:
            return objective_value(contrast, InfoNCE(), similarity, objective)
        scores = similarity.scores(contrast.anchors, contrast.candidates)
        apart = torch.ones_like(scores).scatter(1, contrast.excluded, 0) > 0
        rest = scores[apart].view(len(scores), -1)
        if objective == "jensen-shannon":
            return (F.softplus(-contrast.positives).mean(1) + F.softplus(rest).mean(1)).mean()
        return (rest.logsumexp(1, keepdim=True) - contrast.positives).exp().log1p().mean()

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


def test_memory_grows_with_the_batch_and_not_with_its_square():
    def peak(n):
        z = torch.randn(2, n, 17, generator=torch.Generator().manual_seed(0)).requires_grad_()
        similarity = VonMisesFisher(1.0)
        return peak_memory(lambda: contrastive_loss(*z, similarity=similarity).backward())

    assert peak(8192) < 3 * peak(2048)


def test_networks_output_is_a_direction_and_a_number_of_the_concentration():
    similarity = VonMisesFisher(1.0, kappa_max=100.0)
    x = torch.tensor([-200.0, -3.0, 0.0, 3.0, 200.0])
    mu, kappa = similarity.distribution(torch.cat([torch.full((5, 4), 3.0), x[:, None]], 1))
    torch.testing.assert_close(mu.norm(dim=1), torch.ones(5))
    assert (kappa.diff() > 0).all() and kappa[0] >= 0 and kappa[-1] <= 100
    torch.testing.assert_close(
        similarity.embed(torch.cat([torch.full((5, 4), 3.0), x[:, None]], 1)),
        similarity.embed((torch.full((5, 4), 0.5), kappa)),
    )


def test_a_bank_remembers_directions_of_length_one_and_the_number_as_it_is():
    z = torch.tensor([[3.0, 4.0, -7.0]])
    torch.testing.assert_close(VonMisesFisher(1.0).remembered(z), torch.tensor([[0.6, 0.8, -7.0]]))
    torch.testing.assert_close(Cosine().remembered(z[:, :2]), torch.tensor([[0.6, 0.8]]))


MU, KAPPA = torch.eye(3), torch.ones(3)
VMF = VonMisesFisher(1.0, kappa_max=10.0)


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
        ([(MU, KAPPA), (MU, KAPPA, KAPPA)], {}, TypeError, "view 2 is a tuple of 3"),
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
        ((MU, KAPPA), (MU, KAPPA * math.nan), ValueError, "concentrations of z2 .* got NaN"),
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


@pytest.mark.parametrize("temperature", [0, Linear(1, 2)])
def test_a_call_refuses_a_bad_temperature(temperature):
    with pytest.raises(ValueError, match="'temperature' parameter of VonMisesFisher"):
        VonMisesFisher(temperature)((MU, KAPPA), (MU, KAPPA))


def test_a_call_with_two_dtypes_is_computed_in_the_finer():
    exact = VMF((MU.double(), KAPPA.double()), (MU.double(), KAPPA.double()))
    torch.testing.assert_close(VMF((MU.double(), KAPPA), (MU, KAPPA)), exact)


def test_scores_without_a_gradient_take_little_memory():
    u = VMF.embed(some(1000, 5, 10.0))
    assert peak_memory(lambda: VMF.scores(u, u)) < 2 * 8 * 1000**2
    scores = VMF.scores(u, u)
    torch.testing.assert_close(scores, VMF.scores(u.clone().requires_grad_(), u).detach())


def test_parameter_objects_have_no_methods_of_metadata_requests():
    """scikit-learn adds them where a method is called like one of its own, such as split."""
    names = dir(VonMisesFisher)
    assert not [name for name in names if name.startswith("set_") and name != "set_params"]
