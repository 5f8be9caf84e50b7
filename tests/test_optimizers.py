"""An optimizer is a parameter object; its groups are patterns of the names of parameters."""

import pickle
from functools import partial

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from torch import nn

from skcontrast._checks import validate_parameters  # private: checks without a fit
from skcontrast.optimizers import Optimizer
from tests.common import X_DIGITS, small

NETWORK = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))


def built(optimizer, lr=0.1, weight_decay=0.0):
    return optimizer.build(NETWORK.named_parameters(), lr, weight_decay)


def names_of(optimizer):
    """Return the names of the parameters of each group."""
    names = {id(parameter): name for name, parameter in NETWORK.named_parameters()}
    return [[names[id(p)] for p in group["params"]] for group in optimizer.param_groups]


# The parameter object.


def test_options_are_parameters():
    optimizer = Optimizer("adamw", betas=(0.9, 0.95), param_groups=[("encoder.*", {"lr": 1e-5})])
    assert optimizer.get_params() == {
        "algorithm": "adamw",
        "param_groups": [("encoder.*", {"lr": 1e-5})],
        "betas": (0.9, 0.95),
    }
    assert eval(repr(optimizer)).get_params() == optimizer.get_params()


@pytest.mark.parametrize("copied", [clone, lambda o: pickle.loads(pickle.dumps(o))])
def test_a_copy_has_the_same_parameters_and_shares_none(copied):
    optimizer = Optimizer(torch.optim.RMSprop, alpha=0.9, param_groups=[("*bias", {"lr": 0.1})])
    copy = copied(optimizer)
    assert copy.get_params() == optimizer.get_params()
    copy.set_params(alpha=0.5).param_groups.append(("*", {}))
    assert optimizer.alpha == 0.9 and len(optimizer.param_groups) == 1


def test_set_params_takes_options_that_were_not_given_before():
    optimizer = Optimizer("sgd")
    assert optimizer.set_params(algorithm="adam", betas=(0.5, 0.9)) is optimizer
    assert repr(optimizer) == "Optimizer(betas=(0.5, 0.9))"


def test_a_failing_set_params_changes_nothing():
    optimizer = Optimizer("sgd", momentum=0.5)
    with pytest.raises(ValueError, match="SGD has no option 'betas'"):
        optimizer.set_params(momentum=0.1, betas=(0.9, 0.99))
    assert optimizer.get_params() == Optimizer("sgd", momentum=0.5).get_params()


# In an embedder.


@pytest.mark.parametrize("optimizer", ["adam", torch.optim.Adam, Optimizer("adam")])
def test_set_params_of_an_embedder_reaches_options(optimizer):
    embedder = small(optimizer=optimizer).set_params(optimizer__betas=(0.5, 0.9))
    assert embedder.optimizer.betas == (0.5, 0.9)
    assert clone(embedder).get_params()["optimizer__betas"] == (0.5, 0.9)


def test_a_grid_search_reaches_options_and_groups():
    grid = {
        "optimizer": ["sgd"],
        "optimizer__momentum": [0.0, 0.9],
        "optimizer__param_groups": [None, [("encoder.*", {"lr": 1e-5})]],
    }
    search = GridSearchCV(small(lr=0.05, max_epochs=5), grid, cv=2, error_score="raise").fit(
        X_DIGITS[:80]
    )
    assert len(set(search.cv_results_["mean_test_score"])) > 1
    assert search.best_estimator_.optimizer.algorithm == "sgd"


@pytest.mark.parametrize("optimizer", [torch.optim.Adam, Optimizer("adam")])
def test_a_class_or_an_object_that_says_nothing_is_the_name_alone(optimizer):
    by_name, other = (
        small(optimizer=given).fit_transform(X_DIGITS) for given in ("adam", optimizer)
    )
    np.testing.assert_array_equal(other, by_name)


def test_fit_leaves_the_object_as_it_was():
    groups = [("projector.*", {"lr": 0.0})]
    optimizer = Optimizer("adam", param_groups=groups)
    small(optimizer=optimizer).fit(X_DIGITS)
    assert optimizer.get_params() == {"algorithm": "adam", "param_groups": groups}


# What is built.


def test_options_reach_the_optimizer_and_momentum_of_sgd_has_a_default():
    assert built(Optimizer("adam", betas=(0.5, 0.9))).param_groups[0]["betas"] == (0.5, 0.9)
    assert built(Optimizer("sgd")).param_groups[0]["momentum"] == 0.9
    assert built(Optimizer("sgd", momentum=0.0)).param_groups[0]["momentum"] == 0.0
    assert built(Optimizer(torch.optim.Rprop)).param_groups[0]["lr"] == 0.1


