"""
Nearest neighbours
==================

Each row is a query and the images with the highest cosine to it. A green frame is a neighbour of
the query's class, a dashed red one is not.

The result: nearly all neighbours have the right class although the embedder was trained without
labels, and the wrong ones look like their query. The concentration κ under each image says how
well its views can be distinguished from those of other images. It does not predict wrong
neighbours.
"""

# %%
# An embedder with concentrations
# -------------------------------

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits, load_wine
from sklearn.preprocessing import StandardScaler, normalize

from skcontrast import ContrastiveEmbedder
from skcontrast.augmentation import RandomAffine, RandomResizedCrop
from skcontrast.plotting import RetrievalDisplay
from skcontrast.similarity import VonMisesFisher

digits = load_digits()
X, y = digits.images, digits.target
embedder = ContrastiveEmbedder(
    similarity=VonMisesFisher(),
    augmentation=[RandomResizedCrop(), RandomAffine(p=0.75)],
    max_epochs=10,
    random_state=0,
).fit(X[:1000])

gallery, classes = X[1000:], y[1000:]
RetrievalDisplay.from_estimator(embedder, gallery, classes, queries=6, n_neighbors=7)
plt.show()

# %%
# Where it goes wrong
# -------------------
# Rows can be chosen: these are queries whose nearest neighbour is of a different class. κ does not
# give them away: an image that is easy to tell from the others may still be next to a different
# class.

h = normalize(embedder.transform(gallery))
cosines = h @ h.T
np.fill_diagonal(cosines, -1)
wrong = np.flatnonzero(classes[cosines.argmax(axis=1)] != classes)
print(f"the nearest neighbour of {len(wrong)} of {len(h)} images is of a different class")
kappa = embedder.concentration(gallery)
print(f"median κ of these: {np.median(kappa[wrong]):.0f}, of all: {np.median(kappa):.0f}")
RetrievalDisplay.from_estimator(embedder, gallery, classes, queries=wrong[:5], n_neighbors=7)
plt.show()

# %%
# Anything can be drawn
# ---------------------
# ``pictures`` takes an image or a text for each sample, so that rows of a table, graphs or
# documents can be looked at too. Here are neighbours among wines, by their raw features.

wine = load_wine(as_frame=True)
texts = [f"class {k}\nalcohol {a:g}" for k, a in zip(wine.target, wine.data.alcohol, strict=True)]
raw = StandardScaler().fit_transform(wine.data)
RetrievalDisplay.from_embeddings(raw, texts, wine.target, queries=4, n_neighbors=5)
plt.show()
