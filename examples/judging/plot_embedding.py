"""
A map of the embedding
======================

Two dimensions cannot show the whole embedding, but they show whether anything was learned. The
labels are used for the colours only.

The result: in the raw pixels several digits overlap, and in the embedding most are separate.
Principal components show far less than t-SNE.
"""

# %%
# Pixels and embedding
# --------------------

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from skcontrast import ContrastiveEmbedder
from skcontrast.plotting import EmbeddingDisplay

digits = load_digits()
X_train, X_test, y_train, y_test = train_test_split(
    digits.images, digits.target, test_size=500, stratify=digits.target, random_state=0
)
embedder = ContrastiveEmbedder(max_epochs=20, random_state=0).fit(X_train)

figure, (left, right) = plt.subplots(1, 2, figsize=(7, 3.4), layout="constrained")
EmbeddingDisplay.from_embeddings(X_test.reshape(len(X_test), -1), y_test, ax=left)
left.get_legend().remove()
left.set_title("raw pixels")
EmbeddingDisplay.from_estimator(embedder, X_test, y_test, ax=right)
right.set_title("embedding")
plt.show()

# %%
# Images on the map
# -----------------
# With ``thumbnails``, images are drawn at their points where there is room. ``method="pca"`` shows
# the two directions in which the embedding varies most.

EmbeddingDisplay.from_estimator(embedder, X_test, thumbnails=X_test, method="pca")
plt.show()

# %%
# Numbers instead of classes
# --------------------------
# Any number can be the colour, such as the amount of ink. Where the colours are sorted, the
# embedding has kept this number.

ink = X_test.mean(axis=(1, 2))
display = EmbeddingDisplay.from_estimator(embedder, X_test, ink)
display.colorbar_.set_label("mean intensity")
plt.show()
