"""Custom losses whose numbers would silently be others than meant are refused by name."""

import math

import numpy as np
import pytest
import torch

from skcontrast import ContrastiveEmbedder, contrastive_loss
from skcontrast._objective import _rows
from skcontrast.losses import HCL, InfoNCE, Loss, SupCon, check_loss
from skcontrast.similarity import Cosine
from tests.common import LOSSES, random_views, vectors

VIEWS, X = random_views(8, 4), vectors()


def subclass(base=Loss, **members):
    """Return a new class with these members; a function ignores the object."""
    members = {
        name: (lambda self, *args, f=value: f(*args)) if callable(value) else value
        for name, value in members.items()
    }
    return type("Own", (base,), members)


def test_helpers_may_have_names_that_resemble_none():
    own = subclass(hardness=lambda: 1.0, distance=lambda: 2, _rank_weight=lambda: 3, n_best=4)
    value = contrastive_loss(*VIEWS, loss=own())
    torch.testing.assert_close(value, contrastive_loss(*VIEWS, loss=HCL(tau_plus=0)))


@pytest.mark.parametrize(
    "members, has", [({}, ""), ({"criterion": lambda z: z, "detach_weights": True}, "criterion")]
)
def test_a_loss_that_overrides_nothing_is_refused(members, has):
    own = subclass(**members)
    with pytest.raises(TypeError, match=f"Own overrides nothing of Loss .coeff.*{has}.*guide"):
        contrastive_loss(*VIEWS, loss=own())
    with pytest.raises(TypeError, match="Own overrides nothing"):
        ContrastiveEmbedder(loss=own()).fit(torch.eye(8).numpy())


def test_a_function_is_no_loss():
    with pytest.raises(TypeError, match="Derive a class from Loss: see 'Your own pieces'"):
        ContrastiveEmbedder(loss=lambda z1, z2: 0.0).fit(torch.eye(8).numpy())


def test_a_method_that_another_one_replaces_is_refused():
    rows = {"row_loss": lambda scores, positives: -positives.mean(1)}
    with pytest.raises(TypeError, match="overrides row_loss, so its hardness would never"):
        subclass(**rows, hardness=lambda: 1.0)
    with pytest.raises(TypeError, match="override anchor_loss too"):
        subclass(estimators=lambda: (InfoNCE(),))
    assert subclass(HCL, **rows)().overrides("row_loss")  # an inherited one is meant


BAD_RESULTS = [
    ("rank_weights", lambda ranks, n: ranks - 3, "≥ 0, finite, got -2 to 11"),
    ("rank_weights", lambda ranks, n: ranks * torch.nan, "≥ 0, finite, got nan"),
    ("rank_weights", lambda ranks, n: ranks / 0, "≥ 0, finite, got .* to inf"),
    ("rank_weights", lambda ranks, n: ranks > n, "numbers whose sum is > 0"),
    ("rank_weights", lambda ranks, n: ranks.numpy(), r"a tensor of shape \(14,\), got ndarray"),
    ("rank_weights", lambda ranks, n: ranks[1:], r"shape \(14,\), got shape \(13,\)"),
    ("class_weights", lambda same: same.double() - 0.5, "≥ 0, finite, got -0.5"),
    ("class_weights", lambda same: 0.5, r"a tensor of shape \(6, 14\), got float"),
    ("row_loss", lambda scores, positives: np.zeros(6), r"shape \(6,\), got ndarray"),
    ("anchor_loss", lambda *args: args[1].mean(), r"shape \(6,\), got shape \(\)"),
    ("push_and_pull", lambda weights: (None, -weights), "≥ 0, finite, got -1"),
    ("log_expectation", lambda log_mean, *args: log_mean.mean(), r"shape \(6,\), got shape"),
    ("coefficients", lambda: (0.0, 0.1), r"a > 0 and b ≥ 0, got \(0\.0, 0\.1\)"),
    ("coefficients", lambda: (0.0, 0.0), "a > 0"),
    ("coefficients", lambda: 1.0, "two numbers"),
    ("coefficients", lambda: (math.nan, 0.0), "two numbers"),
    ("hardness", lambda: -1.0, "β ≥ 0, got -1.0"),
    ("hardness", lambda: "1", "β ≥ 0, got '1'"),
]


