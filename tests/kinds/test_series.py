"""Series: forms, lengths, scales, gaps."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from torch import nn

import skcontrast
from skcontrast import ContrastiveClassifier, ContrastiveEmbedder, ViewWhitening
from skcontrast.augmentation import (
    Augmentation,
    FunctionAugmentation,
    GaussianNoise,
    RandomFlip,
    TimeCrop,
)
from skcontrast.datasets import Modalities
from skcontrast.encoders import ConvNet, SeriesNet
from skcontrast.features import MiniRocket
from skcontrast.frameworks import CMC, MoCo
from skcontrast.kinds import Series

# private: how samples are read, before any fit
from skcontrast.kinds._recognise import read_samples
from tests.common import Items, reloaded, run_onnx

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 3, 25)).cumsum(axis=2)
LENGTHS = np.array([25, *RNG.integers(4, 25, len(X) - 1)])
UNEQUAL = [x[:, :length] for x, length in zip(X, LENGTHS, strict=True)]
PADDED = np.where(np.arange(25) < LENGTHS[:, None, None], X, np.nan)


class MaskedMean(nn.Sequential):
    """A convolution and the mean of what it returns at the steps of a series."""

    def __init__(self, sample_shape):
        super().__init__(nn.Conv1d(sample_shape[0], 8, 3, padding=1), nn.ReLU(), nn.Linear(8, 6))

    def forward(self, x):
        is_step = ~x[:, :1].isnan()
        h = self[1](self[0](torch.where(is_step, x, 0.0))) * is_step
        return self[2](h.sum(-1) / is_step.sum(-1))


def masked_mean(sample_shape):
    return MaskedMean(sample_shape)


def small(**kwargs):
    chosen = {"encoder": masked_mean, "augmentation": [GaussianNoise()], "max_epochs": 1} | kwargs
    return ContrastiveEmbedder(random_state=0, device="cpu", **chosen)


def read(X, kind=None):
    return read_samples(X, kind, estimator=small())[0]


def scaled(X, **kwargs):
    kind = Series(**kwargs)
    checked = read(X, kind)
    return kind.scaler().fit(checked).to_tensor(checked, "cpu")


@pytest.mark.parametrize(
    "given",
    [
        UNEQUAL,
        tuple(UNEQUAL),
        [torch.from_numpy(x) for x in UNEQUAL],
        pd.Series(UNEQUAL, index=np.arange(len(X)) + 7),
        torch.from_numpy(PADDED),
        PADDED.astype(object),
        [x.tolist() for x in UNEQUAL],
        pd.Series([x.tolist() for x in UNEQUAL]),
    ],
    ids=["list", "tuple", "tensors", "pandas", "tensor", "objects", "lists", "pandas of lists"],
)
def test_series_of_unequal_lengths_in_every_form_are_one_padded_array(given):
    np.testing.assert_array_equal(read(given, Series()), PADDED)


def test_padding_and_objects_are_recognised():
    for given in (UNEQUAL, PADDED, pd.Series(UNEQUAL)):
        np.testing.assert_array_equal(read(given), PADDED)
    np.testing.assert_array_equal(read([x.tolist() for x in UNEQUAL]), PADDED)
    np.testing.assert_array_equal(read([x[0].tolist() for x in UNEQUAL], Series()), PADDED[:, :1])
    lists_of_curves = [x[0] for x in UNEQUAL]
    np.testing.assert_array_equal(read(lists_of_curves), PADDED[:, :1])


def test_declared_series_of_one_channel_need_no_axis_for_it():
    np.testing.assert_array_equal(read(X[:, 0], Series()), X[:, :1])
    np.testing.assert_array_equal(read(list(X[:, 0]), Series()), X[:, :1])


def test_features_views_and_encoders_of_series_need_no_axis_for_one_channel():
    one, flat = X[:, :1], X[:, 0]
    features = MiniRocket(random_state=0)
    whitened = ViewWhitening(features, random_state=0)
    np.testing.assert_array_equal(features.fit_transform(flat), features.fit_transform(one))
    np.testing.assert_array_equal(whitened.fit_transform(flat), whitened.fit_transform(one))
    for chosen in ({"encoder": SeriesNet()}, {"augmentation": TimeCrop()}):
        H, H_flat = (small(**chosen).fit_transform(part) for part in (one, flat))
        np.testing.assert_array_equal(H, H_flat)
    classifiers = [
        ContrastiveClassifier(small(kind="series"), random_state=0).fit(part, np.arange(30) % 2)
        for part in (one, flat)
    ]
    np.testing.assert_array_equal(*(model.transform(flat) for model in classifiers))


def test_a_memory_map_stays_one_and_gives_what_the_array_gives(tmp_path):
    np.save(tmp_path / "X.npy", PADDED)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert np.shares_memory(read(mapped), mapped)
    in_memory, streamed = small().fit(PADDED), small(memory_budget=0).fit(mapped)
    np.testing.assert_array_equal(in_memory.transform(PADDED), streamed.transform(mapped))


def test_a_series_is_embedded_alone_as_among_longer_ones():
    embedder = small().fit(UNEQUAL)
    together = embedder.transform(UNEQUAL)
    alone = np.concatenate([embedder.transform([x]) for x in UNEQUAL])
    longer = np.concatenate([embedder.transform([x, X[0]])[:1] for x in UNEQUAL])
    np.testing.assert_allclose(alone, together, atol=1e-6)
    np.testing.assert_allclose(longer, together, atol=1e-6)


def recordings(series):
    """Return a Dataset of series, with labels alongside."""
    return Items([torch.as_tensor(x) for x in series], 0)


@pytest.mark.parametrize("n_workers", [0, 1])
def test_a_dataset_may_hold_series_of_unequal_lengths(n_workers):
    given = recordings(UNEQUAL)
    embedder = small(kind="series", n_workers=n_workers).fit(given)
    expected = embedder.transform(UNEQUAL)
    np.testing.assert_allclose(embedder.transform(given), expected, atol=1e-5)
    found = small().fit(UNEQUAL).transform(UNEQUAL)
    np.testing.assert_allclose(found, expected, atol=0.1)  # other noise for other padding
    holed = [x.copy() for x in UNEQUAL]
    holed[6][1, 1] = np.nan
    with pytest.raises(ValueError, match="Series 6 of X contains NaN in channel 1 at step 1"):
        small().fit(recordings(holed))


def test_a_dataset_of_series_is_read_as_they_are():
    curves = recordings([x[0] for x in UNEQUAL])
    np.testing.assert_array_equal(read(curves, Series())[:], PADDED[:, :1])
    with pytest.raises(ValueError, match="If they are series, pass kind='series'"):
        small().fit(curves)
    with pytest.raises(ValueError, match=r"series 7 has shape .* series 0 has"):
        small().fit(recordings([*UNEQUAL[:7], UNEQUAL[7][:2]]))
    assert MiniRocket(random_state=0).fit(recordings(UNEQUAL)).transform(UNEQUAL).shape[0] == 30
    embedder = small().partial_fit(recordings(UNEQUAL)).partial_fit(UNEQUAL)
    (views,) = embedder.views(recordings(UNEQUAL), n_views=1)
    assert views.shape == X.shape and 0 <= embedder.score(recordings(UNEQUAL)) <= 1


def test_series_of_other_lengths_than_in_fit_are_embedded():
    embedder = small().fit(X)
    assert embedder.transform(np.tile(X, 3)).shape == embedder.transform(X[:, :, :2]).shape


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (X.transpose(0, 2, 1), r"channels last.*X.transpose\(0, 2, 1\).*kind='images'"),
        ([x.T for x in UNEQUAL], r"channels are last, pass \[x.T for x in X\]"),
        ([x[: 1 + k % 2] for k, x in enumerate(UNEQUAL)], r"one shape.*series \(n_channels"),
        (np.where(X > 9, np.nan, X), r"Series \d+ of X contains NaN in channel \d at step \d+"),
        (np.where(PADDED > 8, np.inf, PADDED), r"Series \d+ of X contains infinity"),
        (np.where(np.arange(30)[:, None, None] == 4, np.nan, X), "Series 4 .*contains only NaN"),
        (np.zeros((5, 3, 0)), r"kind='series'|3 channel\(s\) and 0 steps|at least 1"),
        (X[:1], "a minimum of 2 is required"),
        (np.stack([np.roll(x, 9, 1) for x in PADDED]), r"Series \d+ of X contains NaN in channel"),
        ([*UNEQUAL[:-1], UNEQUAL[-1][:2]], "one shape.*series .* may differ in n_times"),
        (PADDED[:, [0, 1, 2] * 8 + [0]], "contains NaN: drop these images.* kind='series'"),
    ],
    ids=[
        "transposed", "transposed list", "channels", "gap", "infinity", "NaN", "empty", "one",
        "padded before", "one of fewer channels", "square",
    ],
)  # fmt: skip
def test_what_is_not_series_is_refused_by_name(given, message):
    with pytest.raises(ValueError, match=message):
        small().fit(given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (pd.DataFrame(X[:, 0]), r"X is a DataFrame, which cannot hold.*groupby"),
        (X[:, None], r"got an array of shape \(30, 1, 3, 25\): pass an array"),
        ([*UNEQUAL[:-1], UNEQUAL[-1][:2]], r"same number of channels.*series 29 has"),
        ([*UNEQUAL[:-1], np.zeros((3, 0))], "Series 29 of X has no steps"),
        ([[[1, 2], [3]], [[1, 2], [3, 4]]], "X must be lists of samples, each of one shape"),
        ([x.astype(str) for x in UNEQUAL], "must hold numbers, but series 0 has dtype <U"),
        (np.zeros((5, 3, 0)), r"samples of shape \(3, 0\) in X"),
    ],
    ids=["frame", "4-D", "channels", "no steps", "ragged", "strings", "empty"],
)
def test_what_is_not_declared_series_is_refused_by_name(given, message):
    with pytest.raises((TypeError, ValueError), match=message):
        small(kind="series").fit(given)


def test_a_table_with_series_in_its_cells_is_refused_with_advice():
    nested = pd.DataFrame({"a": [pd.Series(x[0]) for x in X], "b": [pd.Series(x[1]) for x in X]})
    with pytest.raises(TypeError, match=r"Column 'a' of X holds arrays.*np.stack\(row\)"):
        small().fit(nested)
    np.testing.assert_array_equal(read([np.stack(row) for row in nested.to_numpy()]), X[:, :2])


def test_tables_with_an_index_of_series_and_steps_are_read_as_the_guide_says():
    table = pd.concat({k: pd.DataFrame(x.T) for k, x in enumerate(UNEQUAL)})
    with pytest.raises(TypeError, match=r"X is a DataFrame, which cannot hold series.*groupby"):
        small(kind="series").fit(table)
    np.testing.assert_array_equal(
        read([part.to_numpy().T for _, part in table.groupby(level=0)]), PADDED
    )


def test_transform_names_the_channels_that_differ():
    embedder = small().fit(X)
    for given, advice in (
        (X[:, :2], "of 2 channel.* fitted on series of 3"),
        (X.transpose(0, 2, 1), r"pass X.transpose\(0, 2, 1\)"),
        (X[0], r"if the axes are in another order, pass X\[None\]"),
    ):
        with pytest.raises(ValueError, match=advice):
            embedder.transform(given)


def test_channels_are_standardised_over_the_set():
    batch = scaled(PADDED * 100 + 7)
    assert batch.dtype == torch.float32 and (batch.isnan().numpy() == np.isnan(PADDED)).all()
    np.testing.assert_allclose(np.nanmean(batch, axis=(0, 2)), 0, atol=1e-5)
    np.testing.assert_allclose(np.nanstd(batch, axis=(0, 2)), 1, atol=1e-5)


def test_nothing_is_standardised_on_request():
    np.testing.assert_array_equal(scaled(PADDED, standardize=False), PADDED.astype(np.float32))
    with pytest.raises(ValueError, match="too large for float32: standardize or rescale X"):
        scaled(X * 1e300, standardize=False)


@pytest.mark.parametrize("standardize", [True, False])
def test_views_are_in_the_units_of_X(standardize):
    embedder = small(kind=Series(standardize), augmentation=[])
    (view,) = embedder.views(PADDED, n_views=1)
    np.testing.assert_allclose(view, PADDED, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("standardize, padded", [(True, False), (False, True)])
def test_files_of_series_and_of_datasets_of_unequal_ones(standardize, padded, tmp_path):
    plain = nn.Sequential(nn.Conv1d(3, 6, 3), nn.AdaptiveAvgPool1d(1), nn.Flatten())
    encoder, fitted_on = (masked_mean, recordings(UNEQUAL)) if padded else (plain, X)
    embedder = small(kind=Series(standardize), encoder=encoder).fit(fitted_on)
    own = {f"{__name__}.MaskedMean": MaskedMean((3,)), f"{__name__}.masked_mean": masked_mean}
    loaded = reloaded(embedder, tmp_path, custom_objects=own)
    np.testing.assert_array_equal(loaded.transform(X), embedder.transform(X))
    skcontrast.export(embedder, tmp_path / "a.onnx", fitted_on)
    for given in (PADDED if padded else X, X[:7, :, :11]):  # any number, of any length
        found = run_onnx(tmp_path / "a.onnx", np.ascontiguousarray(given))
        np.testing.assert_allclose(found, embedder.transform(given), atol=1e-5)


def test_a_search_over_the_scale_splits_lists_of_series():
    pipe = make_pipeline(small(kind=Series()), LogisticRegression())
    grid = {"contrastiveembedder__kind__standardize": [True, False]}
    search = GridSearchCV(pipe, grid, cv=2).fit(UNEQUAL, np.arange(len(X)) % 2)
    assert search.predict(UNEQUAL).shape == (len(X),)


def test_a_fit_in_parts_is_continued_with_series_of_other_lengths():
    embedder = small().partial_fit(X).partial_fit(UNEQUAL)
    assert embedder.transform(X).shape == (len(X), 6)
    with pytest.raises(ValueError, match="2 channel"):
        embedder.partial_fit(X[:, :2])


@pytest.mark.parametrize("framework", [CMC(), CMC(split=1), MoCo(8)], ids=repr)
def test_frameworks_contrast_channels_or_whole_series(framework):
    embedder = small(framework=framework).fit(UNEQUAL)
    width = 6 if isinstance(framework, MoCo) else 12
    assert embedder.transform(UNEQUAL).shape == (len(X), width)


def test_one_channel_cannot_be_split():
    with pytest.raises(ValueError, match="cannot be split"):
        small(framework=CMC()).fit(X[:, :1])


def test_series_beside_a_table():
    table = pd.DataFrame({"age": RNG.normal(size=len(X)), "sex": [0, 1] * 15})
    pair = Modalities(UNEQUAL, table)
    embedder = small(framework=CMC(), encoder=[masked_mean, nn.LazyLinear(6)], augmentation=None)
    assert embedder.fit(pair).transform(pair[:5]).shape == (5, 12)


def test_an_encoder_that_reads_what_follows_an_end_is_refused():
    plain = nn.Sequential(nn.Conv1d(3, 6, 3), nn.AdaptiveAvgPool1d(1), nn.Flatten())
    assert small(encoder=plain).fit_transform(X).shape == (len(X), 6)
    with pytest.raises(ValueError, match=r"not finite.* check that 'encoder'"):
        small(encoder=plain).fit(UNEQUAL)
    with pytest.raises(ValueError, match=r"returns NaN .* for \d+ of 30 .* ignore NaN"):
        small(encoder=plain).fit(X).transform(UNEQUAL)


@pytest.mark.parametrize(
    "piece",
    [{"augmentation": [RandomFlip()]}, {"augmentation": None, "encoder": ConvNet(widths=(4,))}],
    ids=["augmentation", "encoder"],
)
def test_pieces_for_images_do_not_silently_make_images_of_series(piece):
    given = {"encoder": nn.Sequential(nn.Flatten(), nn.Linear(75, 4))} | piece
    with pytest.warns(UserWarning, match=r"looks like series.*kind='images'"):
        small(**given).fit(X)
    for images, kind in ((X, "images"), (X[:, None], "auto")):
        assert small(kind=kind, **given).fit_transform(images).shape[0] == len(X)


@pytest.mark.parametrize(
    "piece",
    [{"augmentation": [TimeCrop()], "encoder": None}, {"encoder": SeriesNet()}],
    ids=["augmentation", "encoder"],
)
def test_pieces_for_series_do_not_silently_make_series_of_grey_images(piece):
    square = np.random.default_rng(0).normal(size=(20, 16, 16))
    with pytest.warns(UserWarning, match=r"looks like grey images.*kind='series'"):
        small(max_epochs=1, **piece).fit(square)
    small(max_epochs=1, kind="series", **piece).fit(square)


def flipped(x):
    return x.flip(2)


class Filled(Augmentation):
    kind = "series"

    def augment(self, batch, generator=None):
        return 2 * batch.nan_to_num()


@pytest.mark.parametrize(
    "view", [FunctionAugmentation(flipped, kind="series"), Filled()], ids=["function", "class"]
)
def test_views_must_leave_ends_where_they_are(view):
    assert small(augmentation=[view]).fit_transform(X).shape == (30, 6)
    with pytest.raises(ValueError, match="must return NaN exactly where its batch has NaN"):
        small(augmentation=[view]).fit(PADDED)


def test_an_encoder_for_one_length_names_it():
    embedder = small(encoder=nn.Sequential(nn.Flatten(), nn.Linear(75, 4))).fit(X)
    with pytest.raises(ValueError, match=r"network cannot process the series in X.* had 25 steps"):
        embedder.transform(X[:, :, :20])


def test_a_function_for_no_kind_is_told_how_to_be_for_series():
    with pytest.raises(ValueError, match="if it is for series, set kind='series'"):
        small(augmentation=[FunctionAugmentation(flipped)]).fit(X)


def test_the_kind_is_cloned_with_its_parameters():
    assert repr(clone(Series(standardize=False))) == "Series(standardize=False)"
    with pytest.raises(ValueError, match="'standardize' parameter of Series"):
        small(kind=Series(standardize="channel")).fit(X)


def fuzzed(number):
    """Return random series, and the kind that scales them."""
    rng = np.random.default_rng(number)
    channels, longest = rng.integers(1, 6), int(rng.choice([1, 2, 3, 9, 30, 60]))
    scale = 10.0 ** rng.choice([-30, -3, 0, 0, 0, 3, 30])
    series = []
    for _ in range(rng.integers(2, 12)):
        length = longest if number % 2 else rng.integers(1, longest + 1)
        x = rng.normal(size=(channels, length)).cumsum(axis=1) + rng.choice([0, 0, 1e3])
        x[rng.random(channels) < 0.2] = rng.choice([0.0, 1.0])
        series.append((x * scale).astype(rng.choice([np.float32, np.float64])))
    kind = Series(bool(scale != 1 or rng.integers(2)))
    return series, kind


@pytest.mark.filterwarnings("ignore::skcontrast.callbacks.CollapseWarning")
@pytest.mark.parametrize(
    "number", [*range(6), *(pytest.param(k, marks=pytest.mark.slow) for k in range(6, 500))]
)
def test_random_series_have_finite_embeddings_alone_as_together(number):
    series, kind = fuzzed(number)
    encoder = SeriesNet(widths=(4, 8))
    embedder = ContrastiveEmbedder(encoder, kind=kind, max_epochs=1, batch_size=4, random_state=0)
    together = embedder.fit(series).transform(series)
    assert np.isfinite(together).all()
    alone = np.concatenate([embedder.transform([x]) for x in series])
    np.testing.assert_allclose(alone, together, rtol=1e-4, atol=1e-4 * np.abs(together).max())
    assert np.isfinite(clone(embedder).set_params(n_views=3).fit(series).transform(series)).all()


# What follows the ends of series


def test_integers_keep_their_type_and_get_floats_where_they_end():
    assert read((X * 10).astype(np.int16)).dtype == np.int16
    assert read([x.astype(np.int16) for x in UNEQUAL]).dtype == np.float32


def test_what_all_series_are_padded_with_changes_nothing():
    given = np.random.default_rng(0).normal(size=(40, 2, 20))
    given[::2, :, 15:] = np.nan
    padded = np.concatenate([given, np.full((40, 2, 3), np.nan)], axis=2)
    embedders = [ContrastiveEmbedder(max_epochs=1, random_state=0).fit(x) for x in (given, padded)]
    expected, found = (embedder.transform(given) for embedder in embedders)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(embedders[0].transform(padded), expected)
