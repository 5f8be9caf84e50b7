"""Losses against the strength of the views, from the figures of open_questions."""

import json
from pathlib import Path

import matplotlib.pyplot as plt

# Plots run in the folder of their script.
RESULTS = Path("../../benchmarks/studies/results/open_questions.json")
SETS = {"digits": "strength", "Fashion-MNIST, 1,000": "strength, Fashion-MNIST"}
STYLES = {
    "InfoNCE": ("o-", "C0", "InfoNCE"),
    "DCL": ("v:", "C1", "DCL"),
    "SoftRing": ("s--", "C3", "SoftRing"),
    "SoftSupCon": ("D--", "C4", "SoftSupCon"),
    "Supervised-y": ("o-", "black", "oracle"),
}

tables = json.loads(RESULTS.read_text(encoding="utf-8"))
figure, axes = plt.subplots(1, 2, figsize=(7, 3.2), layout="constrained")
for axis, (title, name) in zip(axes, SETS.items(), strict=True):
    for loss, (style, color, label) in STYLES.items():
        rows = [row for row in tables[name]["rows"] if row["loss"] == loss]
        strengths = [row["strength"] for row in rows]
        means = [row["5 labels"]["mean"] for row in rows]
        axis.plot(strengths, means, style, color=color, label=label, ms=4)
    axis.set_title(title, fontsize=10)
    axis.set_xlabel("strength of the views")
axes[0].set_ylabel("accuracy, 5 labels per class")
entries = axes[0].get_legend_handles_labels()
figure.legend(*entries, loc="outside lower center", ncols=5, fontsize=8)
