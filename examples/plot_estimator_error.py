"""
Which loss estimates best what labels would say
===============================================

With labels, the mean of :math:`e^s` over an anchor's true negatives is a mean over some of its
candidates. Without, a loss has to estimate it. Scores are drawn from BCL's own model here, so that
the truth is known: Figure 5 of the BCL paper, with the losses that this package trains with, set
to the true α and τ⁺.

The claim of this example: under its own model BCL has the smallest error, but past α = .8 only if
the empirical cdf of the candidates is inverted. The paper's printed form, which takes that cdf for
Φ, keeps a bias however many candidates there are.
"""

# %%
# The experiment
# --------------
# Settings of the paper: α = .9, t = .5, γ = .1, 1,000 anchors with 64 candidates and 10 positives
# each, and τ⁺ = .1, which it leaves out; one of them varies at a time.

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
# Bands are two Monte-Carlo standard errors on either side. The last panel is the bias along the
# number of candidates; that of BIASED, three times as large as the printed form's, is left out.

figure, axes = plt.subplots(2, 3, figsize=(14, 7.6), layout="constrained")
for axis, curve in zip(axes.flat, curves.values(), strict=False):
    EstimatorCurveDisplay(curve).plot(axis, names=names)
    if axis is not axes[0, 0]:
        axis.get_legend().remove()
    if axis not in axes[:, 0]:
        axis.set_ylabel("")
EstimatorCurveDisplay(curves["n_candidates"]).plot(axes[1, 2], metric="bias", names=names[1:])
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
# The paper draws scores from the range of a cosine divided by t² and divides them by t once more
# before the exponential. The picture is the same.

printed = partial(estimator_curve, ScoreModel(form="printed"), n_anchors=1000, random_state=0)
figure, axes = plt.subplots(1, 2, figsize=(9.5, 3.8), layout="constrained")
for axis, parameter in zip(axes, ["alpha", "n_candidates"], strict=True):
    EstimatorCurveDisplay(printed(parameter, panels[parameter])).plot(axis, names=names)
