"""Folds of samples of which few have labels: all known rows are tested, all others trained on."""

import numpy as np
import pytest
from sklearn.model_selection import GroupKFold, PredefinedSplit

from skcontrast import LabeledFolds

FEW = np.where(np.arange(90) < 30, np.random.default_rng(0).integers(3, size=90), -1)


def test_known_rows_are_tested_once_and_all_others_always_trained_on():
    y = np.where(FEW < 0, None, np.array(["b", "a", "c"], dtype=object)[FEW])
    folds = list(LabeledFolds(3).split(None, y))
    assert len(folds) == LabeledFolds(3).get_n_splits() == LabeledFolds(3).get_n_splits(None, y)
    tested = np.concatenate([test for _, test in folds])
    assert sorted(tested) == list(range(30))
    for train, test in folds:
        assert set(range(30, 90)) <= set(train)
        assert len(np.r_[train, test]) == len(set(np.r_[train, test])) == 90
    groups = np.arange(90) // 10
    for _, test in LabeledFolds(GroupKFold(3)).split(None, FEW, groups):
        assert len(set(groups[test])) == 1


@pytest.mark.parametrize(
    ("cv", "y", "groups", "message"),
    [
        (GroupKFold(2), FEW, np.arange(30), "groups must be an array of groups, one for each"),
        (GroupKFold(2), FEW, np.arange(99), "groups must be an array of groups, one for each"),
        (20, FEW, None, "n_splits=20 cannot be greater"),
        (GroupKFold(2), FEW, None, "groups"),
        (2, None, None, "LabeledFolds requires y to be passed"),
        (2, np.full(90, -1), None, "y must hold known classes, got none"),
        (GroupKFold, FEW, np.arange(90), "cv must be a number of folds, or a splitter"),
        ("three", FEW, None, "Expected `cv` as an integer"),
        (PredefinedSplit(np.arange(90) % 2), FEW, None, "cv must be .* that suits y and groups"),
        (3, FEW, dict.fromkeys(range(90)), "groups must be an array of groups, shape"),
    ],
)
def test_mistakes_are_named(cv, y, groups, message):
    with pytest.raises((ValueError, TypeError), match=message):
        next(LabeledFolds(cv).split(None, y, groups))


def test_folds_do_not_divide_groups_and_rows_without_one_are_alone():
    groups = np.where(np.arange(90) < 24, np.arange(90) // 4, -1)
    tested = [test for _, test in LabeledFolds(3).split(None, FEW, groups)]
    assert sorted(np.concatenate(tested)) == list(range(30))
    for group in range(6):
        assert sum(group in groups[test] for test in tested) == 1
