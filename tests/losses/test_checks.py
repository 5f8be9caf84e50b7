"""check_loss finds what would silently be another loss than its author meant."""

import math

import pytest
import torch

from skcontrast import contrastive_loss
from skcontrast.losses import DCL, HCL, InfoNCE, Loss, SupCon, check_loss
from tests.common import LOSSES, small, vectors


def custom(base=Loss, **members):
    """Return a loss with these members; a function ignores the object."""
    members = {
        name: (lambda self, *args, f=value: f(*args)) if callable(value) else value
        for name, value in members.items()
    }
    return type("Custom", (base,), members)()


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_the_losses_of_the_package_pass(loss):
    for n_candidates, n_positives in [(254, 1), (9, 3)]:
        check_loss(loss, n_candidates, n_positives)


WRONG = [
    ({"rank_weights": lambda ranks, n: ranks - 3}, r"rank_weights .*≥ 0, got -2 to 251"),
    ({"rank_weights": lambda ranks, n: ranks * torch.nan}, r"rank_weights .*got nan"),
    ({"rank_weights": lambda ranks, n: ranks / 0}, r"rank_weights .* to inf"),
    ({"rank_weights": lambda ranks, n: ranks > n}, r"rank_weights must not return 0"),
    ({"rank_weights": lambda ranks, n: ranks[1:]}, r"rank_weights .*got shape \(253,\)"),
    ({"class_weights": lambda same: same.double() - 0.5}, r"class_weights .*got -0.5"),
    ({"coefficients": lambda: (0.0, 0.1)}, r"a > 0 and b ≥ 0, got \(0\.0, 0\.1\)"),
    ({"coefficients": lambda: 1.0}, "two numbers"),
    ({"coefficients": lambda: (math.nan, 0.0)}, "two numbers"),
    ({"hardness": lambda: -1.0}, "β ≥ 0, got -1.0"),
    ({"hardness": lambda: "1"}, "β ≥ 0, got '1'"),
    ({"hardness": lambda: 0.0, "sum_of_weights": "replaces n"}, "'sum_of_weights'"),
    ({"class_weights": lambda same: ~same}, "set requires_y = True"),
    ({"losses": lambda rows: rows.positives.mean()}, r"losses .*\(6,\), got shape \(\)"),
    ({"losses": lambda rows: rows.scores.amax(1) * torch.nan}, "must be finite"),
    ({"losses": lambda rows: (rows.scores * 0).sum(1) - rows.positives[:, 0]}, "must be finite"),
    ({"losses": lambda rows: rows.scores.amax(1).detach()}, "leave out detach"),
    ({"losses": lambda rows: rows.scores.amax(1) - rows.positives.mean()}, "its own row alone"),
    ({"losses": lambda rows: rows.scores[:, 1] - rows.positives[:, 0]}, "depend on the order"),
    (
        {"losses": lambda rows: rows.positives[:, 0] - rows.scores.amax(1)},
        "must fall as positives score higher, but it grows",
    ),
    ({"losses": lambda rows: -rows.scores.amax(1)}, "must fall .*, but it is constant"),
    ({"losses": lambda rows: rows.scores.logsumexp(1)}, "must fall .*, but it is constant"),
    (
        {"losses": lambda rows: -rows.scores.amax(1) - rows.positives.mean(1)},
        "must not fall as all candidates score higher",
    ),
    ({"criterion": lambda z: z}, "Custom overrides none of .*losses.*InfoNCE"),
    ({}, "Custom overrides none of"),
]


@pytest.mark.parametrize("members, message", WRONG, ids=[message for _, message in WRONG])
def test_a_wrong_loss_is_refused_by_the_name_of_the_method(members, message):
    with pytest.raises((TypeError, ValueError), match=message):
        check_loss(custom(**members))


def test_a_loss_may_draw_random_numbers_and_inherit_the_rest():
    def losses(rows):
        kept = torch.rand_like(rows.scores[:, :1]) < 2
        return rows.scores.where(kept, -torch.inf).logsumexp(1) - rows.positives.mean(1)

    check_loss(custom(losses=losses))
    check_loss(custom(HCL))
    check_loss(custom(SupCon, pulls=True))


def test_near_names_are_refused_in_subclasses_of_any_loss_and_other_methods_are_not():
    class Near(DCL):
        @staticmethod
        def hardnes():
            return 1.0

    with pytest.raises(TypeError, match=r"Near has hardnes\. Is a name misspelled"):
        contrastive_loss(torch.eye(4), torch.eye(4), loss=Near())

    class Helps(InfoNCE):
        def __repr__(self):
            return "helps"

        def describe(self):
            return self.get_params()

    contrastive_loss(torch.eye(4), torch.eye(4), loss=Helps())


@pytest.mark.parametrize("name", ["loses", "hardnes", "forward", "__call__"])
def test_a_misspelt_method_is_refused_by_fit_and_by_the_function_too(name):
    loss = custom(**{name: lambda rows: rows.scores.amax(1)})
    for use in (
        lambda: small(loss=loss).fit(vectors()),
        lambda: contrastive_loss(torch.eye(4), torch.eye(4), loss=loss),
    ):
        message = r"Custom overrides none of .*InfoNCE\. Is a name missp"
        with pytest.raises(TypeError, match=message):
            use()
    contrastive_loss(torch.eye(4), torch.eye(4), loss=custom())  # InfoNCE by another name
