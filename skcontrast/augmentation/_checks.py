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
# Samples and copies of one, and seeds, for which views must not all be alike.
_FEW = 8
# Views of the same samples that differ by less were drawn with the same random numbers.
_SAME = 1e-4


def try_views(
    name: str, draw: Callable[[Tensor, int], Tensor], samples: Tensor, seed: int = 0
) -> None:
    """Warn of views that teach little: unchanged, out of range, or of wrong numbers or samples.

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
    """
    first, second = draw(samples, seed), draw(samples, seed)
    seeds = np.random.default_rng(seed).integers(2**32, size=_TRIALS - 1).tolist()
    is_still = samples.unique().numel() > 1 and torch.equal(first, samples)
    if is_still and all(torch.equal(draw(samples, seed), samples) for seed in seeds):
        warn(
            f"{name} returned its samples unchanged for {_TRIALS} seeds: both views are the same."
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
    else:
        _check_draws(name, draw, samples, seeds[:_FEW])


def _check_draws(
    name: str, draw: Callable[[Tensor, int], Tensor], samples: Tensor, seeds: list[int]
) -> None:
    """Warn if views are drawn by the same random numbers, or not from their own sample."""
    some, copies = samples[torch.arange(_FEW) % len(samples)], samples[[0] * _FEW]
    drawn, of_copies = ([draw(batch, seed) for seed in seeds] for batch in (some, copies))
    are_alike = all(torch.equal(views, views[:1].expand_as(views)) for views in of_copies)
    ignores = not torch.equal(some, copies) and all(map(torch.equal, drawn, of_copies))
    first, alone = (torch.stack([v[0] for v in views]) for views in (drawn, of_copies))
    if are_alike and not all(torch.equal(views, of_copies[0]) for views in of_copies):
        warn(
            f"{name} draws the same random numbers for all samples of a batch: draw one for each, "
            "such as torch.rand(len(x), ...), or pass FunctionAugmentation(..., per_sample=True)."
        )
    elif ignores or not torch.allclose(first, alone, _SAME, _SAME, equal_nan=True):
        warn(
            f"{name} draws the view of a sample from {'no' if ignores else 'other'} samples: a "
            "row of views must come from its row of the batch, unless you mix samples on purpose."
        )
