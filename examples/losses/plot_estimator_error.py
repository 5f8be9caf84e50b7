"""
Which loss is the best estimate without labels?
===============================================

With labels, the mean of :math:`e^s` over an anchor's true negatives is a mean over some of its
candidates. Without labels, a loss has to estimate it. Here, the scores are drawn from BCL's own
model, so the true value is known. This is Figure 5 of the BCL paper, made with the losses of this
package, which are given the true α and τ⁺.

The result: under its own model BCL has the smallest error, but beyond α = .8 only
if the empirical cdf of the candidates is inverted. The form printed in the paper, which uses that
cdf as Φ, keeps a bias no matter how many candidates there are.
"""

# %%
# The experiment
# --------------
# The settings are those of the paper: α = .9, t = .5, γ = .1, and 1,000 anchors with 64 candidates
# and 10 positives each. The paper does not state τ⁺; it is .1 here. One setting varies at a time.

import matplotlib.pyplot as plt
import numpy as np

from benchmarks._bcl_scores import ScoreModel, compare_estimators

styles = {
    "BIASED": ("#555555", "s"),
    "DCL": ("#0072B2", "o"),
    "BCL (printed)": ("#D55E00", "D"),
    "BCL (inverted)": ("#009E73", "^"),
}
names = list(styles)
panels = {
    "alpha": np.linspace(0.5, 1, 11),
    "tau_plus": np.linspace(0.02, 0.4, 11),
    "temperature": 2.0 ** np.arange(-3, 2),
    "gamma": np.linspace(0, 1, 11),
    "n_candidates": 2 ** np.arange(4, 13),
    "n_positives": 2 ** np.arange(0, 9),
    "n_anchors": 2 ** np.arange(4, 13),
}
labels = {
    "alpha": "location parameter α",
    "tau_plus": "class prior τ⁺",
    "temperature": "temperature t",
    "gamma": "variation of the proposal γ",
    "n_candidates": "number of candidates N",
    "n_positives": "number of positives K",
    "n_anchors": "number of anchors M",
}


def simulate(parameter, **settings):
    """Return the comparisons of the estimators along the values of one parameter."""
    rng, curve = np.random.default_rng(0), []
    for value in panels[parameter].tolist():
        size, given = {"n_anchors": 1000}, dict(settings)
        (size if parameter.startswith("n_") else given)[parameter] = value
        curve.append(compare_estimators(ScoreModel(**given), random_state=rng, **size))
    return curve


def draw(axis, parameter, curve, metric="mse", names=names):
    """Draw a metric of the estimators with bands of two Monte-Carlo standard errors."""
    values = panels[parameter]
    for name in names:
        mean, error = np.transpose([comparison.summary(metric)[name] for comparison in curve])
        color, marker = styles[name]
        axis.plot(values, mean, color=color, marker=marker, markersize=4, label=name)
        axis.fill_between(values, mean - 2 * error, mean + 2 * error, color=color, alpha=0.15)
    axis.set(xlabel=labels[parameter], yscale="log" if metric == "mse" else "linear")
    if parameter == "temperature" or parameter.startswith("n_"):
        ticks = values if parameter == "temperature" else values[::2]
        axis.set_xscale("log", base=2)
        axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])


# %%
# Mean squared errors, and one bias
# ---------------------------------
# The bands extend two Monte-Carlo standard errors to either side. DCL alone uses the positives, so
# their number K changes its error and no other; the anchors are the repetitions, so their number M
# changes the width of the bands. The last panel shows the bias against the number of candidates.
# It leaves out BIASED, whose bias is three times as large as that of the printed form.

curves = {parameter: simulate(parameter) for parameter in panels}
figure, axes = plt.subplots(4, 2, figsize=(7, 11), layout="constrained")
for axis, (parameter, curve) in zip(axes.flat, curves.items(), strict=False):
    draw(axis, parameter, curve)
for axis in axes[:, 0]:
    axis.set_ylabel("mean squared error of the mean of $e^s$", size="small")
axes[0, 0].legend()
draw(axes[3, 1], "n_candidates", curves["n_candidates"], "bias", names[1:])
axes[3, 1].axhline(0, color="black", linewidth=0.8, zorder=0)
axes[3, 1].set_ylabel("bias of the mean of $e^s$", size="small")
figure.savefig("estimator_error.png", dpi=120)

# %%
# In numbers
# ----------

print("bias of      printed              inverted")
for n, comparison in zip(panels["n_candidates"], curves["n_candidates"], strict=True):
    bias = comparison.summary("bias")
    printed, inverted = bias["BCL (printed)"], bias["BCL (inverted)"]
    print(
        f"N = {n:5d}   {printed[0]:+.4f} ± {printed[1]:.4f}   "
        f"{inverted[0]:+.4f} ± {inverted[1]:.4f}"
    )

# %%
# The paper's own scale
# ---------------------
# The paper draws scores from the range of a cosine divided by t², and divides them by t once more
# before taking the exponential. The picture is the same.

figure, axes = plt.subplots(1, 2, figsize=(7, 3.2), layout="constrained")
for axis, parameter in zip(axes, ["alpha", "n_candidates"], strict=True):
    draw(axis, parameter, simulate(parameter, form="printed"))
axes[0].set_ylabel("mean squared error of the mean of $e^s$")
axes[0].legend()
