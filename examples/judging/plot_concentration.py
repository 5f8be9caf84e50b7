"""
How sure is each embedding
==========================

With :class:`~skcontrast.similarity.VonMisesFisher`, each embedding has a concentration κ, learned
without labels. Here an embedder is trained on digits with crops as views. It then gets images of a
kind that it was not trained on: blurred, occluded, rotated, pale and noisy ones.

The result: on digits, κ falls when the image gets much worse, and a classifier of such images that
abstains where κ is low makes fewer errors. Among clean images, κ does not find the errors: the
margin of the classifier does. Not every bad image has a low κ: a rotated sneaker is as easy to
distinguish from other garments as before, and keeps its κ.
"""

# %%
# The embedder
# ------------
# The crops matter: a small crop could come from several digits, and this is where the embedder
# learns to be unsure. A quarter of the views is neither sheared nor rotated, so that an unchanged
# image does not look unusual to the embedder.

import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import gaussian_filter, rotate
from scipy.stats import spearmanr
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from skcontrast import ContrastiveEmbedder
from skcontrast.augmentation import RandomAffine, RandomResizedCrop
from skcontrast.similarity import VonMisesFisher

X, y = load_digits(return_X_y=True)
X = (X.reshape(-1, 1, 8, 8) / 16).astype(np.float32)
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
embedder = ContrastiveEmbedder(
    similarity=VonMisesFisher(),
    augmentation=[RandomResizedCrop(), RandomAffine(p=0.75)],
    max_epochs=60,
    random_state=0,
).fit(X_train)

# %%
# Five ways to make an image worse
# --------------------------------
# The weakest blur, rotation, fading and noise do no harm, and κ does not fall: it may even rise.

rng = np.random.default_rng(0)
levels = np.arange(6)


def blur(images, level):
    """Smooth by a Gaussian of up to 1.75 pixels."""
    return gaussian_filter(images, (0, 0, 0.35 * level, 0.35 * level))


def occlude(images, level):
    """Blacken a square of up to 6 × 6 pixels."""
    images, side = images.copy(), level + 1 if level else 0
    for image in images:
        row, column = rng.integers(0, 9 - side, size=2)
        image[0, row : row + side, column : column + side] = 0
    return images


def turn(images, level):
    """Rotate by up to 90 degrees."""
    return rotate(images, 18 * level, axes=(2, 3), reshape=False, order=1).clip(0, 1)


def fade(images, level):
    """Take up to 90 % of the contrast away."""
    return 0.3 + (images - 0.3) * (1 - 0.18 * level)


def add_noise(images, level):
    """Add normal noise of up to 0.6."""
    return (images + 0.12 * level * rng.normal(size=images.shape)).clip(0, 1)


corruptions = {"blur": blur, "occlude": occlude, "rotate": turn, "fade": fade, "noise": add_noise}
kappa = {
    name: np.stack([embedder.concentration(corrupt(X_test, k).astype(np.float32)) for k in levels])
    for name, corrupt in corruptions.items()
}

fig, axes = plt.subplots(4, 3, figsize=(7, 6.4), layout="constrained", height_ratios=[1, 2.4] * 2)
panels = zip(axes[::2].flat, axes[1::2].flat, strict=True)
for (name, values), (top, ax) in zip(kappa.items(), panels, strict=False):
    strip = [corruptions[name](X_test[:1], k)[0, 0] for k in levels]
    top.imshow(np.hstack(strip), cmap="gray", vmin=0, vmax=1)
    top.axis("off")
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75], axis=1)
    ax.plot(levels, middle)
    ax.fill_between(levels, low, high, alpha=0.3)
    rho = spearmanr(np.repeat(levels, len(X_test)), values.ravel())[0]
    top.set_title(name)
    ax.set(xlabel="strength", ylim=(0, 1.1 * kappa["noise"].max()))
    ax.set_title(f"rank correlation {rho:.2f}", fontsize="medium")
for ax in axes[1::2, 0]:
    ax.set_ylabel("κ, median and quartiles")
for ax in axes[2:, 2]:
    ax.remove()
plt.show()

# %%
# The most and the least certain of the held-out images
# -----------------------------------------------------

order = np.argsort(kappa["blur"][0])
fig, axes = plt.subplots(2, 10, figsize=(7, 1.7), layout="constrained")
for row, (title, some) in zip(
    axes, {"most certain": order[::-1], "least certain": order}.items(), strict=True
):
    for ax, i in zip(row, some, strict=False):
        ax.imshow(X_test[i, 0], cmap="gray")
        ax.set(xticks=[], yticks=[])
    row[0].set_ylabel(title, rotation=0, ha="right", va="center")
plt.show()

# %%
# Abstain where κ is low
# ----------------------
# A linear classifier gets 10 labels per digit and classifies held-out images, each corrupted in
# some way. It answers only the images it is surest of, by one of two measures: κ, which knows
# nothing about the classes, or the classifier's own margin, the difference between its two highest
# probabilities. The margin is the better measure, but it requires a classifier. For the calibrated
# probabilities of a :class:`~skcontrast.ContrastiveClassifier`, see :ref:`few-labels`.

few = np.concatenate([np.flatnonzero(y_train == digit)[:10] for digit in range(10)])
classifier = LogisticRegression(max_iter=3000)
classifier.fit(embedder.transform(X_train[few]), y_train[few])

kinds = rng.integers(len(corruptions), size=len(X_test))
strengths = rng.integers(1, 6, size=len(X_test))
mixed = np.concatenate(
    [
        list(corruptions.values())[kind](X_test[[i]], strength)
        for i, (kind, strength) in enumerate(zip(kinds, strengths, strict=True))
    ]
).astype(np.float32)
probability = classifier.predict_proba(embedder.transform(mixed))
wrong = classifier.classes_[probability.argmax(1)] != y_test
two = np.sort(probability, axis=1)[:, -2:]
certainties = {"κ": embedder.concentration(mixed), "margin": two[:, 1] - two[:, 0]}

coverage = np.arange(1, len(wrong) + 1) / len(wrong)
fig, ax = plt.subplots(figsize=(6, 4), layout="constrained")
for name, certainty in certainties.items():
    risk = wrong[np.argsort(-certainty)].cumsum() / np.arange(1, len(wrong) + 1)
    ax.plot(coverage[20:], risk[20:], label=f"by {name}: area {risk.mean():.3f}")
ax.axhline(wrong.mean(), color="0.6", linestyle="--", label=f"at random: {wrong.mean():.3f}")
ax.set(xlabel="share of images answered", ylabel="share of wrong answers", xlim=(0, 1))
ax.set_ylim(0, None)
ax.legend(frameon=False)
plt.show()
