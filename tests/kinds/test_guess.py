"""The kind of X: declared, guessed, and what is too ambiguous to guess."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from torch import nn

from skcontrast import ContrastiveEmbedder
from skcontrast.augmentation import GaussianNoise, NodeDrop, RandomAffine
from skcontrast.encoders import MLP, ConvNet
from skcontrast.kinds import Graphs, Images, Kind, Vectors
from skcontrast.kinds._guess import (
    declared_kind,
    guess_kind,
    kind_of_shape,
    named_kind,
    named_kinds,
)


def series(n=20, channels=3, length=200):
    return np.random.default_rng(0).normal(size=(n, channels, length)).astype(np.float32)


def small(**kwargs):
    return ContrastiveEmbedder(max_epochs=1, random_state=0, device="cpu", **kwargs)


@pytest.mark.parametrize("shape", [(20, 3, 200), (20, 200, 3)])
def test_series_are_not_silently_images(shape):
    X = np.zeros(shape)
    with pytest.raises(ValueError, match=r"series of 3 channels and 200 steps.*kind='images'"):
        small().fit(X)
    with pytest.raises(ValueError, match="may hold grey images of"):
        GaussianNoise().fit(X)


def test_what_names_images_settles_the_question():
    X = series()
    encoder = ConvNet(widths=(4,))
    expected = small(encoder=encoder, augmentation=RandomAffine()).fit_transform(X[:, None])
    for embedder in (
        small(encoder=encoder, augmentation=RandomAffine()),
        small(encoder=encoder, augmentation=RandomAffine(), kind="images"),
        small(encoder=encoder, augmentation=RandomAffine(), kind=Images()),
        make_pipeline(RandomAffine(), small(encoder=encoder)),
    ):
        np.testing.assert_array_equal(embedder.fit_transform(X), expected)


def test_a_declared_kind_is_not_guessed_again():
    X = series(length=8)
    with pytest.raises(ValueError, match="must hold vectors"):
        small(kind="vectors").fit(X)
    with pytest.raises(ValueError, match="must hold images"):
        small(kind="images").fit(X.reshape(20, -1))
    with pytest.raises(TypeError, match="list of graphs"):
        small(kind="graphs").fit(3)
    with pytest.raises(ValueError, match="'kind' parameter of ContrastiveEmbedder"):
        small(kind="sound").fit(X)


def test_augmentations_and_encoders_say_what_they_are_for():
    X = np.random.default_rng(0).normal(size=(10, 4))
    with pytest.raises(ValueError, match=r"NodeDrop expects graphs.*got vectors"):
        small(augmentation=NodeDrop()).fit(X)
    with pytest.raises(ValueError, match=r"ConvNet expects images.*got samples of shape"):
        ConvNet().build((4,))
    with pytest.raises(ValueError, match=r"MLP expects vectors.* or images.*got samples"):
        MLP().build((None, 4))


def test_names_stand_for_kinds_and_others_are_refused():
    named = [type(named_kind(name, owner="Blur")) for name in ("vectors", "images", "graphs")]
    assert named == [Vectors, Images, Graphs]
    own = Images()
    assert named_kind(own, owner="Blur") is own
    with pytest.raises(ValueError, match=r"'kind' of Blur must be one of \['graphs', 'images', "):
        named_kind("sound", owner="Blur")
    with pytest.raises(TypeError, match=r"Write kind=Images\(\)"):
        named_kind(Images, owner="Blur")
    assert named_kinds(None, owner="Blur") == []
    assert len(named_kinds(("vectors", "images"), owner="Blur")) == 2


def test_a_single_kind_is_declared_and_a_users_own_before_those_of_the_package():
    class Own(Kind):
        pass

    class Flips:
        kind = Own()

    assert declared_kind(MLP(), nn.Identity(), None) is None  # MLP takes vectors and images
    assert isinstance(declared_kind(MLP(), ConvNet()), Images)
    assert declared_kind(ConvNet(), Flips()) is Flips.kind


def test_shapes_describe_kinds():
    for kind, shape in ((Vectors, (5,)), (Images, (3, 8, 8)), (Graphs, (None, 4))):
        assert isinstance(kind_of_shape(shape), kind)


def test_a_kind_of_ones_own_is_not_guessed_and_takes_X_as_it_is():
    class Own(Kind):
        pass

    X, own = object(), Own()
    assert guess_kind(X, own) == (own, X)
