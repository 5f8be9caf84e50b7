"""Embeddings with classes: what is left out, and what is refused by name."""

import numpy as np
import pandas as pd
import pytest

from skcontrast import metrics
from skcontrast.metrics._labeled import check_labeled  # private: the checks of every metric

RNG = np.random.default_rng(0)
Y = np.arange(40) % 3
H, H_TEST = np.eye(4)[Y] + 0.5 * RNG.normal(size=(2, 40, 4))

MEASURES = [
    lambda *parts: metrics.knn_accuracy(*parts, n_neighbors=3),
    metrics.recall_at_k,
    metrics.map_at_r,
    metrics.linear_probe,
    lambda *parts: metrics.few_label_accuracy(*parts, n_labels=2, n_draws=3).mean(),
]
NAMES = ["knn_accuracy", "recall_at_k", "map_at_r", "linear_probe", "few_label_accuracy"]
every_measure = pytest.mark.parametrize("measure", MEASURES, ids=NAMES)


@every_measure
def test_samples_of_unknown_class_are_left_out(measure):
    partly, known = np.where(np.arange(40) < 10, -1, Y), np.arange(40) >= 10
    assert measure(H, partly, H_TEST, partly) == measure(
        H[known], Y[known], H_TEST[known], Y[known]
    )
    assert measure(H, partly) == measure(H[known], Y[known])


@every_measure
def test_names_of_classes_do_not_matter(measure):
    for names in (np.array(["ant", "bee", "cat"]), np.array([3.0, 5.0, 70.0])):
        assert measure(H, names[Y], H_TEST, names[Y]) == measure(H, Y, H_TEST, Y)
    words = np.array(["ant", "bee", "cat"], dtype=object)[Y]
    words[0] = -1
    assert measure(H, words) == measure(H[1:], Y[1:])


@every_measure
def test_frames_and_lists_are_arrays(measure):
    frames = pd.DataFrame(H), pd.Series(Y), pd.DataFrame(H_TEST), pd.Series(Y)
    assert measure(*frames) == measure(H, Y, H_TEST, Y)
    assert measure(H.tolist(), Y.tolist()) == measure(H, Y)


@every_measure
def test_a_measure_lies_between_zero_and_one_and_repeats(measure):
    for parts in ((H, Y), (H, Y, H_TEST, Y)):
        assert 0 <= measure(*parts) == measure(*parts) <= 1


BROKEN = np.where(np.eye(40, 4) > 0, np.nan, H)
WRONG = {
    "y must hold 2 or more known classes, got 1": (H, np.ones(40)),
    "2 or more known classes, got 1": (H, np.where(Y == 0, 1, -1)),
    "y must have one entry per row of H, 40, got 3": (H, [0, 1, 2]),
    "y_test must have one entry per row of H_test, 40, got 3": (H, Y, H_TEST, [0, 1, 2]),
    "y_test must have one entry per row of H_test, 1, got 40": (H, Y, H_TEST[:1], Y),
    "y_test must hold 1 or more known classes, got 0": (H, Y, H_TEST, np.full(40, -1)),
    "needs both H_test and y_test": (H, Y, H_TEST),
    "needs the classes of the samples, but y is None": (H, None),
    "Input H contains NaN": (BROKEN, Y),
    "Input H_test contains NaN": (H, Y, BROKEN, Y),
    "H and H_test must be equally wide, got 4 and 3": (H, Y, H_TEST[:, :3], Y),
    "numbers that are not integers": (H, Y + 0.5),
}


@every_measure
def test_wrong_parts_are_refused_by_name(measure):
    for message in WRONG:
        with pytest.raises(ValueError, match=message):
            measure(*WRONG[message])


def test_both_parts_share_their_classes_and_keep_their_precision():
    parts = check_labeled(H.astype(np.float32), Y, H_TEST, np.where(Y == 0, 7, Y), "f")
    assert parts.H.dtype == np.float32 and parts.H_test.dtype == np.float64
    assert set(parts.y) == {0, 1, 2} and set(parts.y_test) == {1, 2, 3}
    assert parts.queries[0] is parts.H_test
    alone = check_labeled(H, Y, None, None, "f")
    assert alone.queries[1] is alone.y


@pytest.mark.parametrize("value", [0, -1, 1.0, True, "3", None])
def test_a_count_is_an_int_of_at_least_one(value):
    with pytest.raises(ValueError, match="'k' parameter of recall_at_k must be an int in the ra"):
        metrics.recall_at_k(H, Y, k=value)
