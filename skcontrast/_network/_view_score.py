"""How well views of a sample find each other, on one scale for all losses and similarities."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn

from .._objective._contrast import in_batch
from .._objective._functional import objective_value
from ..losses import InfoNCE
from ..similarity import Cosine

_TEMPERATURE = 0.5
_BATCH = 256


def score_views(
    network: nn.Module,
    draw: Callable[[Any, torch.Generator], Any],
    n_samples: int,
    read: Callable[[np.ndarray], Any],
    device: torch.device,
) -> float:
    """Return minus the InfoNCE loss of two views of each sample; the same number at every call.

    Parameters
    ----------
    network : Module
        Maps samples to the projections that are compared; in inference mode.
    draw : callable
        ``draw(batch, generator)`` returns a view of a batch.
    n_samples : int
        Number of samples.
    read : callable
        ``read(rows)`` returns the batch of some rows, on the device.
    device : torch.device
        Where random numbers are drawn.
    """
    similarity = Cosine(_TEMPERATURE)
    generator = torch.Generator(device=device).manual_seed(0)
    total = 0.0
    for rows in np.array_split(np.arange(n_samples), -(-n_samples // _BATCH)):
        batch = read(rows)
        with torch.inference_mode():
            z = torch.stack([network(draw(batch, generator)) for _ in range(2)])
            contrast = in_batch(similarity.embed(z), similarity)
            total -= len(rows) * float(objective_value(contrast, InfoNCE(), similarity))
    return total / n_samples
