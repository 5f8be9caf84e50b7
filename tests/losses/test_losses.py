"""The losses: golden values of the authors' code, identities, limits, gradients, validation."""

import pickle

import pytest
import torch
from sklearn.base import clone

from skcontrast import contrastive_loss, losses
from skcontrast._objective._contrast import in_batch
from skcontrast._objective._exponential import log_expectation
from skcontrast._objective._functional import objective_value
from skcontrast.losses import (
    BCL,
    DCL,
    HCL,
    PUCL,
    InfoNCE,
    Loss,
    NonparametricBCL,
    PositiveDebiased,
    Ring,
    SupCon,
    Supervised,
)
from skcontrast.losses import __all__ as exported
from skcontrast.schedules import Auto, Linear
from skcontrast.similarity import Cosine
from tests.common import LOSSES, evaluate, golden_cases, golden_input, random_views, some_labels

# Golden case name -> our loss from its settings.
GOLDEN = {
    "simclr_ntxent": lambda s: InfoNCE(),
    "dcl_biased": lambda s: InfoNCE(),
    "moco_infonce": lambda s: InfoNCE(),
    "dcl": lambda s: DCL(s["tau_plus"]),
    "neg_debiased_troe": lambda s: DCL(s["tau_plus"]),
    "hcl": lambda s: HCL(s["tau_plus"], s["beta"]),
    "pucl": lambda s: PUCL(s["alpha"], s["c"]),
    "pucl_printed_floor": lambda s: PUCL(s["alpha"], s["c"], floor="printed"),
    "moco_ring": lambda s: Ring(s["thres_outer"], s["thres_inner"]),
    "bcl_v1": lambda s: BCL(
        s["alpha"], s["beta"], s["tau_plus"], "printed", detach_weights=s["detach_weights"]
    ),
    "bcl_v1_inverted_cdf": lambda s: BCL(s["alpha"], s["beta"], s["tau_plus"]),
    "bcl_v2_exact": lambda s: NonparametricBCL(s["alpha"], s["beta"], s["tau_plus"]),
    "supcon_sup": lambda s: SupCon(),
    "supcon_unsup": lambda s: SupCon(),
    "pos_debiased": lambda s: PositiveDebiased(s["tau_plus"]),
    "pos_debiased_preprint_eq11_13": lambda s: PositiveDebiased(s["tau_plus"], "printed"),
}

GOLDEN_LABELS = {
    "supcon_sup": lambda n: torch.arange(n) % 3,
    "supcon_unsup": lambda n: torch.full((n,), -1),
}

# Golden cases of another form than one of our losses on two views, and why. The tests below and
# those of the named modules say how they agree.
OTHER_GOLDEN = {
    "simclr_tf_google": "the sum of the two views' means instead of their mean: twice InfoNCE",
    "supcon_unsup_default_base": "temperature / base_temperature times SupCon",
    "combination_troe": "the mean of two losses",
    "pos_debiased_M2_loss_combination": "the mean over pairs of views",
    "pos_debiased_M2_pos_grouping": "a view that only serves as a further positive",
    "neg_debiased_M2_pos_grouping": "a view that only serves in the correction",
    "bcl_v2_code_head": "adds 1e-3 in two places",
    "bcl_v2_code_rebuttal": "ranks among all scores, the anchor's own and its positive included",
    "pos_debiased_2023_03_16": "a first version that the authors replaced",
    "cmc_nce_criterion": "noise-contrastive estimation, not InfoNCE",
    "infograph_jsd": "node against graph: test_objective",
    "hcl_graph_JSD": "the same",
    "hcl_graph_JSD_hard": "signs reversed in the published code",
}
# Cases of another similarity, which its own test module compares in full.
GOLDEN_ELSEWHERE = {"prob_mls_infonce": "test_von_mises_fisher"}


def name(obj):
    return repr(obj)


