"""The default encoder and augmentations of each kind of data."""

import numpy as np
import pytest

from skcontrast._fit._defaults import default_chain, default_encoder, scored_chain
from skcontrast.augmentation import (
    MarginalCorruption,
    NodeDrop,
    RandomAffine,
    SimCLRAugmentation,
)
from skcontrast.encoders import GIN, MLP, ConvNet, ResNet
from skcontrast.frameworks import CMC, InfoGraph, SimCLR
from skcontrast.kinds import Graphs, Images, Vectors
from tests.common import images, small, vectors


def test_default_augmentation_suits_the_kind_of_input():
    def default(X):
        return type(small(encoder=None).fit(X).augmentation_[0])

    assert default(vectors()) is MarginalCorruption
    assert default(images(channels=1)) is RandomAffine
    assert default(images(channels=3)) is SimCLRAugmentation


@pytest.mark.parametrize(
    "framework, as_pair, is_mixed",
    [(CMC(), False, True), (CMC(), True, False), (CMC(split=1), False, False)],
)
def test_default_views_mix_no_channels_that_are_contrasted(framework, as_pair, is_mixed):
    images = np.random.default_rng(0).random((20, 3, 6, 6))
    data = (images[:, 0], images[:, 1:]) if as_pair else images
    embedder = small(encoder=ConvNet(widths=(4,)), framework=framework).fit(data)
    assert isinstance(embedder.augmentation_[0], SimCLRAugmentation) == is_mixed


@pytest.mark.parametrize(
    "kind, shape, encoder",
    [
        (Vectors(), (5,), MLP()),
        (Images(), (1, 8, 8), ConvNet()),
        (Images(), (3, 32, 20), ConvNet()),
        (Images(), (3, 20, 33), ResNet(depth=18, stem="cifar")),
        (Images(), (3, 64, 64), ResNet(depth=18, stem="cifar")),
        (Images(), (3, 65, 64), ResNet(depth=18, stem="imagenet")),
        (Graphs(), (None, 4), GIN()),
    ],
    ids=str,
)
def test_default_encoder_suits_the_kind_and_the_longer_side(kind, shape, encoder):
    assert repr(default_encoder(kind, shape)) == repr(encoder)


def test_one_view_of_a_graph_is_not_augmented_in_training_and_is_in_score():
    assert isinstance(default_chain(Graphs(), (None, 4), SimCLR())[0], NodeDrop)
    assert default_chain(Graphs(), (None, 4), InfoGraph()) == []
    assert isinstance(scored_chain(Graphs(), [])[0], NodeDrop)
    assert scored_chain(Vectors(), []) == []
    given = [MarginalCorruption()]
    assert scored_chain(Graphs(), given) is given
