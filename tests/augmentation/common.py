"""Images that the tests of augmentations share."""

from __future__ import annotations

import math

import torch

from skcontrast.augmentation import (
    ColorJitter,
    GaussianBlur,
    GaussianNoise,
    RandomAffine,
    RandomFlip,
    RandomGrayscale,
    RandomResizedCrop,
    SimCLRAugmentation,
)

IMAGE_AUGMENTATIONS = [
    *(ColorJitter(), GaussianBlur(), GaussianNoise(), RandomAffine(), RandomFlip()),
    *(RandomGrayscale(), RandomResizedCrop(), SimCLRAugmentation(blur=True)),
]


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
