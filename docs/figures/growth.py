"""The figure of the page "How long a fit takes", from the figures of benchmarks.speed.growth."""

import json
from pathlib import Path

import matplotlib.pyplot as plt

# Plots run in the folder of their script.
RESULTS = Path("../../benchmarks/speed/results/growth.json")
TITLES = {
    "samples": "samples, an epoch",
    "batch": "batch_size",
    "columns": "columns of X",
    "queue": "queue_size of MoCo",
    "classes": "classes of SupCon",
    "nodes of a graph": "nodes of a graph",
    "channels": "channels of images",
    "times of a series": "times of a series",
    "transform": "samples, transform",
    "score": "samples, score",
    "classifier": "samples, classifier",
    "colours": "graphs, colours",
}
TIME, MEMORY = "tab:blue", "tab:orange"


def draw(axis, rows, name):
    """Draw time and memory of one axis on logarithmic scales."""
    sizes = [row["size"] for row in rows]
    axis.loglog(sizes, [row["ms"] for row in rows], "o-", color=TIME, ms=4)
    axis.tick_params(axis="y", labelcolor=TIME)
    axis.set_title(TITLES[name], fontsize=10)
    other = axis.twinx()
    other.loglog(sizes, [row["MiB"] for row in rows], "s--", color=MEMORY, ms=4)
    other.tick_params(axis="y", labelcolor=MEMORY)
    for each, column in ((axis, "ms"), (other, "MiB")):
        low, high = (pick(row[column] for row in rows) for pick in (min, max))
        # At least two decades, so that small growth looks flat.
        middle = (low * high) ** 0.5
        each.set_ylim(min(low / 1.5, middle / 10), max(high * 1.5, middle * 10))
        each.minorticks_off()
    return other


rows = json.loads(RESULTS.read_text(encoding="utf-8"))["axes"]["rows"]
figure, axes = plt.subplots(4, 3, figsize=(7, 8.4), layout="constrained")
for k, (axis, name) in enumerate(zip(axes.flat, TITLES, strict=True)):
    memory = draw(axis, [row for row in rows if row["axis"] == name], name)
    if k % 3 == 0:
        axis.set_ylabel("milliseconds", color=TIME)
    if k % 3 == 2:
        memory.set_ylabel("MiB", color=MEMORY)
