"""
Nearest neighbours
==================

A map shows clusters; neighbours show what the embedder takes for the same thing. Each row is a
query and the images with the highest cosine to it. A green frame is a neighbour of the class of
the query, a dashed red one is not.

What you should see: most neighbours are of the right class although the embedder has seen no
labels, and the wrong ones look alike. The concentration κ under each image says how sure the
embedder is of it.
"""

# %%
# An embedder with concentrations
# -------------------------------

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from skcontrast import ContrastiveEmbedder
from skcontrast.augmentation import RandomAffine, RandomResizedCrop
from skcontrast.plotting import RetrievalDisplay
from skcontrast.similarity import VonMisesFisher

digits = load_digits()
X, y = digits.images, digits.target
embedder = ContrastiveEmbedder(
    similarity=VonMisesFisher(),
    augmentation=[RandomResizedCrop(), RandomAffine(p=0.75)],
    max_epochs=15,
    random_state=0,
).fit(X[:1000])

gallery, classes = X[1000:], y[1000:]
RetrievalDisplay.from_estimator(embedder, gallery, classes, queries=6, n_neighbors=7)
plt.show()

# %%
# The least sure queries
# ----------------------
# Rows can be chosen. These are the five images with the lowest κ.

kappa = embedder.concentration(gallery)
unsure = np.argsort(kappa)[:5]
RetrievalDisplay.from_estimator(embedder, gallery, classes, queries=unsure, n_neighbors=7)
plt.show()

# %%
# Anything can be drawn
# ---------------------
# ``pictures`` takes an image or a text for each sample, so that rows of a table, graphs or
# documents can be looked at too. Here, the neighbours in raw pixels are shown by their labels.

names = [f"digit {label}" for label in classes]
flat = gallery.reshape(len(gallery), -1)
RetrievalDisplay.from_embeddings(flat, names, classes, queries=unsure, n_neighbors=5)
plt.show()
