"""Losses of one's own: what they override is found out, and the gradient is right."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from skcontrast import contrastive_loss
from skcontrast._objective._contrast import Contrast
from skcontrast._objective._mean_loss import OBJECTIVES, objective_value
from skcontrast._objective._tile import Anchors, Tile
from skcontrast.estimation import ScoreSample
from skcontrast.estimation._known_scores import estimate
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
    SoftSupCon,
    SupCon,
    Supervised,
)
from skcontrast.losses._checks import check_pieces
from skcontrast.losses._posterior import false_negative_probability
from skcontrast.similarity import DotProduct
from tests._objective.common import slopes
from tests.common import BY_DIRECTIONS

LABELS = torch.arange(9) % 3
SOFT = SoftSupCon(sharpness=3.0, tau_plus=0.2, pull=0.4)


class OwnBCL(Loss):
    """Overrides `rank_weights` and declares nothing."""

    def rank_weights(self, ranks, n_candidates):
        return BCL(alpha=0.8, tau_plus=0.2).rank_weights(ranks, n_candidates)


class OwnSupervised(Loss):
    """Overrides `class_weights` and declares nothing."""

    def class_weights(self, same_class):
        return ~same_class


class OwnPositiveDebiased(Loss):
    """Overrides `anchor_loss` and declares nothing."""

    def anchor_loss(self, log_means, positives, n_candidates, bounds):
        return PositiveDebiased(0.2).anchor_loss(log_means, positives, n_candidates, bounds)


class OwnSupCon(Loss):
    """Overrides `row_loss` with labels."""

    def row_loss(self, scores, positives, same_class):
        log_all = torch.logsumexp(torch.cat([scores, positives], 1), 1)
        pulled = torch.where(same_class, scores, 0.0).sum(1) + positives.sum(1)
        return log_all - pulled / (same_class.sum(1) + positives.shape[1])


class OwnSoftSupCon(Loss):
    """The same without labels, at the sharpness and the prior of `SOFT`."""

    def row_loss(self, scores, positives):
        scores = scores[scores.isfinite()].view(len(scores), -1)  # as many of each anchor
        n = scores.shape[1]
        u = ((scores[:, None] <= scores[:, :, None]).sum(2).double() - 0.5) / n
        p = false_negative_probability(u, SOFT.sharpness, SOFT.tau_plus)
        negatives = ((1 - p) * scores.exp()).sum(1) / (1 - p).mean(1)
        own = (negatives[:, None] + positives.exp()).log() - (1 - SOFT.pull) * positives
        return own.mean(1) - SOFT.pull * (p * scores).sum(1) / p.sum(1)


class PullsByRankAndClass(Loss):
    """Overrides `push_and_pull` and has two estimators."""

    def rank_weights(self, ranks, n_candidates):
        return ranks / n_candidates

    def class_weights(self, same_class):
        return 1.0 + same_class

    def push_and_pull(self, weights):
        return 3 - weights, weights

    def estimators(self):
        return self, HCL(beta=0.5)

    def anchor_loss(self, log_means, positives, n_candidates, bounds):
        first, second = log_means
        return torch.logaddexp(first + 0.5 * second, positives[:, 0]) - positives.mean(1)


class OwnInfoNCE(Loss):
    """Overrides `row_loss` without labels."""

    def row_loss(self, scores, positives):
        return torch.logsumexp(torch.cat([scores, positives], 1), 1) - positives[:, 0]


class Pulled(Loss):
    """Overrides `anchor_loss` without a word about the negatives."""

    def anchor_loss(self, log_means, positives, n_candidates, bounds):
        return -positives.mean(1)


class OwnExpectation(Loss):
    """Overrides the estimate itself."""

    def log_expectation(self, log_mean, positives, lower_bound):
        return 2 * log_mean


class ByRankAndClass(Loss):
    """Overrides both kinds of weights."""

    def rank_weights(self, ranks, n_candidates):
        return ranks

    def class_weights(self, same_class):
        return 1.0 + same_class


class Tilted(Loss):
    """A hardness, and weights in any of the ways that there are."""

    _parameter_constraints = {
        name: "no_validation" for name in ("beta", "sum_of_weights", "detach_weights")
    }

    def __init__(self, beta, sum_of_weights, detach_weights=False):
        self.beta = beta
        self.sum_of_weights = sum_of_weights
        self.detach_weights = detach_weights

    def hardness(self):
        return self.beta

    def coefficients(self):
        return 1.1, 0.1


class TiltedByRank(Tilted):
    """The same with weights by rank."""

    def rank_weights(self, ranks, n_candidates):
        return 1.5 - ranks / n_candidates


def some_views(n=9, d=5, scale=1.0):
    generator = torch.Generator().manual_seed(0)
    base = torch.randn(n, d, generator=generator, dtype=torch.float64)
    noise = torch.randn(2, n, d, generator=generator, dtype=torch.float64)
    return [(scale * v).requires_grad_() for v in base + 0.5 * noise]


def value_and_gradients(loss, similarity=None, y=None):
    views = some_views()
    value = contrastive_loss(*views, loss=loss, similarity=similarity, y=y)
    return (value.detach(), *torch.autograd.grad(value, views))


@pytest.mark.parametrize(
    "own, built_in, y",
    [
        (OwnBCL(), BCL(alpha=0.8, tau_plus=0.2), None),
        (OwnSupervised(), Supervised(), LABELS),
        (OwnPositiveDebiased(), PositiveDebiased(0.2), None),
        (OwnSupCon(), SupCon(), LABELS),
        (OwnSoftSupCon(), SOFT, None),
        (OwnInfoNCE(), InfoNCE(), None),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_loss_of_ones_own_without_flags_equals_the_built_in(own, built_in, y):
    torch.testing.assert_close(
        value_and_gradients(own, y=y), value_and_gradients(built_in, y=y), rtol=1e-12, atol=1e-14
    )


def test_a_loss_that_weighs_classes_asks_for_labels():
    with pytest.raises(ValueError, match="OwnSupervised needs labels: pass y"):
        contrastive_loss(*some_views(), loss=OwnSupervised())


@pytest.mark.parametrize(
    "loss",
    [OwnPositiveDebiased(), OwnInfoNCE(), Pulled(), OwnExpectation(), PullsByRankAndClass()],
    ids=repr,
)
def test_more_than_an_estimate_is_refused_wherever_an_estimate_is_needed(loss):
    assert not loss.is_estimate
    with pytest.raises(ValueError, match="more than an estimate"):
        check_pieces(loss, DotProduct(), dot_products(), "jensen-shannon")
    with pytest.raises(ValueError, match="'negatives' parameter of PositiveDebiased"):
        contrastive_loss(*some_views(), loss=PositiveDebiased(negatives=loss))
    with pytest.raises(ValueError, match="nothing to compare"):
        estimate(loss, ScoreSample.from_views(*torch.randn(2, 4, 3), y=[0, 0, 1, 1]))


@pytest.mark.parametrize(
    "loss", [OwnBCL(), OwnSupervised(), BCL(), HCL(), PUCL(), Ring(), DCL()], ids=repr
)
def test_an_estimate_is_one_whatever_its_weights(loss):
    assert loss.is_estimate


def test_an_anchor_loss_need_not_look_at_the_negatives():
    views = some_views()
    value, *gradients = value_and_gradients(Pulled())
    expected = -torch.nn.functional.cosine_similarity(*views).mean() / 0.5
    torch.testing.assert_close(value, expected.detach())
    torch.testing.assert_close(tuple(gradients), torch.autograd.grad(expected, views))


def test_a_loss_may_pull_candidates_by_rank_and_class_and_have_two_estimators():
    contrast = replace(dot_products(), anchor_labels=LABELS, candidate_labels=LABELS)
    loss = PullsByRankAndClass()

    def value(anchors, candidates):
        positives = (anchors * candidates).sum(1, keepdim=True)
        changed = replace(contrast, anchors=anchors, candidates=candidates, positives=positives)
        return objective_value(changed, loss, DotProduct())

    leaves = contrast.anchors, contrast.candidates
    assert torch.autograd.gradcheck(value, leaves)
    torch.testing.assert_close(value(*leaves), written_out(*leaves))


def written_out(anchors, candidates):
    """Return `PullsByRankAndClass` of all candidates except the one in the anchor's row."""
    total = 0.0
    for i, anchor in enumerate(anchors):
        others = [j for j in range(9) if j != i]
        s, positive = candidates[others] @ anchor, candidates[i] @ anchor
        ranks = 1 + s.argsort().argsort().double()
        pull = ranks / 8 * (1.0 + (LABELS[others] == LABELS[i]))
        first = ((3 - pull) * s.exp()).sum() / (3 - pull).sum()
        second = (1.5 * s).exp().mean() / (0.5 * s).exp().mean()
        share = pull.sum() / (pull.sum() + 1)
        pushed = torch.logaddexp(first.log() + 0.5 * second.log(), positive)
        total = total + pushed - (1 - share) * positive - share * (pull @ s) / pull.sum()
    return total / 9


