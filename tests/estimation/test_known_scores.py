"""Bias, push and reliability where the truth is known by construction."""

import numpy as np
import pandas as pd
import pytest
import torch

from benchmarks._bcl_scores import ScoreModel
from skcontrast import contrastive_loss, losses

# private: the same value in parts
from skcontrast.estimation import (
    ScoreSample,
    _known_scores,
    importance_weights,
    negative_bias,
    push_share,
    reliability,
)
from skcontrast.schedules import Linear
from tests.common import LOSSES, random_views

Y = np.arange(12) // 2


@pytest.fixture(scope="module")
def simulated():
    """Scores of BCL's model at the parameters that the losses are given here."""
    return ScoreModel(alpha=0.9, tau_plus=0.2, gamma=0.0).sample(3000, 100, random_state=0)


def real(**kwargs):
    return ScoreSample.from_views(*random_views(12, 6), y=Y, **kwargs)


def test_the_oracle_has_no_bias_and_pushes_no_false_negative():
    assert negative_bias(losses.Supervised(), real()) == pytest.approx((0, 0), abs=1e-12)
    assert push_share(losses.Supervised(), real()) == (0, 0)


@pytest.mark.parametrize(
    "loss",
    [
        losses.DCL(tau_plus=0.2),
        losses.BCL(alpha=0.9, tau_plus=0.2),
        losses.PUCL(tau_plus=1 / 4.6, c=0.1),
    ],
)
def test_a_loss_whose_model_is_true_has_no_bias(loss, simulated):
    bias, error = negative_bias(loss, simulated)
    assert abs(bias) < 3 * error + 0.01 < 0.03
    assert negative_bias(losses.InfoNCE(), simulated).value > 10 * error


def test_dcl_is_unbiased_with_classmates_as_positives_and_not_with_views():
    z = random_views(12, 6)[0]
    z = z[::2].repeat_interleave(2, 0) + 0.2 * z  # pairs that are close, and views that are equal
    views = {"y": Y, "positives": "views"}, {"y": Y, "positives": "same class"}
    by_view, by_mate = (ScoreSample.from_views(z, z, **kwargs) for kwargs in views)
    loss = losses.DCL(tau_plus=2 / 22)
    assert negative_bias(loss, by_mate) == pytest.approx((0, 0), abs=1e-9)
    assert negative_bias(loss, by_view).value < -0.005
    assert negative_bias(losses.InfoNCE(), by_mate) == negative_bias(losses.InfoNCE(), by_view)


def test_the_relative_bias_of_infonce_is_its_excess_over_true_negatives():
    sample = real()
    exponentials = np.exp(sample.scores)
    truth = np.array([e[n].mean() for e, n in zip(exponentials, sample.is_negative, strict=True)])
    expected = exponentials.mean() / truth.mean() - 1
    assert negative_bias(losses.InfoNCE(), sample).value == pytest.approx(expected)


def test_the_push_of_infonce_is_the_share_of_the_exponentials_and_subtracting_moves_none():
    sample = real()
    exponentials = np.exp(sample.scores)
    shares = (exponentials * ~sample.is_negative).sum(1) / exponentials.sum(1)
    share = push_share(losses.InfoNCE(), sample)
    assert share.value == pytest.approx(shares.mean())
    assert share.standard_error == pytest.approx(shares.std() / np.sqrt(len(shares)))
    for loss in (losses.DCL(tau_plus=0.01), losses.PUCL(tau_plus=0.01, c=0.5)):
        assert push_share(loss, sample).value == pytest.approx(share.value)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_the_push_is_the_positive_derivative_of_the_training_loss(loss):
    n = 12
    z1, z2 = random_views(n, n)
    y = torch.from_numpy(Y)
    anchors = torch.nn.functional.normalize(torch.cat([z1, z2]), dim=1)
    sample = ScoreSample.from_views(z1, z2, y=Y)
    shares = []
    for i in range(2 * n):
        first = anchors[i : i + 1]
        others = [j for j in range(2 * n) if j % n != i % n]
        # Moving a candidate along the anchor changes its score with this anchor alone.
        queue = anchors[others].clone().requires_grad_()
        labels = {"y": y[[i % n]], "queue_y": y[torch.tensor(others) % n]}
        known = {"queue": queue, **(labels if loss.requires_y else {})}
        value = contrastive_loss(first, anchors[(i + n) % (2 * n)][None], loss=loss, **known)
        (grad,) = torch.autograd.grad(value, queue)
        # d cos = (anchor − cos · candidate) / |candidate|, of squared length 1 − cos².
        cosine = queue.detach() @ first[0]
        slope = (grad @ first[0]) / (1 - cosine**2)
        push = slope.clamp_min(0)
        if push.sum() > 0:
            shares.append(float(push[labels["queue_y"] == labels["y"]].sum() / push.sum()))
    assert push_share(loss, sample).value == pytest.approx(np.mean(shares), rel=1e-6)


