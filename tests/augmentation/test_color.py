"""Changes of colour, against the definitions written out for one image."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from skcontrast.augmentation import ColorJitter, RandomGrayscale, SimCLRAugmentation, compose

# private: the matrices against naive code
from skcontrast.augmentation._matrices import GRAY_WEIGHTS, jitters
from tests.augmentation.common import random_images, seeded

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
