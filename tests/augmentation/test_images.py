"""Augmentations of images: blur, the recipe of SimCLR, what all have in common."""

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from skcontrast.augmentation import (
    ColorJitter,
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
from tests.augmentation.common import IMAGE_AUGMENTATIONS, random_images, seeded


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


@pytest.mark.parametrize(
    "augmentation, p",
    [
        (ColorJitter(p=0.8), 0.8),
        (RandomGrayscale(p=0.2), 0.2),
        (GaussianBlur(sigma=(1.0, 2.0), p=0.3), 0.3),
        (RandomFlip(horizontal=0.2), 0.2),
    ],
    ids=repr,
)
def test_images_are_changed_with_the_stated_probability(augmentation, p):
    images = random_images(n=1, height=4, width=4).expand(4000, 3, 4, 4).contiguous()
    changed = (augmentation.augment(images, seeded()) - images).abs().amax(dim=(1, 2, 3)) > 1e-4
    assert changed.float().mean().item() == pytest.approx(p, abs=0.03)


def test_the_simclr_recipe_is_its_parts():
    images = random_images()
    parts = SimCLRAugmentation(strength=0.5).expand((3, 12, 12))
    names = [type(part).__name__ for part in parts]
    assert names == ["RandomResizedCrop", "RandomFlip", "ColorJitter", "RandomGrayscale"]
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
    parts = SimCLRAugmentation(blur=blur).expand((3, side, side))
    assert any(isinstance(part, GaussianBlur) for part in parts) == blurred


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
def test_small_batches_and_tiny_images_give_finite_views(augmentation):
    for shape in [(1, 3, 5, 5), (2, 1, 1, 1), (3, 3, 1, 7)]:
        views = augmentation.augment(torch.rand(shape, generator=seeded()), seeded())
        assert views.shape == shape
        assert views.isfinite().all()


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
    fitted = [a.fit(X) for a in (GaussianNoise(), MarginalCorruption())]
    on_vectors = compose([a.prepared(torch.from_numpy) for a in fitted], (4,))
    generator = seeded()
    with NoWaiting():
        on_images(images, generator)
        on_vectors(vectors, generator)


@pytest.mark.parametrize(
    ("augmentation", "message"),
    [
        (RandomAffine(scale=(1.2, 0.8)), r"'scale'.*0 < low <= high. Got \(1.2, 0.8\)"),
        (RandomResizedCrop(scale=(0.5, 1.5)), "'scale'.*0 < low <= high <= 1. Got"),
    ],
)
def test_parameters_out_of_range_are_refused_by_name(augmentation, message):
    with pytest.raises(ValueError, match=message):
        augmentation.fit(np.zeros((2, 3, 8, 8)))
