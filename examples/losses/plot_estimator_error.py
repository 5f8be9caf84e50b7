"""
Which loss estimates best what labels would say
===============================================

With labels, the mean of :math:`e^s` over an anchor's true negatives is a mean over some of its
candidates. Without labels, a loss has to estimate it. Here, the scores are drawn from BCL's own
model, so the true value is known. This is Figure 5 of the BCL paper, made with the losses of this
package, which are given the true α and τ⁺.

The claim of this example: under its own model BCL has the smallest error, but beyond α = .8 only
if the empirical cdf of the candidates is inverted. The form printed in the paper, which uses that
cdf as Φ, keeps a bias no matter how many candidates there are.
"""

# %%
# The experiment
# --------------
# The settings are those of the paper: α = .9, t = .5, γ = .1, and 1,000 anchors with 64 candidates
# and 10 positives each. The paper does not state τ⁺; it is .1 here. One setting varies at a time.

from functools import partial

import matplotlib.pyplot as plt
import numpy as np

from skcontrast.plotting import EstimatorCurveDisplay
from skcontrast.simulation import ScoreModel, estimator_curve

names = ["BIASED", "DCL", "BCL (printed)", "BCL (inverted)"]
panels = {
    "alpha": np.linspace(0.5, 1, 11),
    "tau_plus": np.linspace(0.02, 0.4, 11),
    "temperature": 2.0 ** np.arange(-3, 2),
    "gamma": np.linspace(0, 1, 11),
    "n_candidates": 2 ** np.arange(4, 13),
}
simulate = partial(estimator_curve, ScoreModel(), n_anchors=1000, random_state=0)
curves = {parameter: simulate(parameter, values) for parameter, values in panels.items()}

# %%
# Mean squared errors, and one bias
# ---------------------------------
# The bands extend two Monte-Carlo standard errors to either side. The last panel shows the bias
# against the number of candidates. It leaves out BIASED, whose bias is three times as large as
# that of the printed form.

figure, axes = plt.subplots(3, 2, figsize=(7, 8.4), layout="constrained")
for axis, curve in zip(axes.flat, curves.values(), strict=False):
    EstimatorCurveDisplay(curve).plot(axis, names=names)
    if axis is not axes[0, 0]:
        axis.get_legend().remove()
    if axis not in axes[:, 0]:
        axis.set_ylabel("")
EstimatorCurveDisplay(curves["n_candidates"]).plot(axes[2, 1], metric="bias", names=names[1:])
few_ticks = panels["n_candidates"][::2]
for axis in axes[2]:
    axis.set_xticks(few_ticks, few_ticks)
for axis in axes.flat:
    axis.yaxis.label.set_size("small")
figure.savefig("estimator_error.png", dpi=120)

# %%
# In numbers
# ----------

bias = curves["n_candidates"].summary("bias")
print("bias of      printed              inverted")
for k, n in enumerate(panels["n_candidates"]):
    printed, inverted = bias["BCL (printed)"][:, k], bias["BCL (inverted)"][:, k]
    print(
        f"N = {n:5d}   {printed[0]:+.4f} ± {printed[1]:.4f}   "
        f"{inverted[0]:+.4f} ± {inverted[1]:.4f}"
    )

# %%
# The paper's own scale
# ---------------------
# The paper draws scores from the range of a cosine divided by t², and divides them by t once more
# before taking the exponential. The picture is the same.

printed = partial(estimator_curve, ScoreModel(form="printed"), n_anchors=1000, random_state=0)
figure, axes = plt.subplots(1, 2, figsize=(7, 3.2), layout="constrained")
for axis, parameter in zip(axes, ["alpha", "n_candidates"], strict=True):
    EstimatorCurveDisplay(printed(parameter, panels[parameter])).plot(axis, names=names)
axes[1].set(ylabel="", xticks=few_ticks, xticklabels=few_ticks)
axes[1].get_legend().remove()