def case_id(case):
    settings = "-".join(f"{k}={v}" for k, v in case["settings"].items() if isinstance(v, float))
    return f"{case['loss']}-{settings}"


@pytest.fixture(params=LOSSES, ids=name)
def loss(request):
    return clone(request.param)


def value_and_grads(views, dtype=torch.float64, **kwargs):
    leaves = [v.detach().to(dtype).requires_grad_() for v in views]
    value = evaluate(*leaves, **kwargs)
    return value, torch.autograd.grad(value, leaves)


def assert_same(first, second, rtol=1e-12):
    torch.testing.assert_close(first, second, rtol=rtol, atol=1e-12)


def test_every_exported_loss_is_tested():
    assert {type(loss).__name__ for loss in LOSSES} == set(exported) - {"Loss"}


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("case", [c for c in golden_cases() if c["loss"] in GOLDEN], ids=case_id)
def test_agrees_with_the_authors_code(case, dtype):
    settings = case["settings"]
    views = [golden_input(v, case["B"], case["d"]) for v in "AB"]
    if "ties" in settings:
        for view in views:
            view[3] = view[2]
    queue = golden_input("Q", settings["K"], case["d"]).to(dtype) if "K" in settings else None
    value, grads = value_and_grads(
        views,
        dtype,
        loss=GOLDEN[case["loss"]](settings),
        similarity=Cosine(settings["temperature"]),
        queue=queue,
        y=GOLDEN_LABELS.get(case["loss"], lambda n: None)(case["B"]),
    )
    exact = dtype == torch.float64
    # At temperature .1 the reference takes log(1 + 6e-8) in float64: its own rounding is 1e-9.
    assert value.item() == pytest.approx(case["value"], rel=1e-9 if exact else 1e-4, abs=1e-15)
    for view, grad, which in zip(views, grads, "AB", strict=True):
        if case.get(f"grad_{which}_row0") is None:
            continue
        # The reference differentiates with respect to unit rows, we normalise inside: compare
        # along the tangent.
        reference = torch.tensor(case[f"grad_{which}_row0"], dtype=torch.float64)
        reference -= (reference @ view[0]) * view[0]
        tolerance = 1e-8 if exact else 1e-4
        error = (grad[0].double() - reference).norm() / reference.norm()
        assert error < tolerance


def golden(loss, **settings):
    """Return the reference case of a loss with some settings."""
    for case in golden_cases():
        if case["loss"] == loss and settings.items() <= case["settings"].items():
            return case
    raise LookupError(loss)


def test_every_golden_case_is_accounted_for():
    assert {case["loss"] for case in golden_cases()} == {
        *GOLDEN,
        *OTHER_GOLDEN,
        *GOLDEN_ELSEWHERE,
    }


@pytest.mark.parametrize("temperature", [0.5, 0.1])
def test_other_codes_scale_the_same_loss(temperature):
    views = [golden_input(v, 8, 16) for v in "AB"]
    value = contrastive_loss(*views, similarity=Cosine(temperature)).item()
    twice = golden("simclr_tf_google", temperature=temperature)["value"]
    scaled = golden("supcon_unsup_default_base", temperature=temperature)["value"]
    assert twice == pytest.approx(2 * value, rel=1e-9)
    assert scaled == pytest.approx(temperature / 0.07 * value, rel=1e-9)


def grouped(loss):
    """Return the loss of views A and B with C as a further positive of both."""
    similarity = Cosine(0.5)
    a, b, c = (similarity.embed(golden_input(v, 8, 16)) for v in "ABC")
    contrast = in_batch(torch.stack([a, b]), similarity)
    further = torch.cat([similarity.pairs(a, c), similarity.pairs(b, c)])[:, None]
    contrast = contrast._replace(positives=torch.cat([contrast.positives, further], 1))
    return objective_value(contrast, loss, similarity)


