"""Hyperparameters that are estimated from the data while the embedder trains."""

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, ParameterGrid, ShuffleSplit
from sklearn.pipeline import make_pipeline
from skorch.callbacks import Callback

# private: the estimates of an epoch
from skcontrast._fit._estimated_parameters import AutoParameters
from skcontrast.augmentation import MarginalCorruption
from skcontrast.estimation import alpha_from_auc, macro_auc, tau_plus_from_labels
from skcontrast.frameworks import in_batch
from skcontrast.losses import BCL, DCL, HCL, PUCL, NonparametricBCL, PositiveDebiased, Supervised
from skcontrast.schedules import Auto, Linear
from skcontrast.similarity import Cosine
from tests import common
from tests.common import random_views, simulated_ranks

X, y = load_digits(return_X_y=True)
X, y = X[:300], y[:300]


def small(**kwargs):
    """Return a small embedder whose views differ so much that ranks do not say all."""
    given = {"augmentation": MarginalCorruption(0.5), "batch_size": 256, **kwargs}
    return common.small(**given)


@pytest.mark.parametrize(
    "loss",
    [
        BCL(alpha="auto", tau_plus="auto"),
        NonparametricBCL(alpha=Auto(every=1), tau_plus=Auto(every=1)),
        DCL(tau_plus="auto"),
        HCL(tau_plus="auto", beta=Linear(1, 0)),
        PUCL(tau_plus="auto"),
        PositiveDebiased(tau_plus="auto", negatives=DCL(tau_plus=Auto(every=1))),
    ],
    ids=repr,
)
@pytest.mark.parametrize("target", [None, y], ids=["ranks", "labels"])
def test_every_loss_with_a_prior_takes_auto(loss, target):
    n_epochs = 6 if "'auto'" in repr(loss) else 2  # "auto" first estimates after five
    embedder = small(loss=loss, max_epochs=n_epochs).fit(X, target)
    assert np.isfinite(embedder.transform(X)).all()
    for name in ("alpha", "tau_plus"):
        if getattr(loss, name, None) == "auto":
            values = embedder.history_[:, f"loss__{name}"]
            assert len(values) == 6
            assert 0 <= min(values) <= max(values) <= 1


def test_values_change_every_few_epochs_only():
    embedder = small(loss=BCL(alpha=Auto(every=2)), max_epochs=6, lr=0.01).fit(X)
    alpha = embedder.history_[:, "loss__alpha"]
    assert alpha[0] == alpha[1] == 0.5
    assert alpha[2] == alpha[3] != alpha[1]
    assert alpha[4] == alpha[5] != alpha[3]


def test_with_labels_the_prior_is_that_of_the_classes_from_the_first_epoch():
    embedder = small(loss=DCL(tau_plus="auto"), max_epochs=6).fit(X, y)
    assert set(embedder.history_[:, "loss__tau_plus"]) == {tau_plus_from_labels(y).value}


def test_unlabeled_samples_and_targets_that_are_not_classes_leave_it_to_the_ranks():
    loss = BCL(alpha=Auto(every=1))
    ranks = small(loss=loss).fit(X).history_[:, "loss__alpha"]
    none, numbers = np.full(300, -1), np.random.default_rng(0).normal(size=300)
    for target in (none, numbers, np.arange(300), np.c_[y, y]):
        assert small(loss=loss).fit(X, target).history_[:, "loss__alpha"] == ranks
    half = np.where(np.arange(300) < 150, y, -1)
    assert small(loss=loss).fit(X, half).history_[:, "loss__alpha"] != ranks


def test_alpha_from_labels_is_that_of_the_macro_auc():
    z = torch.stack(random_views(40, 4))
    labels = (z[0, :, 0] > 0).long()
    auc = macro_auc(*z, y=labels.numpy()).value
    assert 0.55 < auc < 0.8
    for form, expected in (("inverted", alpha_from_auc(auc).value), ("printed", auc)):
        loss = PositiveDebiased(negatives=BCL(alpha=Auto(every=1), form=form))
        auto = AutoParameters(loss, labels)
        auto.start_epoch(0)
        auto.observe(in_batch(Cosine().embed(z), labels), Cosine())
        auto.end_epoch(loss)
        assert auto.values["negatives__alpha"] == pytest.approx(expected)


