"""Images that the tests of augmentations share."""

import math

import torch

from skcontrast import augmentation

CLASSES = [getattr(augmentation, name) for name in augmentation.__all__]
VECTOR_AUGMENTATIONS = [augmentation.GaussianNoise(), augmentation.MarginalCorruption()]
BUILT_IN = {
    kind: [cls() for cls in CLASSES if getattr(cls, "kind", None) == kind]
    for kind in ("images", "series", "graphs")
}
IMAGE_AUGMENTATIONS = [*BUILT_IN["images"], augmentation.GaussianNoise()]


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
