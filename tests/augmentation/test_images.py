from __future__ import annotations

import math
from unittest.mock import patch

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from skcontrast.augmentation import (
    ColorJitter,
    FeatureDropout,
    GaussianBlur,
    GaussianNoise,
    MarginalCorruption,
    RandomAffine,
    RandomFlip,
    RandomGrayscale,
    RandomResizedCrop,
    SimCLRAugmentation,
    compose,
)
from skcontrast.augmentation._fusion import GeometricAugmentation
from skcontrast.augmentation._matrices import GRAY_WEIGHTS, apply, jitters, rotations, warp

NO_JITTER = {"brightness": 0.0, "contrast": 0.0, "saturation": 0.0, "hue": 0.0}
STILL = {"rotation": 0, "translate": 0.0, "scale": (1.0, 1.0), "shear": 0}


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def random_images(n=6, channels=3, height=12, width=12, dtype=torch.float32):
    return torch.rand(n, channels, height, width, generator=seeded(7), dtype=dtype)


def smooth_images(n=6, channels=3, side=32):
    """Low-frequency images: interpolating them twice loses next to nothing."""
    y, x = torch.meshgrid(*[torch.linspace(0, 1, side)] * 2, indexing="ij")
    phase = torch.rand(n, channels, 4, generator=seeded(3))[..., None, None] * 2
    waves = torch.sin(math.pi * (x * phase[:, :, 0] + y * phase[:, :, 1] + phase[:, :, 2]))
    return 0.5 + 0.4 * waves


def moved(images, padding="zeros", *, angle=0.0, shear=0.0, factor=1.0, shift=(0.0, 0.0)):
    """Apply the same known movement to all images."""
    n, _, height, width = images.shape
    constant = lambda value: torch.full((n,), float(value))  # noqa: E731
    maps = rotations(
        constant(math.radians(angle)),
        constant(math.radians(shear)),
        constant(factor),
        torch.tensor([shift]).repeat(n, 1),
        width / height,
    )
    return warp(images, maps, padding)


class QuarterTurn(GeometricAugmentation):
    """Turn every image by 90° counter-clockwise."""

    def affine(self, n, shape, generator, device):
        zero, one = torch.zeros(n), torch.ones(n)
        return rotations(zero + math.pi / 2, zero, one, torch.zeros(n, 2), shape[1] / shape[0])


# Movements


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


def test_a_half_turn_is_both_flips_on_images_of_any_shape():
    images = random_images(height=8, width=14)
    torch.testing.assert_close(moved(images, angle=180), images.flip(2, 3), rtol=0, atol=1e-5)


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


@pytest.mark.parametrize("p", [0.2, 0.5])
def test_images_are_flipped_with_the_stated_probability(p):
    images = torch.tensor([0.0, 1.0]).reshape(1, 1, 1, 2).expand(4000, 1, 1, 2).contiguous()
    flipped = RandomFlip(horizontal=p).augment(images, seeded())[:, 0, 0, 0]
    assert flipped.mean().item() == pytest.approx(p, abs=0.03)


def coordinate_maps(augmentation, shape=(20, 30), n=5000):
    return augmentation.fit(np.zeros((1, *shape))).affine(n, shape, seeded(), torch.device("cpu"))


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


# Colours, against the definitions written out for one image


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


def test_images_are_changed_with_the_stated_probability():
    images = random_images(n=1, height=2, width=2).expand(4000, 3, 2, 2).contiguous()
    for augmentation, p in ((ColorJitter(p=0.8), 0.8), (RandomGrayscale(p=0.2), 0.2)):
        changed = (augmentation.augment(images, seeded()) - images).abs().amax(
            dim=(1, 2, 3)
        ) > 1e-4
        assert changed.float().mean().item() == pytest.approx(p, abs=0.03)


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


# Blur


def reference_blur(image, sigma):
    """One channel (H, W), weights exp(-d² / 2 sigma²) over the whole image, normalised."""
    rows, columns = (np.arange(side) for side in image.shape)
    blurred = np.empty_like(image)
    for i in rows:
        for j in columns:
            weights = np.exp(-((rows - i)[:, None] ** 2 + (columns - j) ** 2) / (2 * sigma**2))
            blurred[i, j] = np.sum(weights * image) / np.sum(weights)
    return blurred


@pytest.mark.parametrize("sigma", [0.3, 1.0, 5.0])
@pytest.mark.parametrize("size", [(7, 7), (6, 9)])
def test_blur_is_a_gaussian_mean(sigma, size):
    images = random_images(2, 2, *size, dtype=torch.float64)
    blurred = GaussianBlur(sigma=(sigma, sigma), p=1.0).augment(images)
    expected = [[reference_blur(c, sigma) for c in image] for image in images.numpy()]
    np.testing.assert_allclose(blurred, expected, atol=1e-6)


