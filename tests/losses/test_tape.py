"""A tape returns the gradient of what was computed from it, once."""

import pytest
import torch

from skcontrast.losses import BCL, HCL, Rows
from skcontrast.losses._tape import Tape  # private: gradients against autograd
from tests.common import random_views

NONE = torch.empty(6, 0, dtype=torch.int64)


def new_tape(**kwargs):
    scores, _ = random_views(6, 9)
    return Tape(scores.clone(), scores[:, :1], NONE, bounds=(-9.0, 9.0), **kwargs)


@pytest.mark.parametrize(
    "value",
    [
        lambda rows: rows.log_mean(HCL()),
        lambda rows: rows.weighted_sum(torch.ones(6, 9))[0],
        lambda rows: BCL().losses(rows),
    ],
    ids=["mean", "sum", "losses"],
)
def test_a_second_gradient_would_be_of_overwritten_sums_and_is_refused(value):
    tape = new_tape()
    total = value(Rows(tape)).sum()
    tape.gradients(total)
    with pytest.raises(RuntimeError, match=r"gradients was called twice.* from a new Tape"):
        tape.gradients(total)


def test_weights_are_those_of_pairs_and_only_a_loss_does_not_see_the_group():
    hidden = torch.eye(6, 9, dtype=torch.bool)
    pair_weights = torch.rand(6, 9, generator=torch.Generator().manual_seed(0))
    tape = new_tape(hidden=hidden, pair_weights=pair_weights)
    ones = torch.ones(6, 9)
    assert torch.equal(tape.of_pairs(tape.copy(ones)), pair_weights)
    assert torch.equal(tape.of_candidates(tape.copy(ones)), pair_weights * ~hidden)
    assert torch.equal(ones, torch.ones(6, 9))


def test_a_value_of_nothing_but_positives_has_no_gradient_at_the_scores():
    tape = new_tape()
    d_scores, d_positives, d_inputs = tape.gradients(Rows(tape).positives.sum())
    assert not d_scores.any() and (d_positives == 1).all() and d_inputs == []
