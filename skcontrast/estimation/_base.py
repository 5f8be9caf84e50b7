"""A number that was estimated."""

from __future__ import annotations

from typing import NamedTuple


class Estimate(NamedTuple):
    """A number estimated from the data.

    Attributes
    ----------
    value : float
        The estimate.
    standard_error : float
        Its standard error as if the observations were independent; infinite where the data do not
        determine it.
    """

    value: float
    standard_error: float
