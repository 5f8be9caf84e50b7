"""
Simulated scores: shapes change, ranks do not
=============================================

A contrastive loss does not use the cosine x of an anchor and a candidate itself, but
:math:`e^{x / t}`. Figure 4 of the BCL paper shows its distribution for one anchor with 20,000
candidates, t = 2 and standard normal φ. Here, half of the candidates are false negatives, so that
both histograms are equally smooth.

The result: the exponential makes both distributions skewed but changes no ranks,
and ranks are all that BCL uses to tell false negatives from true ones.
"""

# %%
# One anchor, 20,000 candidates
# -----------------------------

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import roc_auc_score

from benchmarks._bcl_scores import ScoreModel

alphas = (0.5, 0.7, 0.9, 1.0)
samples = {
    alpha: ScoreModel(
        alpha=alpha, tau_plus=0.5, temperature=2.0, gamma=0.0, proposal="normal"
    ).sample(n_anchors=1, n_candidates=20_000, random_state=0)
    for alpha in alphas
}

figure, axes = plt.subplots(2, 2, figsize=(7, 5.4), sharex=True, sharey=True, layout="constrained")
for axis, (alpha, sample) in zip(axes.flat, samples.items(), strict=True):
    style = {"bins": np.linspace(0, 5, 51), "density": True, "alpha": 0.5}
    axis.hist(np.exp(sample.scores[sample.is_negative]), label="true negatives", **style)
    axis.hist(np.exp(sample.scores[~sample.is_negative]), label="false negatives", **style)
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
for alpha, sample in samples.items():
    scores, is_false = sample.scores[0], ~sample.is_negative[0]
    skews = skewness(scores), skewness(np.exp(scores))
    aucs = roc_auc_score(is_false, scores), roc_auc_score(is_false, np.exp(scores))
    model_auc = ScoreModel(alpha=alpha).auc
    print(
        f"{alpha:4.1f}   {skews[0]:13.2f}   {skews[1]:7.2f}   "
        f"{aucs[0]:8.3f}   {aucs[1]:7.3f}   {model_auc:10.3f}"
    )
