"""One pass over a batch, and what every pass needs: floats, and a generator."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class Stage:
    """One pass over the batch, which neighbouring augmentations may share.

    Parameters
    ----------
    augmentation : Augmentation
        The first of them.
    """

    def __init__(self, augmentation: Any):
        self.augmentation = augmentation

    def absorb(self, augmentation: Any) -> bool:
        """Take `augmentation` into this pass and return True, or return False."""
        return False

    def __call__(self, batch: Tensor, generator: torch.Generator) -> Tensor:
        return self.augmentation.augment(batch, generator)


def as_float(batch: Tensor) -> Tensor:
    """Return `batch` as float32 (float64 stays), with uint8 images scaled to [0, 1]."""
    if batch.dtype in (torch.float32, torch.float64):
        return batch
    if batch.dtype == torch.uint8 and batch.ndim > 2:
        return batch.to(torch.float32).div_(255)
    return batch.to(torch.float32)


def generator_for(batch: Any, generator: torch.Generator | None) -> torch.Generator:
    """Return `generator`, or for None a new, unpredictable one on the device of the batch."""
    if generator is None:
        generator = torch.Generator(batch.device)
        generator.seed()
    return generator
