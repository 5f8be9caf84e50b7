"""Eq. (10) of BCL's paper: what a score that is optimal for InfoNCE says of the odds, Fig. 1."""

import matplotlib.pyplot as plt
import numpy as np

figure, axis = plt.subplots(figsize=(5.6, 3.2), layout="constrained")
for tau_plus, color in ((0.05, "C0"), (0.1, "C1"), (0.2, "C2")):
    for first, last, style in ((0, 1, "-"), (1, 30 * tau_plus, ":")):
        share = np.linspace(first + 1e-3, last - 1e-3, 400)
        odds = share / tau_plus * (1 - tau_plus) / (1 - share)
        label = f"τ⁺ = {tau_plus}" if style == "-" else None
        axis.plot(share / tau_plus, odds, style, color=color, label=label)
    axis.axvline(1 / tau_plus, color=color, linewidth=0.6)
axis.set(xlim=(0, 30), ylim=(-150, 150), xlabel="$p^+/p_d$", ylabel="$p^+/p^-$")
axis.legend(loc="lower left")
