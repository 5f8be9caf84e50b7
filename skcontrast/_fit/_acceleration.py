"""How a fit runs its network: compiled, in bfloat16, shared among processes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import nn

from .._data._kinds import Kind
from .._distributed._shared_network import SharedNetwork
from .._distributed._world import World
from .._warnings import warn
from ..encoders import Encoder


def prepared(
    module: nn.Module | Callable, *, compile: bool, bf16: bool, world: World | None
) -> Callable:
    """Return a module as a fit runs it."""
    network = Compiled(module) if compile else module
    network = partial(in_bf16, network) if bf16 else network
    return network if world is None else SharedNetwork(network, world)


def trains_in_bf16(precision: str, kind: Kind, encoder: Any, device: torch.device) -> bool:
    """Return whether the network trains in bfloat16.

    "auto" says so for the package's encoders of images, where the processor computes in bfloat16
    itself; any other module may use what bfloat16 does not have.

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
    is_ours = encoder is None or isinstance(encoder, Encoder)
    if precision != "auto" or not kind.trains_in_bf16 or not is_ours:
        return precision == "bf16"
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    # torch has no public name for this yet; without the private one, float32 is always right.
    computes_bf16 = getattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)
    return device.type == "cpu" and bool(computes_bf16())


class Compiled:
    """A module as ``torch.compile`` makes it, or as it is where that fails."""

    def __init__(self, module):
        self.module = module
        self.call = torch.compile(module)
        self.works = False

    def __call__(self, x):
        try:
            output = self.call(x)
            self.works = True
            return output
        except Exception as error:
            if self.call is self.module or self.works or isinstance(error, torch.OutOfMemoryError):
                raise
            self.call = self.module
            # What is wrong with the module itself is raised here, as without compiling.
            output = self.module(x)
            reason = str(error).strip().splitlines()[0] if str(error).strip() else repr(error)
            warn(f"compile=True: the encoder could not be compiled ({reason}); it runs as it is.")
            return output


def in_bf16(network, x):
    """Return the output of a network that computes in bfloat16 where that is safe, in float32.

    It is a tensor, or a tuple of them.
    """
    with torch.autocast(x.device.type, torch.bfloat16):
        output = network(x)
    return tuple(z.float() for z in output) if isinstance(output, tuple) else output.float()
