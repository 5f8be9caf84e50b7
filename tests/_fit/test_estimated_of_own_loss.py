"""A hyperparameter of any name is estimated if its constraint says as what."""

import pytest
from sklearn.datasets import load_digits

from skcontrast import ContrastiveEmbedder
from skcontrast.losses import BCL, DCL, Loss, PositiveDebiased
from skcontrast.schedules import Auto, interval
from skcontrast.schedules._numbers import check_hyperparameters  # private: refused without a fit

X, y = load_digits(return_X_y=True)
X, y = X[:200], y[:200]


class Renamed(Loss):
    """DCL and BCL at once, with names of its own."""

    _parameter_constraints = {
        "prior": interval(0, 1, "left", auto="tau_plus"),
        "location": interval(0.5, 1, "both", auto="alpha"),
        "tau_plus": interval(0, 1, "left"),
    }

    def __init__(self, prior=0.1, location=0.7, tau_plus=0.0):
        self.prior = prior
        self.location = location
        self.tau_plus = tau_plus

    def coefficients(self):
        return DCL(tau_plus=self.prior).coefficients()

    def rank_weights(self, ranks, n_candidates):
        return BCL(alpha=self.location, tau_plus=self.prior).rank_weights(ranks, n_candidates)


def small(**kwargs):
    settings = {"max_epochs": 3, "batch_size": 64, "random_state": 0, "device": "cpu"}
    return ContrastiveEmbedder(**{**settings, **kwargs})


@pytest.mark.parametrize("target", [None, y], ids=["ranks", "labels"])
def test_a_hyperparameter_of_any_name_is_estimated_as_what_it_declares(target):
    own = small(loss=Renamed(prior=Auto(every=1), location=Auto(every=1))).fit(X, target)
    assert set(own.estimates_) == {"prior", "location"}
    first = {name: own.history_[0, f"loss__{name}"] for name in ("prior", "location")}
    assert first["location"] == 0.5
    assert own.history_[-1, "loss__location"] != 0.5
    if target is not None:
        named = small(loss=DCL(tau_plus="auto")).fit(X, target)
        assert own.estimates_["prior"] == named.estimates_["tau_plus"]


def test_a_given_prior_of_any_name_is_taken_for_known():
    same = small(loss=BCL(alpha=Auto(every=1), tau_plus=0.3)).fit(X).history_
    loss = PositiveDebiased(tau_plus=0.1, negatives=Renamed(0.3, Auto(every=1)))
    own = small(loss=loss).fit(X).history_
    assert own[0, "loss__negatives__location"] == same[0, "loss__alpha"] == 0.5
    # Both have seen the first epoch of different losses; with the prior known, neither is at .5.
    assert own[-1, "loss__negatives__location"] > 0.5


def test_a_name_alone_says_nothing():
    with pytest.raises(ValueError, match="'tau_plus' parameter of Renamed must be"):
        small(loss=Renamed(tau_plus="auto")).fit(X)


def test_outside_of_fit_the_function_that_estimates_it_is_named():
    with pytest.raises(ValueError, match=r"'prior' parameter.*_plus\(ranks\)\['tau_plus'\]"):
        check_hyperparameters(Renamed(prior="auto"))
    nested = PositiveDebiased(negatives=Renamed(location="auto"))
    with pytest.raises(ValueError, match=r"'negatives__location' .*_plus\(ranks\)\['alpha'\]"):
        check_hyperparameters(nested)
