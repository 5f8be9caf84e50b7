"""Colours and movements follow their definitions, alone and composed."""

import math
from unittest.mock import patch

import numpy as np
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
    SimCLRAugmentation,
    compose,
)

# private: a geometric augmentation of one's own
from skcontrast.augmentation._compose import GeometricAugmentation

# private: colours and movements against naive code
from skcontrast.augmentation._matrices import GRAY_WEIGHTS, jitters, rotations, warp
from tests.augmentation.common import random_images, seeded, smooth_images

NO_JITTER = {"brightness": 0.0, "contrast": 0.0, "saturation": 0.0, "hue": 0.0}


def reference_jitter(image, brightness, contrast, saturation):
    """One image (C, H, W), one change after the other, in float64 numpy, without clamping."""
    image = image.astype(float) * brightness
    weights = np.array(GRAY_WEIGHTS) if len(image) == 3 else np.ones(1)
    mean = np.mean(np.tensordot(weights, image, 1))
    image = contrast * image + (1 - contrast) * mean
    gray = np.tensordot(weights, image, 1)
    return saturation * image + (1 - saturation) * gray


def jittered(images, brightness=1.0, contrast=1.0, saturation=1.0, hue=0.0):
    """Apply the same known change to all images, without clamping."""
    n, channels = images.shape[:2]
    factors = [torch.full((n,), float(f), dtype=images.dtype) for f in (brightness, contrast)]
    factors += [torch.full((n,), float(f), dtype=images.dtype) for f in (saturation, hue)]
    maps = jitters(*factors, images.mean(dim=(2, 3)))
    linear, offset = maps[:, :, :channels], maps[:, :, channels:]
    return (linear @ images.flatten(2) + offset).view(images.shape)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(
    ("brightness", "contrast", "saturation"),
    [
        (0.6, 1, 1),
        (1.4, 1, 1),
        (1, 0.5, 1),
        (1, 1.5, 1),
        (1, 1, 0.3),
        (1, 1, 1.7),
        (0.7, 1.3, 0.4),
    ],
)
def test_color_changes_follow_their_definitions(brightness, contrast, saturation, channels):
    images = random_images(channels=channels, dtype=torch.float64)
    changed = jittered(images, brightness, contrast, saturation)
    for image, result in zip(images, changed, strict=True):
        expected = reference_jitter(image.numpy(), brightness, contrast, saturation)
        np.testing.assert_allclose(result, expected, atol=1e-12)


def test_the_order_of_the_four_changes_does_not_matter():
    images = random_images(dtype=torch.float64)
    changes = [{"brightness": 1.3}, {"contrast": 0.6}, {"saturation": 1.4}, {"hue": 0.9}]
    together = jittered(images, 1.3, 0.6, 1.4, 0.9)
    for order in (changes, changes[::-1], changes[2:] + changes[:2]):
        result = images
        for change in order:
            result = jittered(result, **change)
        torch.testing.assert_close(result, together)


def test_no_saturation_is_grayscale_and_grayscale_is_the_weighted_sum():
    images = random_images()
    gray = torch.einsum("c,nchw->nhw", torch.tensor(GRAY_WEIGHTS), images)
    expected = gray.unsqueeze(1).expand_as(images)
    torch.testing.assert_close(RandomGrayscale(p=1.0).augment(images), expected)
    torch.testing.assert_close(jittered(images, saturation=0.0), expected)


def test_hue_keeps_gray_and_is_a_rotation():
    images = random_images(dtype=torch.float64)
    weights = torch.tensor(GRAY_WEIGHTS, dtype=torch.float64)
    turned = jittered(images, hue=0.8)
    for after in (turned, jittered(images, hue=-2.0)):
        torch.testing.assert_close(
            torch.einsum("c,nchw->nhw", weights, after),
            torch.einsum("c,nchw->nhw", weights, images),
        )
    torch.testing.assert_close(jittered(turned, hue=-0.8), images)
    torch.testing.assert_close(jittered(turned, hue=0.5), jittered(images, hue=1.3))
    torch.testing.assert_close(jittered(images, hue=2 * math.pi), images)


