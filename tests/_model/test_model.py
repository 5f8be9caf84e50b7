"""What training starts from: a new network, or a copy of a trained one."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from torch import nn

from skcontrast.augmentation import GaussianNoise
from tests.common import images, small, vectors


def test_augmentations_are_fitted_as_clones_also_those_of_a_pipeline():
    own = GaussianNoise()
    embedder = small(augmentation=own).fit(vectors())
    assert embedder.augmentation_[0] is not own and not own.__sklearn_is_fitted__()
    pipe = make_pipeline(GaussianNoise(), small()).fit(vectors())
    fitted = pipe[-1].augmentation_[0]
    assert fitted is not pipe[0]
    np.testing.assert_array_equal(fitted.std_, pipe[0].std_)


@pytest.mark.parametrize("library", ["timm", "torchvision", "transformers"])
def test_a_network_of_a_library_of_pretrained_ones_is_warned_of(library):
    class Net(nn.Conv2d):
        __module__ = f"{library}.models"

        def forward(self, x):
            return super().forward(x).mean((2, 3))

    with pytest.warns(UserWarning, match=r"Net is passed without Pretrained.*Pretrained\(network"):
        small(encoder=Net(3, 4, 3)).fit(images())
    small(encoder=nn.Sequential(Net(3, 4, 3))).fit(images())