def test_several_positives_agree_with_the_authors_code():
    a, b, c = (golden_input(v, 8, 16) for v in "ABC")
    positive, negative = PositiveDebiased(0.1), DCL(0.1)
    pairs = [contrastive_loss(*p, loss=positive) for p in ((a, b), (a, c), (b, c))]
    expected = golden("pos_debiased_M2_loss_combination")["value"]
    assert torch.stack(pairs).mean().item() == pytest.approx(expected, rel=1e-9)
    in_scores = grouped(PositiveDebiased(0.1, aggregate="scores"))
    expected = golden("pos_debiased_M2_pos_grouping")["value"]
    assert in_scores.item() == pytest.approx(expected, rel=1e-9)
    both = [contrastive_loss(a, b, loss=loss) for loss in (positive, negative)]
    expected = golden("combination_troe")["value"]
    assert torch.stack(both).mean().item() == pytest.approx(expected, rel=1e-9)


def test_the_correction_by_several_positives_agrees_with_the_authors_code():
    similarity = Cosine(0.5)
    a, b, c = (similarity.embed(golden_input(v, 8, 16)) for v in "ABC")
    contrast = in_batch(torch.stack([a, b]), similarity)
    further = torch.cat([similarity.pairs(a, c), similarity.pairs(b, c)])[:, None]
    scores = contrast.anchors @ contrast.candidates.T
    apart = torch.ones(16, 16, dtype=torch.bool).scatter_(1, contrast.excluded, False)
    scores, own = scores[apart].view(16, 14), contrast.positives
    positives = torch.cat([own, further], 1)
    estimate = log_expectation(scores, positives, DCL(0.1), similarity.bounds)
    value = (1 + 14 * (estimate - own[:, 0]).exp()).log().mean().item()
    assert value == pytest.approx(golden("neg_debiased_M2_pos_grouping")["value"], rel=1e-9)


@pytest.mark.parametrize("case", [c for c in golden_cases() if c["loss"] == "bcl_v2_code_head"])
def test_nonparametric_bcl_is_near_the_code_that_adds_a_thousandth(case):
    settings = case["settings"]
    if settings["alpha"] == settings["beta"] == 1:
        assert case["value"] == 0  # the code trains nothing; ours refuses
        return
    views = [golden_input(v, 8, 16) for v in "AB"]
    if "ties" in settings:
        for view in views:
            view[3] = view[2]
    value = contrastive_loss(
        *views,
        loss=NonparametricBCL(settings["alpha"], settings["beta"], settings["tau_plus"]),
        similarity=Cosine(settings["temperature"]),
    ).item()
    assert value == pytest.approx(case["value"], rel=0.03)


IDENTITIES = {
    "DCL(tau_plus=0) = InfoNCE": (DCL(tau_plus=0), InfoNCE()),
    "HCL(beta=0) = DCL": (HCL(tau_plus=0.15, beta=0), DCL(tau_plus=0.15)),
    "HCL(beta=0, tau_plus=0) = InfoNCE": (HCL(tau_plus=0, beta=0), InfoNCE()),
    "HCL(tau_plus=0, beta) = BCL(alpha=.5, beta, detach_weights=False)": (
        HCL(tau_plus=0, beta=0.8),
        BCL(alpha=0.5, beta=0.8, detach_weights=False),
    ),
    "PUCL = DCL(effective_tau_plus)": (
        PUCL(tau_plus=0.3, c=0.4),
        DCL(tau_plus=PUCL(tau_plus=0.3, c=0.4).effective_tau_plus),
    ),
    "PUCL(c=1) = InfoNCE": (PUCL(tau_plus=0.3, c=1), InfoNCE()),
    "PUCL(c=0) = DCL": (PUCL(tau_plus=0.3, c=0), DCL(tau_plus=0.3)),
    "BCL(alpha=.5, beta=0) = InfoNCE": (BCL(alpha=0.5, beta=0), InfoNCE()),
    "NonparametricBCL(alpha=.5, beta=.5) = InfoNCE": (
        NonparametricBCL(alpha=0.5, beta=0.5),
        InfoNCE(),
    ),
    "BCL(alpha, beta=0) = NonparametricBCL(alpha, beta=.5)": (
        BCL(alpha=0.8, beta=0, tau_plus=0.2),
        NonparametricBCL(alpha=0.8, beta=0.5, tau_plus=0.2, normalize_weights=True),
    ),
    "Ring(outer=1, inner=0) = InfoNCE": (Ring(outer=1, inner=0), InfoNCE()),
    "PositiveDebiased(negatives=InfoNCE) = PositiveDebiased": (
        PositiveDebiased(tau_plus=0.2, negatives=InfoNCE()),
        PositiveDebiased(tau_plus=0.2),
    ),
    "PositiveDebiased(negatives=DCL(tau_plus=0)) = PositiveDebiased": (
        PositiveDebiased(tau_plus=0.2, aggregate="scores", negatives=DCL(tau_plus=0)),
        PositiveDebiased(tau_plus=0.2, aggregate="scores"),
    ),
}