def test_blur_keeps_constant_images_and_narrow_blur_keeps_all():
    constant = torch.full((3, 1, 8, 8), 0.3)
    torch.testing.assert_close(GaussianBlur(p=1.0).augment(constant), constant)
    images = random_images()
    torch.testing.assert_close(GaussianBlur(sigma=(1e-30, 0.1), p=1.0).augment(images), images)


def test_images_are_blurred_with_the_stated_probability():
    images = random_images(n=1, height=4, width=4).expand(2000, 3, 4, 4).contiguous()
    views = GaussianBlur(sigma=(1.0, 2.0), p=0.3).augment(images, seeded())
    blurred = (views - images).abs().amax(dim=(1, 2, 3)) > 1e-4
    assert blurred.float().mean().item() == pytest.approx(0.3, abs=0.04)


# Composition


def test_exact_movements_compose_exactly_in_their_order():
    images = random_images()
    chain = [RandomFlip(1.0), QuarterTurn(), RandomFlip(0.0, 1.0), QuarterTurn(), QuarterTurn()]
    expected = torch.rot90(images.flip(3), 1, (2, 3)).flip(2)
    expected = torch.rot90(expected, 2, (2, 3))
    composed = compose(chain, (3, 12, 12))(images)
    torch.testing.assert_close(composed, expected, rtol=0, atol=1e-5)


def test_one_flip_and_one_turn_do_not_commute():
    images = random_images()
    flip_first = compose([RandomFlip(1.0), QuarterTurn()], (3, 12, 12))(images)
    turn_first = compose([QuarterTurn(), RandomFlip(1.0)], (3, 12, 12))(images)
    torch.testing.assert_close(flip_first, images.mT, rtol=0, atol=1e-5)
    torch.testing.assert_close(turn_first, images.mT.flip(2, 3), rtol=0, atol=1e-5)


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


def test_another_padding_ends_a_run():
    zeros, border = RandomAffine(padding="zeros"), RandomAffine(padding="border")
    assert count_interpolations([zeros, RandomFlip(), zeros]) == 1
    assert count_interpolations([RandomFlip(), border, zeros, RandomFlip()]) == 2


def test_the_simclr_recipe_is_its_parts():
    images = random_images()
    parts = SimCLRAugmentation(strength=0.5).parts((3, 12, 12))
    assert [type(part) for part in parts] == [
        RandomResizedCrop,
        RandomFlip,
        ColorJitter,
        RandomGrayscale,
    ]
    jitter = parts[2]
    amounts = (jitter.brightness, jitter.contrast, jitter.saturation, jitter.hue, jitter.p)
    assert amounts == (0.4, 0.4, 0.4, 0.1, 0.8)
    recipe = SimCLRAugmentation(strength=0.5).augment(images, seeded())
    assert recipe.equal(compose(parts, (3, 12, 12))(images, seeded()))


@pytest.mark.parametrize(
    ("blur", "side", "blurred"),
    [("auto", 63, False), ("auto", 64, True), (True, 8, True), (False, 224, False)],
)
def test_the_simclr_recipe_blurs_large_images(blur, side, blurred):
    parts = SimCLRAugmentation(blur=blur).parts((3, side, side))
    assert any(isinstance(part, GaussianBlur) for part in parts) == blurred


IMAGE_AUGMENTATIONS = [
    ColorJitter(),
    GaussianBlur(),
    GaussianNoise(),
    RandomAffine(),
    RandomFlip(),
    RandomGrayscale(),
    RandomResizedCrop(),
    SimCLRAugmentation(blur=True),
]
EACH = pytest.mark.parametrize("augmentation", IMAGE_AUGMENTATIONS, ids=lambda a: type(a).__name__)


@EACH
def test_bytes_and_floats_give_the_same_views(augmentation):
    images = torch.randint(0, 256, (5, 3, 12, 12), generator=seeded(), dtype=torch.uint8)
    of_bytes = augmentation.augment(images, seeded())
    of_floats = augmentation.augment(images.float() / 255, seeded())
    assert of_bytes.dtype == torch.float32
    assert of_bytes.equal(of_floats)
    of_doubles = augmentation.augment(images.double() / 255, seeded())
    if not isinstance(augmentation, GaussianNoise):  # randn draws other numbers in float64
        torch.testing.assert_close(of_bytes, of_doubles.float(), rtol=0, atol=1e-4)


@EACH
def test_images_without_a_channel_axis_are_images_with_one_channel(augmentation):
    images = random_images(channels=1)
    flat = augmentation.augment(images[:, 0], seeded())
    assert flat.equal(augmentation.augment(images, seeded())[:, 0])
    composed = compose([augmentation], (12, 12))(images, seeded())
    assert composed[:, 0].equal(flat)


