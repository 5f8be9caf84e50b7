"""
Look at the views first
=======================

Training teaches an embedder that two views of a sample belong together. The embedding forgets what
the views change, and may rely on what they leave alone. Before a long fit, look at the views: can
you still recognise the sample, and do they vary what should not matter?

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
import pandas as pd
from sklearn.datasets import load_digits, load_wine

from skcontrast import ContrastiveEmbedder
from skcontrast.augmentation import RandomAffine
from skcontrast.plotting import ViewsDisplay

X = load_digits().images

figure, (top, bottom) = plt.subplots(2, 1, figsize=(6.8, 4.8), layout="constrained")
ViewsDisplay.from_estimator(ContrastiveEmbedder(), X, rows=slice(10), ax=top)
top.set_title("default: small shifts and rotations, changes of brightness")
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
# Views of the features of a table are numbers to compare with the originals. The default
# :class:`~skcontrast.augmentation.MarginalCorruption` takes some values from other rows.

wine = load_wine(as_frame=True).data
view, _ = ContrastiveEmbedder().views(wine, random_state=0)
is_other = ~np.isclose(view, wine)
columns = {"original": wine.iloc[0], "view": view[0], "from another row": is_other[0]}
print(pd.DataFrame(columns).round(2))
print(f"From other rows: {is_other.mean():.0%} of the values")
