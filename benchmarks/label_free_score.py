"""Which score without labels ranks embedders as few labels and neighbours do.

    python benchmarks/label_free_score.py                                   # digits
    python benchmarks/label_free_score.py --set fashion --data fashion_mnist.npz

A setting is a loss, a temperature, views and a number of epochs, besides an untrained encoder and
one that training has collapsed. The learning rate is constant, so that one run gives a setting for
each number of epochs. Every score
sees held-out samples without their classes. The table has Spearman's rank correlation over the
settings of each score with the accuracy of 5 labels a class (20 draws) and of 20 neighbours.

``--cache FOLDER`` keeps the embeddings, so that a new score needs no new fits.
"""

from __future__ import annotations

import numpy as np
import torch
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from skcontrast import ContrastiveEmbedder
from skcontrast.augmentation import (
    ColorJitter,
    GaussianBlur,
    RandomAffine,
    RandomFlip,
    RandomResizedCrop,
    compose,
)
from skcontrast.losses import BCL, DCL, HCL, InfoNCE, Ring
from skcontrast.similarity import Cosine

JITTER = ColorJitter(0.6, 0.6, 0, 0)
CROP = RandomResizedCrop(scale=(0.5, 1.0))
VIEWS = {
    "none": [],
    "jitter": [JITTER],
    "weak affine": [RandomAffine(rotation=5, translate=0.03)],
    "affine": [RandomAffine()],
    "affine, jitter": [RandomAffine(), JITTER],
    "strong affine, jitter": [RandomAffine(rotation=40, translate=0.25, shear=20), JITTER],
    "crops": [CROP],
    "small crops, flips": [RandomResizedCrop(scale=(0.1, 1.0)), RandomFlip()],
    "crops, jitter, blur": [CROP, JITTER, GaussianBlur(p=0.3)],
}
# Views of one recipe for all settings.
COMMON = {"digits": "affine, jitter", "fashion": "crops, jitter, blur"}
LOSSES = {
    "InfoNCE": InfoNCE(),
    "DCL": DCL(tau_plus=0.1),
    "HCL": HCL(tau_plus=0.1, beta=1.0),
    "BCL": BCL(alpha=0.7, tau_plus=0.1),
    "Ring": Ring(outer=1.0, inner=0.1),
}
TEMPERATURES = (0.1, 0.2, 0.5, 1.0)
EPOCHS = {"digits": (2, 8, 40), "fashion": (1, 4, 12)}
N_SCORED = 512


def load(args, split):
    """Return X_train, y_train, X_test, y_test of a split."""
    if args.set == "digits":
        X, y = load_digits(return_X_y=True)
        X = (X.reshape(-1, 1, 8, 8) * 255 / 16).astype(np.uint8)
        parts = train_test_split(X, y, test_size=0.4, stratify=y, random_state=split)
        return parts[0], parts[2], parts[1], parts[3]
    with np.load(args.data) as file:
        X_train, y_train, X_test, y_test = (
            file[name] for name in ("X_train", "y_train", "X_test", "y_test")
        )
    rng = np.random.default_rng(split)
    rows = rng.choice(len(X_train), args.n_train, replace=False)
    held_out = rng.choice(len(X_test), 2 * N_SCORED, replace=False)
    X_train, X_test = X_train[rows, None], X_test[held_out, None]
    return X_train, y_train[rows], X_test, y_test[held_out]


def draw_runs(args, seed):
    """Return runs by name: parameters of an embedder, and after which epochs it is a setting.

    Losses, temperatures and views are shuffled and dealt, so that all of them occur.
    """
    rng, n = np.random.default_rng(seed), args.n_runs
    common = VIEWS[COMMON[args.set]]
    runs = {
        "untrained": ({"augmentation": common, "lr": 1e-12}, (1,)),
        "collapsed": ({"augmentation": common, "lr": 1.0, "optimizer": "sgd"}, (3,)),
    }
    dealt = [
        np.resize(rng.permutation(list(options)), n) for options in (VIEWS, LOSSES, TEMPERATURES)
    ]
    for views, loss, temperature in zip(*dealt, strict=True):
        runs[f"{loss}, t = {temperature}, {views}"] = (
            {
                "loss": LOSSES[str(loss)],
                "similarity": Cosine(float(temperature)),
                "augmentation": VIEWS[str(views)],
            },
            EPOCHS[args.set],
        )
    return runs


@torch.inference_mode()
def encoded(embedder, X):
    """Return representations and projections of images in [0, 1], shape (n, width) each."""
    h = torch.cat([embedder.encoder_(part) for part in X.split(256)])
    return h.numpy(), embedder.projector_(h).numpy()


def drawn(chain, X):
    """Return two views of images in [0, 1] by a chain of augmentations."""
    generator = torch.Generator().manual_seed(0)
    draw = compose([clone(step).fit(X.numpy()) for step in chain], X.shape[1:])
    return [draw(X, generator) for _ in range(2)]


def settings(args, seed, data):
    """Fit, and yield the name of each setting with all that scores and probes look at."""
    for name, (parameters, epochs) in draw_runs(args, seed).items():
        embedder = ContrastiveEmbedder(random_state=seed, device="cpu", **parameters)
        for epoch in range(1, max(epochs) + 1):
            embedder.partial_fit(data[0])
            if epoch in epochs:
                yield f"{name}, {epoch} epochs", features(args, embedder, data)


def features(args, embedder, data):
    """Return arrays by name: ``train`` and ``test`` are representations.

    ``own``, ``common`` and ``affine`` are the representations (h) and projections (z) of two views
    each of held-out samples, drawn as in training and by two recipes for all settings.
    """
    X_train, _, X_test, _ = data
    scored = torch.from_numpy(X_test[:N_SCORED] / np.float32(255))
    found = {"train": embedder.transform(X_train), "test": embedder.transform(X_test)}
    found["h"], found["z"] = encoded(embedder, scored)
    chains = {"own": embedder.augmentation, "common": VIEWS[COMMON[args.set]]}
    chains["affine"] = VIEWS["affine"]
    for name, chain in chains.items():
        pairs = [encoded(embedder, view) for view in drawn(chain, scored)]
        for part, letter in enumerate("hz"):
            found[f"{name} {letter}"] = np.stack([pair[part] for pair in pairs])
    found["score"] = embedder.score(X_test[:N_SCORED])
    return found