@pytest.mark.parametrize("first, second", IDENTITIES.values(), ids=IDENTITIES)
@pytest.mark.parametrize("n_views", [2, 3])
def test_identity(first, second, n_views):
    views = random_views(13, 7, n_views)
    assert_same(value_and_grads(views, loss=first), value_and_grads(views, loss=second))


def test_infonce_is_cross_entropy_over_positive_and_negatives():
    z1, z2 = random_views(9, 5)
    z = torch.nn.functional.normalize(torch.cat([z1, z2]), dim=1)
    logits = (z @ z.T / 0.3).fill_diagonal_(-torch.inf)
    target = torch.arange(18).roll(9)
    expected = torch.nn.functional.cross_entropy(logits, target)
    assert_same(contrastive_loss(z1, z2, similarity=Cosine(0.3)), expected)


def naive_estimate(loss, negatives, positives, same_class, temperature):
    """The estimate of an expectation over true negatives for one anchor, by its formula."""
    a, b = loss.coefficients()
    weights = (loss.hardness() * negatives).exp()
    if loss.weighs_ranks:
        ranks = (negatives[:, None] >= negatives).sum(1).double()
        weights = weights * loss.rank_weights(ranks, len(negatives))
    if isinstance(loss, Supervised):
        weights = weights * ~same_class
    if loss.normalize_weights:
        weights = weights / weights.mean()
    if loss.detach_weights:
        weights = weights.detach()
    estimate = a * (weights * negatives.exp()).mean() - b * positives.exp().mean()
    lowest = -1.0 if getattr(loss, "floor", "lowest") == "printed" else -1 / temperature
    floor = torch.tensor(lowest, dtype=estimate.dtype).exp()
    return torch.maximum(estimate, floor) if b else estimate


def naive_loss(views, loss, temperature):
    """The formula of the losses, one anchor at a time, differentiated by autograd."""
    u = torch.nn.functional.normalize(torch.stack(views), dim=-1)
    n_views, n, _ = u.shape
    labels = some_labels(n)
    total = 0.0
    for v in range(n_views):
        for i in range(n):
            s = u @ u[v, i] / temperature
            others = [j for j in range(n) if j != i]
            negatives = s[:, others].flatten()
            positives = s[[w for w in range(n_views) if w != v], i]
            same_class = ((labels[others] == labels[i]) & (labels[i] >= 0)).repeat(n_views)
            args = negatives, positives, same_class, temperature
            if isinstance(loss, PositiveDebiased):
                total = total + positive_debiased(loss, *args)
            elif isinstance(loss, SupCon):
                pulled = torch.cat([positives, negatives[same_class]])
                log_all = torch.cat([positives, negatives]).logsumexp(0)
                total = total + (log_all - pulled).mean()
            else:
                ratio = len(negatives) * naive_estimate(loss, *args) / positives.exp()
                total = total + (1 + ratio).log().mean()
    return total / (n_views * n)


