"""Table 1 of the papers of BCL and PUCL in small: frameworks × losses on images.

    python -m benchmarks.studies.image_table  # CIFAR-10
    python -m benchmarks.studies.image_table --data Fashion-MNIST --frameworks SimCLR
    python -m benchmarks.studies.image_table --n-train 50000 --epochs 5 --frameworks SimCLR \
        --losses InfoNCE BCL SoftSupCon Supervised-y --seeds 1

Embedders of 10,000 images without labels: the network of patches, the default views, batches of
128, 6 epochs, temperature .5 (``--temperature``), losses with τ⁺ = .1. MoCo and CMC have 4,096
negatives; CMC contrasts lightness with colour, and each of its two encoders returns half of the
representation. Rows with -y train with the labels: Supervised is the oracle that leaves out false
negatives. Beside them stands what needs no training: pixels, oriented gradients, patches and the
untrained network.

Columns: 5 and 20 labels a class (logistic regression, mean of 10 draws), 20 nearest neighbours by
cosine and a linear probe of 4,000 labels, on 2,000 test images. Δ is the difference from InfoNCE
in the same framework with the same seeds, p that of a paired t-test, uncorrected.

``--cache FILE`` keeps each fit's figures, so that a run that was cut off continues.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import torch

from benchmarks._image_sets import SETS, load_images
from benchmarks._results import Table, make_parser
from benchmarks.studies._digit_fits import Figures, cells
from skcontrast import ContrastiveEmbedder
from skcontrast.encoders import PatchNet
from skcontrast.features import OrientedGradients, PatchDictionary
from skcontrast.frameworks import CMC, MoCo, SimCLR
from skcontrast.losses import (
    BCL,
    DCL,
    HCL,
    PUCL,
    InfoNCE,
    Ring,
    SoftRing,
    SoftSupCon,
    Supervised,
)
from skcontrast.metrics import few_label_accuracy, knn_accuracy, linear_probe
from skcontrast.similarity import Cosine

NAMES = ("5 labels", "20 labels", "20-NN", "linear")
BIASED, UNTRAINED = "InfoNCE", "untrained"
LOSSES = {
    BIASED: InfoNCE(),
    "DCL": DCL(tau_plus=0.1),
    "HCL": HCL(tau_plus=0.1, beta=1.0),
    "Ring": Ring(outer=0.5, inner=0.1),
    "PUCL": PUCL(tau_plus=0.12, c=0.1),
    "BCL": BCL(alpha=0.7, tau_plus=0.1),
    "SoftRing": SoftRing(4.0, 0.1),
    "SoftSupCon": SoftSupCon(tau_plus=0.1),
    "Supervised-y": Supervised(),
}
OF_ALL = ("InfoNCE", "DCL", "HCL", "Ring", "PUCL", "BCL")
FEATURES = {
    "pixels": None,
    "oriented gradients": OrientedGradients(),
    "patches": PatchDictionary(random_state=0),
}
FRAMEWORKS = {
    "SimCLR": SimCLR(),
    "MoCo": MoCo(queue_size=4096),
    "CMC": CMC(n_negatives=4096),
}
N_LABELED, N_TESTED = 4000, 2000


def load(args, seed):
    """Return X_train, y_train, X_test, y_test, drawn anew for every seed."""
    rng = np.random.default_rng(seed)
    X_train, y_train, X_test, y_test = load_images(args.data)
    train = rng.choice(len(y_train), args.n_train, replace=False)
    test = rng.choice(len(y_test), N_TESTED, replace=False)
    return X_train[train], y_train[train], X_test[test], y_test[test]


def probes(H, y, H_test, y_test):
    """Return the columns of the table."""
    data = H[:N_LABELED], y[:N_LABELED], H_test, y_test
    few = [float(few_label_accuracy(*data, n_labels=k).mean()) for k in (5, 20)]
    return [*few, knn_accuracy(*data), linear_probe(*data)]


def of_features(name, args, seed):
    """Return the accuracies of features that need no training."""
    X, y, X_test, y_test = load(args, seed)
    features = FEATURES[name]
    if features is None:
        H, H_test = (part.reshape(len(part), -1) / 255.0 for part in (X, X_test))
    else:
        H, H_test = features.fit_transform(X), features.transform(X_test)
    return probes(H, y, H_test, y_test)


def of_fit(framework, loss, args, seed):
    """Return the accuracies of an embedder; an untrained one keeps its first weights."""
    X, y, X_test, y_test = load(args, seed)
    trains = loss != UNTRAINED
    embedder = ContrastiveEmbedder(
        encoder=PatchNet(),
        n_components=64 if framework == "CMC" else 128,
        framework=FRAMEWORKS[framework],
        loss=LOSSES[loss if trains else BIASED],
        similarity=Cosine(args.temperature),
        batch_size=128,
        max_epochs=args.epochs if trains else 1,
        lr=1e-3 if trains else 1e-12,
        device=args.device,
        random_state=seed,
    ).fit(X, y if loss.endswith("-y") else None)
    return probes(embedder.transform(X), y, embedder.transform(X_test), y_test)


def main():
    """Print the table."""
    parser = make_parser(__doc__)
    parser.add_argument("--data", choices=SETS, default="CIFAR-10")
    parser.add_argument("--n-train", type=int, default=10_000, help="images without labels")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--temperature", type=float, default=0.5)
    parser.add_argument("--frameworks", nargs="+", default=list(FRAMEWORKS), choices=FRAMEWORKS)
    parser.add_argument("--losses", nargs="+", choices=LOSSES, help="of SimCLR all, of others six")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--cache", help="file that keeps the figures of each fit")
    args = parser.parse_args()
    torch.set_num_threads(1)
    figures = Figures(args.cache)
    title = f"{args.data}, {args.n_train}, {args.epochs} epochs"
    if args.temperature != 0.5:
        title += f", t = {args.temperature:g}"
    with table_of(f"{title}, no training", args) as table:
        for name in FEATURES:
            scores = figures.over(f"{title} {name}", partial(of_features, name, args), args.seeds)
            table.add({"row": name, **cells(scores, names=NAMES)})
    for framework in args.frameworks:
        losses = args.losses or (LOSSES if framework == "SimCLR" else OF_ALL)
        with table_of(f"{title}, {framework}", args) as table:
            add_losses(table, framework, losses, title, figures, args)


def table_of(name, args):
    """Return a table of accuracies."""
    return Table(name, args, ratios=NAMES, packages=("scipy",))


def add_losses(table, framework, losses, title, figures, args):
    """Add the losses of a framework, compared with its InfoNCE."""
    scores = {}
    for loss in (UNTRAINED, *losses):
        compute = partial(of_fit, framework, loss, args)
        scores[loss] = figures.over(f"{title} {framework} {loss}", compute, args.seeds)
        base = None if loss in (UNTRAINED, BIASED) else scores[BIASED]
        table.add({"row": loss, **cells(scores[loss], base, NAMES)})


if __name__ == "__main__":
    main()
