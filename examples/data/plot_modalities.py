"""
Several modalities: two halves of an image and a vector
=======================================================

Each digit has three modalities: the left and the right half of its image, and the ink in each of
its rows, a vector. ``CMC`` trains an encoder for each so that each predicts the others, without
labels.

The result: the right halves that a left half predicts best continue its strokes. In a third of the
cases, the true half is among the first ten of 450 (by chance 2 %). With 5 labels per class, a
classifier is more accurate on the embedding than on the raw modalities.
"""

# %%
# Three modalities as one X
# -------------------------
# ``Modalities`` holds the arrays. What selects rows, such as ``train_test_split`` or a search,
# selects the same rows in all of them.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from skcontrast import ContrastiveEmbedder
from skcontrast.augmentation import GaussianNoise, MarginalCorruption, PerModality
from skcontrast.datasets import Modalities
from skcontrast.encoders import MLP
from skcontrast.frameworks import CMC
from skcontrast.similarity import Cosine

images, y = load_digits().images, load_digits().target
left, right = images[:, None, :, :4], images[:, None, :, 4:]
X = Modalities(left, right, images.sum(axis=2))
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
X_test

# %%
# Train
# -----
# ``PerModality`` gives each modality its own augmentation. A single encoder that suits all
# modalities is built once for each; a list would have one encoder for each. Low temperatures
# separate near samples.

embedder = ContrastiveEmbedder(
    encoder=MLP(),
    framework=CMC(),
    similarity=Cosine(0.1),
    augmentation=PerModality([GaussianNoise(0.1), GaussianNoise(0.1), MarginalCorruption(0.1)]),
    output="projection",
    projection_dim=32,
    max_epochs=10,
    random_state=0,
).fit(X_train)


# %%
# Which right half belongs to this left half?
# -------------------------------------------
# ``transform`` returns the projections of all modalities, concatenated. Those of one sample point
# in the same direction.


def cosines(projections, of, to):
    """Return the cosines of modality `of` of each sample with modality `to` of each sample."""
    modalities = projections.reshape(len(projections), 3, -1)
    modalities = modalities / np.linalg.norm(modalities, axis=2, keepdims=True)
    return modalities[:, of] @ modalities[:, to].T


def ranks(scores):
    """Return how many samples have a higher score than the sample itself."""
    return (scores > np.diag(scores)[:, None]).sum(axis=1)


names = ("left half", "right half", "ink in rows")
Z = embedder.transform(X_test)
print(f"the right one among the first of {len(Z)}:   1      10")
for of, to in ((0, 1), (0, 2), (1, 2)):
    ranks_of_pairs = ranks(cosines(Z, of, to))
    first, ten = np.mean(ranks_of_pairs < 1), np.mean(ranks_of_pairs < 10)
    print(f"{names[of]:>11} -> {names[to]:12}     {first:8.2f}{ten:8.2f}")

nearest = np.argsort(-cosines(Z, 0, 1), axis=1)[:, :4]
queries = [np.flatnonzero(y_test == digit)[0] for digit in range(10)]
figure, axes = plt.subplots(5, 10, figsize=(7, 3.9), layout="constrained")
for column, row in enumerate(queries):
    whole = [row, *nearest[row]]
    for rank, (axis, other) in enumerate(zip(axes[:, column], whole, strict=True)):
        joined = np.hstack([X_test.modalities[0][row, 0], X_test.modalities[1][other, 0]])
        axis.imshow(joined, cmap="gray_r")
        axis.axvline(3.5, color="C0", linewidth=0.8)
        axis.set(xticks=[], yticks=[])
        is_own = rank and other == row
        for spine in axis.spines.values():
            spine.set(color="C1" if is_own else "0.8", linewidth=2 if is_own else 0.8)
for axis, label in zip(axes[:, 0], ("original", "1st", "2nd", "3rd", "4th"), strict=True):
    axis.set_ylabel(label, rotation=0, ha="right", va="center")
figure.suptitle("Left halves, and the right halves that they predict best (framed: the true half)")

# %%
# Classify the modalities together
# --------------------------------
# The representations of all modalities are the input of a classifier that knows five labels of
# each class, drawn ten times.

embedder.set_params(output="representation")
inputs = {
    "raw modalities": [
        np.hstack([p.reshape(len(p), -1) for p in X.modalities]) for X in (X_train, X_test)
    ],
    "embedding": [embedder.transform(X) for X in (X_train, X_test)],
}
for name, (H_train, H_test) in inputs.items():
    accuracies = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        classes = [np.flatnonzero(y_train == digit) for digit in range(10)]
        few = np.concatenate([rng.choice(rows, 5, replace=False) for rows in classes])
        classifier = LogisticRegression(max_iter=2000).fit(H_train[few], y_train[few])
        accuracies.append(classifier.score(H_test, y_test))
    print(f"accuracy with 5 labels per class, {name}: {np.mean(accuracies):.3f}")
