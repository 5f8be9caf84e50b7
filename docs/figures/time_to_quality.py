"""Quality against CPU minutes, from the figures of benchmarks.studies.time_to_quality."""

import json
from pathlib import Path

import matplotlib.pyplot as plt

# Plots run in the folder of their script.
RESULTS = Path("../../benchmarks/studies/results/time_to_quality.json")
COLUMNS = ("5 labels", "20-NN, half whitened", "linear")
NAMES = {"as they are": "pixels", "kornia, pytorch-metric-learning": "script with kornia"}

rows = json.loads(RESULTS.read_text(encoding="utf-8"))["time: Fashion-MNIST"]["rows"]
figure, axes = plt.subplots(1, 3, figsize=(7, 3), layout="constrained")
for axis, column in zip(axes, COLUMNS, strict=True):
    for k, name in enumerate(dict.fromkeys(row["row"] for row in rows)):
        own = [row for row in rows if row["row"] == name]
        minutes = [max(row["CPU min"], 0.03) for row in own]
        style = {"color": f"C{k}", "label": NAMES.get(name, name), "ms": 4}
        axis.semilogx(minutes, [row[column] for row in own], "o-", **style)
    axis.set_title(column, fontsize=10)
    axis.set_xlabel("CPU minutes")
handles, labels = axes[0].get_legend_handles_labels()
figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=8)
