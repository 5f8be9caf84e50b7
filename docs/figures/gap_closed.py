"""What DCL gains over InfoNCE by who corrects or attracts; "view" attracts with two more views."""

import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import t

# Plots run in the folder of their script.
RESULTS = Path("../../benchmarks/studies/results/gap_closed.jsonl")
SOURCES = ("view", "5 labels", "neighbours", "groups", "all")
ROLES = {"correct": ("o", "C0", "correct"), "attract": ("s", "C1", "attract")}
COLUMN = "5 labels per class"

rows = [json.loads(line) for line in RESULTS.read_text(encoding="utf-8").splitlines()]


def gains(name, views, loss, source, role):
    """Return the differences from InfoNCE at temperature .5, one for each seed."""
    of_seed = {}
    for row in rows:
        if (row["set"], row["views"], row["temperature"]) == (name, views, 0.5):
            key = row["loss"], row["v"], row["role"]
            of_seed.setdefault(row["seed"], {})[key] = row[COLUMN]
    start = "InfoNCE", "view", "correct"
    return np.array(
        [
            found[loss, source, role] - found[start]
            for found in of_seed.values()
            if start in found and (loss, source, role) in found
        ]
    )


figure, axes = plt.subplots(1, 2, figsize=(7, 3.2), layout="constrained", sharey=True)
for axis, name in zip(axes, ("digits", "garments 0 2 4 6"), strict=True):
    for offset, (role, (marker, color, label)) in zip((-0.12, 0.12), ROLES.items(), strict=True):
        for place, source in enumerate(SOURCES):
            found = gains(name, "weak", "DCL", source, role)
            half = t.ppf(0.975, len(found) - 1) * found.std(ddof=1) / len(found) ** 0.5
            x = place + offset
            axis.errorbar(x, found.mean(), half, fmt=marker, color=color, ms=5, capsize=2)
        axis.plot([], [], marker, color=color, label=f"they {label}")
    oracle = gains(name, "weak", "Supervised", "view", "correct").mean()
    axis.axhline(oracle, color="black", ls="--", lw=1, label="oracle")
    axis.axhline(0, color="grey", lw=0.8)
    axis.set_title(name, fontsize=10)
    axis.set_xticks(range(len(SOURCES)), SOURCES, rotation=20, fontsize=8)
axes[0].set_ylabel("accuracy − that of InfoNCE")
figure.legend(
    *axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8
)
