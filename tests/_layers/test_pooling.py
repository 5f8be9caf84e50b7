"""Means over grids, and images made smaller to a bounded area, by either of two ways alike."""

import numpy as np
import pytest
import torch
from torch import nn

from skcontrast._layers._pooling import GridMeans, Reduced, bounded_grid, reduced, reduced_sides


@pytest.mark.parametrize(
    ("sides", "largest", "smaller"),
    [
        ((96, 96), 96, (96, 96)),
        ((224, 224), 96, (96, 96)),
        ((200, 100), 96, (136, 68)),
        ((30, 200), 96, (30, 200)),
        ((48, 192), 96, (48, 192)),
        ((100, 401), 96, (48, 192)),
        ((32, 1722), 96, (32, 288)),
        ((20, 600), 96, (20, 460)),
        ((300, 40), 96, (230, 40)),
        ((16, 5000), 96, (16, 576)),
        ((1, 90_000), 96, (1, 9216)),
        ((90_000, 1), 1, (1, 1)),
        ((500, 300), None, (500, 300)),
    ],
)
def test_the_area_is_bounded_and_the_proportions_stay_as_long_as_the_shorter_side_is_long(
    sides, largest, smaller
):
    assert reduced_sides(sides, largest) == smaller
    assert reduced_sides(sides[::-1], largest) == smaller[::-1]


@pytest.mark.parametrize(
    ("cells", "smaller"),
    [((9, 9), (9, 9)), ((8, 72), (8, 8)), ((144, 4), (16, 4)), ((7, 8), (7, 8))],
)
def test_a_grid_is_bounded_along_its_longer_side(cells, smaller):
    assert tuple(bounded_grid(cells, 64)) == smaller


def test_a_layer_reduces_floats_and_uint8_as_the_views_are():
    x = torch.from_numpy(np.random.RandomState(0).randint(0, 256, (4, 3, 50, 40), np.uint8))
    layer = Reduced(nn.Identity(), (50, 40), (21, 17))
    expected = reduced(x / 255, (21, 17))
    assert layer.sides == (21, 17) and expected.shape == (4, 3, 21, 17)
    for images in (x, x / 255):
        torch.testing.assert_close(layer(images), expected, atol=1e-5, rtol=0)
    assert reduced(x, (21, 17)).dtype == torch.uint8
    torch.testing.assert_close(reduced(x, (21, 17)) / 255, expected, atol=0.01, rtol=0)


def test_what_is_small_enough_is_passed_on():
    x = torch.zeros(2, 1, 21, 17, dtype=torch.uint8)
    assert Reduced(nn.Identity(), (50, 40), (21, 17))(x) is x
    assert reduced(x, None) is x and reduced(x, (21, 17)) is x


@pytest.mark.parametrize(
    ("sides", "cells"), [((23, 22), (5, 5)), ((9, 4), (4, 2)), ((3, 1), (3, 1))]
)
def test_means_over_a_grid_are_those_of_adaptive_pooling(sides, cells):
    x = torch.from_numpy(np.random.RandomState(0).normal(size=(4, 3, *sides))).float()
    found = GridMeans(cells, sides)(x)
    torch.testing.assert_close(found, nn.functional.adaptive_avg_pool2d(x, cells))
