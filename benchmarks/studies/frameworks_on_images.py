"""Frameworks × losses on images: unlabeled images in, an embedding out, probed with labels.

    python -m benchmarks.studies.frameworks_on_images  # Fashion-MNIST
    python -m benchmarks.studies.frameworks_on_images --data CIFAR-10

All rows share the views, the number of epochs, the temperature and the width of the encoder;
accuracies are of a linear probe and of 20 nearest neighbours on the test images, mean and standard
deviation over the seeds. CMC contrasts lightness with colour, or, where there is none, the upper
with the lower half of the image, in views of unchanged brightness; each of its two encoders
returns half of the representation.
"""

from __future__ import annotations

from time import perf_counter

import numpy as np

from benchmarks._image_sets import SETS, load_images
from benchmarks._results import Table, make_parser, spread
from skcontrast import ContrastiveEmbedder
from skcontrast.augmentation import ColorJitter, RandomAffine, RandomFlip, RandomResizedCrop
from skcontrast.encoders import ConvNet
from skcontrast.frameworks import CMC, MoCo, SimCLR
from skcontrast.losses import BCL, DCL, HCL, PUCL, InfoNCE, Ring
from skcontrast.metrics import knn_accuracy, linear_probe
from skcontrast.similarity import Cosine

LOSSES = {
    "InfoNCE": InfoNCE(),
    "DCL": DCL(tau_plus=0.1),
    "HCL": HCL(tau_plus=0.1, beta=1.0),
    "Ring": Ring(outer=0.5, inner=0.1),
    "BCL": BCL(alpha=0.7, tau_plus=0.1),
    "PUCL": PUCL(tau_plus=0.1, c=0.1),
}


def frameworks(args, n_samples):
    """Return the frameworks by name."""
    n_negatives = min(args.n_negatives, n_samples - 1)
    return {
        "SimCLR": SimCLR(),
        "MoCo": MoCo(queue_size=n_negatives, momentum=args.momentum),
        "CMC": CMC(n_negatives=n_negatives),
    }


def halves(X):
    """Return grey images (n, height, width) as two channels: the upper and the lower half."""
    middle = X.shape[1] // 2
    return np.stack([X[:, :middle], X[:, middle : 2 * middle]], 1)


def make_embedder(loss, framework, args, seed, is_colour):
    """Return the embedder of this comparison."""
    augmentation = [
        RandomResizedCrop(scale=(0.4, 1.0)),
        RandomAffine(rotation=10, translate=0.05),
        RandomFlip(),
    ]
    if isinstance(framework, CMC) and not is_colour:
        framework = CMC(n_negatives=framework.n_negatives, split=1)
    else:
        augmentation.append(ColorJitter(brightness=0.4, contrast=0.4))
    return ContrastiveEmbedder(
        encoder=ConvNet(widths=tuple(args.widths)),
        n_components=args.n_components // (2 if isinstance(framework, CMC) else 1),
        framework=framework,
        augmentation=augmentation,
        loss=loss,
        similarity=Cosine(args.temperature),
        max_epochs=args.epochs,
        lr=args.lr,
        device=args.device,
        random_state=seed,
    )


def evaluated(embedder, data):
    """Return both accuracies of a new embedding, and the seconds that it took to train."""
    X_train, y_train, X_test, y_test = data
    start = perf_counter()
    embedder.fit(X_train)
    seconds = perf_counter() - start
    data = embedder.transform(X_train), y_train, embedder.transform(X_test), y_test
    return linear_probe(*data), knn_accuracy(*data), seconds


def main():
    """Train and print one row per framework and loss."""
    parser = make_parser(__doc__)
    parser.add_argument("--data", choices=SETS, default="Fashion-MNIST")
    parser.add_argument("--n-train", type=int, default=10000, help="unlabeled images")
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--widths", type=int, nargs="+", default=[16, 32, 64])
    parser.add_argument("--n-components", type=int, default=128)
    parser.add_argument("--temperature", type=float, default=0.5)
    parser.add_argument("--momentum", type=float, default=0.99, help="of MoCo")
    parser.add_argument("--n-negatives", type=int, default=4096, help="of MoCo and CMC")
    parser.add_argument("--frameworks", nargs="*", default=["SimCLR", "MoCo", "CMC"])
    parser.add_argument("--losses", nargs="*", default=list(LOSSES), choices=list(LOSSES))
    parser.add_argument("--device", default="auto")
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    X_train, y_train, X_test, y_test = load_images(args.data)
    X_train, y_train = X_train[: args.n_train], y_train[: args.n_train]
    is_colour = X_train.ndim == 4
    with Table("accuracy", args, ratios=["linear", "20-NN"], labels=2) as table:
        for name in args.frameworks:
            framework = frameworks(args, len(X_train))[name]
            cut = halves if name == "CMC" and not is_colour else np.asarray
            data = cut(X_train), y_train, cut(X_test), y_test
            for loss in args.losses:
                linear, knn, seconds = zip(
                    *(
                        evaluated(make_embedder(LOSSES[loss], framework, args, k, is_colour), data)
                        for k in range(args.seeds)
                    ),
                    strict=True,
                )
                row = {"framework": name, "loss": loss, "linear": spread(linear)}
                row["20-NN"], row["training, s"] = spread(knn), round(np.mean(seconds))
                table.add(row)


if __name__ == "__main__":
    main()
