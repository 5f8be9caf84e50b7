"""
Tables with categories, times and gaps
======================================

skrub turns the columns of a DataFrame into numbers, and the embedder learns from these. The table
is synthetic: customers of three kinds, which each column separates only a little.

The result: a view of a row has some of its values from other rows, and the three kinds are far
apart in the embedding, though no column names them.
"""

# %%
# A table
# -------
# Numbers, a category, booleans and dates, and gaps in two columns.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import skrub
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline

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
# Numbers
# -------
# The month of a date, a column for each device, and so on. Missing numbers become the mean.

vectorizer = make_pipeline(skrub.TableVectorizer(), SimpleImputer())
vectorizer.set_output(transform="pandas")
numbers = vectorizer.fit_transform(X)
numbers.head()

# %%
# Views
# -----
# By default, three features in ten are swapped; the columns of a category are one feature.

embedder = ContrastiveEmbedder(max_epochs=15, n_components=16, random_state=0)
pipe = make_pipeline(vectorizer, embedder).fit(X)
first, second = embedder.views(numbers, rows=slice(3), random_state=0)
pd.DataFrame(first, columns=numbers.columns).round(1)

# %%
# The embedding
# -------------

figure, axis = plt.subplots(figsize=(6, 4.2), layout="constrained")
points = PCA(2).fit_transform(pipe.transform(X))
for k, name in enumerate(kinds):
    axis.plot(*points[kind == k].T, ".", label=name)
axis.set(
    xlabel="principal component 1", ylabel="principal component 2", title="embedded customers"
)
axis.legend(frameon=False)
plt.show()
