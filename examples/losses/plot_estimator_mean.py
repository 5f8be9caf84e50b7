"""
How much false negatives add to a contrastive loss
==================================================

Averaged over many anchors, random errors cancel and biases remain. This is Figure 8 of the BCL
paper: the mean of the estimates of :math:`e^s` over true negatives. The oracle is the mean over
the candidates that really are negatives.

The result: the better the encoder, the higher its false negatives score, and the
more they add to the estimate of InfoNCE (BIASED). DCL and BCL with the inverted cdf stay within
about one percent of the oracle, however the anchors' scores are shifted; BCL as printed does not.
"""

# %%
# The experiment
# --------------
# γ says how far the scores of an anchor are shifted at random, α how well they separate the
# classes. New scores are drawn for every value: 4,000 anchors with 64 candidates each.

import matplotlib.pyplot as plt
import numpy as np

from benchmarks._bcl_scores import ScoreModel, compare_estimators

names = ["BIASED", "DCL", "BCL (printed)", "BCL (inverted)", "oracle"]
panels = {"gamma": np.linspace(0, 1, 9), "alpha": np.linspace(0.5, 1, 11)}
rng = np.random.default_rng(0)
curves = {
    parameter: [
        compare_estimators(ScoreModel(**{parameter: value}), n_anchors=4000, random_state=rng)
        for value in values
    ]
    for parameter, values in panels.items()
}

figure, axes = plt.subplots(1, 2, figsize=(7, 3.4), layout="constrained")
labels = "variation of the proposal γ", "location parameter α"
for axis, label, (parameter, curve) in zip(axes, labels, curves.items(), strict=True):
    means = [comparison.summary("mean") for comparison in curve]
    for name, marker in zip(names, "sD^o ", strict=True):
        points = np.transpose([mean[name] for mean in means])
        axis.errorbar(panels[parameter], *points, marker=marker, markersize=4, label=name)
    axis.set_xlabel(label)
axes[0].set_ylabel("estimated mean of $e^s$")
axes[0].legend()
figure.savefig("estimator_mean.png", dpi=120)

# %%
# The distance to the oracle
# --------------------------

print("   α   " + "   ".join(f"{name:>16s}" for name in names[:-1]))
for alpha, comparison in zip(panels["alpha"], curves["alpha"], strict=True):
    bias = comparison.summary("bias")
    cells = ("{:+.4f} ± {:.4f}".format(*bias[name]) for name in names[:-1])
    print(f"{alpha:5.2f}   " + "   ".join(cells))