def test_weights_by_rank_and_by_class_are_multiplied():
    scores = torch.tensor([[0.3, -0.2, 0.1]], dtype=torch.float64)
    same = torch.tensor([[True, False, False]])
    none = torch.empty(1, 0, dtype=torch.int64)
    anchors = Anchors(scores[:, :1], None, scores.shape[1], (-1.0, 1.0))
    tile = Tile(anchors, scores, none, same)
    assert tile.prior(ByRankAndClass()).tolist() == [[6.0, 1.0, 2.0]]


# The gradient of weights


def dot_products(scale=1.0):
    """Return anchors, other vectors as their candidates, and positives."""
    anchors, candidates = some_views(scale=scale)
    positives = (anchors * candidates).sum(1, keepdim=True)
    return Contrast(
        anchors=anchors,
        candidates=candidates,
        positives=positives,
        excluded=torch.arange(9)[:, None],
    )


WEIGHTS = [
    kind(beta, sum_of_weights)
    for kind in (Tilted, TiltedByRank)
    for beta in (0.0, 0.5, 1.0)
    for sum_of_weights in ("N", "free", "replaces N")
]


@pytest.mark.parametrize("loss", WEIGHTS, ids=repr)
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("scale", [0.4, 0.9])
@BY_DIRECTIONS
def test_gradcheck_of_weights_that_are_differentiated(fast_mode, loss, objective, scale):
    contrast = dot_products(scale)

    def value(anchors, candidates):
        positives = (anchors * candidates).sum(1, keepdim=True)
        changed = replace(contrast, anchors=anchors, candidates=candidates, positives=positives)
        return objective_value(changed, loss, DotProduct(), objective)

    assert torch.autograd.gradcheck(
        value, (contrast.anchors, contrast.candidates), fast_mode=fast_mode
    )


