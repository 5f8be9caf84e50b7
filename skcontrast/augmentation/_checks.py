"""Batches as floats, views that are checked, and generators."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from .._checks import belongs_to_package


def checked_views(views: Any, batch: Any, owner: type) -> Any:
    """Return what `augment` of a class returned, after checking it if the class is the user's.

    Raises
    ------
    TypeError, ValueError
        If the views are not what an embedder can take; the message names the class.
    """
    if belongs_to_package(owner):
        return views
    name = f"{owner.__name__}.augment"
    if isinstance(batch, Tensor):
        shape = tuple(batch.shape)
        if not isinstance(views, Tensor):
            advice = ": pass it through torch.from_numpy" if isinstance(views, np.ndarray) else ""
            raise TypeError(
                f"{name} must return a tensor {shape}, not {type(views).__name__}{advice}."
            )
        if batch.is_floating_point():
            check_values(views, batch, name)
    if not hasattr(views, "__len__") or len(views) != len(batch):
        got = f"{len(views)}" if hasattr(views, "__len__") else f"a {type(views).__name__}"
        raise ValueError(
            f"{name} must return one view for each of {len(batch)} samples, got {got}."
        )
    return views


def check_values(views: Tensor, batch: Tensor, name: str) -> None:
    """Raise ValueError unless views have the shape of a batch, and are finite if it is."""
    if views.shape != batch.shape:
        raise ValueError(
            f"{name} must return shape {tuple(batch.shape)}, got {tuple(views.shape)}."
        )
    if not views.is_floating_point() or views.isfinite().all():
        return
    has_gaps = batch.isnan().any() and not views.isinf().any()  # in a table
    if not has_gaps:
        raise ValueError(f"{name} returned views of X that hold NaN or infinity.")


def as_float(batch: Tensor) -> Tensor:
    """Return `batch` as float32 (float64 stays), with uint8 images scaled to [0, 1]."""
    check_batch(batch)
    if batch.dtype in (torch.float32, torch.float64):
        return batch
    floats = batch.to(torch.float32)
    return floats.div_(255) if batch.dtype == torch.uint8 and batch.ndim > 2 else floats


def check_batch(batch: Any) -> None:
    """Raise TypeError unless a batch is a tensor of numbers in memory."""
    if not isinstance(batch, Tensor):
        advice = ": pass torch.from_numpy(batch)" if isinstance(batch, np.ndarray) else ""
        raise TypeError(
            f"batch must be a tensor of shape (n, ...), got {type(batch).__name__}{advice}."
        )
    is_dense = batch.layout == torch.strided and batch.device.type != "meta"
    if not is_dense or batch.is_complex() or batch.is_quantized or batch.ndim < 2:
        raise ValueError(
            f"batch must be dense and real, (n, ...), got {tuple(batch.shape)}, {batch.dtype}."
        )


def generator_for(batch: Any, generator: torch.Generator | None) -> torch.Generator:
    """Return `generator`, or for None a new, unpredictable one on the device of the batch."""
    if not (generator is None or isinstance(generator, torch.Generator)):
        raise TypeError(f"generator must be a torch.Generator or None, got {generator!r}.")
    if generator is None:
        generator = torch.Generator(batch.device)
        generator.seed()
    return generator
