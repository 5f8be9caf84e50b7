"""What is passed alongside X: what it does, how it reaches fit, and what is refused."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn import config_context
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_validate
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from skcontrast import ContrastiveClassifier, LabeledFolds, rows_to_label

# private: each rule of a column, without a fit
from skcontrast._data._metadata import (
    split_known,
    validate_domains,
    validate_groups,
    validate_labels,
)
from skcontrast.augmentation import GaussianNoise
from skcontrast.estimation import tau_plus_from_labels
from skcontrast.frameworks import CMC, Batch, MoCo, SimCLR
from skcontrast.losses import DCL, InfoNCE, SemiSupCon, SupCon, Supervised
from skcontrast.metrics import knn_accuracy
from skcontrast.similarity import Cosine
from tests.common import X_DIGITS, random_views, small, vectors

X, y = load_digits(return_X_y=True)
X, y = X[:200], y[:200]
WIDTH = 6


def embedder(**kwargs):
    return small(projection_dim=WIDTH, **kwargs)


def float_views(seed=0):
    return random_views(8, WIDTH, dtype=torch.float32, seed=seed)


def random_descriptions(seed=0):
    return np.random.default_rng(seed).normal(size=(len(X), WIDTH))


def test_the_loss_of_a_view_is_multiplied_by_its_agreement_with_the_description():
    views, t = random_views(8, WIDTH), random_views(8, WIDTH, seed=5)[0]
    contrast = SimCLR().contrast(torch.nn.Identity(), views, Cosine(), Batch(None, None, None, t))
    agreement = [torch.nn.functional.cosine_similarity(v, t).clamp_min(0) for v in views]
    torch.testing.assert_close(contrast.weights, torch.cat(agreement))
    assert not contrast.weights.requires_grad
    assert 0 < (contrast.weights == 0).sum() < 16


def test_descriptions_and_weights_multiply():
    z, (t, _) = torch.stack(float_views()), float_views(seed=5)
    w = torch.arange(8.0)
    both = Batch(None, None, w, t).anchor_weights(z)
    torch.testing.assert_close(both, Batch(None, None, None, t).anchor_weights(z) * w)
    torch.testing.assert_close(Batch(None, None, w).anchor_weights(z), w.expand(2, 8))
    assert Batch(None).anchor_weights(z) is None


def test_weights_of_one_change_nothing():
    plain = embedder().fit(X).transform(X)
    np.testing.assert_array_equal(
        embedder().fit(X, sample_weight=np.ones(200)).transform(X), plain
    )


class ChecksTheBatch(SimCLR):
    """SimCLR that asserts that what is known about the samples is about these samples."""

    def contrast(self, network, views, similarity, batch):
        torch.testing.assert_close(batch.weights, batch.x[:, 20] + 1)
        torch.testing.assert_close(batch.descriptions, batch.x[:, 20 : 20 + WIDTH])
        return super().contrast(network, views, similarity, batch)


def test_weights_and_descriptions_go_with_their_samples():
    checks = embedder(framework=ChecksTheBatch(), batch_size=32)
    checks.fit(X, sample_weight=X[:, 20] + 1, descriptions=X[:, 20 : 20 + WIDTH])
    with pytest.raises(AssertionError):
        checks.fit(X, sample_weight=X[::-1, 20] + 1, descriptions=X[:, 20 : 20 + WIDTH])


def read_only(array):
    array = array.astype(np.float32)
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    "convert",
    [np.asarray, torch.as_tensor, list, pd.DataFrame, read_only],
    ids=lambda convert: convert.__name__,
)
def test_every_form_of_array(convert):
    expected = embedder().fit(X, descriptions=random_descriptions()).transform(X)
    actual = embedder().fit(X, descriptions=convert(random_descriptions())).transform(X)
    np.testing.assert_array_equal(actual, expected)


def test_partial_fit_takes_them_too():
    weight = np.linspace(0, 1, 200)
    one = embedder(max_epochs=1, lr_schedule="constant").fit(X, sample_weight=weight)
    part = embedder(max_epochs=1).partial_fit(X, sample_weight=weight)
    np.testing.assert_array_equal(one.transform(X), part.transform(X))


# Ways into fit


def pipeline(**kwargs):
    steps = GaussianNoise(), embedder(**kwargs), LogisticRegression(max_iter=2000)
    return Pipeline([*zip(("noise", "embed", "clf"), steps, strict=True)])


def test_through_a_pipeline_by_the_name_of_the_step():
    t = random_descriptions()
    plain = pipeline().fit(X, y)
    described = pipeline().fit(X, y, embed__descriptions=t)
    direct = embedder(augmentation=GaussianNoise()).fit(X, y, descriptions=t)
    np.testing.assert_array_equal(described["embed"].transform(X), direct.transform(X))
    assert not np.allclose(described["embed"].transform(X), plain["embed"].transform(X))


def test_a_search_cuts_them_as_it_cuts_X():
    steps = embedder(framework=ChecksTheBatch()), LogisticRegression(max_iter=2000)
    pipe = Pipeline([*zip(("embed", "clf"), steps, strict=True)])
    folds = KFold(2, shuffle=True, random_state=0)
    search = GridSearchCV(pipe, {"embed__loss": [DCL()]}, cv=folds, error_score="raise")
    weight, t = X[:, 20] + 1, X[:, 20 : 20 + WIDTH]
    search.fit(X, y, embed__descriptions=t, embed__sample_weight=weight)
    for wrong in ({"descriptions": t[::-1]}, {"sample_weight": weight[::-1]}):
        metadata = {"descriptions": t, "sample_weight": weight, **wrong}
        with pytest.raises(AssertionError):
            search.fit(X, y, **{f"embed__{name}": value for name, value in metadata.items()})


def test_by_metadata_routing():
    t, w = random_descriptions(), np.linspace(0, 1, 200)
    with config_context(enable_metadata_routing=True):
        pipe = pipeline()
        pipe["embed"].set_fit_request(descriptions=True, sample_weight="how_much")
        pipe.fit(X, y, descriptions=t, how_much=w)
        cross_validate(pipe, X, y, cv=2, params={"descriptions": t, "how_much": w})
        with pytest.raises(ValueError, match="descriptions"):
            pipeline().fit(X, y, descriptions=t)
    direct = embedder(augmentation=GaussianNoise()).fit(X, y, descriptions=t, sample_weight=w)
    np.testing.assert_array_equal(pipe["embed"].transform(X), direct.transform(X))


@pytest.mark.parametrize(
    "metadata, message",
    [
        (
            {"descriptions": np.ones((200, 5))},
            r"descriptions must have shape \(n_samples, 6\).*projection_dim.*got \(200, 5\)",
        ),
        ({"descriptions": np.ones((199, 6))}, r"shape \(200, d\), got \(199, 6\)"),
        ({"descriptions": np.ones(200)}, r"descriptions must have shape \(200, d\)"),
        ({"descriptions": np.full((200, 6), np.nan)}, "descriptions contains NaN"),
        ({"descriptions": np.zeros((200, 6))}, "descriptions must not be all zeros"),
        ({"sample_weight": np.ones(3)}, r"sample_weight must have shape \(200,\)"),
        ({"sample_weight": np.ones((200, 1))}, r"sample_weight must have shape"),
        ({"sample_weight": -np.ones(200)}, "sample_weight must be nonnegative"),
        ({"sample_weight": np.zeros(200)}, "not all zeros"),
        ({"sample_weight": np.full(200, np.inf)}, "sample_weight contains infinity"),
        ({"sample_weight": np.full(200, 1e300)}, "sample_weight"),
        ({"domains": "plate"}, "domains must be an array of domains, .*got the text 'plate'"),
        ({"domains": np.zeros((200, 2))}, r"domains must be an array of domains, .*\(200, 2\)"),
        ({"domains": ["a", 1] * 100}, "domains must hold numbers or strings, got both"),
        ({"weights": np.ones(200)}, "unexpected argument 'weights'"),
        ({"domain": np.ones(200)}, r"argument 'domain'\. Did you mean 'domains'\?"),
    ],
)
def test_bad_metadata_are_refused(metadata, message):
    fitted = embedder().fit(X)
    before = fitted.transform(X)
    with pytest.raises(TypeError if "argument" in message else ValueError, match=message):
        fitted.fit(X, **metadata)
    np.testing.assert_array_equal(fitted.transform(X), before)


@pytest.mark.filterwarnings("ignore:.*learns nothing from y")
@pytest.mark.parametrize("loss", [Supervised(), SupCon()], ids=repr)
def test_unlabeled_samples_are_marked_by_minus_one(loss):
    y = load_digits().target[:200]
    targets = {"half": np.where(np.arange(200) % 2, y, -1), "none": np.full(200, -1), "all": y}
    first = {
        name: small(loss=loss, max_epochs=1).fit(X_DIGITS, y).history_[0, "train_loss"]
        for name, y in targets.items()
    }
    plain = small(max_epochs=1).fit(X_DIGITS).history_[0, "train_loss"]
    assert first["none"] == pytest.approx(plain, rel=1e-5)
    assert len({round(value, 4) for value in first.values()}) == 3


@pytest.mark.parametrize(
    "y, message",
    [
        (None, "SupCon requires y to be passed"),
        (np.zeros(3), "one entry per sample, 200, got 3"),
        (np.zeros((200, 2)), r"y must be an array of classes, .* got shape \(200, 2\)"),
        (np.full(200, np.inf), "y contains infinity"),
        (np.full(200, 0.5), "SupCon needs classes as y, got numbers that are not integers"),
        (np.array(["a", 0] * 100, dtype=object), "y must hold numbers or strings, got both"),
    ],
    ids=["missing", "length", "2-D", "infinity", "halves", "both"],
)
def test_bad_labels_are_refused(y, message):
    with pytest.raises(ValueError, match=message):
        small(loss=SupCon()).fit(X_DIGITS, y)


@pytest.mark.parametrize("unknown", [-1, -1.0, None, float("nan"), pd.NA, pd.NaT], ids=str)
def test_what_is_unknown_among_strings_or_numbers_is_minus_1(unknown):
    expected = np.unique(y, return_inverse=True)[1]
    expected[[3, 7]] = -1
    for values in (y.astype(str), y):
        given = values.astype(object)
        given[[3, 7]] = unknown
        masked = np.ma.masked_array(values, expected < 0)
        for one in (given, given.tolist(), pd.Series(given), given[:, None], masked):
            np.testing.assert_array_equal(validate_labels(one, len(y), needed_by=""), expected)


@pytest.mark.parametrize("loss", [InfoNCE(), DCL(), SupCon(), DCL(tau_plus="auto")], ids=str)
@pytest.mark.parametrize("y", [np.zeros(3, int), ["a"] * 3, np.zeros((3, 2))], ids=str)
def test_y_of_a_wrong_length_is_refused_with_every_loss(loss, y):
    with pytest.raises(ValueError, match="y must have one entry per sample, 60, got 3"):
        small(loss=loss).fit(vectors(), y)


@pytest.mark.parametrize("loss", [Supervised(), SupCon(), SemiSupCon(every=1)], ids=str)
def test_labels_that_say_nothing_are_warned_about(loss):
    for y in (np.full(60, -1), np.arange(60), np.zeros(60)):
        with pytest.warns(UserWarning, match="learns nothing from y"):
            small(loss=loss, max_epochs=1).fit(vectors(), y)
    small(loss=loss, max_epochs=1).fit(
        vectors(), np.where(np.arange(60) < 9, np.arange(60) % 2, -1)
    )


def test_groups_are_counted_in_their_order():
    assert validate_groups([7, -1, 7, 3], 4).tolist() == [1, -1, 1, 0]
    assert validate_groups(["b", "a", "b"], 3).tolist() == [1, 0, 1]


def test_domains_are_numbered_and_the_unknown_one_is_a_domain():
    assert validate_domains(None, 3) is None
    assert validate_domains(["b", "a", "b", "a"], 4).tolist() == [1, 0, 1, 0]
    assert validate_domains([7, -1, 7, -1], 4).tolist() == [1, 0, 1, 0]
    with pytest.warns(UserWarning, match=r"1 domain\(s\) have a single sample and no negatives"):
        assert validate_domains(["b", "a", "b", "b", "a", "c"], 6).tolist() == [1, 0, 1, 1, 0, 1]
    with pytest.warns(UserWarning, match=r"2 domain\(s\) have a single sample and no negatives"):
        assert validate_domains(["b", "a", "b", "d", "a", "c"], 6).tolist() == [1, 0, 1, 2, 0, 2]
    with pytest.raises(ValueError, match="domains must have one entry per sample, 5, got 4"):
        validate_domains([7, -1, 7, -1], 5)
    assert validate_domains([7, np.nan, 7, np.nan], 4).tolist() == [1, 0, 1, 0]


class SeeDomains(SimCLR):
    """Keeps the domains that meet in each batch."""

    def contrast(self, network, views, similarity, batch):
        SEEN.append(set((batch.rows % 3).tolist()))
        return super().contrast(network, views, similarity, batch)


SEEN = []


def test_the_negatives_of_a_fit_are_of_the_same_domain(tmp_path):
    SEEN.clear()
    X, domains = X_DIGITS[:60], np.array(list("abc") * 20)
    embedder = small(framework=SeeDomains(), checkpoint=tmp_path).fit(X, domains=domains)
    assert [len(met) for met in SEEN] == [1] * 6 and len(set(map(min, SEEN))) == 3
    with pytest.raises(ValueError, match="domains"):  # of the checkpoint
        embedder.fit(X, domains=domains[::-1])
    pipe = make_pipeline(StandardScaler(), small(framework=SeeDomains()))
    pipe.fit(X, contrastiveembedder__domains=domains)
    assert [len(met) for met in SEEN] == [1] * 12


@pytest.mark.parametrize("framework", [MoCo(queue_size=40), CMC(n_negatives=10)])
def test_what_remembers_other_domains_is_refused(framework):
    embedder = small(framework=framework, n_components=4)
    message = f"domains needs .* {type(framework).__name__} stores samples"
    with pytest.raises(ValueError, match=message):
        embedder.fit(X_DIGITS, domains=np.arange(len(X_DIGITS)) % 2)


def test_same_group_without_groups_is_reported():
    for y in (None, np.arange(60) // 2):
        with pytest.warns(UserWarning, match=r"same_group has no effect.*fit\(X, groups=...\)"):
            small(max_epochs=1, same_group="positive").fit(vectors(), y)
    groups = np.arange(60) // 2
    small(max_epochs=1, same_group="positive").fit(vectors(), groups=groups)


# Names are no quantities: what tells samples apart never passes through floats.


PLACES = np.tile([0, 1, 2, 3], 6)
NAMING = {
    "list": list,
    "list with NaN": lambda values: [np.nan if value is None else value for value in values],
    "objects": lambda values: np.array(values, dtype=object),
    "Int64": lambda values: pd.Series(values, dtype="Int64"),
    "UInt64": lambda values: pd.array(values, dtype="UInt64"),
    "pyarrow's in pandas": lambda values: pd.Series(values, dtype="int64[pyarrow]"),
    "categories": lambda values: pd.Series(pd.Categorical(values)),
    "column": lambda values: pd.DataFrame({"id": pd.array(values, dtype="Int64")}),
    "pyarrow": lambda values: pytest.importorskip("pyarrow").array(values),
    "polars": lambda values: pytest.importorskip("polars").Series(values),
}


@pytest.mark.parametrize("form", NAMING)
def test_integers_with_gaps_stay_different_integers(form):
    for first in [0, 1234567890123456780, 2**62 + 2**53]:
        named = [None, *range(first + 1, first + 4)]
        values = NAMING[form]([named[k] for k in PLACES])
        known, is_known = split_known(values)
        assert known.dtype == np.int64 and sorted(set(known.tolist())) == named[1:]
        np.testing.assert_array_equal(is_known, PLACES > 0)
        np.testing.assert_array_equal(validate_labels(values, 24, needed_by="test"), PLACES - 1)
        np.testing.assert_array_equal(validate_groups(values, 24), PLACES - 1)
        np.testing.assert_array_equal(validate_domains(values, 24), PLACES)
        tau_plus = tau_plus_from_labels(values).value
        assert tau_plus == pytest.approx(1 / 3)
        folds = LabeledFolds(GroupKFold(4)).split(None, PLACES % 2, values)
        assert sorted(sorted(set(PLACES[test])) for _, test in folds) == [[0], [1], [2], [3]]
        assert knn_accuracy(np.eye(4)[PLACES], values, n_neighbors=1) == 1


@pytest.mark.parametrize("text", ["", " ", "nan", "NaN", "None", "NULL", "<NA>", "n/a", "NaT"])
def test_missing_labels_as_text_are_unknown_with_a_warning(text):
    with pytest.warns(UserWarning, match="is read as unknown"):
        known, is_known = split_known(np.array(["a", text, "b"]))
    assert known.tolist() == ["a", "b"] and is_known.tolist() == [True, False, True]


def test_integers_of_which_some_are_unsigned_stay_different():
    values = [5, 2**64 - 1, 2**64 - 2, None]
    known, _ = split_known(values)
    assert known.dtype == np.uint64 and known.tolist() == values[:3]


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_floats_too_large_to_tell_integers_apart_are_refused(dtype):
    largest = 2 / np.finfo(dtype).eps
    assert dtype(largest) == dtype(largest) + dtype(1)
    for values in ([largest - 1, np.nan], [largest - 1, 1.0]):
        split_known(np.array(values, dtype=dtype))
    with pytest.raises(ValueError, match="too large to tell integers apart: pass integers"):
        split_known(np.array([largest, np.nan], dtype=dtype))
    with pytest.raises(ValueError, match="too large to tell integers apart"):
        split_known([2**60 + 1, 2.0])


@pytest.mark.parametrize("text", [np.nan, None, pd.NA, pd.NaT, ""], ids=repr)
def test_what_is_unknown_is_so_as_a_text_too_and_is_reported(text):
    names = np.array(["cat", "dog", str(text)])[np.arange(12) % 3]
    known = np.where(np.arange(12) % 3 == 2, -1, np.arange(12) % 3)
    told = pytest.warns(UserWarning, match=rf"y holds the text {str(text)!r}.*None or -1")
    with told:
        labels = validate_labels(names, 12, needed_by="test")
    np.testing.assert_array_equal(labels, known)
    with told:
        assert len(rows_to_label(vectors(12), 4, names, random_state=0)) == 4
    with told:
        found = ContrastiveClassifier(small()).fit(X[:12], names)
    assert found.classes_.tolist() == ["cat", "dog"]
    with told:
        tests = [test for _, test in LabeledFolds(2).split(None, names)]
    np.testing.assert_array_equal(np.sort(np.concatenate(tests)), np.flatnonzero(known >= 0))
    with pytest.warns(UserWarning, match="groups holds the text"):
        np.testing.assert_array_equal(validate_groups(names, 12), known)