@pytest.mark.parametrize("options", [{"foreach": True}, {"fused": False}])
def test_a_chosen_implementation_is_taken(options):
    group = built(Optimizer("adam", **options)).param_groups[0]
    assert not group["fused"] and group["foreach"] == options.get("foreach")


def test_groups_keep_their_options_and_inherit_the_rest():
    groups = [("0.*", {"lr": 0.01}), ("*bias", {"weight_decay": 0.0})]
    optimizer = built(Optimizer("sgd", param_groups=groups), lr=0.1, weight_decay=0.5)
    assert names_of(optimizer) == [["2.weight"], ["0.weight", "0.bias"], ["2.bias"]]
    assert [group["lr"] for group in optimizer.param_groups] == [0.1, 0.01, 0.1]
    assert [group["weight_decay"] for group in optimizer.param_groups] == [0.5, 0.5, 0.0]
    assert [group["momentum"] for group in optimizer.param_groups] == [0.9] * 3


def test_a_parameter_belongs_to_the_first_pattern_that_matches():
    groups = [("0.weight", {"lr": 1.0}), ("*.weight", {"lr": 2.0}), ("*", {"lr": 3.0})]
    found = names_of(built(Optimizer(param_groups=groups)))
    assert found == [["0.weight"], ["2.weight"], ["0.bias", "2.bias"]]


# What is refused.


BAD = {
    "name": (Optimizer("lion"), "'algorithm' parameter of Optimizer.*'adam'.*Got 'lion'"),
    "class": (Optimizer(dict), "subclass of torch.optim.Optimizer"),
    "LBFGS": (Optimizer(torch.optim.LBFGS), "LBFGS needs several losses per step"),
    "option": (Optimizer("adam", beta=0.9), "Adam has no option 'beta'.*betas"),
    "lr": (Optimizer("adam", lr=0.1), "no option 'lr'.*parameters of the embedder"),
    "decay": (Optimizer("sgd", weight_decay=0.1), "no option 'weight_decay'.*of the embedder"),
    "group": (Optimizer(param_groups=["encoder.*"]), "pairs of a pattern and a dict.*'encoder"),
    "groups": (Optimizer(param_groups={"encoder.*": {}}), "'param_groups' parameter of Optimizer"),
    "group option": (
        Optimizer("sgd", param_groups=[("*", {"betas": 1})]), "SGD has no option 'betas'"
    ),
    "group lr": (
        Optimizer(param_groups=[("*", {"lr": -1})]),
        r"'lr' parameter of the group '\*' .* \[0\.0, inf\)\. Got -1",
    ),
    "group lr type": (Optimizer(param_groups=[("*", {"lr": "low"})]), "must be a float"),
}  # fmt: skip


@pytest.mark.parametrize(("optimizer", "message"), BAD.values(), ids=BAD)
def test_what_cannot_be_is_refused_before_training(optimizer, message):
    with pytest.raises(ValueError, match=message):
        validate_parameters(optimizer)
    with pytest.raises(ValueError, match=message):
        small(optimizer=optimizer).fit(X_DIGITS)


def test_values_of_options_are_checked_by_torch():
    with pytest.raises(ValueError, match="Invalid beta parameter"):
        small(optimizer=Optimizer("adam", betas=(2.0, 0.9))).fit(X_DIGITS)


@pytest.mark.parametrize(
    "optimizer", [partial(torch.optim.Adam, amsgrad=True), built(Optimizer()), None]
)
def test_an_embedder_takes_a_name_a_class_or_an_object(optimizer):
    with pytest.raises(ValueError, match=r"'optimizer' parameter"):
        small(optimizer=optimizer).fit(X_DIGITS)


def test_a_pattern_that_matches_nothing_is_answered_with_the_names():
    optimizer = Optimizer(param_groups=[("backbone.*", {"lr": 0.1})])
    names = r"encoder\.1\.weight, .*projector"
    with pytest.raises(ValueError, match=rf"pattern 'backbone.\*'.*matches no.*{names}"):
        small(optimizer=optimizer).fit(X_DIGITS)


def test_a_pattern_whose_parameters_are_taken_says_so():
    groups = [("*", {"lr": 0.1}), ("0.*", {"lr": 0.2})]
    with pytest.raises(ValueError, match=r"pattern '0.\*' in param_groups matches no parameter"):
        built(Optimizer(param_groups=groups))