def positive_debiased(loss, negatives, positives, same_class, temperature):
    n, p, g = len(negatives), positives.exp(), negatives.exp().mean()
    estimate = naive_estimate(
        loss.negatives or InfoNCE(), negatives, positives, same_class, temperature
    )
    if loss.aggregate == "scores":
        p = p.mean()
    self_score = torch.tensor(1 / temperature, dtype=p.dtype).exp()
    mean = p + g if loss.positive_mean == "printed" else (n * g + p + self_score) / (n + 2)
    rest = 1 - loss.tau_plus
    floor = loss.tau_plus / self_score
    top = torch.maximum(mean - rest * g, floor)
    return -(top / (top + n * loss.tau_plus * estimate)).log().mean()


@pytest.mark.parametrize("temperature", [0.2, 1.0])
@pytest.mark.parametrize("n_views", [2, 3])
def test_equals_the_formula_written_out(loss, n_views, temperature):
    views = [v.requires_grad_() for v in random_views(11, 6, n_views, seed=3)]
    expected = naive_loss(views, loss, temperature)
    actual = evaluate(*views, loss=loss, similarity=Cosine(temperature))
    assert_same(
        (actual, torch.autograd.grad(actual, views)),
        (expected, torch.autograd.grad(expected, views)),
        rtol=1e-9,
    )


# With detached weights the gradient is not the derivative of the value.
@pytest.mark.parametrize(
    "loss", [s for s in LOSSES if not (s.hardness() and s.detach_weights)], ids=name
)
def test_gradcheck(loss):
    views = [v.requires_grad_() for v in random_views(5, 4, seed=1)]
    assert torch.autograd.gradcheck(lambda *z: evaluate(*z, loss=loss), views)


def test_invariant_to_the_order_of_the_samples(loss):
    views = random_views(12, 6)
    order = torch.randperm(12, generator=torch.Generator().manual_seed(0))
    y = some_labels(12)
    value, grads = value_and_grads(views, loss=loss, y=y)
    permuted, permuted_grads = value_and_grads([v[order] for v in views], loss=loss, y=y[order])
    assert_same(permuted, value)
    assert_same(permuted_grads, tuple(g[order] for g in grads))


def test_invariant_to_the_order_of_the_queue(loss):
    views, (queue, _) = random_views(6, 5), random_views(40, 5, seed=9)
    queue_y = some_labels(40)
    assert_same(
        value_and_grads(views, loss=loss, queue=queue.flip(0), queue_y=queue_y.flip(0)),
        value_and_grads(views, loss=loss, queue=queue, queue_y=queue_y),
    )


def test_invariant_to_the_length_of_the_embeddings_and_to_rotation(loss):
    views = random_views(8, 5)
    rotation, _ = torch.linalg.qr(random_views(5, 5)[0])
    changed = [7.0 * v @ rotation for v in views]
    assert_same(evaluate(*changed, loss=loss), evaluate(*views, loss=loss))


@pytest.mark.parametrize(
    "views",
    [
        [torch.eye(4), torch.eye(4)],  # positives at the highest score, negatives orthogonal
        [torch.eye(4), -torch.eye(4)],  # positives at the lowest score
        [torch.ones(4, 4), torch.ones(4, 4)],  # all ties at the highest score
        [torch.zeros(4, 4), torch.eye(4)],  # no direction at all
        [torch.eye(4)[:2], torch.eye(4)[:2]],  # two samples
    ],
    ids=["aligned", "opposed", "ties", "zeros", "two samples"],
)
@pytest.mark.parametrize("temperature", [1 / 80, 0.01, 1.0])
def test_finite_at_the_extremes_in_float32(loss, views, temperature):
    value, grads = value_and_grads(views, torch.float32, loss=loss, similarity=Cosine(temperature))
    assert value.isfinite()
    assert all(g.isfinite().all() for g in grads)


