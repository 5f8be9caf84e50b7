"""The tables of five papers, each as one constructor call, next to the figures in print.

    python -m benchmarks.papers bcl --epochs 5
    python -m benchmarks.papers pucl-graphs --data-home FOLDER --seeds 10
    python -m benchmarks.papers bcl --epochs 1 --n 500 --depth 18  # to see that it runs

======================  ==========================================================================
table                   paper
======================  ==========================================================================
bcl                     Liu and Wang 2023, Table 1, CIFAR-10; ``--batch-size`` (N + 2) / 2
rebuttal                their rebuttal: CIFAR-10, N = 510
positive-debiased       Troeshestova and Isachenko 2023, Figures 1 and 2: no figures in print
pucl-simclr, -cmc,      Wang et al. 2024, Table 1 a to c, CIFAR-10
-moco
pucl-graphs             Wang et al. 2024, Table 2: PTC_MR, ENZYMES, DD, REDDIT-BINARY
probabilistic           Li, Xu and Hooi 2021, which has no table: the proposed score, on CIFAR-10
======================  ==========================================================================

Without options, the epochs, batches and networks are the paper's, or those of the code that it
builds on where it has none (Chuang et al. 2020; Sun et al. 2020). Images: ResNet with the stem for
CIFAR, 128 dimensions, temperature .5, Adam .001 at a constant rate, views of SimCLR, and a linear
probe with all labels. Graphs: InfoGraph with a GIN of 3 layers of width 32, Adam .01, and an SVM
whose C is chosen within ten folds; two rows that the paper lacks are the network before training,
and the oracle, which knows all labels. Accuracies are in %, means over ``--seeds`` with the
standard deviation. The paper's figure is that of its own epochs and network; a dash stands where
it has none for the batch. A GPU is used where there is one. The first line says about how long
the training takes. What was run: ``studies/results/paper_recipes.md``.
"""

from __future__ import annotations

import argparse
from itertools import product
from time import perf_counter

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from benchmarks._graph_sets import load_graphs
from benchmarks._image_sets import load_images
from benchmarks._protocol import GRAPHS, gin
from benchmarks._results import HELP, spread, table_lines
from skcontrast import ContrastiveEmbedder
from skcontrast.augmentation import SimCLRAugmentation
from skcontrast.encoders import ResNet
from skcontrast.frameworks import CMC, InfoGraph, MoCo, SimCLR
from skcontrast.losses import (
    BCL,
    DCL,
    HCL,
    PUCL,
    InfoNCE,
    NonparametricBCL,
    PositiveDebiased,
    Ring,
    Supervised,
)
from skcontrast.metrics import linear_probe
from skcontrast.similarity import Cosine, VonMisesFisher

N_TIMED = 16
BATCHES = (16, 32, 64, 128, 256)  # with N = 30, 62, 126, 254 and 510 candidates
DEB, HARD, RING = DCL(tau_plus=0.1), HCL(tau_plus=0.1, beta=1.0), Ring(outer=0.5, inner=0.1)


def images(framework=None, *, depth=50, epochs=400, similarity=None):
    """Return the embedder of the tables of images, but for its loss."""
    return ContrastiveEmbedder(
        encoder=ResNet(depth, stem="cifar"),
        framework=framework or SimCLR(),
        similarity=similarity or Cosine(0.5),
        augmentation=SimCLRAugmentation(crop_scale=(0.08, 1.0)),
        projection_dim=128,
        batch_size=256,
        max_epochs=epochs,
        optimizer="adam",
        lr=1e-3,
        weight_decay=1e-6,
        lr_schedule="constant",
    )


def graphs():
    """Return the embedder of the table of graphs, but for its loss."""
    return ContrastiveEmbedder(
        encoder=gin(n_layers=3, width=32),
        framework=InfoGraph(),
        batch_size=128,
        max_epochs=20,
        optimizer="adam",
        lr=1e-2,
        lr_schedule="constant",
    )


