r"""
Mutual likelihood scores and concentrations
===========================================

With :class:`~skcontrast.similarity.VonMisesFisher`, every embedding has a mean direction and a
concentration κ. The score of two embeddings is the logarithm of the density that both are the same
point, relative to chance.

This example redraws Figure 2 of Li, Xu and Hooi, "Probabilistic Contrastive Loss for
Self-Supervised Learning" (2021): the score as a function of both concentrations, for several
angles θ between the mean directions. High concentrations raise the score if the directions agree,
and lower it if they do not. According to the caption in the paper, for a large cos θ, larger
concentrations give a higher score. That holds up to

.. math:: \kappa^* \approx \frac{d - 1}{4 (1 - \cos(\theta/2))},

marked by a star, if κ* is well above d. At the angle θ, concentrations above κ* lower the score.
"""

# %%
# Compute the scores
# ------------------

import math

import matplotlib.pyplot as plt
import torch

from skcontrast.similarity import VonMisesFisher

d = 64
similarity = VonMisesFisher(temperature=1.0, kappa_max=1000.0)
kappa = torch.linspace(1, 400, 200, dtype=torch.float64)


def surface(cos):
    """Return the scores over κ_i and κ_j of directions at an angle, shape (200, 200)."""
    first = torch.zeros(len(kappa), d, dtype=torch.float64)
    first[:, 0] = 1
    second = torch.zeros_like(first)
    second[:, 0], second[:, 1] = cos, math.sqrt(1 - cos**2)
    return similarity((first, kappa), (second, kappa)).numpy()


# %%
# The score over both concentrations
# ----------------------------------

cosines = [0.0, 0.5, 0.8, 0.95]
fig, axes = plt.subplots(2, 2, figsize=(7, 6.2), sharex=True, sharey=True, layout="constrained")
for ax, cos in zip(axes.flat, cosines, strict=True):
    scores = surface(cos)
    size = abs(scores).max()
    image = ax.pcolormesh(kappa, kappa, scores, cmap="RdBu_r", vmin=-size, vmax=size)
    ax.contour(kappa, kappa, scores, levels=8, colors="k", linewidths=0.4)
    best = (d - 1) / (4 * (1 - math.cos(math.acos(cos) / 2)))
    if d < best < kappa[-1]:  # the approximation is for κ above d
        ax.plot(best, best, "*", color="w", markeredgecolor="k", markersize=14)
    ax.set(title=f"cos θ = {cos}", aspect="equal", xlim=(1, 400), ylim=(1, 400))
    ax.set(xlabel="κ of the first", ylabel="κ of the second")
    ax.label_outer()
    fig.colorbar(image, ax=ax, shrink=0.8)
fig.suptitle(f"Mutual likelihood score in {d} dimensions; star: κ*")
plt.show()

# %%
# Along the diagonal
# ------------------
#
# Here both embeddings have the same κ. At a right angle, the score falls as κ grows. At a small
# angle, it rises up to a maximum, the dot. κ* is close to the maximum if it is much larger than d.

fig, ax = plt.subplots(figsize=(6, 4), layout="constrained")
for cos in cosines:
    scores = surface(cos).diagonal()
    (line,) = ax.plot(kappa, scores, label=f"cos θ = {cos}")
    top = scores.argmax()
    if 0 < top < len(kappa) - 1:
        ax.plot(kappa[top], scores[top], "o", color=line.get_color())
ax.axhline(0, color="0.7", linewidth=1, zorder=0)
ax.set(xlabel="κ of both", ylabel="score", ylim=(-60, 65))
ax.legend(frameon=False, loc="lower left")
plt.show()
