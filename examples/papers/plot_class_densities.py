"""
The meaning of α: the scores of true and of false negatives
===========================================================

BCL asks how probable it is that a candidate is a true negative, given its score. In its model,
two scores are drawn from one density φ. The lower one belongs to a true negative and the upper one
to a false negative; in a share 1 − α of the cases it is the other way round. The figure shows the
densities of Figure 3 of the paper, for standard normal φ.

The result: α moves the two densities apart. Of a pair that is drawn together, α is the probability
that the false negative scores higher. Of independent draws it is (1 + 4α)/6, at most 5/6.
"""

# %%
# From formula to figure
# ----------------------

import matplotlib.pyplot as plt
import numpy as np
from scipy.integrate import quad
from scipy.stats import norm


def density(x, lower):
    """Return the density of the lower of two draws with this probability, else of the upper."""
    return 2 * (lower * (1 - norm.cdf(x)) + (1 - lower) * norm.cdf(x)) * norm.pdf(x)


def cdf(x, lower):
    """Return its cdf."""
    return 2 * lower * norm.cdf(x) + (1 - 2 * lower) * norm.cdf(x) ** 2


alphas, x = (0.5, 0.7, 0.9, 1.0), np.linspace(-4, 4, 401)
figure, axes = plt.subplots(2, 2, figsize=(7, 5.4), sharex=True, sharey=True, layout="constrained")
for axis, alpha in zip(axes.flat, alphas, strict=True):
    axis.plot(x, density(x, alpha), label="true negatives")
    axis.plot(x, density(x, 1 - alpha), "--", label="false negatives")
    axis.set(title=f"α = {alpha}, AUC = {(1 + 4 * alpha) / 6:.3f}")
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
    auc, _ = quad(lambda x, alpha=alpha: density(x, 1 - alpha) * cdf(x, alpha), -10, 10)
    print(f"{alpha:4.1f}   {(1 + 4 * alpha) / 6:10.4f}   {auc:14.4f}")
