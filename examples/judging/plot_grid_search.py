"""
Tuning the loss like any other hyperparameter
=============================================

A pipeline of augmentation, embedder and classifier is one estimator. ``GridSearchCV`` reaches
everything in it by name: the loss, its class prior :math:`\\tau^+` and hardness :math:`\\beta`,
the temperature of the similarity, the parameters of the classifier.

The result: nothing about this search is specific to contrastive learning.
"""

# %%
# One pipeline
# ------------
# The steps are Unflatten, augmentations, embedder and classifier. The augmentations draw new views
# while the embedder trains, and do nothing at prediction time.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import Pipeline

from skcontrast import ContrastiveEmbedder
from skcontrast.augmentation import ColorJitter, RandomAffine, Unflatten
from skcontrast.losses import DCL, HCL, InfoNCE

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(
    X, y, train_size=400, test_size=600, stratify=y, random_state=0
)

pipe = Pipeline(
    [
        ("image", Unflatten((1, 8, 8))),
        ("affine", RandomAffine()),
        ("jitter", ColorJitter(brightness=0.6, contrast=0.6)),
        ("embed", ContrastiveEmbedder(max_epochs=20, batch_size=100, random_state=0)),
        ("clf", LogisticRegression(max_iter=2000)),
    ]
)
pipe

# %%
# One search
# ----------
# InfoNCE has no hyperparameters, DCL has the class prior, and HCL has the class prior
# and the hardness. A list of grids gives each loss its own parameters.
# ``embed__similarity__temperature`` sets the temperature of the default similarity, so there is no
# need to pass one first.

temperatures = [0.2, 0.5]
grid = [
    {"embed__loss": [InfoNCE()], "embed__similarity__temperature": temperatures},
    {
        "embed__loss": [DCL()],
        "embed__loss__tau_plus": [0.05, 0.1],
        "embed__similarity__temperature": temperatures,
    },
    {
        "embed__loss": [HCL()],
        "embed__loss__tau_plus": [0.05, 0.1],
        "embed__loss__beta": [0.5, 1.0],
        "embed__similarity__temperature": temperatures,
    },
]
search = GridSearchCV(pipe, grid, cv=2, n_jobs=2)
search.fit(X_train, y_train)

print(f"best: {search.best_params_}")
print(f"cross-validated {search.best_score_:.3f}, held out {search.score(X_test, y_test):.3f}")

raw = cross_val_score(pipe["clf"], X_train, y_train, cv=2).mean()
print(f"the same classifier on raw pixels, cross-validated {raw:.3f}")

# %%
# Results
# -------

table = pd.DataFrame(search.cv_results_)
table["loss"] = [type(p["embed__loss"]).__name__ for p in table["params"]]


def describe(params):
    """Return a short name of a candidate."""
    short = {name.split("__")[-1]: value for name, value in params.items()}
    loss = type(short.pop("loss")).__name__
    return loss + "".join(f", {name} {value}" for name, value in sorted(short.items()))


table["candidate"] = [describe(params) for params in table["params"]]
table = table.sort_values("mean_test_score")
print(table[["candidate", "mean_test_score", "std_test_score"]].to_string(index=False))

colors = {"InfoNCE": "C7", "DCL": "C0", "HCL": "C1"}
figure, axis = plt.subplots(figsize=(7, 4.6), layout="constrained")
positions = np.arange(len(table))
for loss, color in colors.items():
    rows = (table["loss"] == loss).to_numpy()
    axis.errorbar(
        table["mean_test_score"][rows],
        positions[rows],
        xerr=table["std_test_score"][rows],
        fmt="o",
        capsize=3,
        color=color,
        label=loss,
    )
axis.axvline(raw, color="k", linestyle=":", label="raw pixels")
axis.set_yticks(positions, table["candidate"])
axis.set(xlabel="mean accuracy ± standard deviation of two folds", title="Grid search")
axis.legend(loc="upper left", bbox_to_anchor=(0.06, 1))
figure.savefig("grid_search.png", dpi=120)