@EACH
@pytest.mark.parametrize("shape", [(1, 3, 5, 5), (2, 1, 1, 1), (3, 3, 1, 7)])
def test_small_batches_and_tiny_images_give_finite_views(augmentation, shape):
    views = augmentation.augment(torch.rand(shape, generator=seeded()), seeded())
    assert views.shape == shape
    assert views.isfinite().all()


@pytest.mark.parametrize("augmentation", [RandomAffine(), RandomFlip(), GaussianBlur()])
def test_movements_and_blur_take_any_number_of_channels(augmentation):
    views = augmentation.augment(random_images(channels=5), seeded())
    assert views.shape == (6, 5, 12, 12)


class NoWaiting(TorchDispatchMode):
    """Fails on operations that make the host wait for the device."""

    waiting = ("_local_scalar_dense", "nonzero", "masked_select", "is_nonzero", "equal")

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.overloadpacket.__name__
        assert name not in self.waiting, f"{name} waits for the device"
        return func(*args, **(kwargs or {}))


def test_drawing_views_never_waits_for_the_device():
    images, vectors = random_images(), torch.rand(5, 4)
    X = vectors.numpy()
    on_images = compose(IMAGE_AUGMENTATIONS, (3, 12, 12))
    fitted = [a.fit(X) for a in (GaussianNoise(), FeatureDropout(), MarginalCorruption())]
    on_vectors = compose([a.prepared(torch.from_numpy) for a in fitted], (4,))
    generator = seeded()
    with NoWaiting():
        on_images(images, generator)
        on_vectors(vectors, generator)


@pytest.mark.parametrize(
    ("augmentation", "message"),
    [
        (RandomAffine(rotation=-1), "'rotation' parameter of RandomAffine"),
        (RandomAffine(shear=90), "'shear' parameter of RandomAffine"),
        (RandomAffine(translate=1.5), "'translate' parameter of RandomAffine"),
        (RandomAffine(scale=(1.2, 0.8)), r"'scale'.*0 < low <= high, got \(1.2, 0.8\)"),
        (RandomAffine(scale=(0.0, 1.0)), "'scale' parameter of RandomAffine"),
        (RandomAffine(scale=(1.0,)), "'scale' parameter of RandomAffine"),
        (RandomAffine(scale=("a", "b")), "'scale' parameter of RandomAffine"),
        (RandomAffine(scale=(1.0, math.nan)), "'scale' parameter of RandomAffine"),
        (RandomAffine(scale=1.1), "'scale' parameter of RandomAffine"),
        (RandomAffine(p=2), "'p' parameter of RandomAffine"),
        (RandomAffine(padding="mirror"), "'padding' parameter of RandomAffine"),
        (RandomResizedCrop(scale=(0.5, 1.5)), "'scale'.*0 < low <= high <= 1, got"),
        (RandomResizedCrop(ratio=(-1, 1)), "'ratio' parameter of RandomResizedCrop"),
        (RandomResizedCrop(ratio=(1, math.inf)), "'ratio' parameter of RandomResizedCrop"),
        (RandomFlip(horizontal=1.1), "'horizontal' parameter of RandomFlip"),
        (RandomFlip(vertical=-0.1), "'vertical' parameter of RandomFlip"),
        (ColorJitter(brightness=1.5), "'brightness' parameter of ColorJitter"),
        (ColorJitter(hue=0.6), "'hue' parameter of ColorJitter"),
        (RandomGrayscale(p=-1), "'p' parameter of RandomGrayscale"),
        (GaussianBlur(sigma=(2.0, 1.0)), r"'sigma'.*got \(2.0, 1.0\)"),
        (GaussianBlur(sigma=None), "'sigma' parameter of GaussianBlur"),
        (SimCLRAugmentation(crop_scale=(0, 1)), "'crop_scale' parameter of SimCLRAugmentation"),
        (SimCLRAugmentation(strength=2), "'strength' parameter of SimCLRAugmentation"),
        (SimCLRAugmentation(blur="never"), "'blur' parameter of SimCLRAugmentation"),
    ],
)
def test_parameters_out_of_range_are_refused_by_name(augmentation, message):
    with pytest.raises(ValueError, match=message):
        augmentation.fit(np.zeros((2, 3, 8, 8)))


def test_color_maps_apply_to_the_mean_as_to_the_pixels():
    images = random_images(dtype=torch.float64)
    maps = jitters(
        *[torch.full((6,), f, dtype=torch.float64) for f in (0.7, 1.2, 1.5, 0.4)],
        images.mean(dim=(2, 3)),
    )
    changed = jittered(images, 0.7, 1.2, 1.5, 0.4)
    torch.testing.assert_close(apply(maps, images.mean(dim=(2, 3))), changed.mean(dim=(2, 3)))
