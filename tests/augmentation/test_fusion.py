"""Movements and colours in a row are one interpolation."""

from __future__ import annotations

import math
from unittest.mock import patch

import pytest
import torch
import torch.nn.functional as F

from skcontrast.augmentation import (
    ColorJitter,
    GaussianBlur,
    GaussianNoise,
    RandomAffine,
    RandomFlip,
    RandomGrayscale,
    RandomResizedCrop,
    compose,
)

# private: a geometric augmentation of one's own
from skcontrast.augmentation._compose import GeometricAugmentation
from skcontrast.augmentation._matrices import rotations  # private: the rotations that are fused
from tests.augmentation.common import random_images, seeded, smooth_images


class QuarterTurn(GeometricAugmentation):
    """Turn every image by 90° counter-clockwise."""

    def affine(self, n, shape, generator):
        zero, one = torch.zeros(n), torch.ones(n)
        return rotations(zero + math.pi / 2, zero, one, torch.zeros(n, 2), shape[1] / shape[0])


def test_exact_movements_compose_exactly_in_their_order():
    images = random_images()
    chain = [RandomFlip(1.0), QuarterTurn(), RandomFlip(0.0, 1.0), QuarterTurn(), QuarterTurn()]
    expected = torch.rot90(images.flip(3), 1, (2, 3)).flip(2)
    expected = torch.rot90(expected, 2, (2, 3))
    composed = compose(chain, (3, 12, 12))(images)
    torch.testing.assert_close(composed, expected, rtol=0, atol=1e-5)


def test_composed_movements_equal_their_succession_up_to_interpolation():
    images = smooth_images()
    chain = [RandomAffine(padding="border"), RandomResizedCrop(scale=(0.3, 0.5)), RandomFlip()]
    together = compose(chain, (3, 32, 32))(images, seeded())
    generator, one_by_one = seeded(), images
    for augmentation in chain:
        one_by_one = augmentation.augment(one_by_one, generator)
    difference = (together - one_by_one).abs()
    assert difference.mean() < 2e-3
    assert (together - images).abs().mean() > 0.05


def count_interpolations(chain):
    with patch.object(F, "grid_sample", wraps=F.grid_sample) as grid_sample:
        compose(chain, (3, 12, 12))(random_images())
    return grid_sample.call_count


def test_a_run_of_movements_and_colors_is_interpolated_once():
    chain = [RandomFlip(), ColorJitter(), RandomAffine(), RandomGrayscale(), RandomResizedCrop()]
    assert count_interpolations(chain) == 1
    assert count_interpolations([ColorJitter(), RandomGrayscale()]) == 0


@pytest.mark.parametrize("between", [GaussianBlur(), GaussianNoise()])
def test_blur_and_noise_end_a_run(between):
    assert count_interpolations([RandomFlip(), between, RandomAffine()]) == 2


def test_a_different_padding_ends_a_run():
    zeros, border = RandomAffine(padding="zeros"), RandomAffine(padding="border")
    assert count_interpolations([zeros, RandomFlip(), zeros]) == 1
    assert count_interpolations([RandomFlip(), border, zeros, RandomFlip()]) == 2