@pytest.mark.parametrize("method, function, message", BAD_RESULTS)
def test_a_bad_result_is_refused_by_the_name_of_the_method(method, function, message):
    with pytest.raises((TypeError, ValueError), match=rf"Own\.{method} must return .*{message}"):
        check_loss(subclass(**{method: function})(), n_candidates=14)


def test_a_share_of_the_pull_is_at_most_1():
    own = subclass(SupCon, pull_share=lambda total, n_positives: 2 * total)()
    with pytest.raises(ValueError, match=r"Own\.pull_share must return numbers in \[0, 1\], got"):
        check_loss(own)


@pytest.mark.parametrize("method", ["anchor_loss", "log_expectation"])
def test_nan_is_laid_to_the_method_that_returned_it(method):
    own = subclass(**{method: lambda means, positives, *args: positives.mean(1) * torch.nan})()
    with pytest.raises(ValueError, match=rf"Own\.{method} and its gradient must be finite"):
        check_loss(own)


ROW_LOSSES = {
    "NaN": lambda scores, positives: scores.amax(1) * torch.nan,
    "masked by 0": lambda scores, positives: (scores * 0).sum(1) - positives.mean(1),
    "infinite slope": lambda scores, positives: -(positives - positives).sqrt().mean(1),
}


@pytest.mark.parametrize("name", ROW_LOSSES)
def test_a_row_loss_that_is_not_finite_is_refused_by_name(name):
    with pytest.raises(ValueError, match=r"Own\.row_loss and its gradient must be finite"):
        check_loss(subclass(row_loss=ROW_LOSSES[name])())


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda scores, positives: scores.amax(1) - positives.mean(), "from its own row"),
        (lambda scores, positives: scores.amax(1).detach(), "autograd can differentiate"),
    ],
)
def test_a_row_loss_of_other_rows_or_without_a_gradient_is_refused(function, message):
    with pytest.raises(ValueError, match=rf"Own\.row_loss must .*{message}"):
        check_loss(subclass(row_loss=function)())


def test_an_anchor_loss_of_other_anchors_is_refused():
    own = subclass(anchor_loss=lambda log_means, positives, *rest: log_means[0] - positives.mean())
    with pytest.raises(ValueError, match=r"Own\.anchor_loss must .* from its own row"):
        check_loss(own())


def test_a_row_loss_may_draw_random_numbers():
    def row_loss(scores, positives):
        kept = torch.rand_like(scores) < 0.9
        return scores.where(kept, -torch.inf).logsumexp(1) - positives.mean(1)

    check_loss(subclass(row_loss=row_loss)())


@pytest.mark.parametrize("sign", [(1, 1), (-1, -1)], ids=["positives", "candidates"])
def test_a_row_loss_with_one_wrong_sign_is_refused(sign):
    of_positives, of_candidates = sign
    own = subclass(
        row_loss=lambda scores, positives: (
            of_candidates * scores.logsumexp(1) + of_positives * positives.mean(1)
        )
    )()
    with pytest.raises(ValueError, match=r"Own\.row_loss must fall as positives score higher"):
        check_loss(own)


def test_a_row_loss_may_pull_candidates_by_their_class():
    def attraction(self, scores, positives, same_class):
        return -(scores * same_class).nan_to_num(0, neginf=0).sum(1)

    own = type("Own", (Loss,), {"row_loss": attraction})()
    assert contrastive_loss(*VIEWS, loss=own, y=torch.zeros(8, dtype=torch.int64)).isfinite()


def test_a_row_loss_that_takes_labels_asks_for_them():
    def with_labels(self, scores, positives, same_class):
        return same_class.sum(1) - positives.mean(1)

    own = type("Own", (Loss,), {"row_loss": with_labels})
    with pytest.raises(ValueError, match="Own needs labels: pass y"):
        contrastive_loss(*VIEWS, loss=own())
    assert own().requires_y and not subclass(row_loss=lambda s, p: -p.mean(1))().requires_y
    optional = type("Own", (own,), {"requires_y": False, "row_loss": optional_labels})
    assert contrastive_loss(*VIEWS, loss=optional()).isfinite()


def optional_labels(self, scores, positives, same_class):
    assert same_class is None
    return -positives.mean(1)


