"""
Any function as an augmentation
===============================

:class:`~skcontrast.augmentation.FunctionAugmentation` calls any function that changes a sample,
with whole batches or with one sample at a time. The embedder's ``random_state`` determines its
random numbers, from the generators of torch, numpy or Python.

The result: six digits, and two views of each below. A smooth random field moves the pixels, so
that the strokes bend and the digits stay legible.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch
from scipy.ndimage import gaussian_filter, map_coordinates
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline

from skcontrast import ContrastiveEmbedder
from skcontrast.augmentation import FunctionAugmentation, RandomAffine

# %%
# SciPy works on numpy arrays, one image at a time, so we pass ``backend="numpy"`` and
# ``per_sample=True``. The image comes with its channel last, its values in [0, 1]. A parameter
# named ``rng`` receives a generator of numpy.


def bend(image, rng, strength):
    height, width, _ = image.shape
    field = gaussian_filter(rng.normal(size=(2, height, width)), sigma=(0, 1.5, 1.5))
    positions = np.indices((height, width)) + strength * field / field.std()
    return map_coordinates(image[..., 0], positions, order=1)[..., None]


elastic = FunctionAugmentation(
    bend, per_sample=True, backend="numpy", kind="images", kw_args={"strength": 0.5}
)

# %%
# Look at the views before a long fit.

X = load_digits().images[:, None]
digits = torch.as_tensor(X[:6] / 16, dtype=torch.float32)
generator = torch.Generator().manual_seed(0)
rows = [digits, *(elastic.augment(digits, generator) for _ in range(2))]

figure, axes = plt.subplots(3, 6, figsize=(6, 3.2))
for drawn, line in zip(rows, axes, strict=True):
    for image, ax in zip(drawn, line, strict=True):
        ax.imshow(image[0], cmap="gray_r", vmin=0, vmax=1)
        ax.set(xticks=[], yticks=[])
for ax, name in zip(axes[:, 0], ("original", "view 1", "view 2"), strict=True):
    ax.set_ylabel(name)
figure.tight_layout()
plt.show()

# %%
# Like any augmentation, it is a step of a Pipeline or is passed as ``augmentation=``, before or
# after those of the package. The same ``random_state`` gives the same embedding.

pipe = make_pipeline(elastic, RandomAffine(), ContrastiveEmbedder(max_epochs=2, random_state=0))
first, second = (clone(pipe).fit_transform(X[:300]) for _ in range(2))
print(f"embedding of shape {first.shape}, twice the same: {np.array_equal(first, second)}")

# %%
# A search reaches the arguments of the function: ``functionaugmentation__kw_args`` may be
# ``[{"strength": 0.3}, {"strength": 0.5}]``.