def test_a_given_prior_is_taken_for_known_and_a_given_alpha_is_not():
    ranks = torch.from_numpy(simulated_ranks(0.9, 0.3, 254))

    def read(loss):
        auto = AutoParameters(loss)
        auto.start_epoch(4)
        auto.observed, auto.n_candidates = [ranks], 254
        auto.end_epoch(loss)
        return auto.values

    assert read(BCL(alpha="auto", tau_plus=0.3))["alpha"] == pytest.approx(0.9, abs=0.02)
    assert read(BCL(alpha="auto", tau_plus=0.1))["alpha"] != pytest.approx(0.9, abs=0.02)
    assert read(BCL(alpha=0.6, tau_plus="auto"))["tau_plus"] == pytest.approx(0.3, abs=0.02)
    assert read(DCL(tau_plus="auto"))["tau_plus"] == pytest.approx(0.3, abs=0.02)


def test_continuing_keeps_the_values():
    embedder = small(loss=BCL(alpha=Auto(every=2)), lr=0.01)
    for _ in range(5):
        embedder.partial_fit(X)
    alpha = embedder.history_[:, "loss__alpha"]
    assert alpha[0] == alpha[1] == 0.5
    assert alpha[2] == alpha[3] != 0.5
    assert alpha[4] != alpha[3]


def test_auto_changes_nothing_before_its_first_estimate():
    plain = small(loss=BCL(alpha=0.5), max_epochs=4).fit(X)
    auto = small(loss=BCL(alpha="auto"), max_epochs=4).fit(X)
    np.testing.assert_array_equal(auto.transform(X), plain.transform(X))


def test_grid_search_reaches_into_auto_and_the_estimates_of_negatives():
    pipe = make_pipeline(
        small(loss=PositiveDebiased(negatives=DCL()), batch_size=32, lr=0.01, max_epochs=2),
        LogisticRegression(max_iter=1000),
    )
    prefix = "contrastiveembedder__loss__"
    grid = {
        f"{prefix}tau_plus": [0.1, Auto(every=1)],
        f"{prefix}negatives": [DCL(), BCL(alpha=Auto(every=1))],
        f"{prefix}negatives__tau_plus": [Auto(every=1)],
    }
    fold, some = ShuffleSplit(1, test_size=0.5, random_state=0), (X[:100], y[:100])
    search = GridSearchCV(pipe, grid, cv=fold, error_score="raise").fit(*some)
    assert len(set(search.cv_results_["mean_test_score"])) > 1
    for params in ParameterGrid(grid):
        embedder = clone(pipe).set_params(**params).fit(*some)[0]
        loss = embedder.loss_.get_params()
        given = {name.removeprefix(prefix): value for name, value in params.items()}
        negatives = given.pop("negatives")
        assert type(loss["negatives"]) is type(negatives)
        expected = {name for name, value in given.items() if isinstance(value, Auto)}
        expected |= {"negatives__alpha"} if isinstance(negatives, BCL) else set()
        assert set(embedder.estimates_) == expected
        for name, value in given.items():
            if name in expected:
                assert embedder.estimates_[name] == tau_plus_from_labels(some[1]).value
            else:
                assert loss[name] == value


def test_labels_without_pairs_keep_the_value():
    rows = np.flatnonzero(y == 0)[:2].tolist() + np.flatnonzero(y == 1)[:2].tolist()
    pairs = X[rows]

    def alphas(batch_size):
        loss = BCL(alpha=Auto(every=1))
        embedder = small(loss=loss, batch_size=batch_size, max_epochs=4)
        return embedder.fit(pairs, y[rows]).history_[:, "loss__alpha"]

    # A pair: a candidate of the anchor's class, not its own view, and one of a different class.
    assert alphas(batch_size=2) == [0.5] * 4
    first, *later = alphas(batch_size=4)
    assert first == 0.5 < max(later)


def test_a_step_without_pairs_does_not_count():
    labels = torch.arange(40) % 4
    z = torch.stack(random_views(40, 4)) + 2 * torch.eye(4)[labels]
    auto = AutoParameters(BCL(alpha=Auto(every=1)), labels)
    values = []
    for steps in ([labels], [labels, torch.zeros(40, dtype=torch.int64)]):
        auto.start_epoch(0)
        for known in steps:
            auto.observe(in_batch(Cosine().embed(z), known), Cosine())
        auto.end_epoch(BCL())
        values.append(auto.values["alpha"])
    assert values[1] == values[0] > 0.6


@pytest.mark.parametrize(
    "loss, message",
    [
        (DCL(tau_plus=Auto(every=0)), "'every' parameter of Auto"),
        (HCL(beta="auto"), "'beta' parameter of HCL"),
        (DCL(tau_plus="estimated"), "'tau_plus' parameter of DCL .*'auto'"),
    ],
)
def test_bad_settings_are_refused_by_name(loss, message):
    with pytest.raises(ValueError, match=message):
        small(loss=loss).fit(X)


