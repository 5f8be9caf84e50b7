"""The figure of the page "Do debiased losses help?", from what false_negatives stored."""

import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

# Plots run in the folder of their script.
RESULTS = Path("../../benchmarks/studies/results/false_negatives.json")
ORACLE = "Supervised-y"
MARKERS = {"DCL": "v", "HCL": "x", "BCL": "+", "SoftRing": "s", "SoftSupCon": "D", ORACLE: "o"}
FEW = "Δ 5 labels"


def gaps(rows):
    """Return the sets, the temperatures, and the gaps in percentage points by both."""
    sets, temperatures = (list(dict.fromkeys(row[name] for row in rows)) for name in ("data", "t"))
    percent = {(row["data"], row["t"]): 100 * float(row[FEW]) for row in rows}
    return (
        sets,
        temperatures,
        np.array([[percent[data, t] for t in temperatures] for data in sets]),
    )


def is_beyond_chance(row):
    """Return whether p is below .05."""
    p = row["p, 5 labels"]
    return p.startswith("<") or float(p) < 0.05


def draw_map(axis, rows):
    """Draw the gap as a map with its numbers, and return the sets from top to bottom.

    A number in brackets may be chance.
    """
    sets, temperatures, gap = gaps(rows)
    axis.imshow(gap, cmap="Blues", vmin=0, vmax=1.6 * gap.max(), aspect="auto")
    sure = {(row["data"], row["t"]): is_beyond_chance(row) for row in rows}
    for (i, j), value in np.ndenumerate(gap):
        text = f"{value:+.1f}" if sure[sets[i], temperatures[j]] else f"({value:+.1f})"
        axis.text(j, i, text, ha="center", va="center", fontsize=9)
    axis.set_xticks(range(len(temperatures)), [f"{t:g}" for t in temperatures])
    axis.set_yticks(range(len(sets)), sets, fontsize=9)
    axis.set(xlabel="temperature", title="oracle − InfoNCE, same t")
    return sets


def draw_losses(axis, rows, sets):
    """Draw each loss at its best temperature, as a difference from InfoNCE at its best."""
    for loss, marker in MARKERS.items():
        percent = {row["data"]: 100 * float(row[FEW]) for row in rows if row["loss"] == loss}
        color = "black" if loss == ORACLE else None
        label = "oracle" if loss == ORACLE else loss
        y = [i for i, data in enumerate(sets) if data in percent]
        x = [percent[sets[i]] for i in y]
        axis.scatter(x, y, marker=marker, s=28, color=color, label=label, zorder=2)
    axis.axvline(0, color="0.6", lw=1, zorder=1)
    axis.set(xlabel="percentage points", title="each at its best t − InfoNCE at its best")
    axis.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=3)


tables = json.loads(RESULTS.read_text(encoding="utf-8"))
figure, (left, right) = plt.subplots(
    1, 2, figsize=(7, 4), layout="constrained", sharey=True, width_ratios=[2, 3]
)
sets = draw_map(left, tables["gap"]["rows"])
draw_losses(right, tables["own best"]["rows"], sets)
for axis in (left, right):
    axis.title.set_fontsize(9)
