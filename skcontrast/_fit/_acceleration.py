"""How a fit runs its network: compiled, in bfloat16."""

from __future__ import annotations

import warnings

import torch


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
            warnings.warn(
                f"compile=True: the encoder could not be compiled ({reason}); it runs as it is.",
                UserWarning,
                stacklevel=2,
            )
            return output


def in_bf16(network, x):
    """Return the output of a network that computes in bfloat16 where that is safe, in float32.

    It is a tensor, or a tuple of them.
    """
    with torch.autocast(x.device.type, torch.bfloat16):
        output = network(x)
    return tuple(z.float() for z in output) if isinstance(output, tuple) else output.float()
