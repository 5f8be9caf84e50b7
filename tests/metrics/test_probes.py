"""Linear probes, against scikit-learn's own classes."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skcontrast.metrics import few_label_accuracy, linear_probe

RNG = np.random.default_rng(0)
Y, Y_TEST = RNG.integers(0, 5, size=(2, 80))
CENTRES = RNG.normal(size=(5, 6))
H, H_TEST = (CENTRES[y] + RNG.normal(size=(80, 6)) for y in (Y, Y_TEST))
DATA = H, Y, H_TEST, Y_TEST


def probe(C=1.0):
    return make_pipeline(StandardScaler(), LogisticRegression(C=C, max_iter=2000))


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_the_probe_is_a_standardised_logistic_regression(C):
    assert linear_probe(*DATA, C=C) == probe(C).fit(H, Y).score(H_TEST, Y_TEST)
    plain = LogisticRegression(C=C, max_iter=2000).fit(H, Y).score(H_TEST, Y_TEST)
    assert linear_probe(*DATA, scale=False, C=C) == plain


def test_two_classes_are_probed_as_by_scikit_learn():
    few = Y < 2, Y_TEST < 2
    data = H[few[0]], Y[few[0]], H_TEST[few[1]], Y_TEST[few[1]]
    assert linear_probe(*data) == probe().fit(*data[:2]).score(*data[2:])


def test_without_a_test_part_the_probe_is_cross_validated():
    folds = StratifiedKFold(4, shuffle=True, random_state=0)
    expected = cross_val_score(probe(), H, Y, cv=folds).mean()
    assert linear_probe(H, Y, cv=4) == pytest.approx(expected)


def test_classes_that_were_not_learned_count_as_wrong():
    unseen = np.where(np.arange(80) < 40, Y_TEST, 9)
    assert linear_probe(H, Y, H_TEST, unseen) == linear_probe(H, Y, H_TEST[:40], Y_TEST[:40]) / 2


def test_few_labels_are_draws_by_consecutive_seeds():
    accuracies = few_label_accuracy(*DATA, n_labels=3, n_draws=4, random_state=7)
    for draw, accuracy in enumerate(accuracies):
        rng = np.random.default_rng(7 + draw)
        rows = [rng.choice(np.flatnonzero(k == Y), 3, replace=False) for k in range(5)]
        few = np.concatenate(rows)
        assert accuracy == probe().fit(H[few], Y[few]).score(H_TEST, Y_TEST)
    later = few_label_accuracy(*DATA, n_labels=3, n_draws=3, random_state=8)
    assert np.array_equal(accuracies[1:], later)


def test_without_a_test_part_all_unlabeled_samples_are_tested_on():
    (accuracy,) = few_label_accuracy(H, Y, n_labels=4, n_draws=1)
    rng = np.random.default_rng(0)
    few = np.concatenate([rng.choice(np.flatnonzero(k == Y), 4, replace=False) for k in range(5)])
    rest = np.setdiff1d(np.arange(80), few)
    assert accuracy == probe().fit(H[few], Y[few]).score(H[rest], Y[rest])


def test_a_random_state_draws_as_its_numbers_and_none_draws_anew():
    states = [np.random.RandomState(3) for _ in range(2)]
    first, second = (few_label_accuracy(*DATA, n_labels=1, random_state=s) for s in states)
    assert np.array_equal(first, second)
    draws = [few_label_accuracy(*DATA, n_labels=1, random_state=None) for _ in range(2)]
    assert not np.array_equal(*draws)


def test_labels_that_are_not_there_are_refused_by_name():
    smallest = np.bincount(Y).min()
    with pytest.raises(ValueError, match=f"n_labels must be at most {smallest}, the size of the"):
        few_label_accuracy(*DATA, n_labels=smallest + 1)
    with pytest.raises(ValueError, match="leaves no samples to test on"):
        few_label_accuracy(H[:4], [0, 0, 1, 1], n_labels=2)


@pytest.mark.parametrize(
    "wrong", [{"n_labels": 0}, {"n_draws": 0}, {"C": 0}, {"C": "1"}, {"random_state": -1}]
)
def test_a_parameter_outside_its_range_is_named(wrong):
    (name,) = wrong
    with pytest.raises(ValueError, match=f"{name}.* must be"):
        few_label_accuracy(*DATA, **wrong)


@pytest.mark.parametrize(("name", "value"), [("C", -1.0), ("C", np.nan)])
def test_a_parameter_of_the_probe_outside_its_range_is_named(name, value):
    with pytest.raises(ValueError, match=f"{name}.* must be"):
        linear_probe(*DATA, **{name: value})
    with pytest.raises(ValueError, match="'cv' parameter of linear_probe must be an int"):
        linear_probe(H, Y, cv=1)
