"""Losses: how the expectation over true negatives is estimated."""

from ._base import Loss
from ._bcl import BCL
from ._dcl import DCL, HCL
from ._infonce import InfoNCE
from ._nonparametric_bcl import NonparametricBCL
from ._positive_debiased import PositiveDebiased
from ._pucl import PUCL
from ._ring import Ring
from ._soft_ring import SoftRing
from ._soft_supcon import SoftSupCon
from ._supcon import SINCERE, SemiSupCon, SupCon
from ._supervised import Supervised

__all__ = [
    "BCL",
    "DCL",
    "HCL",
    "PUCL",
    "SINCERE",
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