@pytest.mark.parametrize(
    "loss",
    [
        losses.BCL(alpha=0.9, tau_plus=0.2),
        losses.NonparametricBCL(alpha=0.9, beta=0.2, tau_plus=0.2),
    ],
    ids=repr,
)
def test_the_probability_is_reliable_where_the_model_is_true(loss, simulated):
    found = reliability(loss, simulated, n_bins=5)
    assert found.largest_gap < 0.02
    assert found.brier < reliability(losses.DCL(tau_plus=0.2), simulated).brier


def test_bins_hold_all_candidates_and_the_score_is_that_of_single_ones(simulated):
    loss = losses.SoftRing(sharpness=1.0, tau_plus=0.2)
    found = reliability(loss, simulated, n_bins=7)
    assert found.counts.sum() == simulated.scores.size and np.ptp(found.counts) == 3000
    assert found.observed @ found.counts == pytest.approx(simulated.is_negative.sum())
    ranks = simulated.scores.argsort(1).argsort(1) + 1.0
    p = loss.true_negative_probability(torch.from_numpy(ranks), 100).numpy()
    assert found.brier == pytest.approx(((p - simulated.is_negative) ** 2).mean())
    assert found.predicted @ found.counts == pytest.approx(p.sum())
    assert found.largest_gap == abs(found.predicted - found.observed).max()


@pytest.mark.parametrize(
    "loss, expected",
    [
        (losses.InfoNCE(), [1.0, 1.0, 1.0]),
        (losses.DCL(tau_plus=0.3), [0.7, 0.7, 0.7]),
        (losses.HCL(tau_plus=0.3, beta=2.0), [0.7, 0.7, 0.7]),
        (losses.PUCL(tau_plus=0.3, c=0.0), [0.7, 0.7, 0.7]),
        (losses.BCL(alpha=0.5, tau_plus=0.3), [0.7, 0.7, 0.7]),
        (losses.SoftRing(sharpness=0.0, tau_plus=0.3), [0.7, 0.7, 0.7]),
        (losses.SoftRing(sharpness=5.0, tau_plus=0.3, floor=1.0), [0.7, 0.7, 0.7]),
        (losses.Ring(outer=1.0, inner=1 / 3), [1.0, 1.0, 0.0]),
    ],
    ids=repr,
)
def test_what_a_loss_takes_ranks_for(loss, expected):
    found = reliability(loss, real(), n_bins=3)
    limit = 0.05 if isinstance(loss, losses.Ring) else 1e-9  # 20 candidates are not thirds
    np.testing.assert_allclose(found.predicted, expected, atol=limit + 0.1 * (limit > 1e-3))


