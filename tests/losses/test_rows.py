"""Sums over candidates, and their gradients, are those of the definitions."""

import math

import pytest
import torch

from skcontrast import contrastive_loss, losses

# private: the weights against naive code
from skcontrast.losses._posterior import false_negative_probability
from skcontrast.losses._rows import weights_of  # private: the weights against naive code
from skcontrast.losses._tape import Tape  # private: rows without an objective
from tests.common import random_views
from tests.naive_losses import log_mean, log_weights

LABELS = torch.arange(9) % 3
SOFT = losses.SoftSupCon(sharpness=3.0, tau_plus=0.2, pull=0.4)


class Tilted(losses.Loss):
    """A hardness, and weights in each of the ways that there are."""

    def __init__(self, beta=0.0, sum_of_weights="N", detach_weights=False):
        self.beta = beta
        self.sum_of_weights = sum_of_weights
        self.detach_weights = detach_weights

    def hardness(self):
        return self.beta


class TiltedByRank(Tilted):
    """The same with weights by rank."""

    def rank_weights(self, ranks, n_candidates):
        return torch.exp(-0.1 * ranks)


WEIGHTS = [
    kind(beta, sum_of_weights, detach)
    for kind in (Tilted, TiltedByRank)
    for beta in (0.0, 0.5, 1.0)
    for sum_of_weights in ("N", "free")
    for detach in (False, True)
]


