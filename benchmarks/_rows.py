"""Rows of studies: representations that learn nothing, embedders, and oracles."""

from __future__ import annotations

import importlib.util
import math

import numpy as np
import torch
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler
from torch import nn

from benchmarks._protocol import CONCATENATED, plain
from skcontrast import ContrastiveEmbedder, ViewWhitening
from skcontrast.augmentation import compose
from skcontrast.encoders import Encoder
from skcontrast.estimation import tau_plus_from_labels
from skcontrast.features import GraphProfile, MiniRocket, PatchDictionary, WeisfeilerLehman
from skcontrast.kinds import Series
from skcontrast.losses import (
    BCL,
    DCL,
    HCL,
    PUCL,
    SINCERE,
    Ring,
    SoftRing,
    SoftSupCon,
    SupCon,
    Supervised,
)
from skcontrast.similarity import Cosine

ORACLE = "Supervised (all labels)"
PLAIN = ("raw", "standardised", "PCA", "UMAP")


def oriented_gradients(X):
    """Return histograms of oriented gradients of images (n, channels, height, width)."""
    from skimage.feature import hog

    cells = {"pixels_per_cell": (4, 4), "cells_per_block": (2, 2)}
    return np.stack([hog(x, channel_axis=0, **cells) for x in X]).astype(np.float32)


FEATURES = {
    "HOG": FunctionTransformer(oriented_gradients),
    "patches": PatchDictionary(random_state=0),
    "kernels": MiniRocket(random_state=0),
    "profile": GraphProfile(),
    "colours": WeisfeilerLehman(),
}
# The features of samples by their number of dimensions; None of graphs.
FEATURES_OF = {2: (), 3: ("kernels",), 4: ("HOG", "patches"), None: ("profile", "colours")}
# Which of them the row "whitened" has.
WHITENED_OF = {3: "kernels", 4: "patches", None: "profile"}
# What stands next to the embedding, in which of `CONCATENATED` ways.
JOINED = {2: ("standardised",), 4: ("patches",)}
WAYS = dict(
    zip(
        CONCATENATED,
        (StandardScaler(), Normalizer(), make_pipeline(StandardScaler(), Normalizer())),
        strict=True,
    )
)


def losses(tau_plus):
    """Return the losses without labels, at the prior of the classes."""
    return {
        "DCL": DCL(tau_plus=tau_plus),
        "HCL, β .5": HCL(tau_plus=tau_plus, beta=0.5),
        "PUCL, c .1": PUCL(tau_plus=tau_plus, c=0.1),
        "BCL, α .9, β 0": BCL(alpha=0.9, tau_plus=tau_plus),
        "SoftRing, k 4": SoftRing(sharpness=4.0, tau_plus=tau_plus),
        "Ring(1, τ⁺)": Ring(outer=1.0, inner=tau_plus),
        "SoftSupCon, k 20": SoftSupCon(tau_plus=tau_plus),
    }


ORACLES = {
    ORACLE: Supervised(),
    "SupCon (all labels)": SupCon(),
    "SINCERE (all labels)": SINCERE(),
}
ROWS = [
    *PLAIN,
    *FEATURES,
    "whitened",
    "untrained",
    "autoencoder",
    "default",
    *losses(0.1),
    *ORACLES,
]


def autoencoded(embedder, X, epochs, seed):
    """Train the encoder of an embedder to undo its augmentations, through a linear decoder."""
    encoder, samples = embedder.encoder_.train(), torch.from_numpy(X)
    views = compose(embedder.augmentation_, samples.shape[1:])
    target = encoder[0](samples).flatten(1)
    torch.manual_seed(seed)
    decoder = nn.Linear(encoder(samples[:2]).shape[1], target.shape[1])
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-3)
    generator = torch.Generator().manual_seed(seed)
    for _ in range(epochs):
        for rows in torch.randperm(len(samples), generator=generator).split(128):
            decoded_views = decoder(encoder(views(samples[rows], generator)))
            loss = nn.functional.mse_loss(decoded_views, target[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return embedder


def fits(row, X):
    """Return whether a row can be had for such samples."""
    if row == "UMAP":
        return importlib.util.find_spec("umap") is not None
    if row == "HOG" and importlib.util.find_spec("skimage") is None:
        return False
    n_dims = n_dims_of(X)
    if row == "whitened":
        return n_dims in WHITENED_OF
    in_features = row in FEATURES
    return row in FEATURES_OF[n_dims] if in_features else row != "autoencoder" or n_dims in (2, 4)


def n_dims_of(X):
    """Return the number of dimensions of an array, None of graphs."""
    return X.ndim if isinstance(X, np.ndarray) else None


def learned(name, X, y, args, seed):
    """Return the fitted embedder of a row that is trained once."""
    given = {"random_state": seed, "device": "cpu"}
    if isinstance(X, np.ndarray) and X.ndim == 3:
        given["kind"] = Series()
    if args.epochs:
        given["max_epochs"] = args.epochs
    if args.temperature:
        given["similarity"] = Cosine(args.temperature)
    if name in ("untrained", "autoencoder"):
        embedder = ContrastiveEmbedder(**{**given, "max_epochs": 1, "lr": 1e-12}).fit(X)
        epochs = args.epochs or Encoder().defaults(math.ceil(len(X) / 128))[1]
        return embedder if name == "untrained" else autoencoded(embedder, X, epochs, seed)
    own = {"default": None, **losses(tau_plus_from_labels(y).value), **ORACLES}
    return ContrastiveEmbedder(**given, loss=own[name]).fit(X, y)


def represented(name, X, y, train, test, args, seed):
    """Return the training and the test part as a row has them."""
    if name in FEATURES or name == "whitened":
        features = clone(FEATURES.get(name) or FEATURES[WHITENED_OF[n_dims_of(X)]])
        if name == "whitened":
            features = ViewWhitening(features, random_state=seed)
        features.fit(X[train])
        return features.transform(X[train]), features.transform(X[test])
    if name in PLAIN:
        n_threads = torch.get_num_threads()
        found = plain(name, X, train, test, seed)
        torch.set_num_threads(n_threads)  # UMAP takes all cores, and leaves it so
        return found
    embedder = learned(name, X[train], y[train], args, seed)
    return embedder.transform(X[train]), embedder.transform(X[test])


def concatenated(H, H_test, X, y, train, test, args, seed):
    """Yield an embedding next to features without training, each way of scaling the blocks."""
    n_dims = n_dims_of(X)
    names = JOINED.get(n_dims, FEATURES_OF[n_dims])
    blocks = [(H, H_test)]
    blocks += [represented(name, X, y, train, test, args, seed) for name in names]
    for way, scaler in WAYS.items():
        parts = [(scaler.fit_transform(A), scaler.transform(B)) for A, B in blocks]
        yield way, *(np.hstack(part) for part in zip(*parts, strict=True))
