"""Fashion-MNIST: unlabeled images in, an embedding out, probed with few and with all labels.

    python benchmarks/fashion_mnist.py                          # fetches from OpenML once
    python benchmarks/fashion_mnist.py --data fashion_mnist.npz # or reads a local file

The file holds ``X_train``, ``y_train``, ``X_test``, ``y_test`` (images uint8, 28×28).
"""

from __future__ import annotations

import argparse
from time import perf_counter

import numpy as np
from _probe import few_label_probe, linear_probe
from sklearn.datasets import fetch_openml
from sklearn.neighbors import KNeighborsClassifier

from skcontrast import ContrastiveEmbedder
from skcontrast.augmentation import ColorJitter, RandomAffine, RandomFlip, RandomResizedCrop
from skcontrast.losses import DCL, HCL, InfoNCE

LOSSES = {"InfoNCE": InfoNCE(), "DCL": DCL(), "HCL": HCL()}


def load(path):
    """Return X_train, y_train, X_test, y_test."""
    if path is not None:
        with np.load(path) as file:
            return [file[name] for name in ("X_train", "y_train", "X_test", "y_test")]
    X, y = fetch_openml("Fashion-MNIST", version=1, return_X_y=True, as_frame=False)
    X, y = X.astype(np.uint8).reshape(-1, 28, 28), y.astype(int)
    return X[:60000], y[:60000], X[60000:], y[60000:]


def report(name, train, y_train, test, y_test, seconds=0.0):
    """Print accuracies of probes on one representation."""
    few = few_label_probe(train, y_train, test, y_test, 5)
    full = linear_probe(train, y_train, test, y_test)
    knn = KNeighborsClassifier(20, metric="cosine").fit(train, y_train).score(test, y_test)
    print(
        f"{name:12s} 5 labels/class {few.mean():.3f} ± {few.std():.3f}   all labels {full:.3f}   "
        f"20-NN {knn:.3f}   ({seconds:.0f} s)",
        flush=True,
    )


def main():
    """Train and print one row per representation."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="npz file; fetched from OpenML if absent")
    parser.add_argument("--n-train", type=int, default=10000, help="unlabeled images")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--losses", nargs="*", default=list(LOSSES), choices=list(LOSSES))
    parser.add_argument("--device", default="auto")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    X_train, y_train, X_test, y_test = load(args.data)
    X_train, y_train = X_train[: args.n_train], y_train[: args.n_train]
    report("raw pixels", X_train.reshape(len(X_train), -1) / 255.0, y_train,
           X_test.reshape(len(X_test), -1) / 255.0, y_test)  # fmt: skip
    augmentation = [
        RandomResizedCrop(scale=(0.4, 1.0)),
        RandomAffine(rotation=10, translate=0.05),
        RandomFlip(),
        ColorJitter(brightness=0.4, contrast=0.4),
    ]
    for name in args.losses:
        embedder = ContrastiveEmbedder(
            augmentation=augmentation,
            loss=LOSSES[name],
            max_epochs=args.epochs,
            device=args.device,
            random_state=args.seed,
            verbose=1,
        )
        start = perf_counter()
        H_train = embedder.fit_transform(X_train)
        seconds = perf_counter() - start
        report(name, H_train, y_train, embedder.transform(X_test), y_test, seconds)


if __name__ == "__main__":
    main()
