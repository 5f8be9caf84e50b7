"""Whether a fit runs its network in bfloat16, and how."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ..encoders import Encoder, Pretrained, Wide
from ..kinds._base import Kind


def trains_in_bf16(precision: str, kind: Kind, encoder: Any, device: torch.device) -> bool:
    """Return whether the network trains in bfloat16.

    "auto" chooses bfloat16 for the package's encoders of images on processors with bfloat16
    instructions; other modules may use operations that do not support it, or are slower in it, as
    depthwise convolutions are on CPUs.

    Parameters
    ----------
    precision : {"auto", "float32", "bf16"}
        The parameter of the embedder.
    kind : Kind
        What the samples are.
    encoder : object
        The parameter of the embedder.
    device : torch.device
        Where the network is trained.
    """
    every = encoder if isinstance(encoder, (list, tuple)) else [encoder]
    every = [one.deep if isinstance(one, Wide) else one for one in every]
    is_ours = all(
        one is None or (isinstance(one, Encoder) and not isinstance(one, Pretrained))
        for one in every
    )
    if precision != "auto" or not kind._trains_in_bf16 or not is_ours:
        return precision == "bf16"
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    # torch has no public name for this yet; if the private one is gone, float32 is always right.
    computes_bf16 = getattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)
    return device.type == "cpu" and bool(computes_bf16())


def in_bf16(network: Callable, x: Any) -> Any:
    """Return the output of a network that computes in bfloat16 where that is safe.

    The output is a float32 tensor or a tuple of float32 tensors.
    """
    # Weights that torch has cached in half precision would outlive the step if the caller is
    # under autocast, and each is used only once anyway.
    with torch.autocast(x.device.type, torch.bfloat16, cache_enabled=False):
        output = network(x)
    return tuple(z.float() for z in output) if isinstance(output, tuple) else output.float()
