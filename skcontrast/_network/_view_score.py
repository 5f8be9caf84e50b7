"""What a measure says of two views of held-out samples; the same number at every call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from .._runtime._threads import avoid_lost_threads
from ._inference import check_finite

# Samples that are compared with each other, and that are drawn and encoded at a time.
_COMPARED = 1024
_BATCH = 256

Measure = Callable[[NDArray[np.float32], NDArray[np.float32]], float]


def score_views(
    measure: Measure,
    network: nn.Module,
    draw: Callable[[Any, torch.Generator], Any],
    n_samples: int,
    read: Callable[[NDArray[np.int64]], Any],
    device: torch.device,
) -> float:
    """Return a measure of two views of each sample, the mean over parts of at most 1,024 samples.

    Parameters
    ----------
    measure : callable
        ``measure(z1, z2)`` compares embeddings (n, d) of two views of the same samples.
    network : Module
        Maps samples to embeddings; in inference mode.
    draw : callable
        ``draw(batch, generator)`` returns a view of a batch.
    n_samples : int
        Number of samples.
    read : callable
        ``read(rows)`` returns the batch of some rows, on the device.
    device : torch.device
        Where random numbers are drawn.
    """
    total = 0.0
    for n, (z1, z2) in embedded_views(network, draw, n_samples, read, device):
        total += n * float(measure(z1, z2))
    return total / n_samples


@torch.inference_mode()
def embedded_views(
    network: nn.Module,
    draw: Callable[[Any, torch.Generator], Any],
    n_samples: int,
    read: Callable[[NDArray[np.int64]], Any],
    device: torch.device,
) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """Yield the number of samples in each part and embeddings (2, n, d) of their views.

    Parts differ by at most one sample, and each is spread evenly over the samples, which may be
    sorted.
    """
    avoid_lost_threads()
    generator = torch.Generator(device=device).manual_seed(0)
    n_parts = -(-n_samples // _COMPARED)
    for part in range(n_parts):
        rows = np.arange(part, n_samples, n_parts)
        batches = []
        for some in np.array_split(rows, -(-len(rows) // _BATCH)):
            batch = read(some)
            z = torch.stack([network(draw(batch, generator)) for _ in range(2)]).float().cpu()
            check_finite(z.transpose(0, 1))
            batches.append(z.numpy())
        yield len(rows), np.concatenate(batches, axis=1)
