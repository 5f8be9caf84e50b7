"""
A custom loss
=============

In hard-negative mining, candidates close to an anchor count more than distant ones. A loss that
weights candidates by their rank is written here in a few lines, checked, and compared with
InfoNCE.

The result: after a short training on 600 digits, it is ahead of InfoNCE by less than the seeds
differ. The 95 % interval of the paired differences contains 0.
"""

# %%
# Write it
# --------
# With u the share of the candidates that are farther than a candidate, which itself counts as
# half of one, its weight is :math:`u^p`; the power p = 0 is InfoNCE. ``rank_weights`` gets the
# ranks of the candidates, 1 for the farthest. The base class estimates the mean of :math:`e^s`
# over true negatives with these weights. Their scale does not matter.

import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.base import clone
from sklearn.datasets import load_digits

from skcontrast import ContrastiveEmbedder, contrastive_loss
from skcontrast.losses import InfoNCE, Loss, check_loss
from skcontrast.metrics import compare_paired, few_label_accuracy
from skcontrast.schedules import interval
from skcontrast.similarity import Cosine


class HardRanks(Loss):
    """InfoNCE in which close candidates count more.

    Parameters
    ----------
    power : float, default=4
        The power p, at least 0.
    """

    _parameter_constraints = {"power": interval(0, None, "left")}

    def __init__(self, power=4):
        self.power = power

    def rank_weights(self, ranks_from_farthest, n_candidates):
        """Return the weight of each rank."""
        return ((ranks_from_farthest - 0.5) / n_candidates) ** self.power


# %%
# Check it
# --------
# ``check_loss`` computes it on synthetic scores: losses and gradients are finite, and the loss
# falls as positives score higher. Two more checks are for this loss alone: with p = 0 it is
# InfoNCE, and its value is that of the formula.

check_loss(HardRanks())

torch.manual_seed(0)
first, second = torch.randn(2, 64, 16, dtype=torch.float64)


def value(loss):
    """Return the loss of two views of 64 samples."""
    return contrastive_loss(first, second, loss=loss, similarity=Cosine(0.5)).item()


def by_hand(power, t=0.5):
    """Return the same from the definition, with both views of all other samples as candidates."""
    z = torch.cat([first, second])
    z = z / z.norm(dim=1, keepdim=True)
    scores, rows = z @ z.T / t, torch.arange(128)
    positives = scores[rows, (rows + 64) % 128]
    others = (rows[:, None] - rows) % 64 != 0
    candidates = scores[others].view(128, 126).sort(dim=1).values
    weights = HardRanks(power).rank_weights(torch.arange(1, 127), 126)
    total = 126 * (weights / weights.mean() * candidates.exp()).mean(dim=1)
    return ((positives.exp() + total).log() - positives).mean().item()


print(f"power 0: {value(HardRanks(power=0)):.6f}, InfoNCE: {value(InfoNCE()):.6f}")
print(f"power 4: {value(HardRanks()):.6f}, by hand: {by_hand(4):.6f}")

# %%
# Next to InfoNCE
# ---------------
# An embedder takes it as any other loss, and ``set_params`` or a search reaches its power. A seed
# sets the weights, the views and the labels, so the losses are compared in pairs. The power was
# chosen on seeds 0 to 4, where its gain was .012, so that others judge it.

images, digits = load_digits().images, load_digits().target
X, X_test, y, y_test = images[:600], images[1000:], digits[:600], digits[1000:]
ours = ContrastiveEmbedder(loss=HardRanks(), max_epochs=20)
embedders = {"InfoNCE": ContrastiveEmbedder(loss=InfoNCE(), max_epochs=20)}
embedders |= {f"power {p}": clone(ours).set_params(loss__power=p) for p in (1, 4)}
accuracy = {name: [] for name in embedders}
for seed in range(5, 10):
    for name, embedder in embedders.items():
        H = embedder.set_params(random_state=seed).fit_transform(X)
        H_test = embedder.transform(X_test)
        of_draws = few_label_accuracy(H, y, H_test, y_test, random_state=10 * seed)
        accuracy[name].append(of_draws.mean())

print("accuracy with 5 labels per class")
for name, values in accuracy.items():
    print(f"{name:8} {np.mean(values):.3f}")
    if name != "InfoNCE":
        print("         less InfoNCE:", compare_paired(values, accuracy["InfoNCE"]))

# %%
# Left, the weights. Right, a line for each seed.

figure, (left, right) = plt.subplots(1, 2, figsize=(7, 3.4), layout="constrained")
ranks = np.arange(1, 255)
for k, power in enumerate((1, 4), start=1):
    left.plot(
        ranks / 254,
        HardRanks(power).rank_weights(ranks, 254),
        f"C{k}",
        label=f"power {power}",
    )
left.axhline(1, color="C0", label="InfoNCE")
left.set(xlabel="share of candidates that are farther", ylabel="weight", ylim=(0, 1.4))
left.legend(frameon=False, loc="upper left")
right.plot(np.array(list(accuracy.values())), "o-", color="C7")
right.set_xticks(range(3), list(accuracy))
right.set(ylabel="accuracy with 5 labels per class", xlim=(-0.3, 2.3))
plt.show()
