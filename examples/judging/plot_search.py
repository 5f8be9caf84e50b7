"""
The results of a search
=======================

``GridSearchCV`` returns a table. A picture says more: whether the best value is at the end of the
grid, and whether the differences are larger than the spread over the folds.

The result: each point is a candidate, bars are one standard deviation over the folds, and
the axis of the temperature is logarithmic, because its values are. The bars are far longer than
the differences, so this search decides nothing. After fits as short as these, the raw pixels are
still better on average.
"""

# %%
# One hyperparameter against the score, another as lines
# ------------------------------------------------------
# The search knows nothing of contrastive learning: the embedder is a step of a Pipeline, and the
# end of a name is enough for the display.

import matplotlib.pyplot as plt
from scipy.stats import loguniform
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import Pipeline

from skcontrast import ContrastiveEmbedder
from skcontrast.losses import DCL, InfoNCE
from skcontrast.plotting import SearchDisplay

digits = load_digits()
X, y = digits.images[:300], digits.target[:300]
pipe = Pipeline(
    [
        ("embed", ContrastiveEmbedder(max_epochs=4, random_state=0)),
        ("clf", LogisticRegression(max_iter=2000)),
    ]
)
grid = {
    "embed__similarity__temperature": [0.05, 0.2, 0.8, 3.2],
    "embed__loss": [InfoNCE(), DCL(tau_plus=0.1)],
}
search = GridSearchCV(pipe, grid, cv=3).fit(X, y)
print(search.best_params_)

figure, ax = plt.subplots(figsize=(6.2, 4), layout="constrained")
SearchDisplay.from_estimator(search, "temperature", ax=ax)
raw = GridSearchCV(LogisticRegression(max_iter=2000), {}, cv=3).fit(X.reshape(len(X), -1), y)
ax.axhline(raw.best_score_, color="black", linestyle=":", label="raw pixels")
ax.legend(title="loss")
plt.show()

# %%
# A random search
# ---------------
# Each candidate has its own learning rate, drawn on a logarithmic scale. There are only a few
# batch sizes, so each gets a line.

drawn = {"embed__lr": loguniform(1e-4, 1e-1), "embed__batch_size": [32, 64, 128]}
random_search = RandomizedSearchCV(pipe, drawn, n_iter=5, cv=3, random_state=0).fit(X, y)
SearchDisplay.from_estimator(random_search, "lr")
plt.show()
