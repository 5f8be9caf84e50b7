"""
Three rounds of labeling
========================

1,000 images of digits have no label. A person labels 20 of them, fits a classifier, and reads how
accurate it is. Three rounds of active learning follow, each with 10 more labels.

The result: after three rounds, the classifier makes less than half of the errors that it makes
after three rounds at random. The intervals of the estimated accuracy contain the true one.
"""

# %%
# Train the embedder once
# -----------------------
# It needs no labels. ``FrozenEstimator`` keeps it unchanged in all rounds.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.frozen import FrozenEstimator

from skcontrast import ContrastiveClassifier, ContrastiveEmbedder, rows_to_label

images, digits = load_digits().images, load_digits().target
X, y = images[:1000], digits[:1000]
X_new, y_new = images[1000:], digits[1000:]
embedder = ContrastiveEmbedder(max_epochs=12, random_state=0).fit(X)
model = ContrastiveClassifier(FrozenEstimator(embedder), random_state=0)

first = rows_to_label(embedder.transform(X), 20, random_state=0)
start = np.full(len(X), -1)  # -1: unknown
start[first] = y[first]  # the person's work

# %%
# Label, fit, read the estimate
# -----------------------------
# ``accuracy_`` estimates the accuracy on the images without a label. Their classes are known here,
# so the truth is printed next to it, and the accuracy on new digits. Each round labels images that
# cover what no labeled image covers, weighted by the uncertainty of the predictions.


def true_accuracy(model, known):
    """Return the accuracy on the images without a label."""
    return model.score(X, np.where(known == -1, y, -1))


known, estimates, truths = start.copy(), [], []
for _ in range(4):
    model.fit(X, known)
    estimates.append(model.accuracy_)
    truths.append(true_accuracy(model, known))
    print(f"{(known != -1).sum()} labels: estimate {model.accuracy_}")
    print(f"    true: {truths[-1]:.3f}, on new digits: {model.score(X_new, y_new):.3f}")
    H = model.transform(X)
    rows = rows_to_label(H, 10, known, uncertainty=model.uncertainty_, random_state=0)
    known[rows] = y[rows]

# %%
# The same number of labels at random
# -----------------------------------
# Two draws, from the same 20 labels. On the unlabeled images the difference is larger than on new
# digits, because the chosen rows are often those that the classifier gets wrong. They have a label
# now, and no longer count.

at_random, on_new = np.full((2, 4), truths[0]), []
for seed, of_seed in enumerate(at_random):
    known, rng = start.copy(), np.random.default_rng(seed)
    for k in range(1, 4):
        rows = rng.choice(np.flatnonzero(known == -1), 10, replace=False)
        known[rows] = y[rows]
        of_seed[k] = true_accuracy(model.fit(X, known), known)
    on_new.append(model.score(X_new, y_new))
for n, accuracy in zip((30, 40, 50), at_random.mean(axis=0)[1:], strict=True):
    print(f"{n} labels, at random: true {accuracy:.3f}")
print(f"    on new digits: {np.mean(on_new):.3f}")

# %%
# The estimate and the truth
# --------------------------
# The bars are the 90 % intervals of the estimates. They cover more than the gain of a round: the
# estimate says how accurate the classifier is, not whether another round is worthwhile.

n_labels = np.array([20, 30, 40, 50])
value, low, high = (np.array([e[k] for e in estimates]) for k in range(3))
figure, axis = plt.subplots(figsize=(6.5, 4.2), layout="constrained")
axis.errorbar(
    n_labels,
    value,
    (value - low, high - value),
    fmt="s",
    capsize=4,
    label="estimate, 90 % interval",
)
axis.plot(n_labels, truths, "C1o-", label="truth, chosen by coverage and uncertainty")
axis.plot(n_labels, at_random.mean(axis=0), "C7o--", label="truth, chosen at random (two draws)")
axis.set(xlabel="labels", ylabel="accuracy on the unlabeled digits", ylim=(None, 1.01))
axis.set_xticks(n_labels)
axis.legend(frameon=False, loc="lower right")
plt.show()
