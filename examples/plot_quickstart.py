"""
Quickstart: five labels per class are enough
============================================

Labels are expensive, images are not. Here, 1,347 handwritten digits without labels teach a small
network what an image of a digit is: it learns to recognise that two distorted copies of one image
belong together. After that, a linear classifier needs only a handful of labels.

The result: with 5 labels per class, the embedding beats the raw pixels by a wide
margin on digits that neither the embedder nor the classifier has seen.
"""

# %%
# The data
# --------
# The digits that come with scikit-learn have 8×8 pixels and are stored as vectors of 64 numbers. A
# quarter of them is held out. The embedder does not see the labels of the training set.

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.manifold import TSNE
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skcontrast import ContrastiveEmbedder
from skcontrast.augmentation import Unflatten

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(
    X, y, test_size=0.25, stratify=y, random_state=0
)

# %%
# The embedding
# -------------
# One choice matters: what counts as two views of the same thing. A slightly rotated, shifted and
# sheared copy of a digit, brighter or darker, is still the same digit. Such views are the default
# for small grey images; all other parameters have their defaults too.

start = perf_counter()
embed = make_pipeline(Unflatten((1, 8, 8)), ContrastiveEmbedder(random_state=0))
H_train = embed.fit_transform(X_train)
H_test = embed.transform(X_test)
print(f"trained on {len(X_train)} images without labels in {perf_counter() - start:.0f} s")
print(f"each image became a vector of {H_train.shape[1]} numbers")

# %%
# Few labels
# ----------
# Now we buy labels: 1, 5 or 20 per class, drawn ten times. The same classifier gets the raw
# pixels or the embedding.


def accuracy_with_few_labels(train, test, n_labels, n_draws=10):
    """Return the test accuracies of a linear classifier for random draws of labeled samples."""
    accuracies = []
    for seed in range(n_draws):
        rng = np.random.default_rng(seed)
        labeled = np.concatenate(
            [rng.choice(np.flatnonzero(y_train == k), n_labels, replace=False) for k in range(10)]
        )
        classifier = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
        classifier.fit(train[labeled], y_train[labeled])
        accuracies.append(classifier.score(test, y_test))
    return np.array(accuracies)


results = {}
print("labels per class   raw pixels        embedding")
for n_labels in (1, 5, 20):
    raw = accuracy_with_few_labels(X_train, X_test, n_labels)
    embedded = accuracy_with_few_labels(H_train, H_test, n_labels)
    results[n_labels] = raw, embedded
    print(
        f"{n_labels:16d}   {raw.mean():.3f} ± {raw.std():.3f}     "
        f"{embedded.mean():.3f} ± {embedded.std():.3f}"
    )

# %%
# A look at the embedding
# -----------------------
# t-SNE draws the held-out digits in the plane, coloured by the labels that the embedder never saw:
# from the raw pixels on the left, from the embedding on the right. Below is the accuracy for each
# number of labels.

figure, axes = plt.subplot_mosaic(
    [["raw pixels", "embedding"], ["accuracy", "accuracy"]],
    figsize=(7, 6.4),
    height_ratios=[1.3, 1],
    layout="constrained",
)
for title, data in (("raw pixels", X_test), ("embedding", H_test)):
    plane = TSNE(random_state=0, init="pca").fit_transform(data)
    points = axes[title].scatter(*plane.T, c=y_test, cmap="tab10", vmin=-0.5, vmax=9.5, s=10)
    axes[title].set(title=f"held-out digits, {title}", xticks=[], yticks=[])
figure.colorbar(points, ax=axes["embedding"], ticks=range(10), label="digit")
curves = axes["accuracy"]
for k, label in enumerate(("raw pixels", "embedding")):
    means = [pair[k].mean() for pair in results.values()]
    stds = [pair[k].std() for pair in results.values()]
    curves.errorbar(list(results), means, stds, marker="o", capsize=3, label=label)
curves.set(xscale="log", xlabel="labels per class", ylabel="accuracy on held-out digits")
curves.set_xticks(list(results), [str(n) for n in results])
curves.minorticks_off()
curves.legend()
figure.savefig("quickstart.png", dpi=120)
print("saved quickstart.png")
