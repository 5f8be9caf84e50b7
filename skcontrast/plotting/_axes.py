"""Where displays are drawn, and in which colours."""

from __future__ import annotations

# Okabe and Ito's colours, which colour-blind readers tell apart. A name has one colour everywhere.
STYLES = {
    "TN": {"color": "#0072B2", "linestyle": "-"},
    "FN": {"color": "#D55E00", "linestyle": "--"},
    "UN": {"color": "#555555", "linestyle": ":"},
    "BIASED": {"color": "#555555", "marker": "s", "linestyle": ":"},
    "DCL": {"color": "#0072B2", "marker": "o", "linestyle": "--"},
    "HCL": {"color": "#E69F00", "marker": "v", "linestyle": "-."},
    "BCL (printed)": {"color": "#D55E00", "marker": "D", "linestyle": "--"},
    "BCL (inverted)": {"color": "#009E73", "marker": "o", "linestyle": "-"},
    "NonparametricBCL": {"color": "#CC79A7", "marker": "^", "linestyle": "-."},
    "oracle": {"color": "black", "linestyle": "-", "linewidth": 6, "alpha": 0.25, "zorder": 1},
}


def axes(ax):
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
