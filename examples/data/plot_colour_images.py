"""
Train on colour images from scratch
===================================

1,200 small colour images show a digit, written with one of four pens on one of three papers. No
network is pretrained for them: a small one is trained from random weights, without labels. Then 5
images of each digit get a label.

The result: with views that change the colours, the embedding is ahead of raw pixels and of patches
whitened by the same views. With the default views, it is behind both: the network recognises an
image by its colours, which say nothing about the digit.
"""

# %%
# The images
# ----------
# The digits of scikit-learn, in the colours of a pen and a paper, which vary a little.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.frozen import FrozenEstimator

from skcontrast import ContrastiveClassifier, ContrastiveEmbedder, ViewWhitening
from skcontrast.augmentation import ColorJitter, RandomAffine, RandomGrayscale
from skcontrast.features import PatchDictionary, Raw
from skcontrast.metrics import few_label_accuracy

rng = np.random.default_rng(0)
order = rng.permutation(1797)  # neighbours in the file share a writer
strokes, y = load_digits().images[order, None] / 16, load_digits().target[order]
pens = np.array([[20, 40, 160], [170, 20, 30], [10, 110, 50], [40, 40, 40]])
papers = np.array([[250, 245, 225], [255, 225, 130], [190, 225, 250]])

pen, paper = rng.integers(4, size=1797), rng.integers(3, size=1797)
ink = pens[pen] + rng.normal(0, 12, (1797, 3))
ground = papers[paper] + rng.normal(0, 6, (1797, 3))
ink, ground = (color.clip(0, 255)[:, :, None, None] for color in (ink, ground))
X = (strokes * ink + (1 - strokes) * ground).astype(np.uint8)
X_train, y_train, X_test, y_test = X[:1200], y[:1200], X[1200:], y[1200:]

# %%
# Views that change what does not matter
# --------------------------------------
# A digit is the same in any colour, slightly rotated or shifted. Half of the views are grey. The
# default views of colour images, below, are made for photographs: crops, flips, and weaker
# changes of colour.

views = [RandomAffine(padding="border"), ColorJitter(hue=0.5), RandomGrayscale(p=0.5)]
embedder = ContrastiveEmbedder(augmentation=views, max_epochs=40, random_state=0).fit(X_train)
default = ContrastiveEmbedder(max_epochs=40, random_state=0).fit(X_train)

figure, axes = plt.subplots(5, 10, figsize=(7, 3.7), layout="constrained")
lines = [X[:10], *embedder.views(X[:10]), *default.views(X[:10])]
names = ["image", *2 * ["custom"], *2 * ["default"]]
for row, name, images in zip(axes, names, lines, strict=True):
    for axis, image in zip(row, images, strict=True):
        axis.imshow(image.transpose(1, 2, 0))
        axis.set(xticks=[], yticks=[])
    row[0].set_ylabel(name)
plt.show()

# %%
# Compared with training-free baselines
# -------------------------------------
# A logistic regression gets the same 5 labels per digit of each representation, in ten draws.
# ``PatchDictionary`` compares the patches of an image with a dictionary; ``ViewWhitening`` shrinks
# what differs between the views. The last column is the accuracy for the pen instead of the digit.

patches = PatchDictionary(random_state=0)
representations = {
    "raw pixels": Raw().fit(X_train),
    "patches": patches.fit(X_train),
    "whitened patches": ViewWhitening(patches, views, random_state=0).fit(X_train),
    "default views": default,
    "custom views": embedder,
}
accuracies = {}
print("                  digit           pen")
for name, features in representations.items():
    H, H_test = features.transform(X_train), features.transform(X_test)
    accuracies[name] = few_label_accuracy(H, y_train, H_test, y_test)
    of_pen = few_label_accuracy(H, pen[:1200], H_test, pen[1200:]).mean()
    print(f"{name:17} {accuracies[name].mean():.3f} ± {accuracies[name].std():.3f}   {of_pen:.3f}")

# %%
# The classifier
# --------------
# It adds whitened patches and pseudo-labels to the embedding. Here it has one draw of the labels.

known = np.full(1200, -1)
for digit in range(10):
    rows = np.flatnonzero(y_train == digit)[:5]
    known[rows] = digit
model = ContrastiveClassifier(FrozenEstimator(embedder), random_state=0).fit(X_train, known)
print(f"ContrastiveClassifier: {model.score(X_test, y_test):.3f}; estimated: {model.accuracy_}")

figure, axis = plt.subplots(figsize=(6.5, 3), layout="constrained")
axis.boxplot(list(accuracies.values()), orientation="horizontal", tick_labels=list(accuracies))
axis.axvline(
    model.score(X_test, y_test), color="C0", linestyle="--", label="ContrastiveClassifier"
)
axis.set(xlabel="accuracy with 5 labels per digit, ten draws")
axis.invert_yaxis()
axis.legend(frameon=False, loc="lower left")
plt.show()
