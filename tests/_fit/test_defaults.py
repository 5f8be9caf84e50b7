"""The default encoder and augmentations of each kind of data."""

import numpy as np
import pytest

from skcontrast.augmentation import MarginalCorruption, RandomAffine, SimCLRAugmentation
from skcontrast.encoders import ConvNet
from skcontrast.frameworks import CMC
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
