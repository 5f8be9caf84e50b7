"""Losses: how the expectation over true negatives is estimated."""

from ._base import Loss
from ._bcl import BCL, NonparametricBCL
from ._checks import check_loss
from ._debiased import DCL, HCL, PUCL, InfoNCE, PositiveDebiased
from ._ring import Ring, SoftRing, SoftSupCon
from ._supcon import SINCERE, SemiSupCon, SupCon, Supervised

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
    "check_loss",
]