@pytest.mark.parametrize("tau_plus", [0.0, 0.05, 0.1, 0.3, 0.7])
@pytest.mark.parametrize("kind", [BCL, NonparametricBCL])
def test_finite_where_the_ranks_are_fully_trusted(kind, tau_plus):
    for n in (3, 17, 50, 64):
        views = random_views(n, 8, seed=n)
        value, grads = value_and_grads(views, torch.float32, loss=kind(1.0, 0.3, tau_plus))
        assert value.isfinite() and all(g.isfinite().all() for g in grads)


def test_finite_for_hard_negatives_at_low_temperature():
    views = random_views(64, 8)
    value, grads = value_and_grads(views, torch.float32, loss=HCL(beta=5), similarity=Cosine(0.01))
    exact, _ = value_and_grads(views, torch.float64, loss=HCL(beta=5), similarity=Cosine(0.01))
    assert value.item() == pytest.approx(exact.item(), rel=1e-4)
    assert all(g.isfinite().all() for g in grads)


def test_single_negative(loss):
    n_negatives = 2 if "Ring" in repr(loss) else 1  # an empty ring is refused
    views, (queue, _) = random_views(5, 4), random_views(n_negatives, 4, seed=2)
    value, grads = value_and_grads(views, loss=loss, queue=queue)
    assert value.isfinite() and all(g.isfinite().all() for g in grads)


def test_supervised_with_all_labels_different_is_infonce():
    views = random_views(9, 5)
    expected = value_and_grads(views, loss=InfoNCE())
    assert_same(value_and_grads(views, loss=Supervised(), y=torch.arange(9)), expected)
    assert_same(value_and_grads(views, loss=Supervised(), y=torch.full((9,), -1)), expected)


def test_supcon_without_labels_is_infonce():
    views = random_views(9, 5)
    expected = value_and_grads(views, loss=InfoNCE())
    assert_same(value_and_grads(views, loss=SupCon(), y=torch.full((9,), -1)), expected)


@pytest.mark.parametrize("loss", [Supervised(), SupCon()], ids=name)
def test_all_labels_equal_is_finite(loss):
    views = random_views(6, 4)
    value, grads = value_and_grads(views, torch.float32, loss=loss, y=torch.zeros(6).long())
    assert value.isfinite() and all(g.isfinite().all() for g in grads)


def test_supervised_leaves_false_negatives_alone():
    z = random_views(3, 4)
    queue = random_views(2, 4, seed=1)[0].requires_grad_()
    y, queue_y = torch.tensor([0, 0, 0]), torch.tensor([0, 1])
    contrastive_loss(*z, loss=Supervised(), queue=queue, y=y, queue_y=queue_y).backward()
    assert queue.grad[0].abs().max() == 0 < queue.grad[1].abs().max()


def test_weights_of_another_dtype_are_taken():
    views = random_views(6, 4, dtype=torch.float32)
    weight = torch.arange(6)
    value = contrastive_loss(*views, sample_weight=weight)
    assert value.dtype == torch.float32
    assert_same(value, contrastive_loss(*views, sample_weight=weight.double()))


def test_weights_multiply_the_losses_of_the_samples(loss):
    views = random_views(6, 4)
    queue, queue_y = random_views(20, 4, seed=3)[0], some_labels(20)
    each = [
        evaluate(*(v[[i]] for v in views), loss=loss, queue=queue, y=some_labels(6)[[i]])
        for i in range(6)
    ]
    weight = torch.linspace(0, 2, 6, dtype=torch.float64)
    together = evaluate(*views, loss=loss, queue=queue, queue_y=queue_y, sample_weight=weight)
    assert_same(together, torch.stack(each) @ weight / 6, rtol=1e-10)


