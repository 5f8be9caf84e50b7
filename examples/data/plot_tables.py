"""
Tables with categories, times and gaps
======================================

The embedder takes a DataFrame directly. This one is made up: customers of three kinds, which each
column separates only a little.

The result: a view of a row has some of its values from other rows, each from its own column; and
the three kinds are far apart in the embedding, though no column names them.
"""

# %%
# A table
# -------
# Numbers, a category, booleans and dates, and gaps in two columns.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.decomposition import PCA

from skcontrast import ContrastiveEmbedder

rng = np.random.default_rng(0)
n, kinds = 600, np.array(["student", "family", "company"])
kind = rng.integers(0, 3, n)


def drawn(names, *probabilities):
    """Return a name for each customer, whose probabilities depend on the kind."""
    return [rng.choice(names, p=probabilities[k]) for k in kind]


devices = ["phone", "laptop", "desktop"]
start = np.array(["2023-09-01", "2023-12-01", "2023-03-01"], dtype="datetime64[D]")[kind]
X = pd.DataFrame(
    {
        "visits": rng.poisson(np.array([12, 4, 8])[kind]),
        "spent": rng.lognormal(np.array([2.0, 3.5, 4.5])[kind], 0.8).round(2),
        "device": drawn(devices, [0.7, 0.2, 0.1], [0.5, 0.3, 0.2], [0.1, 0.4, 0.5]),
        "invoice": rng.random(n) < np.array([0.05, 0.2, 0.8])[kind],
        "since": start + rng.integers(0, 60, n),
    }
)
X.loc[rng.random(n) < np.array([0.1, 0.6, 0.3])[kind], "spent"] = None
X.loc[rng.random(n) < 0.1, "device"] = None
X.head()

# %%
# Views
# -----
# By default, three columns in ten are swapped: here two of five.

embedder = ContrastiveEmbedder(max_epochs=15, n_components=32, random_state=0).fit(X)
first, second = embedder.views(X, rows=slice(3), random_state=0)
pd.DataFrame(first, columns=X.columns)

# %%
# The embedding
# -------------

figure, axis = plt.subplots(figsize=(6, 4.2), layout="constrained")
points = PCA(2).fit_transform(embedder.transform(X))
for k, name in enumerate(kinds):
    axis.plot(*points[kind == k].T, ".", label=name)
axis.set(xlabel="first principal component", ylabel="second", title="The embedded customers")
axis.legend(frameon=False)
plt.show()