def test_hue_turns_red_towards_yellow():
    red = torch.tensor([0.6, 0.3, 0.3]).reshape(1, 3, 1, 1)
    r, g, b = jittered(red, hue=2 * math.pi / 6).flatten()
    assert r > b
    assert g > b


@pytest.mark.parametrize("channels", [1, 3])
def test_identity_colors_give_the_image_back(channels):
    images = random_images(channels=channels)
    for augmentation in (ColorJitter(**NO_JITTER), ColorJitter(p=0.0), RandomGrayscale(p=0.0)):
        torch.testing.assert_close(augmentation.augment(images), images, rtol=0, atol=1e-6)


def test_grey_images_have_no_saturation_hue_or_grayscale():
    images = random_images(channels=1)
    chain = [ColorJitter(brightness=0, contrast=0, saturation=1.0, hue=0.5, p=1.0)]
    chain.append(RandomGrayscale(p=1.0))
    torch.testing.assert_close(compose(chain, (1, 12, 12))(images), images, rtol=0, atol=1e-6)


@pytest.mark.parametrize("amount", [0.0, 0.4, 1.0])
def test_brightness_factors_are_uniform_in_their_range(amount):
    images = torch.full((5000, 3, 1, 1), 0.4)
    jitter = ColorJitter(**{**NO_JITTER, "brightness": amount}, p=1.0)
    factors = jitter.augment(images, seeded())[:, 0, 0, 0] / 0.4
    quantiles = torch.quantile(factors, torch.linspace(0, 1, 5))
    np.testing.assert_allclose(quantiles, 1 + amount * np.linspace(-1, 1, 5), atol=0.03)


def test_colors_stay_between_0_and_1():
    jitter = ColorJitter(brightness=1.0, contrast=1.0, saturation=1.0, hue=0.5, p=1.0)
    views = jitter.augment(random_images(n=200), seeded())
    assert (views.min(), views.max()) == (0, 1)


def test_contrast_after_other_colors_sees_their_mean():
    images = random_images(dtype=torch.float64) * 0.3 + 0.3
    mild = {"brightness": 0.2, "contrast": 0.2, "saturation": 0.2, "hue": 0.0, "p": 1.0}
    chain = [RandomGrayscale(p=0.5), ColorJitter(**mild), ColorJitter(**mild)]
    together = compose(chain, (3, 12, 12))(images, seeded())
    generator = seeded()
    for augmentation in chain:
        images = augmentation.augment(images, generator)
    torch.testing.assert_close(together, images)


@pytest.mark.parametrize("channels", [2, 5])
def test_channels_that_are_no_colours_are_jittered_as_grey_images(channels):
    images = random_images(channels=channels)
    changed = ColorJitter(0.8, 0.0, p=1.0).augment(images / 2, seeded())
    factors = (changed / images).flatten(2)
    torch.testing.assert_close(factors, factors[..., :1].expand(factors.shape))
    assert len(factors[..., 0].unique()) == factors[..., 0].numel()


def test_an_image_of_many_channels_is_changed_as_a_whole_or_not_at_all():
    images = torch.full((400, 4, 2, 2), 0.4)
    changed = ColorJitter(0.4, 0.0, p=0.2).augment(images, seeded()) != images
    of_channels = changed.flatten(2).any(2)
    assert torch.equal(of_channels.any(1), of_channels.all(1))
    assert 0.1 < of_channels.any(1).float().mean() < 0.3


@pytest.mark.parametrize("augmentation", [RandomGrayscale(), SimCLRAugmentation()])
def test_grey_and_hue_need_one_or_three_channels(augmentation):
    with pytest.raises(ValueError, match=r"1 or 3 channels, got 4"):
        compose([augmentation], (4, 8, 8))
    for shape in ((8, 8), (1, 8, 8), (3, 8, 8)):
        compose([augmentation], shape)


# Movements


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


# Movements and colours in one interpolation


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
