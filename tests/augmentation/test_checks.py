"""Augmentations of one's own whose views teach little, or cannot be drawn again."""

import random
import re
import warnings

import numpy as np
import pytest
import torch

from skcontrast.augmentation import Augmentation
from skcontrast.kinds import Kind
from tests.common import images, small, vectors

ITS_OWN = torch.Generator().manual_seed(0)


def fit(augment, X, **members):
    """Fit with an augmentation of a class of one's own, and return what is warned about it."""
    cls = type("Own", (Augmentation,), {"augment": augment, **members})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        small(encoder=None, augmentation=cls(), max_epochs=1).fit(X)
    return [str(one.message) for one in caught if "Own.augment" in str(one.message)]


def noise(self, batch, generator=None):
    return batch + torch.randn(batch.shape, generator=generator)


@pytest.mark.parametrize(
    "augment, message",
    [
        (lambda self, batch, generator=None: batch + torch.randn(batch.shape), "a global one"),
        (lambda self, batch, generator=None: batch + random.random(), "its own generator or a"),
        (
            lambda self, batch, generator=None: noise(self, batch, ITS_OWN),
            "two different views .* 'generator' alone",
        ),
        (lambda self, batch, generator=None: batch.clone(), "unchanged for 128 seeds"),
        (
            lambda self, batch, generator=None: batch + torch.randn((), generator=generator),
            "same random numbers for all samples",
        ),
    ],
)
def test_views_that_teach_little_or_come_once_are_told(augment, message):
    (told,) = fit(augment, vectors())
    assert re.search(message, told)


def test_intensities_of_images_are_told():
    def normalize(self, batch, generator=None):
        return noise(self, batch, generator) * 20

    (told,) = fit(normalize, images(), kind="images")
    assert "intensities from -" in told and "images are in [0, 1]" in told


class Numbers(Kind):
    name = "numbers"

    def check(self, X):
        return np.asarray(X)

    def to_tensor(self, X, device):
        return torch.from_numpy(X).to(device)


def test_views_by_the_generator_are_drawn_in_silence():
    assert fit(noise, vectors()) == []


def test_those_of_a_kind_of_one_s_own_are_tried_too():
    augmentation = type("Own", (Augmentation,), {"augment": noise, "kind": Numbers()})
    embedder = small(encoder=torch.nn.Linear(5, 4), augmentation=augmentation(), max_epochs=1)
    embedder.fit(vectors())
    wrong = type("Own", (Augmentation,), {"augment": lambda self, batch, generator=None: batch})
    wrong.kind = Numbers()
    with pytest.warns(UserWarning, match="Own.augment returned its samples unchanged"):
        embedder.set_params(augmentation=wrong()).fit(vectors())
