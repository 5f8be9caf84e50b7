"""Losses: how the expectation over true negatives is estimated."""

from ._base import Loss
from .dcl import DCL
from .hcl import HCL
from .infonce import InfoNCE

__all__ = ["DCL", "HCL", "InfoNCE", "Loss"]
