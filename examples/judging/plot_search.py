"""
A hyperparameter against the score
==================================

A curve shows more than the best value: whether that is at the end of the grid, and whether the
differences are larger than the spread over the folds.

The result: the bands of one standard deviation are far wider than the differences, so this search
decides nothing. After such short fits, the raw pixels are still better on average.
"""

# %%
# One hyperparameter against the score, another as lines
# ------------------------------------------------------
# scikit-learn's display knows nothing of contrastive learning: the embedder is a step of a
# Pipeline, and its hyperparameters have names there.

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import ValidationCurveDisplay, cross_val_score
from sklearn.pipeline import Pipeline

from skcontrast import ContrastiveEmbedder
from skcontrast.losses import DCL, InfoNCE

digits = load_digits()
X, y = digits.images[:300], digits.target[:300]
pipe = Pipeline(
    [
        ("embed", ContrastiveEmbedder(max_epochs=4, random_state=0)),
        ("clf", LogisticRegression(max_iter=2000)),
    ]
)
figure, ax = plt.subplots(figsize=(6.2, 4), layout="constrained")
for loss in (InfoNCE(), DCL(tau_plus=0.1)):
    display = ValidationCurveDisplay.from_estimator(
        pipe.set_params(embed__loss=loss),
        X,
        y,
        param_name="embed__similarity__temperature",
        param_range=[0.05, 0.2, 0.8, 3.2],
        cv=3,
        score_type="test",
        ax=ax,
        line_kw={"marker": "o"},
        fill_between_kw={"alpha": 0.15},
    )
    display.lines_[0].set_label(str(loss))
raw = cross_val_score(LogisticRegression(max_iter=2000), X.reshape(len(X), -1), y, cv=3)
ax.axhline(raw.mean(), color="black", linestyle=":", label="raw pixels")
ax.set(xlabel="temperature", ylabel="accuracy")
ax.legend()
plt.show()