def random_scores(n=6, m=9):
    return torch.randn(n, m, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def naive_log_mean(scores, loss):
    return torch.stack([log_mean(log_weights(loss, s, None) + s) for s in scores])


@pytest.mark.parametrize("loss", WEIGHTS, ids=repr)
def test_the_mean_and_its_gradient_are_those_of_the_definition(loss):
    for highest in [10.0, 80.0]:
        scores, factors = random_scores().requires_grad_(), torch.linspace(0.5, 2, 6).double()
        expected = naive_log_mean(scores, loss)
        (expected_gradient,) = torch.autograd.grad(expected, scores, factors)
        # The first column is excluded, and holds anything.
        padded = torch.cat([torch.full((6, 1), torch.inf), scores.detach()], 1)
        excluded = torch.zeros(6, 1, dtype=torch.int64)
        bounds = -highest, highest
        tape = Tape(padded, scores.detach()[:, :1], excluded, bounds=bounds)
        found = losses.Rows(tape).log_mean(loss)
        gradient, of_positives, _ = tape.gradients(found @ factors)
        torch.testing.assert_close(found, expected, rtol=1e-10, atol=0)
        torch.testing.assert_close(gradient[:, 1:], expected_gradient, rtol=1e-8, atol=1e-12)
        assert not gradient[:, 0].any() and not of_positives.any()


def test_weighted_sums_and_scores_have_the_gradient_of_autograd():
    scores, weights = random_scores(), torch.rand(6, 9, dtype=torch.float64)
    excluded = torch.arange(6)[:, None]
    tape = Tape(scores, scores[:, :2], excluded, bounds=(-9.0, 9.0))
    rows = losses.Rows(tape)
    total, mass = rows.weighted_sum(weights)
    values = total / mass + rows.scores.logsumexp(1) + rows.log_mean(losses.HCL())
    gradient, *_ = tape.gradients(values.sum())
    leaf = scores.clone().requires_grad_()
    kept = torch.ones(6, 9, dtype=torch.bool).scatter_(1, excluded, False)
    candidates = leaf[kept].view(6, 8)
    w = weights[kept].view(6, 8)
    mean = (w * candidates).sum(1) / w.sum(1)
    expected = (mean + candidates.logsumexp(1) + naive_log_mean(candidates, losses.HCL())).sum()
    torch.testing.assert_close(values.sum(), expected)
    torch.testing.assert_close(gradient, torch.autograd.grad(expected, leaf)[0])


def test_weights_by_rank_and_by_class_are_multiplied():
    class ByRankAndClass(losses.Loss):
        requires_y = True

        def rank_weights(self, ranks, n_candidates):
            return ranks

        def class_weights(self, same_class):
            return 1.0 + same_class

    scores = torch.tensor([[0.3, -0.2, 0.1]], dtype=torch.float64)
    same, none = torch.tensor([[True, False, False]]), torch.empty(1, 0, dtype=torch.int64)
    rows = losses.Rows(Tape(scores, scores[:, :1], none, bounds=(-1.0, 1.0)), same)
    found = weights_of(ByRankAndClass(), rows, is_scaled=False)
    torch.testing.assert_close(found, torch.tensor([[6.0, 1.0, 2.0]], dtype=torch.float64))


def test_an_anchor_without_negatives_has_the_lowest_score_and_no_gradient():
    scores, all_same = random_scores(), torch.ones(6, 9, dtype=torch.bool)
    none = torch.empty(6, 0, dtype=torch.int64)
    tape = Tape(scores, scores[:, :1], none, bounds=(-5.0, 5.0))
    found = losses.Rows(tape, all_same).log_mean(losses.Supervised())
    gradient, *_ = tape.gradients(found.sum())
    assert (found == -5).all() and not gradient.any()


def test_classes_are_known_with_labels_or_pulled_groups():
    found = []

    class Reads(losses.SoftSupCon):
        def losses(self, rows):
            found.append(rows.has_classes and rows.same_class.any().item())
            return super().losses(rows)

    class Labels(Reads):
        requires_y = True

    groups = torch.arange(9) // 3
    contrastive_loss(*random_views(9, 5), loss=Reads())
    contrastive_loss(*random_views(9, 5), loss=Reads(), groups=groups)
    contrastive_loss(*random_views(9, 5), loss=Reads(), groups=groups, same_group="positive")
    contrastive_loss(*random_views(9, 5), loss=Labels(), y=LABELS)
    assert found == [False, False, True, True]


# Custom losses


class CustomBCL(losses.Loss):
    def rank_weights(self, ranks, n_candidates):
        return losses.BCL(alpha=0.8, tau_plus=0.2).rank_weights(ranks, n_candidates)


class CustomSupervised(losses.Loss):
    requires_y = True

    def class_weights(self, same_class):
        return ~same_class


class CustomPositiveDebiased(losses.Loss):
    def losses(self, rows):
        return losses.PositiveDebiased(tau_plus=0.2).losses(rows)


class CustomSupCon(losses.Loss):
    """By autograd on whole rows."""

    requires_y = pulls = True

    def losses(self, rows):
        scores, positives = rows.scores, rows.positives
        pulled = torch.where(rows.same_class, scores, 0.0).sum(1) + positives.sum(1)
        n_pulled = rows.same_class.sum(1) + positives.shape[1]
        return torch.cat([scores, positives], 1).logsumexp(1) - pulled / n_pulled


class CustomSoftSupCon(losses.Loss):
    """By autograd on whole rows, at the sharpness and the prior of `SOFT`."""

    def losses(self, rows):
        positives, scores = rows.positives, rows.scores
        scores = scores[scores.isfinite()].view(len(scores), -1)  # as many of each anchor
        n = scores.shape[1]
        u = ((scores[:, None] <= scores[:, :, None]).sum(2).double() - 0.5) / n
        p = false_negative_probability(u, SOFT.sharpness, SOFT.tau_plus)
        negatives = ((1 - p) * scores.exp()).sum(1) / (1 - p).mean(1)
        own = (negatives[:, None] + positives.exp()).log() - (1 - SOFT.pull) * positives
        return own.mean(1) - SOFT.pull * (p * scores).sum(1) / p.sum(1)


class CustomInfoNCE(losses.Loss):
    def losses(self, rows):
        return torch.cat([rows.scores, rows.positives], 1).logsumexp(1) - rows.positives[:, 0]


class Pulled(losses.Loss):
    """Reads no negatives."""

    def losses(self, rows):
        return -rows.positives.mean(1)


def value_and_gradients(loss, y=None):
    views = [view.requires_grad_() for view in random_views(9, 5)]
    value = contrastive_loss(*views, loss=loss, y=y)
    return (value.detach(), *torch.autograd.grad(value, views))


@pytest.mark.parametrize(
    "custom, built_in, y",
    [
        (CustomBCL(), losses.BCL(alpha=0.8, tau_plus=0.2), None),
        (CustomSupervised(), losses.Supervised(), LABELS),
        (CustomPositiveDebiased(), losses.PositiveDebiased(tau_plus=0.2), None),
        (CustomSupCon(), losses.SupCon(), LABELS),
        (CustomSoftSupCon(), SOFT, None),
        (CustomInfoNCE(), losses.InfoNCE(), None),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_custom_loss_equals_the_built_in_one(custom, built_in, y):
    expected = value_and_gradients(built_in, y)
    torch.testing.assert_close(value_and_gradients(custom, y), expected, rtol=1e-12, atol=1e-14)


def test_a_loss_need_not_read_the_negatives():
    views = [view.requires_grad_() for view in random_views(9, 5)]
    value, *gradients = value_and_gradients(Pulled())
    expected = -torch.nn.functional.cosine_similarity(*views).mean() / 0.5
    torch.testing.assert_close(value, expected.detach())
    torch.testing.assert_close(tuple(gradients), torch.autograd.grad(expected, views))


def test_a_loss_may_pull_by_rank_and_take_the_means_of_others():
    class Both(losses.Loss):
        def rank_weights(self, ranks, n_candidates):
            return ranks / n_candidates

        def losses(self, rows):
            pull = rows.rank_weights(self)
            pulled, mass = rows.weighted_sum(pull)
            first, second = rows.log_mean(self, 3 - pull), rows.log_mean(losses.HCL(beta=0.5))
            positive = rows.positives[:, 0]
            return torch.logaddexp(first + 0.5 * second, positive) - (positive + pulled) / (
                1 + mass
            )

    anchors, queue = random_views(9, 5)
    queue.requires_grad_()
    value = contrastive_loss(anchors, anchors, queue=queue, loss=Both())
    u, v = (torch.nn.functional.normalize(z, dim=1) / math.sqrt(0.5) for z in (anchors, queue))
    s, positive = u @ v.T, 1 / 0.5
    pull = (1 + s.argsort(1).argsort(1)) / 9
    first = ((3 - pull) * s.exp()).sum(1) / (3 - pull).sum(1)
    second = (1.5 * s).exp().mean(1) / (0.5 * s).exp().mean(1)
    pushed = (first * second.sqrt() + math.exp(positive)).log()
    expected = (pushed - (positive + (pull * s).sum(1)) / (1 + pull.sum(1))).mean()
    torch.testing.assert_close(value, expected)
    gradients = [torch.autograd.grad(one, queue)[0] for one in (value, expected)]
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize(
    "method, function, message",
    [
        ("rank_weights", lambda self, ranks, n: ranks[1:], r"\(14,\), got shape \(13,\)"),
        ("losses", lambda self, rows: rows.positives, r"\(16,\), got shape \(16, 1\)"),
        ("losses", lambda self, rows: rows.scores.detach().amax(1), "leave out detach"),
    ],
)
def test_a_bad_result_is_refused_by_the_name_of_the_method(method, function, message):
    views = [view.requires_grad_() for view in random_views(8, 4)]
    loss = type("Custom", (losses.Loss,), {method: function})()
    with pytest.raises(ValueError, match=rf"Custom\.{method} must return .*{message}"):
        contrastive_loss(*views, loss=loss)


@pytest.mark.parametrize("method", ["losses", "class_weights"])
def test_a_loss_that_reads_classes_without_asking_for_labels_is_refused(method):
    members = {
        "losses": lambda self, rows: rows.scores.masked_fill(~rows.same_class, 0.0).sum(1),
        "class_weights": lambda self, same_class: ~same_class,
    }
    loss = type("Custom", (losses.Loss,), {method: members[method]})()
    with pytest.raises(ValueError, match=r"reads rows\.same_class needs labels: set requires_y"):
        contrastive_loss(*random_views(9, 5), loss=loss)


@pytest.mark.parametrize("loss", [None, losses.PositiveDebiased], ids=["alone", "as negatives"])
def test_a_hardness_below_zero_is_refused(loss):
    negative = Tilted(beta=-1.0)
    with pytest.raises(ValueError, match=r"Tilted\.hardness must return a number β ≥ 0, got -1"):
        contrastive_loss(*random_views(9, 5), loss=loss(negatives=negative) if loss else negative)


def test_rank_1_is_the_farthest_candidate():
    class Farthest(losses.Loss):
        def rank_weights(self, ranks_from_farthest, n_candidates):
            return (ranks_from_farthest == 1).double()

    anchor = torch.tensor([[1.0, 0.0]])
    queue = torch.tensor([[1.0, 0.0], [-1.0, 0.0]])  # the closest, the farthest
    value = contrastive_loss(anchor, anchor, queue=queue, loss=Farthest())
    assert value.item() == pytest.approx(math.log1p(2 * math.exp(-4)))


@pytest.mark.parametrize("loss", [CustomPositiveDebiased(), CustomInfoNCE(), Pulled()], ids=repr)
def test_more_than_an_estimate_is_refused_where_an_estimate_is_needed(loss):
    assert not loss.is_estimate and losses.DCL().is_estimate and CustomBCL().is_estimate
    with pytest.raises(ValueError, match="'negatives' parameter of PositiveDebiased"):
        contrastive_loss(*random_views(9, 5), loss=losses.PositiveDebiased(negatives=loss))
