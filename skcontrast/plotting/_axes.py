"""Axes and colours of the displays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's colours, which colour-blind readers can distinguish. A name has one colour in all
# figures.
STYLES: dict[str, dict[str, Any]] = {
    "TN": {"color": "#0072B2", "linestyle": "-"},
    "FN": {"color": "#D55E00", "linestyle": "--"},
    "UN": {"color": "#555555", "linestyle": ":"},
    "P": {"color": "#009E73", "linestyle": "-."},
    "observed": {"color": "black", "marker": "o", "linestyle": "-", "linewidth": 3, "alpha": 0.4},
    "BIASED": {"color": "#555555", "marker": "s", "linestyle": ":"},
    "DCL": {"color": "#0072B2", "marker": "o", "linestyle": "--"},
    "HCL": {"color": "#E69F00", "marker": "v", "linestyle": "-."},
    "BCL (printed)": {"color": "#D55E00", "marker": "D", "linestyle": "--"},
    "BCL (inverted)": {"color": "#009E73", "marker": "o", "linestyle": "-"},
    "NonparametricBCL": {"color": "#CC79A7", "marker": "^", "linestyle": "-."},
    "BCL": {"color": "#009E73", "marker": "D", "linestyle": "-"},
    "SoftRing": {"color": "#CC79A7", "marker": "s", "linestyle": "-"},
    "oracle": {"color": "black", "linestyle": "-", "linewidth": 6, "alpha": 0.25, "zorder": 1},
}


def axes(ax: Axes | None) -> Axes:
    """Return `ax`, or the axes of a new figure."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "skcontrast.plotting needs matplotlib: pip install 'skcontrast[plot]'."
        ) from error
    return plt.subplots(layout="constrained")[1]