def test_what_has_no_answer_is_refused():
    sample = real()
    for loss in (losses.SupCon(), losses.PositiveDebiased()):
        with pytest.raises(ValueError, match="is not an estimate of the mean"):
            negative_bias(loss, sample)
        with pytest.raises(ValueError, match="is not an estimate"):
            importance_weights(loss, sample)
    with pytest.raises(ValueError, match="Supervised has no probability of true negatives"):
        reliability(losses.Supervised(), sample)
    message = r"'n_bins' parameter of reliability .* \[1, 22\]. Got 23"
    with pytest.raises(ValueError, match=message):
        reliability(losses.InfoNCE(), sample, n_bins=23)
    one_class = ScoreSample.from_views(*random_views(5, 3), y=np.zeros(5, dtype=int))
    with pytest.raises(ValueError, match="Two anchors or more must have a true negative, got 0"):
        negative_bias(losses.InfoNCE(), one_class)
    with pytest.raises(ValueError, match="does not push any candidate"):
        push_share(losses.Supervised(), one_class)


@pytest.mark.parametrize("function", [negative_bias, push_share, reliability])
def test_a_sample_and_a_loss_with_numbers_are_needed(function):
    with pytest.raises(TypeError, match="must be an instance of 'ScoreSample'"):
        function(losses.InfoNCE(), np.zeros((2, 3)))
    with pytest.raises(TypeError, match=r"must be an instance of .*Loss"):
        function("dcl", real())
    with pytest.raises(ValueError, match="schedule"):
        function(losses.DCL(tau_plus=Linear(0.0, 0.1)), real())


ESTIMATES = [negative_bias, push_share, reliability]
CHANGES = {
    "is_negative of ints": lambda sample: {"is_negative": sample.is_negative.astype(int)},
    "lists": lambda sample: {
        "scores": sample.scores.tolist(),
        "is_negative": sample.is_negative.tolist(),
        "positives": sample.positives.tolist(),
    },
    "DataFrames": lambda sample: {
        "scores": pd.DataFrame(sample.scores, columns=map(str, range(sample.scores.shape[1]))),
        "is_negative": pd.DataFrame(sample.is_negative),
    },
    "reversed": lambda sample: {"scores": sample.scores[:, ::-1].copy()[:, ::-1]},
    "big-endian": lambda sample: {"positives": sample.positives.astype(">f8")},
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_sample_made_by_hand_may_hold_arrays_of_any_form(change):
    for estimate in ESTIMATES:
        sample = real()
        expected = estimate(losses.DCL(tau_plus=0.01), sample)
        found = estimate(losses.DCL(tau_plus=0.01), sample._replace(**change(sample)))
        np.testing.assert_equal(tuple(found), tuple(expected))


@pytest.mark.parametrize("loss", [one for one in LOSSES if one.is_estimate], ids=repr)
def test_the_estimate_of_a_loss_is_the_mean_with_its_importance_weights(loss):
    sample = real()
    weights, (a, b) = importance_weights(loss, sample), loss.coefficients()
    found = a * (weights * np.exp(sample.scores)).mean(1) - b * np.exp(sample.positives).mean(1)
    found = np.maximum(found, np.exp(sample.lower_bound))
    np.testing.assert_allclose(found, _known_scores.estimate(loss, sample), rtol=1e-12)
    if loss.sum_of_weights == "N":
        np.testing.assert_allclose(weights.mean(1), 1)


def test_importance_weights_of_bcl_are_those_of_its_paper():
    sample, alpha, beta, tau_plus = real(), 0.8, 0.7, 0.2
    x, tau_minus = np.exp(sample.scores), 1 - tau_plus
    cdf = (x[:, :, None] >= x[:, None, :]).mean(2)  # equation 1
    true = alpha * tau_minus + (1 - 2 * alpha) * cdf * tau_minus  # equation 2
    false = alpha * tau_minus + (1 - alpha) * tau_plus
    posterior = true / (false + (1 - 2 * alpha) * cdf * (tau_minus - tau_plus))
    omega = posterior * x**beta  # equation 3
    loss = losses.BCL(alpha=alpha, beta=beta, tau_plus=tau_plus, form="printed")
    np.testing.assert_allclose(
        importance_weights(loss, sample), omega / omega.mean(1, keepdims=True), rtol=1e-10
    )
