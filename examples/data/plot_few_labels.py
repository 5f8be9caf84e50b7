"""
How many labels are enough
==========================

Of 1,347 images of digits for training, a few have labels. The embedder is trained on all of them
without labels. A classifier on top is trained on the labels, with or without pseudo-labels for the
other samples.

The result: with 5 labels per class, a classifier on the embedding is as accurate as one on the
pixels with 20, and pseudo-labels add to it. An untrained network is no better than the pixels.
"""

# %%
# Train without labels, once
# --------------------------
# ``FrozenEstimator`` keeps the embedder unchanged in all that follows. Training is short here, to
# keep the example short.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.semi_supervised import SelfTrainingClassifier

from skcontrast import ContrastiveEmbedder

X, y = load_digits().images, load_digits().target
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
embedder = ContrastiveEmbedder(max_epochs=12, random_state=0).fit(X_train)
untrained = ContrastiveEmbedder(max_epochs=1, lr=1e-12, random_state=0).fit(X_train)


def flatten(images):
    """Return images as vectors of pixels."""
    return images.reshape(len(images), -1)


logistic = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
pixels, embed = FunctionTransformer(flatten), FrozenEstimator(embedder)
models = {
    "pixels": make_pipeline(pixels, logistic),
    "pixels, self-training": make_pipeline(pixels, SelfTrainingClassifier(logistic)),
    "untrained network": make_pipeline(FrozenEstimator(untrained), logistic),
    "embedding": make_pipeline(embed, logistic),
    "embedding, self-training": make_pipeline(embed, SelfTrainingClassifier(logistic)),
}
models["embedding, self-training"]

# %%
# More and more labels
# --------------------
# ``SelfTrainingClassifier`` gets all images, and −1 where the class is unknown; the others get the
# labeled images. Each point is the mean of three draws of the labeled images.

label_counts = (1, 5, 20)
accuracies = {name: np.zeros((len(label_counts), 3)) for name in models}
for k, n_labels in enumerate(label_counts):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        digits = [np.flatnonzero(y_train == digit) for digit in range(10)]
        labeled = np.concatenate([rng.choice(rows, n_labels, replace=False) for rows in digits])
        few = np.full(len(y_train), -1)
        few[labeled] = y_train[labeled]
        for name, model in models.items():
            rows = slice(None) if "self-training" in name else labeled
            accuracies[name][k, seed] = model.fit(X_train[rows], few[rows]).score(X_test, y_test)

print("labels per class         " + "".join(f"{n:8d}" for n in label_counts))
for name, values in accuracies.items():
    print(f"{name:25}" + "".join(f"{mean:8.3f}" for mean in values.mean(axis=1)))

figure, axis = plt.subplots(figsize=(7, 4.6), layout="constrained")
styles = ("C7o-", "C7o--", "C8s-", "C0o-", "C0o--")
for (name, values), style in zip(accuracies.items(), styles, strict=True):
    axis.plot(label_counts, values.mean(axis=1), style, label=name)
axis.set(xscale="log", xlabel="labels per class", ylabel="accuracy on held-out digits")
axis.set_xticks(label_counts, label_counts)
axis.minorticks_off()
axis.legend(frameon=False)
plt.show()