# table: (embedder, {row: (loss, figures in print)}); those of bcl by batch, of graphs by set
TABLES = {
    "bcl": (
        images(),
        {
            "SimCLR": (InfoNCE(), (80.21, 84.82, 87.58, 89.87, 91.12)),
            "DCL": (DEB, (82.41, 87.60, 90.38, 91.36, 91.78)),
            "HCL": (HARD, (83.42, 88.45, 90.53, 91.57, 91.62)),
            "BCL": (BCL.paper(), (83.61, 88.56, 90.83, 91.87, 92.18)),
        },
    ),
    "rebuttal": (
        images(),
        {
            "SimCLR": (InfoNCE(), (91.12,)),
            "DCL": (DEB, (91.78,)),
            "HCL": (HARD, (91.62,)),
            "BCL": (NonparametricBCL.paper(), (92.24,)),
        },
    ),
    "positive-debiased": (
        images(depth=18, epochs=50),
        {
            "Biased": (InfoNCE(), None),
            "Debiased-Neg": (DEB, None),
            "Debiased-Pos, printed": (PositiveDebiased.paper(tau_plus=0.1), None),
            "Debiased-Pos, authors' code": (PositiveDebiased(tau_plus=0.1), None),
        },
    ),
    "pucl-simclr": (
        images(),
        {
            "SimCLR": (InfoNCE(), (90.44,)),
            "SimCLR+DEB": (DEB, (90.21,)),
            "SimCLR+Hard": (HARD, (90.87,)),
            "SimCLR+Ring": (RING, (91.48,)),
            "SimCLR+PUCL": (PUCL(tau_plus=0.12, c=0.1), (92.14,)),
        },
    ),
    "pucl-cmc": (
        images(CMC("lab", n_negatives=4096)),
        {
            "CMC": (InfoNCE(), (87.20,)),
            "CMC+DEB": (DEB, (88.12,)),
            "CMC+Hard": (HARD, (88.29,)),
            "CMC+Ring": (RING, (88.14,)),
            "CMC+PUCL": (PUCL(tau_plus=0.12, c=0.1), (89.25,)),
        },
    ),
    "pucl-moco": (
        images(MoCo(queue_size=4096)),
        {
            "MoCo": (InfoNCE(), (85.62,)),
            "MoCo+DEB": (DEB, (88.36,)),
            "MoCo+Hard": (HARD, (89.99,)),
            "MoCo+Ring": (RING, (86.47,)),
            "MoCo+PUCL": (PUCL(tau_plus=0.12, c=0.1), (90.98,)),
        },
    ),
    "pucl-graphs": (
        graphs(),
        {
            "untrained": (None, None),
            "InfoGraph, labels known": (Supervised(), None),
            "InfoGraph": (InfoNCE(), (56.63, 50.33, 73.16, 82.99)),
            "InfoGraph+DEB": (DEB, (55.74, 51.21, 70.58, 84.89)),
            "InfoGraph+Hard": (HARD, (56.20, 51.35, 71.61, 85.07)),
            "InfoGraph+Ring": (RING, (57.67, 54.15, 76.32, 85.30)),
            "InfoGraph+PUCL, α .1": (PUCL(tau_plus=0.1, c=0.1), (58.90, 56.21, 77.62, 87.08)),
            "InfoGraph+PUCL, α .5": (PUCL(tau_plus=0.5, c=0.1), (57.91, 55.35, 77.23, 88.97)),
        },
    ),
    "probabilistic": (
        images(similarity=VonMisesFisher.paper()),
        {"mutual likelihood": (InfoNCE(), None)},
    ),
}


def samples(name, args):
    """Return X_train, y_train, X_test, y_test of images, or X, y of a set of graphs."""
    if name in GRAPHS:
        return load_graphs(name, args.data_home)
    return tuple(part[: args.n] for part in load_images(name, args.data_home))


def accuracy(embedder, data, seed):
    """Return the accuracy on images by a linear probe, or on graphs by an SVM over ten folds."""
    X, y, *test = data
    H = embedder.fit(X, y if embedder.loss.requires_y else None).transform(X)
    if test:
        return linear_probe(H, y, embedder.transform(test[0]), test[1])
    svm = make_pipeline(StandardScaler(), SVC())
    search = GridSearchCV(svm, {"svc__C": 10.0 ** np.arange(-3, 4)}, cv=5)
    folds = StratifiedKFold(10, shuffle=True, random_state=seed)
    return cross_val_score(search, H, y, cv=folds).mean()


