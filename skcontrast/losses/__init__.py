"""Losses: how the expectation over true negatives is estimated."""

from ._base import Loss
from .bcl import BCL
from .dcl import DCL
from .hcl import HCL
from .infonce import InfoNCE
from .nonparametric_bcl import NonparametricBCL
from .positive_debiased import PositiveDebiased
from .pucl import PUCL
from .ring import Ring
from .semi_supcon import SemiSupCon
from .soft_ring import SoftRing
from .soft_supcon import SoftSupCon
from .supcon import SupCon
from .supervised import Supervised

__all__ = [
    "BCL",
    "DCL",
    "HCL",
    "PUCL",
    "InfoNCE",
    "Loss",
    "NonparametricBCL",
    "PositiveDebiased",
    "Ring",
    "SemiSupCon",
    "SoftRing",
    "SoftSupCon",
    "SupCon",
    "Supervised",
]
