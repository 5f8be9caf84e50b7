"""
Simulated scores: shapes change, ranks do not
=============================================

A contrastive loss does not use the cosine x of an anchor and a candidate itself, but
:math:`e^{x / t}`. Figure 4 of the BCL paper shows its distribution for one anchor with 20,000
candidates, t = 2 and standard normal φ. Here, half of the candidates are false negatives, so that
both histograms are equally smooth.

The result: the exponential makes both distributions skewed but changes no ranks,
and BCL uses only ranks to separate false negatives from true ones.
"""

# %%
# One anchor, 20,000 candidates
# -----------------------------

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import roc_auc_score


def draw(lower, rng):
    """Draw the lower of two normal numbers with this probability, else the upper one."""
    pairs = np.sort(rng.normal(size=(2, len(lower))), axis=0)
    return np.where(rng.random(len(lower)) < lower, *pairs)


temperature, alphas, rng = 2.0, (0.5, 0.7, 0.9, 1.0), np.random.default_rng(0)
is_negative = rng.random(20_000) >= 0.5
samples = {
    alpha: draw(np.where(is_negative, alpha, 1 - alpha), rng) / temperature for alpha in alphas
}

figure, axes = plt.subplots(2, 2, figsize=(7, 5.4), sharex=True, sharey=True, layout="constrained")
for axis, (alpha, scores) in zip(axes.flat, samples.items(), strict=True):
    style = {"bins": np.linspace(0, 5, 51), "density": True, "alpha": 0.5}
    axis.hist(np.exp(scores[is_negative]), label="true negatives", **style)
    axis.hist(np.exp(scores[~is_negative]), label="false negatives", **style)
    axis.set(title=f"α = {alpha}", xlim=(0, 5), xlabel="$e^{x/t}$", ylabel="density")
    axis.label_outer()
axes[0, 0].legend()
figure.savefig("simulated_scores.png", dpi=120)

# %%
# Skewed shapes, unchanged ranks
# ------------------------------
# The table shows the skewness over all candidates, and how often a false negative outscores a true
# one.


def skewness(values):
    """Return the third standardised moment."""
    return float((((values - values.mean()) / values.std()) ** 3).mean())


print("   α   skewness: x/t   e^(x/t)   AUC: x/t   e^(x/t)   (1 + 4α)/6")
for alpha, scores in samples.items():
    skews = skewness(scores), skewness(np.exp(scores))
    aucs = roc_auc_score(~is_negative, scores), roc_auc_score(~is_negative, np.exp(scores))
    print(
        f"{alpha:4.1f}   {skews[0]:13.2f}   {skews[1]:7.2f}   "
        f"{aucs[0]:8.3f}   {aucs[1]:7.3f}   {(1 + 4 * alpha) / 6:10.3f}"
    )