def minutes_of_training(embedder, X):
    """Return about how long a fit takes, from an epoch of `N_TIMED` samples after a first one."""
    few = clone(embedder).set_params(max_epochs=1)
    few.fit(X[:N_TIMED])
    start = perf_counter()
    few.fit(X[:N_TIMED])
    an_epoch = (perf_counter() - start) * max(1, len(X) / N_TIMED)
    return an_epoch * embedder.max_epochs / 60


def changed(embedder, loss, args, seed):
    """Return the embedder of a row, with what the options change."""
    options = {"max_epochs": args.epochs, "batch_size": args.batch_size}
    options |= {"encoder__depth": args.depth}
    given = {name: value for name, value in options.items() if value is not None}
    if loss is None:  # untrained
        loss, given = InfoNCE(), given | {"max_epochs": 1, "lr": 1e-12}
    return clone(embedder).set_params(loss=loss, random_state=seed, **given)


def in_print(figures, name, batch_size):
    """Return the figure in print of a set of graphs, or of the N of a batch, if there is one."""
    if name in GRAPHS:
        return None if figures is None else figures[GRAPHS.index(name)]
    return dict(zip(reversed(BATCHES), reversed(figures or ()), strict=False)).get(batch_size)


def arguments():
    """Return the options; those that a table does not have are refused."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", choices=TABLES)
    parser.add_argument("--rows", nargs="+", help="such as BCL; all rows if left out")
    parser.add_argument("--data-home", help=f"{HELP['data_home']}; images are fetched if left out")
    parser.add_argument("--seeds", type=int, default=1, help="fits of each row")
    parser.add_argument("--epochs", type=int, help="those of the paper if left out")
    parser.add_argument("--batch-size", type=int, help="that of the paper if left out")
    parser.add_argument("--n", type=int, help="of images: for training and for the test, at most")
    parser.add_argument("--depth", type=int, help="of images: of the ResNet, 18, 34 or 50")
    parser.add_argument("--sets", nargs="+", choices=GRAPHS, help="of graphs; all if left out")
    args = parser.parse_args()
    rows, is_graphs = TABLES[args.table][1], args.table == "pucl-graphs"
    for name in ("n", "depth") if is_graphs else ("sets",):
        if getattr(args, name) is not None:
            kind = "graphs" if is_graphs else "images"
            parser.error(f"{args.table} has no option --{name}: it is a table of {kind}.")
    args.rows = args.rows or list(rows)
    if unknown := [row for row in args.rows if row not in rows]:
        parser.error(
            f"{args.table} has no row {unknown[0]!r}. Its rows are {', '.join(map(repr, rows))}."
        )
    args.sets = args.sets or (GRAPHS if is_graphs else ("CIFAR-10",))
    return args


def main():
    """Print each row with the figure in print and with that of the runs here."""
    args = arguments()
    embedder, rows = TABLES[args.table]
    data = {name: samples(name, args) for name in args.sets}
    n_fits = args.seeds * len(args.rows)
    first = changed(embedder, InfoNCE(), args, 0)
    minutes = n_fits * sum(minutes_of_training(first, X) for X, *_ in data.values())
    print(
        f"Training takes about {minutes:,.1f} minutes; --help has what shortens it\n", flush=True
    )
    found = []
    for row, name in product(args.rows, args.sets):
        loss, figures = rows[row]
        start = perf_counter()
        fitted = [changed(embedder, loss, args, seed) for seed in range(args.seeds)]
        runs = [100 * accuracy(one, data[name], seed) for seed, one in enumerate(fitted)]
        one, minutes = fitted[0], (perf_counter() - start) / 60
        paper = in_print(figures, name, one.batch_size)
        found.append({"row": row, "data": name, "paper": paper, "here": spread(runs)})
        found[-1] |= {"n": len(data[name][0]), "depth": one.get_params().get("encoder__depth")}
        found[-1] |= {"batch": one.batch_size, "epochs": one.max_epochs, "minutes": minutes}
        lines = table_lines({"rows": found, "digits": 2})
        print(*(lines if len(found) == 1 else lines[-1:]), sep="\n", flush=True)


if __name__ == "__main__":
    main()
