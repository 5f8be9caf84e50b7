"""The door of augmentations: what a user's function or class draws is tried on a few samples."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from .._warnings import warn

# Seeds for which one that never changes a sample is tried.
_TRIALS = 128
# Copies of a sample, and seeds, for which views must not all be alike.
_FEW = 8
# Views of the same samples that differ by less were drawn with the same random numbers.
_SAME = 1e-4


def try_views(
    name: str,
    draw: Callable[[Tensor, int], Tensor],
    samples: Tensor,
    seed: int = 0,
    *,
    is_batch: bool = True,
) -> None:
    """Warn of views that teach little: unchanged, out of range, or drawn by wrong random numbers.

    Parameters
    ----------
    name : str
        Who draws them, for messages.
    draw : callable
        ``draw(samples, seed)`` returns a view of each sample, which the seed should decide.
    samples : Tensor of shape (n, ...)
        A few samples.
    seed : int, default=0
        The first seed.
    is_batch : bool, default=True
        Whether all views are drawn by one call, which may draw one number for all.
    """
    first, second = draw(samples, seed), draw(samples, seed)
    seeds = np.random.default_rng(seed).integers(2**32, size=_TRIALS - 1).tolist()
    is_still = samples.unique().numel() > 1 and torch.equal(first, samples)
    if is_still and all(torch.equal(draw(samples, seed), samples) for seed in seeds):
        warn(
            f"{name} returned its samples unchanged for {_TRIALS} seeds: both views of a sample "
            "would be the same, from which there is little to learn."
        )
    low, high = first.min().item(), first.max().item()
    are_images = samples.ndim == 4 and samples.min() >= 0 and samples.max() <= 1
    if are_images and 2 < max(high, 1 - low) < math.inf:
        warn(
            f"{name} returned intensities from {low:.3g} to {high:.3g}, but images are in [0, 1] "
            "where it is called: write it for this range, without Normalize, and end it with "
            ".clamp(0, 1)."
        )
    if not torch.allclose(first, second, _SAME, _SAME, equal_nan=True):
        warn(
            f"{name} returned two different views of the same samples for the same seed: it draws "
            "from its own generator or a global one, so that random_state does not decide the "
            "views. Let it draw from a parameter 'seed', 'rng' or 'generator' alone."
        )
    elif is_batch:
        _check_draws(name, draw, samples, seeds[:_FEW])


def _check_draws(
    name: str, draw: Callable[[Tensor, int], Tensor], samples: Tensor, seeds: list[int]
) -> None:
    """Warn if all samples of a batch are changed by the same random numbers."""
    copies = samples[:1].repeat(_FEW, *[1] * (samples.ndim - 1))
    every = [draw(copies, seed) for seed in seeds]
    are_alike = all(torch.equal(views, views[:1].expand_as(views)) for views in every)
    if are_alike and not all(torch.equal(views, every[0]) for views in every):
        warn(
            f"{name} draws the same random numbers for all samples of a batch, so that views tell "
            "batches apart: draw one for each sample, such as torch.rand(len(x), ...), or pass "
            "FunctionAugmentation(..., per_sample=True)."
        )
