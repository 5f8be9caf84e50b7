"""
Look at the views first
=======================

Training teaches an embedder that two views of a sample belong together. Whatever the views change,
the embedding forgets; whatever they leave alone, it may rely on. So before a long fit, look at the
views: can you still tell which sample each of them shows, and do they hide what should not matter?

The result: a quarter turn makes some digits illegible, and the default does not. In the
table, three features in ten come from other rows.
"""

# %%
# Images
# ------
# The embedder need not be fitted: its views are those that ``fit`` would draw from this X. The top
# row shows the originals, the others two views of each.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits, load_wine

from skcontrast import ContrastiveEmbedder
from skcontrast.augmentation import RandomAffine
from skcontrast.plotting import ViewsDisplay

X = load_digits().images

figure, (top, bottom) = plt.subplots(2, 1, figsize=(6.8, 4.8), layout="constrained")
ViewsDisplay.from_estimator(ContrastiveEmbedder(), X, rows=slice(10), ax=top)
top.set_title("default: small shifts and turns, changes of brightness")
turned = ContrastiveEmbedder(augmentation=RandomAffine(rotation=90))
ViewsDisplay.from_estimator(turned, X, rows=slice(10), ax=bottom)
bottom.set_title("rotations by up to 90 degrees: 6 or 9?")
plt.show()

# %%
# The views as arrays, in the units of X, for your own plots:

first, second = ContrastiveEmbedder().views(X, rows=slice(10), random_state=0)
print(first.shape, first.dtype, f"from {first.min():.0f} to {first.max():.0f}")

# %%
# Vectors
# -------
# Features of a table have different units, and are shown in standard deviations from their means.
# Bars are the original, markers are the views. Where a marker is not at the end of its bar, the
# default :class:`~skcontrast.augmentation.MarginalCorruption` has taken the value from another
# row.

wine = load_wine(as_frame=True)
rows = np.flatnonzero(np.diff(wine.target, prepend=-1))  # the first wine of each class
ViewsDisplay.from_estimator(ContrastiveEmbedder(), wine.data, rows=rows)
plt.show()
