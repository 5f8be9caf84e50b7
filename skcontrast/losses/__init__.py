"""Losses: estimates of the expectation over true negatives."""

from ._base import Loss, PseudoLabels, check_loss
from ._bcl import BCL, NonparametricBCL
from ._debiased import DCL, HCL, PUCL, InfoNCE, PositiveDebiased
from ._ring import Ring, SoftRing, SoftSupCon
from ._rows import Rows
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
    "PseudoLabels",
    "Ring",
    "Rows",
    "SemiSupCon",
    "SoftRing",
    "SoftSupCon",
    "SupCon",
    "Supervised",
    "check_loss",
]
