"""Maps of the digits by two losses, as in Fig. 2 of PUCL's paper.

From the root of the checkout, where umap-learn is installed,
``python docs/figures/pucl_maps.py`` writes docs/_static/pucl_maps.png.
"""

import matplotlib.pyplot as plt
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.manifold import TSNE
from sklearn.metrics import normalized_mutual_info_score
from umap import UMAP

from skcontrast import ContrastiveEmbedder
from skcontrast.losses import PUCL, InfoNCE

X, y = load_digits(return_X_y=True)
X, test = X.reshape(-1, 8, 8), y[1300:]
figure, axes = plt.subplots(2, 2, figsize=(7, 6.4), layout="constrained")
for column, loss in zip(axes.T, (InfoNCE(), PUCL(tau_plus=0.12, c=0.1)), strict=True):
    embedder = ContrastiveEmbedder(loss=loss, max_epochs=24, random_state=0).fit(X[:1300])
    H = embedder.transform(X[1300:])
    clusters = KMeans(10, n_init=3, random_state=0).fit_predict(H)
    agreement = normalized_mutual_info_score(test, clusters)
    for axis, reducer in zip(column, (TSNE(random_state=0), UMAP(random_state=0)), strict=True):
        axis.scatter(*reducer.fit_transform(H).T, c=test, cmap="tab10", s=8)
        axis.set(xticks=[], yticks=[])
    column[0].set_title(f"{type(loss).__name__}, NMI {agreement:.2f}", fontsize=10)
for axis, name in zip(axes[:, 0], ("t-SNE", "UMAP"), strict=True):
    axis.set_ylabel(name)
figure.savefig("docs/_static/pucl_maps.png", dpi=100)
