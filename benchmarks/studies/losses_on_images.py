"""Every loss on Fashion-MNIST: unlabeled images in, an embedding out, probed with labels.

    python -m benchmarks.studies.losses_on_images

Beside the losses stand raw pixels and the encoder before training. All share the encoder, the
views, the number of epochs and the temperature; accuracies are on the 10,000 test images, mean and
standard deviation over the seeds (n in the denominator). Rows with y use labels while training.
"""

from __future__ import annotations

from time import perf_counter

import numpy as np

from benchmarks._image_sets import load_images
from benchmarks._results import Table, make_parser, spread
from skcontrast import ContrastiveEmbedder
from skcontrast.augmentation import ColorJitter, RandomAffine, RandomFlip, RandomResizedCrop
from skcontrast.encoders import ConvNet
from skcontrast.losses import (
    BCL,
    DCL,
    HCL,
    PUCL,
    InfoNCE,
    NonparametricBCL,
    PositiveDebiased,
    Ring,
    SupCon,
    Supervised,
)
from skcontrast.metrics import few_label_accuracy, knn_accuracy, linear_probe

PROBES = ("5 labels per class", "linear, all labels", "20-NN")
AUTO = BCL(alpha="auto", tau_plus="auto")
# row: (loss, whether fit gets y)
ROWS = {
    "InfoNCE": (InfoNCE(), False),
    "DCL": (DCL(tau_plus=0.1), False),
    "HCL": (HCL(tau_plus=0.1, beta=1.0), False),
    "PUCL": (PUCL(tau_plus=0.1, c=0.1), False),
    "Ring": (Ring(outer=0.5, inner=0.1), False),
    "BCL": (BCL(alpha=0.7, tau_plus=0.1), False),
    "BCL-hard": (BCL(alpha=0.7, tau_plus=0.1, beta=1.0), False),
    "BCL-printed": (BCL(alpha=0.7, tau_plus=0.1, form="printed"), False),
    "BCL-auto": (AUTO, False),
    "NonparametricBCL": (NonparametricBCL(alpha=0.7, beta=0.7, tau_plus=0.1), False),
    "PositiveDebiased": (PositiveDebiased(tau_plus=0.1), False),
    "PositiveDebiased-DCL": (PositiveDebiased(tau_plus=0.1, negatives=DCL(0.1)), False),
    "BCL-auto-y": (AUTO, True),
    "Supervised-y": (Supervised(), True),
    "SupCon-y": (SupCon(), True),
}


def make_embedder(loss, args, seed, *, trains=True):
    """Return the embedder of this comparison.

    One that does not train sees one epoch at a learning rate of nothing: batch normalisation gets
    its statistics, weights stay.
    """
    return ContrastiveEmbedder(
        encoder=ConvNet(widths=tuple(args.widths)),
        augmentation=[
            RandomResizedCrop(scale=(0.4, 1.0)),
            RandomAffine(rotation=10, translate=0.05),
            RandomFlip(),
            ColorJitter(brightness=0.4, contrast=0.4),
        ],
        loss=loss,
        max_epochs=args.epochs if trains else 1,
        lr=args.lr if trains else 1e-12,
        device=args.device,
        random_state=seed,
    )


def accuracies(train, y_train, test, y_test):
    """Return the accuracy of a few-label probe, a linear probe and 20 nearest neighbours."""
    data = train, y_train, test, y_test
    few = few_label_accuracy(*data, n_labels=5, n_draws=3).mean()
    return few, linear_probe(*data), knn_accuracy(*data)


def row(name, scores, seconds=None):
    """Return a row of the table: mean and standard deviation over the seeds."""
    figures = [spread(of) if len(of) > 1 else of[0] for of in zip(*scores, strict=True)]
    return {"loss": name, **dict(zip(PROBES, figures, strict=True)), "training, s": seconds}


def embedded(embedder, data, y):
    """Return probes of a new embedding, and the seconds it took to train."""
    X_train, y_train, X_test, y_test = data
    start = perf_counter()
    embedder.fit(X_train, y)
    seconds = perf_counter() - start
    H_train, H_test = embedder.transform(X_train), embedder.transform(X_test)
    return accuracies(H_train, y_train, H_test, y_test), seconds


def main():
    """Train and print one row per loss."""
    parser = make_parser(__doc__)
    parser.add_argument("--n-train", type=int, default=10000, help="unlabeled images")
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--widths", type=int, nargs="+", default=[16, 32, 64])
    parser.add_argument("--rows", nargs="*", default=list(ROWS), choices=list(ROWS))
    parser.add_argument("--device", default="auto")
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    X_train, y_train, X_test, y_test = load_images("Fashion-MNIST")
    X_train, y_train = X_train[: args.n_train], y_train[: args.n_train]
    data = X_train, y_train, X_test, y_test
    with Table("accuracy", args, ratios=PROBES) as table:
        pixels = [X.reshape(len(X), -1) / 255.0 for X in (X_train, X_test)]
        table.add(row("raw pixels", [accuracies(pixels[0], y_train, pixels[1], y_test)]))
        untrained = [make_embedder(InfoNCE(), args, k, trains=False) for k in range(args.seeds)]
        table.add(row("untrained", [embedded(embedder, data, None)[0] for embedder in untrained]))
        for name in args.rows:
            loss, has_y = ROWS[name]
            y = y_train if has_y else None
            runs = [embedded(make_embedder(loss, args, k), data, y) for k in range(args.seeds)]
            scores, seconds = zip(*runs, strict=True)
            table.add(row(name, scores, round(np.mean(seconds))))


if __name__ == "__main__":
    main()
