"""Quality against CPU minutes, from the figures of benchmarks.studies.time_to_quality."""

import json
from pathlib import Path

import matplotlib.pyplot as plt

# Plots run in the folder of their script.
RESULTS = Path("../../benchmarks/studies/results/time_to_quality.json")
COLUMNS = ("5 labels", "20-NN, half whitened", "linear")
SETS = ("Fashion-MNIST", "CIFAR-10", "molecules", "HAR_part")
NAMES = {
    "as they are": "pixels, counts, numbers",
    "kornia, pytorch-metric-learning": "script with kornia",
    "PyG, InfoGraph": "script with PyG",
}

stored = json.loads(RESULTS.read_text(encoding="utf-8"))
curves = {name: stored[f"time: {name}"]["rows"] for name in SETS}
names = dict.fromkeys(row["row"] for rows in curves.values() for row in rows)
shown = [name for name in names if name != "t-SimCNE"]  # its map is far below all others
colours = dict(zip(shown, [*(f"C{k}" for k in range(10)), "black", "gold"], strict=True))
figure, axes = plt.subplots(len(SETS), 3, figsize=(7, 8), layout="constrained", sharex=True)
lines = {}
for of_set, (data, rows) in zip(axes, curves.items(), strict=True):
    for axis, column in zip(of_set, COLUMNS, strict=True):
        for name, colour in colours.items():
            points = [row for row in rows if row["row"] == name]
            if points:
                minutes = [max(row["CPU min"], 0.01) for row in points]
                (lines[name],) = axis.semilogx(
                    minutes, [row[column] for row in points], "o-", color=colour, ms=4
                )
    of_set[0].set_ylabel(data.removesuffix("_part"))
for axis, column in zip(axes[0], COLUMNS, strict=True):
    axis.set_title(column, fontsize=10)
for axis in axes[-1]:
    axis.set_xlabel("CPU minutes")
labels = [NAMES.get(name, name) for name in lines]
figure.legend(lines.values(), labels, loc="outside lower center", ncols=4, fontsize=8)
