"""
Evaluate held-out samples during training
=========================================

The loss of a contrastive fit nearly always falls. ``Evaluation`` measures after every epoch
whether the representation of held-out samples improves.

The result: most of the decrease of the loss is in the first five epochs, while the accuracy of
held-out samples and the score without labels rise until about the thirteenth.
"""

# %%
# Two scores per epoch
# --------------------
# A scorer is a function of a fitted embedder, X and y. This one lets the five nearest neighbours
# of each held-out sample, among the others, vote for its class. The second score, the embedder's
# own, needs no labels.

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from skcontrast import ContrastiveEmbedder
from skcontrast.augmentation import RandomAffine
from skcontrast.callbacks import Evaluation
from skcontrast.metrics import knn_accuracy, make_embedding_scorer

X, y = load_digits(return_X_y=True)
X = X.reshape(-1, 1, 8, 8)
X_train, X_test, _, y_test = train_test_split(
    X, y, train_size=600, test_size=400, stratify=y, random_state=0
)
scorer = make_embedding_scorer(knn_accuracy, n_neighbors=5)
evaluation = Evaluation(scorer, X_test, y_test, restore_best=True)
embedder = ContrastiveEmbedder(
    augmentation=RandomAffine(),
    max_epochs=16,
    callbacks=[evaluation, Evaluation(None, X_test)],
    random_state=0,
).fit(X_train)

# %%
# The scores are columns of the history, next to the loss.

history = pd.DataFrame(list(embedder.history_))
history[["epoch", "train_loss", "knn_accuracy", "score"]].round(3).tail(3)

# %%
# The curves
# ----------

fig, axes = plt.subplots(1, 3, figsize=(7, 2.6), layout="constrained")
labels = {
    "train_loss": "training loss",
    "knn_accuracy": "held-out accuracy (kNN)",
    "score": "held-out score, no labels",
}
for ax, (column, label) in zip(axes, labels.items(), strict=True):
    ax.plot(history["epoch"], history[column])
    ax.set(xlabel="epoch", title=label)
    ax.title.set_fontsize(9)
axes[1].axvline(evaluation.best_epoch_, color="0.6", linestyle=":")
plt.show()

# %%
# The dotted line is the epoch with the highest accuracy. ``restore_best=True`` has given its
# weights to the embedder, so that its accuracy is the highest of the curve.

print(f"best in the history: {evaluation.best_score_:.3f}")
print(f"of the embedder now: {scorer(embedder, X_test, y_test):.3f}")
