"""
The meaning of α: the scores of true and of false negatives
===========================================================

BCL asks how probable it is that a candidate is a true negative, given its score. In its model,
two scores are drawn from one density φ. The lower one belongs to a true negative and the upper one
to a false negative; in a share 1 − α of the cases it is the other way round. The figure shows the
densities of Figure 3 of the paper, for standard normal φ.

The result: α moves the two densities apart, but it is not the AUC, although the
paper says so. Even at α = 1 the densities overlap, and a false negative outscores a true one with
probability (1 + 4α)/6, which is at most 5/6.
"""

# %%
# From formula to figure
# ----------------------

import matplotlib.pyplot as plt
import numpy as np
from scipy.integrate import quad

from benchmarks._bcl_scores import ScoreModel

alphas, x = (0.5, 0.7, 0.9, 1.0), np.linspace(-4, 4, 401)
figure, axes = plt.subplots(2, 2, figsize=(7, 5.4), sharex=True, sharey=True, layout="constrained")
for axis, alpha in zip(axes.flat, alphas, strict=True):
    model = ScoreModel(alpha=alpha, proposal="normal")
    axis.plot(x, model.density(x, "TN"), label="true negatives")
    axis.plot(x, model.density(x, "FN"), "--", label="false negatives")
    axis.set(title=f"α = {alpha}, AUC = {model.auc:.3f}")
    axis.set(xlabel="score times temperature, x", ylabel="density")
    axis.label_outer()
axes[0, 0].set_ylim(0)
axes[0, 0].legend(loc="upper left", fontsize="small")
figure.savefig("class_densities.png", dpi=120)

# %%
# The AUC, by integration
# -----------------------
# The probability that a false negative scores above a true one is the integral of the density of
# false negatives times the cdf of true negatives.

print("   α   (1 + 4α)/6   by integration")
for alpha in alphas:
    model = ScoreModel(alpha=alpha, proposal="normal")
    auc, _ = quad(lambda x, m=model: m.density(x, "FN") * m.cdf(x, "TN"), -10, 10)
    print(f"{alpha:4.1f}   {model.auc:10.4f}   {auc:14.4f}")
