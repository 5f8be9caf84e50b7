"""The strip of the landing page: digits, two views of each, and the map that is learned from them.

From the root of the checkout, ``python docs/figures/strip.py`` writes docs/_static/strip.png.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patheffects import withStroke
from sklearn.datasets import load_digits
from sklearn.manifold import TSNE

from skcontrast import ContrastiveEmbedder

X, y = load_digits(return_X_y=True)
X = X.reshape(-1, 8, 8)
embedder = ContrastiveEmbedder(random_state=0).fit(X)
plane = TSNE(init="pca", random_state=0).fit_transform(embedder.transform(X))

shown = [0, 1, 2, 3, 4]
first, second = embedder.views(X, rows=shown, random_state=1)
plt.rcParams["font.size"] = 15
figure = plt.figure(figsize=(10, 3.3))
grid = figure.add_gridspec(3, len(shown), left=0.09, right=0.49, bottom=0.03, top=0.97)
images = {"image": X[shown], "view 1": first, "view 2": second}
for i, (name, digits) in enumerate(images.items()):
    for j, digit in enumerate(digits):
        axis = figure.add_subplot(grid[i, j], xticks=[], yticks=[])
        axis.imshow(np.squeeze(digit), cmap="gray_r", vmin=0, vmax=16)
        if j == 0:
            axis.set_ylabel(name, rotation=0, ha="right", va="center")
figure.text(0.56, 0.64, "fit(X)", ha="center", family="monospace")
figure.text(0.56, 0.5, "→", ha="center", va="center", fontsize=40)
figure.text(0.56, 0.36, "no labels", ha="center", va="top")
axis = figure.add_axes((0.63, 0.03, 0.36, 0.94))
axis.scatter(*plane.T, c=y, cmap="tab10", s=9)
axis.set_axis_off()
for digit in range(10):
    center = np.median(plane[y == digit], axis=0)
    text = axis.text(*center, digit, ha="center", va="center", fontsize=18, weight="bold")
    text.set_path_effects([withStroke(linewidth=4, foreground="white")])
figure.savefig("docs/_static/strip.png", dpi=120)