@pytest.mark.parametrize(
    "kwargs, error, message",
    [
        ({}, ValueError, "Supervised needs labels: pass y"),
        ({"y": torch.arange(3)}, ValueError, "y must have 4 entries, got 3"),
        ({"y": [0, 1, 0, 1]}, TypeError, "y must be a tensor of integers"),
        ({"y": torch.rand(4)}, TypeError, "y must be a tensor of integers"),
        ({"y": torch.arange(4), "queue": torch.ones(2, 3)}, ValueError, "pass queue_y"),
        (
            {"y": torch.arange(4), "sample_weight": torch.ones(3)},
            ValueError,
            r"sample_weight must be a tensor of shape \(4,\)",
        ),
        (
            {"y": torch.arange(4), "sample_weight": -torch.ones(4)},
            ValueError,
            "sample_weight must hold no negative numbers",
        ),
    ],
)
def test_bad_labels_and_weights_are_refused(kwargs, error, message):
    with pytest.raises(error, match=message):
        contrastive_loss(*random_views(4, 3), loss=Supervised(), **kwargs)


def test_floored_anchors_pass_no_gradient_to_the_negatives():
    z = torch.eye(4, dtype=torch.float64)
    queue = -z[:1] + 0.01
    queue.requires_grad_()
    # The negatives lie at the lowest score: the debiased estimate is below its floor.
    contrastive_loss(z, z, loss=DCL(tau_plus=0.5), queue=queue).backward()
    assert torch.equal(queue.grad, torch.zeros_like(queue))


def test_harder_negatives_cost_more_with_beta():
    views = random_views(32, 8)
    values = [contrastive_loss(*views, loss=HCL(beta=b)).item() for b in (0, 0.5, 1, 2)]
    assert values == sorted(values)


def test_debiasing_lowers_the_loss_of_unaligned_views():
    views = random_views(32, 8)
    values = [contrastive_loss(*views, loss=DCL(tau_plus=t)).item() for t in (0, 0.05, 0.1, 0.2)]
    assert values == sorted(values, reverse=True)


NEGATIVES = "'negatives' parameter of PositiveDebiased"
BAD = [
    (DCL(tau_plus=7), "'tau_plus' parameter of DCL", r"\[0.0, 1.0\)"),
    (DCL(tau_plus=1), "'tau_plus' parameter of DCL", r"\[0.0, 1.0\)"),
    (DCL(tau_plus=float("nan")), "'tau_plus' parameter of DCL", r"\[0.0, 1.0\)"),
    (DCL(tau_plus="0.1"), "'tau_plus' parameter of DCL", r"\[0.0, 1.0\)"),
    (HCL(beta=-0.5), "'beta' parameter of HCL", r"\[0.0, inf\)"),
    (PUCL(c=1.5), "'c' parameter of PUCL", r"\[0.0, 1.0\]"),
    (Ring(outer=0), "'outer' parameter of Ring", r"\(0.0, 1.0\]"),
    (BCL(alpha=0.4), "'alpha' parameter of BCL", r"\[0.5, 1.0\]"),
    (BCL(cdf="exact"), "'cdf' parameter of BCL", "printed"),
    (NonparametricBCL(beta=2), "'beta' parameter of NonparametricBCL", r"\[0.0, 1.0\]"),
    (PositiveDebiased(tau_plus=0), "'tau_plus' parameter of PositiveDebiased", r"\(0.0, 1.0\)"),
    (PositiveDebiased(negatives=DCL(7)), "'tau_plus' parameter of DCL", r"\[0.0, 1.0\)"),
    (PositiveDebiased(negatives=SupCon()), NEGATIVES, "got SupCon"),
    (PositiveDebiased(negatives=PositiveDebiased()), NEGATIVES, "got Positive"),
    (HCL(detach_weights="yes"), "'detach_weights' parameter of HCL", "bool"),
]


