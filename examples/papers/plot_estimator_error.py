"""
Which loss is the best estimate without labels?
===============================================

With labels, the mean of :math:`e^s` over an anchor's true negatives is a mean over some of its
candidates. Without labels, a loss has to estimate it. Here, the scores are drawn from BCL's own
model, so the true value is known. These are Figures 5 and 8 of the BCL paper, made with the losses
of this package and their importance weights. The losses have the true α and τ⁺.

The result: under its own model BCL has the smallest error, but beyond α = .8 only
if the empirical cdf of the candidates is inverted. The form printed in the paper, which uses that
cdf as Φ, keeps a bias no matter how many candidates there are.
"""

# %%
# The experiment
# --------------
# The settings are those of the paper: α = .9, t = .5, γ = .1, and 1,000 anchors with 64 candidates
# and 10 positives each. β is 0, as in the paper's section 4; its appendix lists .9. The paper does
# not state τ⁺; it is .1 here. One setting varies at a time.

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import LogLocator

from skcontrast.estimation import ScoreSample, importance_weights
from skcontrast.losses import BCL, DCL, InfoNCE, Supervised

styles = {
    "InfoNCE": ("#555555", "s"),
    "DCL": ("#0072B2", "o"),
    "BCL (printed)": ("#D55E00", "D"),
    "BCL (inverted)": ("#009E73", "^"),
    "oracle": ("black", ""),
}
names = list(styles)[:-1]
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


def lower_or_upper(lower, rng):
    """Draw from [0, 1] the lower of two numbers with a probability, else the upper one."""
    p = 1 - rng.random(lower.shape)
    return p / (lower + np.sqrt(np.maximum(lower**2 + (1 - 2 * lower) * p, 0)))


def drawn(rng, alpha=0.9, tau_plus=0.1, temperature=0.5, gamma=0.1, **sizes):
    """Return the scores of anchors that have a true negative, and the truth."""
    defaults = {"n_anchors": 1000, "n_candidates": 64, "n_positives": 10}
    m, n, k = (defaults | sizes).values()
    is_negative = rng.random((m, n)) >= tau_plus
    candidates = lower_or_upper(np.where(is_negative, alpha, 1 - alpha), rng)
    positives = lower_or_upper(np.full((m, k), 1 - alpha), rng)
    # Cosines in an interval of length 1, shifted by a random number between -γ / 2 and γ / 2.
    shift = rng.uniform(-gamma / 2, gamma / 2, (m, 1)) - 0.5
    arrays = (candidates + shift) / temperature, is_negative, (positives + shift) / temperature
    kept = is_negative.any(axis=1)
    return ScoreSample(*(array[kept] for array in arrays), lower_bound=-1 / temperature)


def estimate(loss, sample):
    """Return a loss's estimate of the mean of e^s over true negatives, by anchor."""
    a, b = loss.coefficients()
    weighted = (importance_weights(loss, sample) * np.exp(sample.scores)).mean(axis=1)
    mean = a * weighted - b * np.exp(sample.positives).mean(axis=1)
    return np.maximum(mean, np.exp(sample.lower_bound))


def simulate(parameter):
    """Return the estimates by loss along the values of one parameter."""
    rng, curve = np.random.default_rng(0), []
    for value in panels[parameter].tolist():
        sample = drawn(rng, **{parameter: value})
        true = {"alpha": 0.9, "tau_plus": 0.1}
        true |= {parameter: value} if parameter in true else {}
        losses = (
            InfoNCE(),
            DCL(tau_plus=true["tau_plus"]),
            BCL(**true, form="printed"),
            BCL(**true),
        )
        named = zip(styles, (*losses, Supervised()), strict=True)
        curve.append({name: estimate(loss, sample) for name, loss in named})
    return curve


def summary(estimates, name, metric):
    """Return the mean "mse", "bias" or "mean" of an estimator, and its standard error."""
    values = estimates[name]
    if metric != "mean":
        values = (values - estimates["oracle"]) ** (2 if metric == "mse" else 1)
    return values.mean(), values.std(ddof=1) / np.sqrt(len(values))


def draw(axis, parameter, curve, metric="mse", names=names):
    """Draw a metric of the estimators with bands of two Monte-Carlo standard errors."""
    values = panels[parameter]
    for name in names:
        mean, error = np.transpose([summary(estimates, name, metric) for estimates in curve])
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
# All are of the estimated mean of :math:`e^s` over true negatives.
# The bands extend two Monte-Carlo standard errors to either side. Only DCL uses the positives, so
# their number K changes no other error; the anchors are the repetitions, so their number M
# changes the width of the bands. The last panel shows the bias against the number of candidates.
# It leaves out InfoNCE, whose bias is three times as large as that of the printed form.

curves = {parameter: simulate(parameter) for parameter in panels}
figure, axes = plt.subplots(4, 2, figsize=(7, 11), layout="constrained")
for axis, (parameter, curve) in zip(axes.flat, curves.items(), strict=False):
    draw(axis, parameter, curve)
for axis in axes[:, 0]:
    axis.set_ylabel("mean squared error")
for axis in axes.flat[:-1]:
    axis.yaxis.set_minor_locator(LogLocator(subs=(2, 5)))
figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=4)
draw(axes[3, 1], "n_candidates", curves["n_candidates"], "bias", names[1:])
axes[3, 1].axhline(0, color="black", linewidth=0.8, zorder=0)
axes[3, 1].set_ylabel("bias")
figure.savefig("estimator_error.png", dpi=120)

# %%
# In numbers
# ----------

print("bias of      printed              inverted")
for n, estimates in zip(panels["n_candidates"], curves["n_candidates"], strict=True):
    printed, inverted = (
        "{:+.4f} ± {:.4f}".format(*summary(estimates, name, "bias")) for name in names[2:]
    )
    print(f"N = {n:5d}   {printed}   {inverted}")

# %%
# How much false negatives add
# ----------------------------
# The means themselves, as in Figure 8. The better the encoder, the higher its false negatives
# score, and the more they add to the estimate of InfoNCE (BIASED in the paper).

figure, axes = plt.subplots(1, 2, figsize=(7, 3.4), layout="constrained")
for axis, parameter in zip(axes, ("gamma", "alpha"), strict=True):
    draw(axis, parameter, curves[parameter], "mean", [*styles])
axes[0].set_ylabel("estimated mean of $e^s$")
axes[0].legend(fontsize="small")
figure.savefig("estimator_mean.png", dpi=120)
