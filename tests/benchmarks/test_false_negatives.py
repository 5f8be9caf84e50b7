"""Temperatures are chosen on seeds that are not reported, and sets are what they are called."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.studies import false_negatives as study
from benchmarks.studies._digit_fits import N_FEW_CLASSES, split


def test_a_seed_does_not_choose_its_own_temperature():
    scores = np.array([[0.9, 0.5, 0.5], [0.6, 0.6, 0.6]])[:, :, None]
    assert study.left_out(scores)[:, 0].tolist() == [0.6, 0.5, 0.5]


def test_each_column_chooses_for_itself():
    scores = np.array([[[1.0, 0.0]] * 3, [[0.0, 1.0]] * 3])
    assert study.left_out(scores).tolist() == [[1.0, 1.0]] * 3


@pytest.mark.parametrize("n_classes", [2, 3, 5, 10])
def test_digits_of_few_classes_are_as_many_whatever_their_number(n_classes):
    for seed in range(5):
        _, y_train, _, y_test = split(seed, n_classes)
        counts = np.unique(y_train, return_counts=True)[1]
        assert set(counts) == {N_FEW_CLASSES // n_classes} and len(counts) == n_classes
        assert set(y_test) == set(y_train)


def test_seeds_that_choose_are_not_reported():
    assert not set(study.REPORTED) & set(study.SETS[study.BEST].seeds)


def test_a_star_means_beyond_chance():
    base, noise = np.linspace(0.5, 0.6, 5), np.array([1, -1, 1, -1, 0.5]) / 1000
    assert study.starred(base + 0.1 + noise, base) == "+0.100 *"
    assert study.starred(base + noise, base) == "+0.000"
    assert study.starred(base, base) == "+0.000"