@pytest.mark.parametrize("bad, who, expected", BAD, ids=[name(b[0]) for b in BAD])
def test_value_out_of_range_is_refused_by_name(bad, who, expected):
    with pytest.raises(ValueError, match=rf"The {who} must be .*{expected}"):
        contrastive_loss(*random_views(4, 3), loss=bad)


@pytest.mark.parametrize("negatives, message", [(DCL, "negatives=DCL\\(\\)"), (0.1, "got 0.1")])
def test_what_is_no_estimate_is_refused(negatives, message):
    with pytest.raises(TypeError, match=rf"The {NEGATIVES} must be an instance.*{message}"):
        contrastive_loss(*random_views(4, 3), loss=PositiveDebiased(negatives=negatives))


def test_weights_that_are_zero_are_zero_in_every_dtype():
    anchor, positive = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]])
    for dtype in (torch.float32, torch.float64):
        value = contrastive_loss(
            anchor.to(dtype),
            positive.to(dtype),
            queue=torch.eye(2, dtype=dtype),
            loss=BCL(1.0, tau_plus=0.1),
            similarity=Cosine(1 / 80),
        )
        assert value.item() == pytest.approx(1.0986, abs=1e-3)  # log 3: the other one alone counts


def test_a_negative_positive_term_is_floored_with_a_warning():
    a = torch.tensor([1.0, 0.0], dtype=torch.float64)
    views = torch.stack([a, a]), torch.stack([-a, a])
    with pytest.warns(UserWarning, match="tau_plus=0.01 and 2 candidates.* floored"):
        value = contrastive_loss(*views, loss=PositiveDebiased(0.01), similarity=Cosine(1 / 80))
    assert value.item() == pytest.approx(40.19, abs=0.01)


def test_positive_debiased_needs_bounded_scores():
    class Unbounded(Cosine):
        bounds = (-float("inf"), float("inf"))

    with pytest.raises(ValueError, match="needs finite bounds"):
        contrastive_loss(*random_views(4, 3), loss=PositiveDebiased(), similarity=Unbounded())


def test_effective_tau_plus_needs_numbers():
    with pytest.raises(ValueError, match="'tau_plus' parameter of PUCL"):
        _ = PUCL("auto").effective_tau_plus


def test_a_density_that_vanishes_is_refused():
    with pytest.raises(ValueError, match="'alpha' and 'beta' parameters of NonparametricBCL"):
        contrastive_loss(*random_views(4, 3), loss=NonparametricBCL(alpha=1, beta=1))


def test_an_empty_ring_is_refused():
    with pytest.raises(ValueError, match=r"The ring is empty: outer=0\.1 of 2 candidates"):
        contrastive_loss(*random_views(2, 3), loss=Ring(outer=0.1))


def test_class_instead_of_instance_is_refused():
    with pytest.raises(TypeError, match=r"must be an instance, got the class DCL.*loss=DCL\(\)"):
        contrastive_loss(*random_views(4, 3), loss=DCL)


def test_schedule_outside_of_fit_is_refused():
    with pytest.raises(ValueError, match="'tau_plus' parameter of DCL is a schedule"):
        contrastive_loss(*random_views(4, 3), loss=DCL(tau_plus=Linear(0, 0.1)))


@pytest.mark.parametrize(
    "loss",
    [DCL("auto"), BCL(alpha=Auto(every=3)), PositiveDebiased(negatives=DCL(tau_plus="auto"))],
    ids=name,
)
def test_auto_outside_of_fit_is_refused(loss):
    with pytest.raises(
        ValueError, match=r"is estimated from the data in fit only.*estimation\.estimate"
    ):
        contrastive_loss(*random_views(4, 3), loss=loss)


def test_parameter_object_contract(loss):
    copy = clone(loss)
    assert copy is not loss and repr(copy) == repr(loss)
    assert repr(pickle.loads(pickle.dumps(loss))) == repr(loss)
    assert repr(eval(repr(loss), vars(losses))) == repr(loss)
    assert isinstance(loss, Loss)
