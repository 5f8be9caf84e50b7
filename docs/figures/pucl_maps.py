"""Maps of the digits by two losses, as in Fig. 2 of PUCL's paper."""

import matplotlib.pyplot as plt
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.manifold import TSNE
from sklearn.metrics import normalized_mutual_info_score

from skcontrast import ContrastiveEmbedder
from skcontrast.losses import PUCL, InfoNCE

X, y = load_digits(return_X_y=True)
X = X.reshape(-1, 8, 8)
figure, axes = plt.subplots(1, 2, figsize=(7, 3.4), layout="constrained")
for axis, loss in zip(axes, (InfoNCE(), PUCL(tau_plus=0.12, c=0.1)), strict=True):
    embedder = ContrastiveEmbedder(loss=loss, max_epochs=24, random_state=0).fit(X[:1300])
    H = embedder.transform(X[1300:])
    clusters = KMeans(10, n_init=3, random_state=0).fit_predict(H)
    agreement = normalized_mutual_info_score(y[1300:], clusters)
    plane = TSNE(random_state=0).fit_transform(H)
    axis.scatter(*plane.T, c=y[1300:], cmap="tab10", s=8)
    axis.set_title(f"{type(loss).__name__}, NMI {agreement:.2f}", fontsize=10)
    axis.set(xticks=[], yticks=[])
