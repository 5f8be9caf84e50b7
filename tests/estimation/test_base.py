"""Bad input of every estimate is refused."""

import numpy as np
import pytest

from skcontrast.estimation import alpha_from_auc, macro_auc, positive_ranks, tau_plus_from_labels
from skcontrast.estimation import estimate_alpha_and_tau_plus as from_ranks
from skcontrast.similarity import Cosine


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: from_ranks([0.5, 1.2]), r"ranks must be .* shares in \[0, 1\]"),
        (lambda: from_ranks([[0.5]]), r"ranks must be an array of shape \(n_positives,\)"),
        (lambda: from_ranks([0.5, np.nan]), "ranks contains NaN"),
        (lambda: from_ranks([0.5], tau_plus=2), r"'tau_plus' parameter of .* range \[0"),
        (lambda: from_ranks([0.5], tau_plus="auto"), "'tau_plus' parameter of"),
        (lambda: from_ranks([0.5], alpha=0.2), r"'alpha' parameter of .* range \[0.5"),
        (lambda: from_ranks([0.5], n_candidates=0), "'n_candidates' parameter of .* an int"),
        (lambda: alpha_from_auc(1.2), r"'auc' parameter of .*.* Got 1.2"),
        (lambda: alpha_from_auc("a"), r"'auc' parameter of .*.* Got 'a'"),
        (lambda: tau_plus_from_labels(None), "the target y is None"),
        (lambda: tau_plus_from_labels([0.5, 1.5]), "needs classes as y"),
        (lambda: tau_plus_from_labels(["a", "-1"]), "the string '-1': rename it"),
        (lambda: positive_ranks([[1, 2]], [[1, 2]]), "at least 2 samples"),
        (lambda: positive_ranks([[1, np.nan]] * 2, [[1, 2]] * 2), "views contains NaN"),
        (lambda: positive_ranks(np.eye(2), np.eye(2), similarity=Cosine(0)), "'temperature'"),
        (lambda: macro_auc(y=[0, 1]), "At least 1 views are needed, got 0"),
        (lambda: tau_plus_from_labels([-1, -1]), "at least one known class"),
        (lambda: macro_auc(np.eye(3), y=[0, 1, 2]), "two samples of one class and one"),
        (lambda: macro_auc(np.eye(3), y=[0, 1]), "y must have one entry per sample, 3, got 2"),
        (lambda: positive_ranks(np.eye(3), np.eye(2)), r"view 2 must have shape \(n, 3\)"),
        (lambda: positive_ranks(np.eye(3), np.ones((2, 3))), "view 2 has 2 rows, view 1 has 3"),
        (lambda: positive_ranks(np.eye(3)), "At least 2 views are needed, got 1"),
        (lambda: positive_ranks(), "At least 2 views are needed, got 0"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
