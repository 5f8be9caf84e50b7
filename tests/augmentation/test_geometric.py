"""Crops, flips and affine movements of images."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from skcontrast.augmentation import RandomAffine, RandomFlip, RandomResizedCrop
from skcontrast.augmentation._matrices import rotations, warp  # private: warps against naive code
from tests.augmentation.common import random_images, seeded, smooth_images

STILL = {"rotation": 0, "translate": 0.0, "scale": (1.0, 1.0), "shear": 0}


def moved(images, padding="zeros", *, angle=0.0, shear=0.0, factor=1.0, shift=(0.0, 0.0)):
    """Apply the same known movement to all images."""
    n, _, height, width = images.shape
    constant = lambda value: torch.full((n,), float(value))  # noqa: E731
    turned, sheared = constant(math.radians(angle)), constant(math.radians(shear))
    shifts = torch.tensor([shift]).repeat(n, 1)
    maps = rotations(turned, sheared, constant(factor), shifts, width / height)
    return warp(images, maps, padding)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("size", [(8, 8), (28, 28), (9, 14)])
def test_identity_parameters_give_the_image_back(size, padding):
    images = random_images(height=size[0], width=size[1])
    for augmentation in (
        RandomAffine(**STILL, padding=padding),
        RandomAffine(rotation=90, p=0.0, padding=padding),
        RandomFlip(horizontal=0.0, vertical=0.0),
    ):
        torch.testing.assert_close(augmentation.augment(images), images, rtol=0, atol=5e-6)


def test_a_crop_of_the_whole_image_is_the_image():
    images = random_images()
    crop = RandomResizedCrop(scale=(1.0, 1.0), ratio=(1.0, 1.0))
    torch.testing.assert_close(crop.augment(images), images, rtol=0, atol=5e-6)


@pytest.mark.parametrize("turns", [1, 2, 3])
@pytest.mark.parametrize("side", [8, 15])
def test_right_angles_turn_the_pixel_grid_counter_clockwise(turns, side):
    images = random_images(height=side, width=side)
    expected = torch.rot90(images, turns, dims=(2, 3))
    torch.testing.assert_close(moved(images, angle=90 * turns), expected, rtol=0, atol=1e-5)


def test_a_quarter_turn_of_a_wide_image_is_a_true_rotation():
    images = random_images(height=6, width=14)
    expected = torch.rot90(images[..., 4:10], 1, dims=(2, 3))
    turned = moved(images, angle=90)
    torch.testing.assert_close(turned[..., 4:10], expected, rtol=0, atol=1e-5)
    assert turned[..., :4].abs().max() < 1e-5


@pytest.mark.parametrize(("right", "down"), [(3, 0), (0, 2), (-2, 4)])
def test_a_shift_by_whole_pixels_is_a_shift(right, down):
    images = random_images(height=8, width=10)
    expected = torch.zeros_like(images)
    rows, columns = torch.arange(8), torch.arange(10)
    to_rows = rows[(rows - down >= 0) & (rows - down < 8)]
    to_columns = columns[(columns - right >= 0) & (columns - right < 10)]
    expected[:, :, to_rows[:, None], to_columns] = images[
        :, :, to_rows[:, None] - down, to_columns - right
    ]
    shifted = moved(images, shift=(right / 10, down / 8))
    torch.testing.assert_close(shifted, expected, rtol=0, atol=1e-5)


def test_an_enlargement_by_two_shows_the_middle():
    images = smooth_images(side=32)
    expected = F.interpolate(images[..., 8:24, 8:24], scale_factor=2, mode="bilinear")
    larger = moved(images, factor=2.0)
    torch.testing.assert_close(larger[..., 1:-1, 1:-1], expected[..., 1:-1, 1:-1])


def test_a_shear_of_45_degrees_moves_each_row_by_its_height():
    images = random_images(height=9, width=9)
    sheared = moved(images, shear=45)
    for row in range(9):
        shift = row - 4
        expected = torch.zeros_like(images[:, :, row])
        kept = slice(max(shift, 0), 9 + min(shift, 0))
        origin = slice(max(-shift, 0), 9 - max(shift, 0))
        expected[..., kept] = images[:, :, row, origin]
        torch.testing.assert_close(sheared[:, :, row], expected, rtol=0, atol=1e-5)


def test_padding_decides_what_lies_outside():
    images = random_images(height=4, width=4)
    shift = (0.5, 0.0)
    outside = slice(0, 2)
    assert moved(images, "zeros", shift=shift)[..., outside].abs().max() == 0
    border = images[..., :1].expand(-1, -1, -1, 2)
    mirror = images[..., :2].flip(3)
    for padding, expected in (("border", border), ("reflection", mirror)):
        inside = moved(images, padding, shift=shift)[..., outside]
        torch.testing.assert_close(inside, expected, rtol=0, atol=1e-5)


def test_certain_flips_are_flips_and_twice_is_the_image():
    images = random_images(height=8, width=14)
    for flip, dims in (
        (RandomFlip(1.0), 3),
        (RandomFlip(0.0, 1.0), 2),
        (RandomFlip(1, 1), (2, 3)),
    ):
        once = flip.augment(images)
        torch.testing.assert_close(once, images.flip(dims), rtol=0, atol=5e-6)
        torch.testing.assert_close(flip.augment(once), images, rtol=0, atol=1e-5)


def coordinate_maps(augmentation, shape=(20, 30), n=5000):
    return augmentation.fit(np.zeros((1, *shape))).affine(n, shape, seeded())


def test_affine_amounts_are_uniform_in_their_ranges():
    shape = (20, 20)
    rotation = coordinate_maps(RandomAffine(**{**STILL, "rotation": 30}), shape)
    angle = torch.rad2deg(torch.atan2(rotation[:, 1, 0], rotation[:, 0, 0]))
    scale = 1 / coordinate_maps(RandomAffine(**{**STILL, "scale": (0.5, 2.0)}), shape)[:, 0, 0]
    shift = -coordinate_maps(RandomAffine(**{**STILL, "translate": 0.2}), shape)[:, :, 2] / 2
    shear = torch.rad2deg(
        torch.atan(-coordinate_maps(RandomAffine(**{**STILL, "shear": 40}), shape)[:, 0, 1])
    )
    cases = ((angle, -30, 30), (scale, 0.5, 2), (shift[:, 0], -0.2, 0.2), (shear, -40, 40))
    for drawn, low, high in (*cases, (shift[:, 1], -0.2, 0.2)):
        quantiles = torch.quantile((drawn - low) / (high - low), torch.linspace(0, 1, 5))
        np.testing.assert_allclose(quantiles, np.linspace(0, 1, 5), atol=0.03)


def test_affine_leaves_the_stated_fraction_of_images_alone():
    maps = coordinate_maps(RandomAffine(p=0.3))
    identity = torch.tensor([[1.0, 0, 0], [0, 1, 0]])
    still = (maps - identity).abs().amax(dim=(1, 2)) < 1e-6
    assert still.float().mean().item() == pytest.approx(0.7, abs=0.03)


@pytest.mark.parametrize("shape", [(32, 32), (20, 30), (100, 10)])
def test_crops_lie_inside_and_have_the_stated_area_and_ratio(shape):
    maps = coordinate_maps(RandomResizedCrop(scale=(0.2, 1.0)), shape)
    width, height = maps[:, 0, 0], maps[:, 1, 1]
    for side, centre in ((width, maps[:, 0, 2]), (height, maps[:, 1, 2])):
        assert (side + centre.abs()).max() <= 1 + 1e-5
        assert side.min() > 0
    ratio = (width * shape[1]) / (height * shape[0])
    assert 0.75 - 1e-4 <= ratio.min() <= ratio.max() <= 4 / 3 + 1e-4
    if shape != (100, 10):
        area = (width * height - 0.2) / 0.8
        quantiles = torch.quantile(area, torch.linspace(0, 1, 5))
        np.testing.assert_allclose(quantiles[:4], [0, 0.25, 0.5, 0.75], atol=0.03)


def test_a_small_crop_at_the_border_has_no_dark_edge():
    white = torch.ones(50, 1, 16, 16)
    views = RandomResizedCrop(scale=(0.1, 0.3)).augment(white, seeded())
    torch.testing.assert_close(views, white)
