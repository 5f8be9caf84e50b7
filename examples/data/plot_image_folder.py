"""
A folder of image files: similar images without labels
======================================================

The folder has 800 PNG files of handwritten digits, in all sizes, anywhere on the paper and in
different shades of grey. An embedder learns from the files, without labels.

The result: more than half of the nearest neighbours in the embedding show the same digit. With a
few seconds of training on 800 images, that is about as many as by pixels (62 % and 60 %, mean of
three seeds). The example shows the steps from files to neighbours.
"""

# %%
# The folder
# ----------
# We write the digits of scikit-learn to a temporary folder: enlarged, somewhere in an image of any
# size, a subfolder for each digit. The subfolders serve to judge the result only.

from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import cosine_similarity

from skcontrast import ContrastiveEmbedder
from skcontrast.augmentation import ColorJitter, RandomAffine
from skcontrast.datasets import ImageFolder

home = TemporaryDirectory()
rng = np.random.default_rng(0)
for k, (digit, label) in enumerate(zip(*load_digits(return_X_y=True), strict=True)):
    if k == 800:
        break
    ink = Image.fromarray((digit.reshape(8, 8) * 255 / 16).astype(np.uint8))
    side = int(rng.integers(24, 72))
    ink = ink.resize((side, side), Image.Resampling.BICUBIC)
    width, height = side + rng.integers(0, 7 * side // 10 + 1, size=2)
    paper, pen = int(rng.integers(160, 256)), int(rng.integers(0, 120))
    image = Image.new("L", (int(width), int(height)), paper)
    corner = int(rng.integers(width - side + 1)), int(rng.integers(height - side + 1))
    image.paste(pen, (*corner, corner[0] + side, corner[1] + side), mask=ink)
    folder = Path(home.name, str(label))
    folder.mkdir(exist_ok=True)
    image.save(folder / f"{k:03}.png")

# %%
# The embedding
# -------------
# An `ImageFolder` reduces all images to 16×16 pixels when they are read, and is passed as X. Two
# views of an image differ in position, size, brightness and contrast, which do not matter here.

images = ImageFolder(home.name, size=16, mode="L")
print(images)
augmentation = [
    RandomAffine(rotation=10, translate=0.25, scale=(0.7, 1.5), shear=10),
    ColorJitter(brightness=0.4, contrast=0.4),
]
embedder = ContrastiveEmbedder(
    augmentation=augmentation, batch_size=32, max_epochs=11, random_state=0
)
H = embedder.fit_transform(images)

# %%
# Neighbours
# ----------
# For each image, the five images with the most similar embedding, or with the most similar pixels.
# The digits were never used; how often they agree shows how good the neighbours are.

X = images.load()
rows = np.arange(len(images))
similar = {
    "embedding": cosine_similarity(H),
    "pixels": cosine_similarity(X.reshape(len(X), -1) - X.mean(axis=(1, 2, 3))[:, None]),
}
neighbours = {}
for name, similarity in similar.items():
    np.fill_diagonal(similarity, -np.inf)
    neighbours[name] = np.argsort(-similarity, axis=1)[:, :5]
    agreement = np.mean(images.target[neighbours[name]] == images.target[:, None])
    print(f"{name:>9}: {agreement:.0%} of the five nearest neighbours show the same digit")

# %%
# Six images, and their five neighbours in the embedding; a neighbour in a red frame shows a
# different digit. The files are shown in their original form, not as the network sees them.

queries = rng.choice(len(images), 6, replace=False)
figure, axes = plt.subplots(6, 6, figsize=(6, 6), layout="constrained")
for row_axes, query in zip(axes, queries, strict=True):
    for axis, row in zip(row_axes, [query, *neighbours["embedding"][query]], strict=True):
        with Image.open(Path(home.name, images.files[row])) as image:
            axis.imshow(image, cmap="gray", vmin=0, vmax=255)
        is_same = images.target[row] == images.target[query]
        axis.set(xticks=[], yticks=[])
        axis.spines[:].set(color="black" if is_same else "red", linewidth=1 if is_same else 3)
for rank, axis in enumerate(axes[0]):
    axis.set_title(f"neighbour {rank}" if rank else "query", fontsize="small")
home.cleanup()
