"""
Training curves
===============

The history of a fitted embedder has a row for each epoch: the loss, the learning rate, the value
of every schedule and of every estimated hyperparameter, and the metrics of callbacks.

The result: with a constant temperature, the loss falls fast at first and flattens as the learning
rate goes to 0; with a falling temperature, it falls to the end. Losses of different temperatures
cannot be compared: the lower curve is not the better fit.
"""

# %%
# One fit
# -------
# pandas draws the columns of the history: τ⁺ grows in steps, the temperature falls.

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

from skcontrast import ContrastiveEmbedder
from skcontrast.losses import DCL
from skcontrast.schedules import Linear
from skcontrast.similarity import Cosine

digits = load_digits()
X, y = digits.images[:500], digits.target[:500]

scheduled = ContrastiveEmbedder(
    loss=DCL(tau_plus=Linear(0.0, 0.1, n_steps=4)),
    similarity=Cosine(temperature=Linear(1.0, 0.3)),
    max_epochs=15,
    random_state=0,
).fit(X)
columns = ["train_loss", "loss__tau_plus", "similarity__temperature", "lr"]
history = pd.DataFrame(scheduled.history_)
history.plot("epoch", columns, subplots=True, figsize=(6, 7))
plt.show()

# %%
# Several fits
# ------------
# The losses of three temperatures, a column each.

fits = {
    f"t = {t}": ContrastiveEmbedder(
        similarity=Cosine(temperature=t), max_epochs=15, random_state=0
    ).fit(X)
    for t in (0.2, 0.5, 1.0)
}
losses = {name: embedder.history_[:, "train_loss"] for name, embedder in fits.items()}
figure, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
pd.DataFrame(losses, index=history["epoch"]).plot(ax=ax, ylabel="training loss")
plt.show()

# %%
# The loss is not a measure of the embedding. A classifier on it is:

for name, embedder in fits.items():
    score = cross_val_score(LogisticRegression(max_iter=2000), embedder.transform(X), y, cv=5)
    loss = embedder.history_[-1, "train_loss"]
    print(f"{name}: last loss {loss:.2f}, accuracy {score.mean():.3f}")
