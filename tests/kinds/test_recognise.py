"""The kind of X: declared, detected, and what is ambiguous."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.pipeline import make_pipeline
from torch import nn

from skcontrast import ContrastiveEmbedder
from skcontrast.augmentation import Augmentation, GaussianNoise, RandomAffine, Unflatten
from skcontrast.encoders import MLP, ConvNet, Encoder
from skcontrast.features import PartialWhitening
from skcontrast.frameworks import CMC
from skcontrast.kinds import Images, Kind, MultimodalKind, Series, Vectors

# private: how samples are read, before any fit
from skcontrast.kinds._recognise import declared_kind, read_samples
from tests.common import X_DIGITS, Numbers


class Convolution(Encoder):
    kind = Numbers()

    def build(self, sample_shape, n_components=None):
        layers = nn.Conv1d(sample_shape[0], 4, 3), nn.AdaptiveAvgPool1d(1), nn.Flatten()
        return nn.Sequential(*layers)


class Scaled(Augmentation):
    kind = Numbers()

    def augment(self, batch, generator=None):
        return batch * (1 + torch.rand(len(batch), 1, 1, generator=generator))


def series(n=20, channels=3, length=200):
    return np.random.default_rng(0).normal(size=(n, channels, length)).astype(np.float32)


def small(**kwargs):
    return ContrastiveEmbedder(max_epochs=1, random_state=0, device="cpu", **kwargs)


def test_an_encoder_of_a_kind_of_ones_own_decides_where_the_augmentation_does_not():
    X = series(length=10)
    pipe = make_pipeline(GaussianNoise(), small(encoder=Convolution()))
    expected = r"GaussianNoise expects vectors.* or images.*got numbers"
    with pytest.raises(ValueError, match=expected):
        pipe.fit(X)  # the augmentation comes first, and knows nothing of the encoder
    with pytest.raises(ValueError, match=expected):
        small(encoder=Convolution(), augmentation=GaussianNoise()).fit(X)
    assert small(encoder=Convolution(), augmentation=Scaled()).fit_transform(X).shape == (20, 4)
    assert make_pipeline(Scaled(), small(encoder=Convolution())).fit_transform(X).shape == (20, 4)


class Spectrograms(Images):
    """A kind derived from one of the package."""

    name = "spectrograms"


class Halved(GaussianNoise):
    kind = Spectrograms()


def test_a_kind_derived_from_one_of_the_package_is_its_own():
    X = series(length=10)
    expected = small(kind=Spectrograms(), augmentation=Halved()).fit_transform(X)
    for embedder in (small(augmentation=Halved()), make_pipeline(Halved(), small())):
        np.testing.assert_array_equal(embedder.fit_transform(X), expected)
    with pytest.raises(ValueError, match=r"Halved expects images.* got vectors"):
        small(augmentation=Halved(), kind="vectors").fit(X.reshape(20, -1))


def test_what_check_returns_must_be_indexable_by_rows():
    class Listed(Numbers):
        def check(self, X):
            return list(X)

    with pytest.raises(TypeError, match=r"Listed.check must return samples .* got a list"):
        small(kind=Listed(), encoder=Convolution(), augmentation=[]).fit(series(length=10))


def test_floats_of_any_precision_become_float32():
    X = series(length=10).astype(np.float64)
    assert small(encoder=Convolution(), augmentation=[]).fit_transform(X).dtype == np.float32


def test_a_pair_of_series_is_not_silently_a_pair_of_images():
    _, schema = read_samples((series(), series()), MultimodalKind(), estimator=small())
    assert [type(part.kind) for part in schema.modalities] == [Series, Series]


def test_a_pair_of_arrays_needs_a_framework_for_it():
    X = np.random.default_rng(0).normal(size=(40, 6))
    for pair in ((X, X), (X, X[:, :3])):
        with pytest.raises(ValueError, match=r"tuple of several arrays.* pass framework=CMC\(\)"):
            small().fit(pair)
    with pytest.raises(ValueError, match=r"MultimodalKind\(\): .* need a framework .*=CMC\(\)"):
        small(kind=MultimodalKind()).fit(X)
    by_name = small(framework=CMC(), kind=MultimodalKind(Vectors())).fit_transform((X, X[:, :3]))
    np.testing.assert_array_equal(by_name, small(framework=CMC()).fit_transform((X, X[:, :3])))


@pytest.mark.parametrize("shape", [(20, 6, 8), (20, 8, 6), (20, 8, 16)])
def test_series_are_not_silently_images(shape):
    X = np.zeros(shape)
    with pytest.raises(ValueError, match=r"series of \d+ channels and \d+ steps.*kind='images'"):
        small().fit(X)
    with pytest.raises(ValueError, match="may hold grey images of"):
        GaussianNoise().fit(X)


@pytest.mark.parametrize("shape", [(20, 3, 200), (20, 8, 32), (20, 1, 3), (20, 64, 256)])
def test_a_long_side_makes_series(shape):
    assert read_samples(np.zeros(shape), estimator=small())[1].sample_shape == (shape[1], None)


def test_a_declared_kind_of_arrays_is_asked_first():
    for X in (np.zeros((20, 8, 8)), np.zeros((20, 8, 32)), np.zeros((20, 3, 4))):
        for kind in (Images(), Series()):
            assert type(read_samples(X, hint=kind, estimator=small())[1].kind) is type(kind)


def test_what_names_images_settles_the_question():
    X = series(length=6)
    encoder = ConvNet(widths=(4,))
    expected = small(encoder=encoder, augmentation=RandomAffine()).fit_transform(X[:, None])
    for embedder in (
        small(encoder=encoder, augmentation=RandomAffine()),
        small(encoder=encoder, augmentation=RandomAffine(), kind="images"),
        small(encoder=encoder, augmentation=RandomAffine(), kind=Images()),
        make_pipeline(RandomAffine(), small(encoder=encoder)),
    ):
        np.testing.assert_array_equal(embedder.fit_transform(X), expected)


def test_a_declared_kind_is_not_detected_again():
    X = series(length=8)
    with pytest.raises(ValueError, match="must hold vectors"):
        small(kind="vectors").fit(X)
    with pytest.raises(ValueError, match="must hold images"):
        small(kind="images").fit(X.reshape(20, -1))
    with pytest.raises(TypeError, match="list of graphs"):
        small(kind="graphs").fit(3)
    with pytest.raises(ValueError, match="'kind' parameter of ContrastiveEmbedder"):
        small(kind="sound").fit(X)


def test_a_single_kind_is_declared_and_a_users_own_before_those_of_the_package():
    assert declared_kind(MLP(), nn.Identity(), None) is None  # MLP takes vectors and images
    assert isinstance(declared_kind(MLP(), ConvNet()), Images)
    assert declared_kind(ConvNet(), Scaled()) is Scaled.kind


def test_a_kind_of_ones_own_is_not_detected_and_takes_X_as_it_is():
    class Own(Kind):
        def check(self, X):
            taken.append(X)
            return np.zeros(2)

    X, taken = object(), []
    read_samples(X, hint=Own(), estimator=small())
    assert taken == [X]


DATES = (np.datetime64("2020-01-01", "s") + np.arange(320)).reshape(20, 16)


@pytest.mark.parametrize(
    "use",
    [
        lambda: small().fit(DATES),
        lambda: small(kind="vectors").fit(pd.DataFrame(DATES)),
        lambda: small().fit(X_DIGITS[:, :16]).transform(DATES),
        lambda: small().fit(DATES.reshape(20, 4, 4)),
        lambda: small(kind="series").fit(DATES[:, None]),
        lambda: small(kind="series").fit([DATES[:1], DATES[1:2, :9]] * 2),
        lambda: GaussianNoise().fit(DATES),
        lambda: Unflatten((4, 4)).fit(DATES),
        lambda: PartialWhitening().fit(DATES),
    ],
)
def test_dates_are_not_silently_numbers(use):
    with pytest.raises(TypeError, match=r"dates or durations|must hold numbers"):
        use()


def test_several_parts_have_no_number_of_features_if_one_has_none():
    vectors, graphs = np.eye(12), [nx.cycle_graph(3 + k % 4) for k in range(12)]
    embedder = ContrastiveEmbedder(framework=CMC(), max_epochs=1, random_state=0)
    assert not hasattr(embedder.fit((vectors, graphs)), "n_features_in_")
