"""Sharpness and floor from labels."""

import numpy as np
import pytest
import torch

from benchmarks._bcl_scores import ScoreModel, sharpness_of
from skcontrast.estimation import ScoreSample, estimate_soft_ring, reliability
from skcontrast.losses import SoftRing


def drawn(loss, n_anchors=4000, n=100):
    """Return scores whose labels are drawn with the probabilities of a loss."""
    ranks = torch.arange(1, n + 1, dtype=torch.float64)
    p = loss.true_negative_probability(ranks, n).numpy()
    is_negative = np.random.default_rng(0).random((n_anchors, n)) < p
    scores = np.tile(np.linspace(-1, 1, n), (n_anchors, 1))
    return ScoreSample(scores, is_negative, scores[:, -1:], -2.0)


@pytest.mark.parametrize("floor", [0.0, 0.3])
@pytest.mark.parametrize("sharpness", [0.5, 2.0])
def test_labels_drawn_from_the_model_give_its_parameters(sharpness, floor):
    found = estimate_soft_ring(drawn(SoftRing(sharpness=sharpness, tau_plus=0.2, floor=floor)))
    assert found["sharpness"] == pytest.approx(sharpness, rel=0.1)
    assert found["floor"] == pytest.approx(floor, abs=0.05)
    assert found["tau_plus"] == pytest.approx(0.2, abs=0.005)


def test_a_far_part_of_a_class_does_not_lower_the_sharpness():
    sample = drawn(SoftRing(sharpness=3.0, tau_plus=0.1, floor=0.4))
    false = (~sample.is_negative).mean(0)
    below = np.cumsum(1 - false) - (1 - false) / 2
    auc = (false * below).sum() / false.sum() / (1 - false).sum()
    by_auc = SoftRing(sharpness=sharpness_of(auc, 0.1), tau_plus=0.1)
    fitted = SoftRing(**estimate_soft_ring(sample))
    assert by_auc.sharpness < 2 < fitted.sharpness
    assert reliability(fitted, sample).largest_gap < 0.02
    assert reliability(by_auc, sample).largest_gap > 0.1


def test_scores_that_say_nothing_give_equal_probabilities():
    rng = np.random.default_rng(0)
    is_negative = rng.random((2000, 50)) < 0.8
    sample = ScoreSample(rng.normal(size=(2000, 50)), is_negative, np.ones((2000, 1)), -9.0)
    loss = SoftRing(**estimate_soft_ring(sample))
    p = loss.true_negative_probability(torch.arange(1, 51).double(), 50)
    assert float(p.max() - p.min()) < 0.05


def test_one_class_and_anything_except_a_sample_are_refused():
    with pytest.raises(ValueError, match="both true and false negatives"):
        estimate_soft_ring(ScoreModel(tau_plus=0.0).sample(10, 10, random_state=0))
    with pytest.raises(TypeError, match="must be an instance of 'ScoreSample'"):
        estimate_soft_ring(np.zeros((3, 3)))
