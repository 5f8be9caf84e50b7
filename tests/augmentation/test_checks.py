"""Custom augmentations whose views teach little, or cannot be drawn again, are refused."""

import random

import networkx as nx
import numpy as np
import pytest
import torch

from skcontrast.augmentation import (
    Augmentation,
    FunctionAugmentation,
    GaussianNoise,
    MarginalCorruption,
    check_augmentation,
)
from tests.augmentation.common import BUILT_IN, VECTOR_AUGMENTATIONS
from tests.common import Numbers, images, small, vectors

ITS_OWN = torch.Generator().manual_seed(0)
X, PICTURES = vectors(), images(20, channels=3, side=16)
SERIES = np.random.default_rng(0).normal(size=(20, 2, 60))
GRAPHS = [nx.cycle_graph(4 + k) for k in range(8)]


def own(augment, kind="vectors"):
    """Return an augmentation of a custom class."""
    members = {"augment": lambda self, batch, generator=None: augment(batch, generator)}
    return type("Own", (Augmentation,), {"kind": kind, **members})()


def noise(batch, generator):
    return torch.randn(batch.shape, generator=generator)


WRONG = [
    (lambda x, g: x + torch.randn(x.shape), "two different views .* a global one"),
    (lambda x, g: x + random.random(), "its own generator or a"),
    (lambda x, g: x + noise(x, ITS_OWN), "two different views .* or 'generator'"),
    (lambda x, g: x + torch.randn((), generator=g), "same random numbers for all samples"),
    (lambda x, g: x.flip(0) + noise(x, g), "mixes samples"),
    (lambda x, g: x[torch.randperm(len(x), generator=g)] + noise(x, g), "mixes samples"),
    (lambda x, g: x - x.mean(0) + noise(x, g), "mixes samples"),
    (lambda x, g: x.add_(noise(x, g)), "changes its batch in place"),
    (lambda x, g: x / 0, "returned views of X that hold NaN"),
    (lambda x, g: x[:, 1:], "must return a tensor of shape"),
]


@pytest.mark.parametrize("augment, message", WRONG)
def test_views_that_teach_little_or_come_once_are_refused(augment, message):
    with pytest.raises(ValueError, match=rf"Own\.augment .*{message}"):
        check_augmentation(own(augment), X)


def test_a_fit_refuses_views_that_are_drawn_in_place():
    in_place = own(lambda x, g: x.add_(noise(x, g)))
    with pytest.raises(ValueError, match=r"Own\.augment changes its batch in place"):
        small(augmentation=in_place).fit(X)


def test_those_of_a_custom_kind_are_checked_too():
    check_augmentation(own(lambda x, g: x + noise(x, g), Numbers()), X)
    with pytest.raises(ValueError, match=r"Own\.augment mixes samples"):
        check_augmentation(own(lambda x, g: x.flip(0) + noise(x, g), Numbers()), X)


@pytest.mark.parametrize("samples", [X, PICTURES], ids=["vectors", "images"])
def test_a_function_that_draws_once_for_a_batch_is_refused(samples):
    with pytest.raises(ValueError, match=r"same random numbers for all samples .*per_sample=True"):
        check_augmentation(FunctionAugmentation(lambda x: x * torch.rand(1)), samples)
    each = FunctionAugmentation(lambda x: x * torch.rand(len(x), *[1] * (x.ndim - 1)))
    check_augmentation(each, samples)
    one_by_one = FunctionAugmentation(lambda x: x * torch.rand(1), per_sample=True)
    check_augmentation(one_by_one, samples)
    check_augmentation(FunctionAugmentation(lambda x: x.flip(-1)), samples)


def test_a_view_that_rarely_changes_its_sample_passes():
    rarely = FunctionAugmentation(lambda x: torch.where(torch.rand(len(x), 1) < 0.1, -x, x))
    check_augmentation(rarely, X)


@pytest.mark.parametrize(
    "augmentation, samples",
    [
        *((one, X) for one in VECTOR_AUGMENTATIONS),
        *((one, PICTURES) for one in BUILT_IN["images"]),
        *((one, SERIES) for one in BUILT_IN["series"]),
        *((one, GRAPHS) for one in BUILT_IN["graphs"]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_augmentations_of_the_package_pass(augmentation, samples):
    check_augmentation(augmentation, samples)


def test_it_stays_unfitted():
    augmentation = MarginalCorruption()
    check_augmentation(augmentation, X)
    assert not augmentation.__sklearn_is_fitted__()


def test_one_sample_shows_nothing():
    with pytest.raises(ValueError, match="a minimum of 2 is required"):
        check_augmentation(GaussianNoise(), X[:1])


def test_what_is_no_augmentation_is_refused():
    with pytest.raises(TypeError, match="'augmentation' parameter of check_augmentation must be"):
        check_augmentation(lambda x: x, X)