@pytest.mark.parametrize("loss", WEIGHTS, ids=repr)
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("highest", [8.0, 80.0], ids=["unshifted", "shifted"])
def test_the_directional_derivative_is_that_of_finite_differences(loss, objective, highest):
    generator = torch.Generator().manual_seed(1)
    scores, step = torch.randn(2, 6, 11, generator=generator, dtype=torch.float64)
    excluded = torch.arange(6)[:, None]

    def expectation(shift):
        anchors = Anchors(scores[:, :1], None, 10, (-highest, highest))
        tile = Tile(anchors, scores + shift * step, excluded)
        return OBJECTIVES[objective].expectation(tile, loss, tile.prior(loss))

    difference = (expectation(1e-6).value - expectation(-1e-6).value) / 2e-6
    gradient = slopes(expectation(0.0), torch.ones(6, dtype=torch.float64))
    directional = (gradient * step).sum(1)
    torch.testing.assert_close(directional, difference, rtol=1e-6, atol=1e-8)


def test_detached_weights_that_are_not_scaled_carry_no_gradient():
    scores = torch.randn(4, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    none = torch.empty(4, 0, dtype=torch.int64)
    loss = Tilted(0.7, "free", detach_weights=True)
    for name, phi in (("contrastive", torch.exp), ("jensen-shannon", F.softplus)):
        leaf = scores.clone().requires_grad_()
        expected = ((0.7 * scores).exp() * phi(leaf)).mean(1)
        expected = expected.log() if name == "contrastive" else expected
        (wanted,) = torch.autograd.grad(expected.sum(), leaf)
        tile = Tile(Anchors(scores[:, :1], None, 7, (-9.0, 9.0)), scores.clone(), none)
        mean = OBJECTIVES[name].expectation(tile, loss, None)
        torch.testing.assert_close(slopes(mean, torch.ones(4).double()), wanted)


# The Jensen–Shannon objective


def jensen_shannon(loss, contrast=None):
    contrast = dot_products() if contrast is None else contrast
    return objective_value(contrast, loss, DotProduct(), "jensen-shannon").item()


def test_the_repulsion_of_a_ring_is_a_mean_under_jensen_shannon():
    contrast = dot_products()
    scores = contrast.anchors @ contrast.candidates.T
    others = scores[~torch.eye(9, dtype=torch.bool)].view(9, 8).sort(descending=True).values
    # Of 8 candidates the closest 4, of these without the closest 1.
    expected = F.softplus(-contrast.positives).mean() + F.softplus(others[:, 1:4]).mean()
    assert jensen_shannon(Ring(outer=0.5, inner=0.25)) == pytest.approx(expected.item())


def test_a_ring_of_candidates_that_score_alike_is_infonce_under_jensen_shannon():
    contrast = dot_products()
    alike = replace(contrast, candidates=torch.ones_like(contrast.candidates))
    expected = jensen_shannon(InfoNCE(), alike)
    assert jensen_shannon(Ring(), alike) == pytest.approx(expected)


class ScaledToMeanOne(NonparametricBCL):
    """Weights that are divided by their mean."""

    sum_of_weights = "N"


def test_ratios_of_densities_are_scaled_only_where_that_is_asked_for():
    # Their mean is 1 in expectation: without scaling they are an estimate too.
    loss, scaled = (cls(alpha=0.9, beta=0.2) for cls in (NonparametricBCL, ScaledToMeanOne))
    assert jensen_shannon(loss) != pytest.approx(jensen_shannon(scaled), rel=1e-3)


def test_the_floor_is_zero_under_jensen_shannon():
    contrast = dot_products()
    close = replace(contrast, positives=torch.full_like(contrast.positives, 30.0))
    assert jensen_shannon(PUCL(0.3), close) == pytest.approx(0.0, abs=1e-12)


# The fields of a contrast


def test_every_field_of_a_contrast_is_taken_or_kept():
    contrast = replace(
        dot_products(),
        weights=torch.ones(9),
        anchor_labels=LABELS,
        candidate_labels=LABELS,
        anchor_groups=LABELS,
        candidate_groups=LABELS,
        pair_weights=torch.ones(9, 9),
    )
    taken = contrast.take(slice(2, 5))
    for name, value in vars(contrast).items():
        kept = getattr(taken, name)
        if name == "mutual":
            assert kept is None
            continue
        belongs_to_candidates = name.startswith("candidate")
        assert kept is value if belongs_to_candidates else torch.equal(kept, value[2:5])
