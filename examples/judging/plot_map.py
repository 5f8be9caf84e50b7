"""
A learned map
=============

t-SNE and UMAP map an embedding to the plane. With the similarity of t-SNE, a network is trained by
contrastive learning to map samples to the plane directly. This is t-SimCNE (Böhm, Berens & Kobak
2023).

The result: the network maps new samples, and its map separates the digits far better than two
principal components. UMAP and t-SNE of the embedding keep more of the neighbours.
"""

# %%
# First the embedding, then the map
# ---------------------------------
# Training directly in two dimensions is hard, so train a default embedder first. Then train its
# encoder further, with a projection head of two outputs. ``output="projection"`` makes
# ``transform`` return these.

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

from skcontrast import ContrastiveEmbedder
from skcontrast.plotting import EmbeddingDisplay
from skcontrast.similarity import Cauchy

digits = load_digits()
X_train, X_test, y_train, y_test = train_test_split(
    digits.images, digits.target, test_size=500, stratify=digits.target, random_state=0
)
embedder = ContrastiveEmbedder(max_epochs=30, random_state=0).fit(X_train)
mapper = ContrastiveEmbedder(
    embedder.encoder_,
    similarity=Cauchy(),
    projection_dim=2,
    output="projection",
    max_epochs=100,
    lr=1e-2,
    random_state=0,
).fit(X_train)

# %%
# The same samples on two maps
# ----------------------------
# The samples are held out. Embeddings with two columns are drawn without a projection. The number
# is the accuracy of the 15 nearest neighbours in the plane.

pca = PCA(2, random_state=0).fit(embedder.transform(X_train))
maps = {
    "principal components": lambda X: pca.transform(embedder.transform(X)),
    "learned map": mapper.transform,
}
figure, axes = plt.subplots(1, 2, figsize=(7, 3.4), layout="constrained")
for ax, (name, to_plane) in zip(axes, maps.items(), strict=True):
    neighbors = KNeighborsClassifier(15).fit(to_plane(X_train), y_train)
    accuracy = neighbors.score(to_plane(X_test), y_test)
    EmbeddingDisplay.from_embeddings(to_plane(X_test), y_test, ax=ax)
    ax.set_title(f"{name}: {accuracy:.0%}")
axes[0].get_legend().remove()
plt.show()

# %%
# Images on the map
# -----------------

EmbeddingDisplay.from_estimator(mapper, X_test, thumbnails=X_test)
plt.show()
