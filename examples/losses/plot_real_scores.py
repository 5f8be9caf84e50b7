"""
Scores of views and of samples of the same class
================================================

The theory of debiased losses treats an anchor's positive as a random sample of its class. In
training the positive is a second view of the anchor itself. Here an embedder is trained on digits,
and its scores are compared with the labels.

The result: views are closer than samples of the same class. A loss that subtracts false negatives
by means of the views (DCL) therefore subtracts too much, which leaves a bias in the other
direction. Weights by rank (SoftRing) need no positives, and fit.
"""

# %%
# Train without labels, then look at the scores with labels
# ---------------------------------------------------------

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from skcontrast import ContrastiveEmbedder
from skcontrast.estimation import (
    ScoreSample,
    estimate_soft_ring,
    negative_bias,
    project_views,
    push_share,
    reliability,
)
from skcontrast.losses import BCL, DCL, InfoNCE, SoftRing, Supervised
from skcontrast.plotting import ReliabilityDisplay

X, y = load_digits(return_X_y=True)
order = np.random.default_rng(0).permutation(len(y))  # neighbours in the file share a writer
X, y = X[order].reshape(-1, 1, 8, 8), y[order]
embedder = ContrastiveEmbedder(max_epochs=15, random_state=0).fit(X)


def scores(rows, positives="views"):
    """Return the scores of two views of the samples, and which of them are of one class."""
    views = project_views(embedder, X[rows])
    return ScoreSample.from_views(
        *views, y=y[rows], similarity=embedder.similarity_, positives=positives
    )


fitted, held_out = slice(0, 256), slice(256, 512)
sample = scores(held_out)

# %%
# SoftRing's sharpness and floor are fitted to the labels of other samples. BCL has α = 1, the
# maximum of its model of the scores.

losses = {
    "BCL": BCL(alpha=1.0, tau_plus=0.1),
    "SoftRing": SoftRing(**estimate_soft_ring(scores(fitted))),
}
figure, (left, right) = plt.subplots(1, 2, figsize=(7, 3.2), layout="constrained")
groups = {
    "true negatives": sample.scores[sample.is_negative],
    "false negatives": sample.scores[~sample.is_negative],
    "positives": sample.positives.ravel(),
}
for (label, values), color in zip(groups.items(), ("C0", "C1", "C2"), strict=True):
    style = {"bins": np.linspace(-2, 2, 33), "density": True, "alpha": 0.5}
    left.hist(values, color=color, label=label, **style)
left.set(xlabel="score s", ylabel="density")
left.legend(loc="upper left")
ReliabilityDisplay.from_sample(sample, losses, ax=right)
left.set_title("scores at temperature 0.5")
right.set_title("probability of a true negative")
figure.savefig("real_scores.png", dpi=120)

# %%
# Bias and push
# -------------
# The bias is that of the estimated mean of :math:`e^s` over true negatives, relative to the mean
# itself. The push is the share of the gradient that acts on false negatives, which are 10 % of
# the candidates.

losses = {"InfoNCE": InfoNCE(), "DCL": DCL(tau_plus=0.1), **losses, "oracle": Supervised()}
print("loss        bias    push on false negatives")
for name, loss in losses.items():
    bias, push = negative_bias(loss, sample).value, push_share(loss, sample).value
    print(f"{name:9}  {bias:+.3f}   {push:.3f}")
bias = negative_bias(DCL(tau_plus=0.1), scores(held_out, positives="same class")).value
print(f"DCL        {bias:+.3f}   with samples of the same class as positives")

for name in ("BCL", "SoftRing"):
    curve = reliability(losses[name], sample)
    print(f"{name}: largest gap {curve.largest_gap:.3f} in a tenth, Brier {curve.brier:.4f}")