def test_a_table_of_weights_by_rank_is_asked_for_whole_ranks_once(monkeypatch):
    """Also in many tiles."""
    monkeypatch.setattr("skcontrast._objective._rows._TILE_ELEMENTS", 1)
    monkeypatch.setattr("skcontrast._objective._rows._TILE_ROWS", 3)
    asked = []

    def rank_weights(ranks, n_candidates):
        asked.append(ranks.tolist())
        return torch.linspace(1, 2, n_candidates)[ranks.long() - 1]

    views = [view.float() for view in VIEWS]
    own = subclass(rank_weights=rank_weights)()
    for _ in range(2):
        asked.clear()
        assert contrastive_loss(*views, loss=own).isfinite()
    assert asked == [list(range(1, 15))]


def test_rank_1_is_the_farthest_candidate():
    anchor = torch.tensor([[1.0, 0.0]])
    queue = torch.tensor([[1.0, 0.0], [-1.0, 0.0]])  # the closest, the farthest

    def rank_weights(ranks_from_farthest, n_candidates):
        return (ranks_from_farthest == 1).double()

    own = subclass(rank_weights=rank_weights)()
    value = contrastive_loss(anchor, anchor, queue=queue, loss=own)
    assert value.item() == pytest.approx(math.log1p(2 * math.exp(-4)))


def test_without_any_weight_the_estimate_is_at_the_floor():
    own = subclass(class_weights=torch.zeros_like)
    z = torch.eye(4)
    value = contrastive_loss(z, z, loss=own(), y=torch.arange(4), similarity=Cosine(1.0))
    assert value.item() == pytest.approx(math.log1p(6 * math.exp(-2)))


def counted(calls):
    """Return a class of losses of which each call is noted."""

    def row_loss(self, scores, positives):
        calls.append(len(scores))
        return self.scale * (torch.cat([scores, positives], 1).logsumexp(1) - positives.mean(1))

    class Own(Loss):
        _parameter_constraints = {"scale": "no_validation"}

        def __init__(self, scale=1.0):
            self.scale = scale

    Own.row_loss = row_loss
    return Own


def test_a_row_loss_is_called_once_for_each_tile(monkeypatch):
    calls, views = [], [view.requires_grad_() for view in random_views(8, 4)]
    own = counted(calls)
    contrastive_loss(*views, loss=own())
    assert calls == [16]
    calls.clear()
    monkeypatch.setattr(_rows, "_TILE_ELEMENTS", 1)
    monkeypatch.setattr(_rows, "_TILE_ROWS", 4)
    contrastive_loss(*views, loss=own()).backward()
    assert calls == [4] * 4


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_the_losses_of_the_package_pass(loss):
    check_loss(loss)
    check_loss(loss, 30, 3)


def test_what_is_no_loss_is_refused():
    with pytest.raises(TypeError, match="'loss' parameter of check_loss must be an instance"):
        check_loss(InfoNCE)


def masked_in_place(scores):
    return scores.masked_fill_(scores.isinf(), -9.0).amax(1)


def without_the_diagonal(scores):
    own = torch.eye(*scores.shape, dtype=torch.bool)
    return scores.masked_fill(own, -torch.inf).logsumexp(1)


@pytest.mark.parametrize(
    "of_candidates, message",
    [
        (lambda scores: scores.amax(1) + (scores.amax(1) - scores.amax(1).mean()) ** 2, "own row"),
        (lambda scores: scores.amax(1) * len(scores) / 6, "own row"),
        (lambda scores: scores[:, :10].logsumexp(1), "in any order"),
        (without_the_diagonal, "in any order"),
        (masked_in_place, "changes its arguments in place"),
        (lambda scores: scores.data.mul_(2).amax(1), "changes its arguments in place"),
    ],
)
@pytest.mark.parametrize("takes_labels", [False, True])
def test_a_row_loss_that_depends_on_more_than_its_row_is_refused(
    of_candidates, message, takes_labels
):
    def row_loss(self, scores, positives):
        return of_candidates(scores) - positives.mean(1)

    def with_labels(self, scores, positives, same_class):
        return row_loss(self, scores, positives) + 0 * same_class.sum(1)

    loss = type("Own", (Loss,), {"row_loss": with_labels if takes_labels else row_loss})()
    with pytest.raises(ValueError, match=rf"Own\.row_loss .*{message}"):
        check_loss(loss)


@pytest.mark.parametrize("name, value", [("detach_weights", "no"), ("sum_of_weights", "n")])
def test_an_attribute_of_a_loss_is_one_of_its_values(name, value):
    loss = type("Own", (Loss,), {"hardness": lambda self: 1.0, name: value})()
    with pytest.raises(ValueError, match=rf"The '{name}' parameter of Own must be"):
        check_loss(loss)
