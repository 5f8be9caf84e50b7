"""
Several parts: two halves of an image and a vector
==================================================

Samples may have parts of different kinds. Here each digit has three: the left and the right half
of its image, and a vector, the ink in each of its rows. ``CMC`` trains an encoder for each part so
that each part predicts the others, without labels.

What to see: among 450 right halves, those that the left half of an image predicts best continue
its strokes, and its own is mostly among the first ten. Before training, none of this holds.
"""

# %%
# Three parts as one X
# --------------------
# ``Parts`` holds the arrays. Whatever selects rows, ``train_test_split``, cross-validation or a
# search, selects the same rows in all of them.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from skcontrast import ContrastiveEmbedder
from skcontrast.augmentation import GaussianNoise, PerPart, RandomAffine
from skcontrast.datasets import Parts
from skcontrast.encoders import MLP, ConvNet
from skcontrast.frameworks import CMC

images, y = load_digits().images, load_digits().target
left, right = images[:, None, :, :4], images[:, None, :, 4:]
X = Parts(left, right, images.sum(axis=2))
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
X_test

# %%
# Train
# -----
# A list as ``encoder`` gives each part an encoder of its own, ``PerPart`` an augmentation.

halves = ConvNet(widths=(16, 32))
embedder = ContrastiveEmbedder(
    encoder=[halves, halves, MLP()],
    framework=CMC(),
    augmentation=PerPart([RandomAffine(5, 0.05), RandomAffine(5, 0.05), GaussianNoise(0.1)]),
    output="projection",
    projection_dim=32,
    max_epochs=12,
    random_state=0,
).fit(X_train)


# %%
# Which right half belongs to this left half?
# -------------------------------------------
# ``transform`` returns the projections of the parts side by side. Those of one sample point in the
# same direction.


def cosines(projections, of, to):
    """Return the cosines of part `of` of each sample with part `to` of each sample."""
    parts = projections.reshape(len(projections), 3, -1)
    parts = parts / np.linalg.norm(parts, axis=2, keepdims=True)
    return parts[:, of] @ parts[:, to].T


def ranks(scores):
    """Return how many samples have a higher score than the sample itself."""
    return (scores > np.diag(scores)[:, None]).sum(axis=1)


names = ("left half", "right half", "ink in rows")
Z = embedder.transform(X_test)
print(f"the right one among the first of {len(Z)}:   1      10")
for of, to in ((0, 1), (0, 2), (1, 2)):
    found = ranks(cosines(Z, of, to))
    first, ten = np.mean(found < 1), np.mean(found < 10)
    print(f"{names[of]:>11} -> {names[to]:12}     {first:8.2f}{ten:8.2f}")

nearest = np.argsort(-cosines(Z, 0, 1), axis=1)[:, :4]
queries = [np.flatnonzero(y_test == digit)[0] for digit in range(10)]
figure, axes = plt.subplots(5, 10, figsize=(7, 3.9), layout="constrained")
for column, row in enumerate(queries):
    whole = [row, *nearest[row]]
    for place, (axis, other) in enumerate(zip(axes[:, column], whole, strict=True)):
        joined = np.hstack([X_test.parts[0][row, 0], X_test.parts[1][other, 0]])
        axis.imshow(joined, cmap="gray_r")
        axis.axvline(3.5, color="C0", linewidth=0.8)
        axis.set(xticks=[], yticks=[])
        is_own = place and other == row
        for spine in axis.spines.values():
            spine.set(color="C1" if is_own else "0.8", linewidth=2 if is_own else 0.8)
for axis, label in zip(axes[:, 0], ("original", "1st", "2nd", "3rd", "4th"), strict=True):
    axis.set_ylabel(label, rotation=0, ha="right", va="center")
figure.suptitle("Left halves, and the right halves that they predict best (framed: its own)")

# %%
# Classify the parts together
# ---------------------------
# The representations of all parts are the input of a classifier that knows few labels.

embedder.set_params(output="representation")
few = np.concatenate([np.flatnonzero(y_train == digit)[:5] for digit in range(10)])
raw = [
    np.hstack([part.reshape(len(part), -1) for part in some.parts]) for some in (X_train, X_test)
]
for name, H_few, H_test in (
    ("raw parts", raw[0][few], raw[1]),
    ("embedding", embedder.transform(X_train[few]), embedder.transform(X_test)),
):
    classifier = LogisticRegression(max_iter=2000).fit(H_few, y_train[few])
    print(f"accuracy with 5 labels per class, {name}: {classifier.score(H_test, y_test):.3f}")