def test_an_estimate_among_the_negatives_does_not_use_the_prior_of_the_outer_loss():
    ranks = torch.from_numpy(simulated_ranks(0.9, 0.3, 254))
    loss = PositiveDebiased(tau_plus=0.1, negatives=DCL(tau_plus=Auto(every=1)))
    auto = AutoParameters(loss)
    auto.start_epoch(0)
    auto.observed, auto.n_candidates = [ranks], 254
    auto.end_epoch(loss)
    assert auto.values == {"negatives__tau_plus": pytest.approx(0.3, abs=0.02)}


def test_estimates_stay_where_every_loss_is_defined():
    loss = NonparametricBCL(alpha=Auto(every=1), beta=1)
    embedder = small(loss=loss, max_epochs=6, lr=0.01).fit(X)
    assert max(embedder.history_[:, "loss__alpha"]) < 1
    one_class = PositiveDebiased(tau_plus="auto", negatives=Supervised())
    with pytest.warns(UserWarning, match="learns nothing from y"):
        fitted = small(loss=one_class).fit(X, np.zeros(300))
    assert fitted.estimates_ == {"tau_plus": 0.99}


def test_the_last_estimate_is_an_attribute():
    embedder = small(loss=BCL(alpha=Auto(every=2), tau_plus=0.1), max_epochs=4).fit(X)
    assert set(embedder.estimates_) == {"alpha"}
    assert embedder.estimates_["alpha"] != embedder.history_[-1, "loss__alpha"]


def test_supervised_loss_without_any_label_estimates_from_ranks():
    loss = PositiveDebiased(tau_plus=Auto(every=1), negatives=Supervised())
    embedder = small(loss=loss, max_epochs=3)
    with pytest.warns(match="learns nothing from y"):
        embedder.fit(X, np.full(300, -1))
    assert len(set(embedder.history_[:, "loss__tau_plus"])) > 1


def few_of(y, n=5, seed=0):
    """Return the classes of n samples of each class, −1 elsewhere."""
    rng, few = np.random.default_rng(seed), np.full(len(y), -1)
    for k in np.unique(y):
        few[rng.choice(np.flatnonzero(y == k), n, replace=False)] = k
    return few


def test_a_few_labels_estimate_the_prior_and_the_auc_of_all_labels():
    loss = BCL(alpha=Auto(every=1), tau_plus=Auto(every=1))
    pixels, classes = load_digits(return_X_y=True)
    some = (classes < 5) | (np.arange(len(classes)) % 3 == 0)
    pixels, classes = pixels[some], classes[some]

    def estimates(labels):
        embedder = small(loss=loss, max_epochs=2).fit(pixels, labels)
        alpha = embedder.history_[1, "loss__alpha"]
        return np.array([embedder.history_[1, "loss__tau_plus"], (1 + 4 * alpha) / 6])

    found = [estimates(few_of(classes, seed=s)) for s in range(2)]
    assert np.abs(np.mean(found, 0) - estimates(classes)).max() < 0.02


def test_the_prior_follows_the_shares_that_classes_have_in_the_representation():
    unequal = np.repeat(np.arange(2), [160, 40])
    points = np.random.default_rng(0).normal(size=(200, 4)) + 8 * unequal[:, None]
    loss = DCL(tau_plus=Auto(every=1))
    found = (
        small(loss=loss, max_epochs=3).fit(points, few_of(unequal)).history_[:, "loss__tau_plus"]
    )
    assert found[0] == 0.5
    assert found[1:] == pytest.approx([0.68] * 2, abs=0.02)


def test_labels_that_the_loss_reads_are_not_replaced_by_draws():
    loss = PositiveDebiased(tau_plus=Auto(every=1), negatives=Supervised())
    seen = []

    class Note(Callback):
        def on_epoch_end(self, net, dataset_train=None, **kwargs):
            seen.append(dataset_train.metadata["labels"].tolist())

    few = few_of(y)
    small(loss=loss, max_epochs=2, callbacks=[Note()]).fit(X, few)
    assert seen == [few.tolist()] * 2


def test_estimates_are_taken_as_they_stand():
    loss = BCL(alpha="auto", tau_plus="auto")
    auto = AutoParameters(loss, past={"tau_plus": 0.25})
    now, _, values = auto.at(loss, Cosine(), 0.0)
    assert (now.alpha, now.tau_plus) == (0.5, 0.25)
    assert values == {"loss__alpha": 0.5, "loss__tau_plus": 0.25}
