"""Where do false negatives matter? The oracle's gap, and what losses without labels get of it.

    python -m benchmarks.studies.false_negatives  # all tables
    python -m benchmarks.studies.false_negatives --tables gap --sets "digits, 2 classes"
    python -m benchmarks.studies.false_negatives --tables best

The oracle is ``Supervised``: InfoNCE whose false negatives are left out by their labels. Its gap,
the oracle minus InfoNCE, is what a loss that only removes false negatives can gain at most. The
map has it by the number of classes and the temperature, and beside it the losses without labels,
which all know the true τ⁺. p is that of a paired t-test over the seeds, uncorrected; a star marks
p < .05. "Best" is the temperature of .1, .2 and .5 that is best on the other seeds, for each
loss and column by itself: in the map on all seeds but the one at hand, in the table "best of
each" on seeds that are not reported. PUCL is left out: it is DCL at another τ⁺.

Sets: digits of 8×8, 260 images of 2, 3, 5 or 10 classes (others for every seed, of those that are
taken for each other; 50 epochs in batches of 64), of 5 classes of which each but the last has half
as many images as the one before, and all 1,347 (24 epochs, 128); wine and breast cancer, half to
train on (50 epochs, 64); 1,000 images of Fashion-MNIST of 2 or 10 classes (10 epochs, 128), with
1,000 others to test on; 5,000 images of CIFAR-10 (5 epochs, 128) and 2,000 others; 1,500 pairs of
digits side by side, the numbers 00 to 49 (24 epochs, 128), and 1,000 pairs of other digits; half
of the leaves of SwedishLeaf, series of 15 classes (50 epochs, 64), and of the graphs of ENZYMES
(6 classes; SimCLR, nodes dropped; 50 epochs, 64). Encoders are the default ones without their wide
part, so that losses are compared by what is learned; the row "default" of the floors has the wide
part.

Columns: held-out accuracy with 5 labels a class (logistic regression, mean of 10 draws) and of 20
neighbours by cosine. AUC: how often, in InfoNCE's projections of two views of up to 256 held-out
samples, a false negative scores above a true one.

``--cache FILE`` keeps each fit's figures, so that a run that was cut off continues.
"""

from __future__ import annotations

import os
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from benchmarks._graph_sets import load_graphs
from benchmarks._image_sets import load_images
from benchmarks._results import Table, make_parser, spread
from benchmarks._series_sets import FOLDER, load_series
from benchmarks.studies._digit_fits import (
    ALIKE,
    PROBES,
    UNTRAINED,
    Figures,
    cells,
    differences,
    probes,
)
from benchmarks.studies._digit_fits import split as digits_split
from skcontrast import ContrastiveEmbedder
from skcontrast.augmentation import ColorJitter, NodeDrop, RandomAffine
from skcontrast.encoders import GIN, MLP, PatchNet, SeriesNet
from skcontrast.estimation import macro_auc, project_views, tau_plus_from_labels
from skcontrast.features import MiniRocket, PatchDictionary, WeisfeilerLehman
from skcontrast.frameworks import SimCLR
from skcontrast.losses import (
    BCL,
    DCL,
    HCL,
    InfoNCE,
    PositiveDebiased,
    Ring,
    SoftRing,
    SoftSupCon,
    Supervised,
)
from skcontrast.similarity import Cosine

TEMPERATURES = (0.1, 0.2, 0.5)
BIASED, ORACLE = "InfoNCE", "Supervised-y"
RAW, FEATURES, DEFAULT = "as they are", "features", "default"
N_SCORED = 256
N_IMAGES = 1000
# Classes of Fashion-MNIST that are taken for each other; seed k takes the first of row k modulo 3.
FASHION_ALIKE = ((2, 4, 6, 0, 3), (0, 6, 2, 3, 4), (7, 9, 5, 8, 6))


def losses(tau_plus):
    """Return the losses by name, set to a class prior."""
    return {
        BIASED: InfoNCE(),
        "DCL": DCL(tau_plus),
        "HCL": HCL(tau_plus, beta=0.5),
        "BCL": BCL(0.9, tau_plus=tau_plus),
        "PositiveDebiased": PositiveDebiased(tau_plus, form="printed"),
        "Ring": Ring(outer=1.0, inner=tau_plus),
        "SoftRing": SoftRing(4.0, tau_plus),
        "SoftSupCon": SoftSupCon(tau_plus=tau_plus),
        ORACLE: Supervised(),
    }


ALL = tuple(losses(0.1))
MAPPED = ("DCL", "HCL", "BCL", "SoftRing", "SoftSupCon")


class Source(NamedTuple):
    """A set: `load` takes a seed and returns X_train, y_train, X_test, y_test.

    `losses` are those without labels on the map.
    """

    load: Any
    seeds: range
    batch_size: int = 64
    epochs: int = 50
    encoder: Any = None
    augmentation: Any = None
    framework: Any = None
    losses: tuple = MAPPED
    features: Any = None


def halves(load, seed):
    """Return halves of a set, one to train and one to test on."""
    X, y = load()
    train, test = train_test_split(np.arange(len(y)), stratify=y, test_size=0.5, random_state=seed)
    return X[train], y[train], X[test], y[test]


def table(load):
    """Return a table of scikit-learn as numbers, and its classes."""
    X, y = load(return_X_y=True)
    return X.astype(np.float32), y


def leaves():
    """Return the series of SwedishLeaf and their classes."""
    return load_series("SwedishLeaf")[:2]


def enzymes():
    """Return the graphs of ENZYMES and their classes."""
    return load_graphs("ENZYMES", os.environ.get(FOLDER))


def fashion(n_classes, seed):
    """Return 1,000 images of so many classes, and 1,000 of the test images."""
    alike = FASHION_ALIKE[seed % len(FASHION_ALIKE)]
    classes = range(10) if n_classes == 10 else alike[:n_classes]
    rng = np.random.default_rng(seed)
    X_train, y_train, X_test, y_test = load_images("Fashion-MNIST")
    train, test = (
        rng.choice(np.flatnonzero(np.isin(y, list(classes))), N_IMAGES, replace=False)
        for y in (y_train, y_test)
    )
    return X_train[train], y_train[train], X_test[test], y_test[test]


def cifar(seed):
    """Return 5,000 images of CIFAR-10, and 2,000 of the test images."""
    rng = np.random.default_rng(seed)
    X_train, y_train, X_test, y_test = load_images("CIFAR-10")
    train = rng.choice(len(y_train), 5000, replace=False)
    test = rng.choice(len(y_test), 2000, replace=False)
    return X_train[train], y_train[train], X_test[test], y_test[test]


def pairs(seed):
    """Return images of the numbers 00 to 49, written by digits side by side."""
    rng = np.random.default_rng(seed)
    X_train, y_train, X_test, y_test = digits_split(seed)
    found = []
    for X, y, n in ((X_train, y_train, 1500), (X_test, y_test, 1000)):
        tens = rng.choice(np.flatnonzero(y < 5), n)
        ones = rng.choice(len(y), n)
        found += [np.concatenate([X[tens], X[ones]], axis=2), 10 * y[tens] + y[ones]]
    return tuple(found)


def imbalanced(seed):
    """Return digits of five classes, each of half as many images as the one before."""
    X_train, y_train, X_test, y_test = digits_split(seed)
    sizes = dict(zip(ALIKE[seed % len(ALIKE)], (130, 65, 32, 17, 16), strict=True))
    rows = [np.flatnonzero(y_train == label)[:size] for label, size in sizes.items()]
    rows, kept = np.concatenate(rows), np.isin(y_test, list(sizes))
    return X_train[rows], y_train[rows], X_test[kept], y_test[kept]


AFFINE = [RandomAffine(), ColorJitter(0.6, 0.6, 0, 0)]
SETS = {
    **{
        f"digits, {n} classes": Source(
            partial(digits_split, n_classes=n),
            range(5),
            augmentation=AFFINE,
        )
        for n in (2, 3, 5, 10)
    },
    "digits, 5 unequal classes": Source(imbalanced, range(5), augmentation=AFFINE),
    "digits, all": Source(digits_split, range(10, 15), 128, 24, augmentation=AFFINE),
    **{
        name: Source(partial(halves, partial(table, load)), range(5), encoder=MLP())
        for name, load in (("wine", load_wine), ("breast cancer", load_breast_cancer))
    },
    "Fashion-MNIST, 2 classes": Source(
        partial(fashion, 2), range(5, 15), 128, 10, encoder=PatchNet(), losses=()
    ),
    "Fashion-MNIST, 10 classes": Source(
        partial(fashion, 10), range(5, 10), 128, 10, encoder=PatchNet()
    ),
    "CIFAR-10": Source(cifar, range(5), 128, 5, encoder=PatchNet()),
    "pairs of digits, 50 classes": Source(pairs, range(5), 128, 24, augmentation=AFFINE),
    "SwedishLeaf": Source(
        partial(halves, leaves), range(3), encoder=SeriesNet(), features=MiniRocket(random_state=0)
    ),
    "ENZYMES": Source(
        partial(halves, enzymes),
        range(5),
        encoder=GIN(),
        augmentation=NodeDrop(0.2),
        framework=SimCLR(),
        features=WeisfeilerLehman(),
    ),
}
# Poorer views, with which InfoNCE is trained
POORER = "turns and shifts alone"
VIEWS = {POORER: [RandomAffine()]}
VIEWED = {"digits": "digits, all", "Fashion-MNIST": "Fashion-MNIST, 10 classes"}
# The set whose temperatures are chosen on its own seeds, and the seeds that are then reported.
BEST, REPORTED = "digits, all", range(10)


class Fit(NamedTuple):
    """What a figure depends on; `loss` is the name of one, or of a floor."""

    data: str
    loss: str
    temperature: float
    seed: int


def prior(y):
    """Return the class prior, rounded as it stands in the tables."""
    return round(tau_plus_from_labels(y).value, 3)


def make_embedder(fit, y):
    """Return the embedder of a fit; one that does not train keeps its first weights."""
    source, trains = SETS[fit.data], fit.loss != UNTRAINED
    return ContrastiveEmbedder(
        encoder=None if fit.loss == DEFAULT else source.encoder,
        augmentation=VIEWS.get(fit.loss, source.augmentation),
        framework=source.framework,
        loss=losses(prior(y)).get(fit.loss, InfoNCE()),
        similarity=Cosine(fit.temperature),
        batch_size=source.batch_size,
        max_epochs=source.epochs if trains else 1,
        lr=1e-3 if trains else 1e-12,
        device="cpu",
        random_state=fit.seed,
    )


def figures_of(fit):
    """Return the two accuracies of a fit, and the AUC of its projections."""
    X, y, X_test, y_test = SETS[fit.data].load(fit.seed)
    if fit.loss in (RAW, FEATURES):
        H, H_test = floor(fit.data, fit.loss, X, X_test)
        return [*probes(H, y, H_test, y_test), float("nan")]
    embedder = make_embedder(fit, y).fit(X, y if fit.loss == ORACLE else None)
    H, H_test = embedder.transform(X), embedder.transform(X_test)
    return [*probes(H, y, H_test, y_test), auc(embedder, X_test, y_test, fit.seed)]


def floor(data, name, X, X_test):
    """Return the data as they are, or what of them needs no training."""
    if name == RAW:
        return X.reshape(len(X), -1), X_test.reshape(len(X_test), -1)
    features = SETS[data].features
    if features is None:
        features = PatchDictionary(random_state=0) if X.ndim > 2 else StandardScaler()
    features = clone(features).fit(X)
    return features.transform(X), features.transform(X_test)


def auc(embedder, X, y, seed):
    """Return how often a false negative scores above a true one."""
    rows = np.random.default_rng(seed).permutation(len(y))[:N_SCORED]
    views = project_views(embedder, X[rows], random_state=seed)
    return float(macro_auc(*views, y=y[rows], similarity=embedder.similarity_).value)


class Study:
    """The figures of fits, computed once."""

    def __init__(self, cache=None):
        self.figures = Figures(cache)

    def of(self, data, loss, temperature, seeds=None):
        """Return the accuracies and the AUC by seed, shape (n_seeds, 3)."""
        seeds = SETS[data].seeds if seeds is None else seeds
        fits = [Fit(data, loss, temperature, seed) for seed in seeds]
        return np.array(
            [self.figures.get(" | ".join(map(str, fit)), partial(figures_of, fit)) for fit in fits]
        )

    def by_temperature(self, data, loss, seeds=None):
        """Return the accuracies, shape (n_temperatures, n_seeds, 2)."""
        return np.stack([self.of(data, loss, t, seeds)[:, :2] for t in TEMPERATURES])

    def at_best(self, data, loss):
        """Return the accuracies at the temperature that is best on all other seeds.

        Returns
        -------
        scores : ndarray of shape (n_seeds, 2)
        """
        return left_out(self.by_temperature(data, loss))

    def chosen(self, data, loss, seeds):
        """Return the best temperatures for both columns, and the accuracies there of `seeds`."""
        index = self.by_temperature(data, loss).mean(axis=1).argmax(axis=0)
        temperatures = [TEMPERATURES[k] for k in index]
        scores = [self.of(data, loss, t, seeds)[:, i] for i, t in enumerate(temperatures)]
        return temperatures, np.stack(scores, axis=1)


def left_out(scores):
    """Return scores by seed, at the index of axis 0 that has the best mean of all other seeds.

    Parameters
    ----------
    scores : ndarray of shape (n_choices, n_seeds, n_columns)
        Each column chooses for itself.

    Returns
    -------
    chosen : ndarray of shape (n_seeds, n_columns)
    """
    others = scores.sum(axis=1, keepdims=True) - scores
    return np.take_along_axis(scores, others.argmax(axis=0)[None], axis=0)[0]


def starred(scores, reference):
    """Return the mean difference as text, with a star where p < .05."""
    row = differences(scores[:, None], reference[:, None], ["x"])
    p = row["p, x"]
    is_beyond_chance = p is not None and (p.startswith("<") or float(p) < 0.05)
    return row["Δ x"] + " *" * is_beyond_chance


def prior_of(data):
    """Return the number of classes of a set and the mean of its class prior over the seeds."""
    labels = [SETS[data].load(seed)[1] for seed in SETS[data].seeds]
    return len(np.unique(labels[0])), float(np.mean([prior(y) for y in labels]))


def gap(study, args):
    """Oracle's gap by set and temperature."""
    with Table("gap", args, ratios=[BIASED], labels=2, packages=("scipy",)) as table:
        for data in args.sets:
            n_classes, tau_plus = prior_of(data)
            for t in TEMPERATURES:
                biased, oracle = (study.of(data, loss, t) for loss in (BIASED, ORACLE))
                row = {"data": data, "t": t, "classes": n_classes, "τ⁺": tau_plus}
                row["AUC"] = spread(biased[:, 2].tolist())
                row[BIASED] = spread(biased[:, 0].tolist())
                row |= differences(oracle[:, :2], biased[:, :2], PROBES)
                best = study.at_best(data, BIASED)
                for i, name in enumerate(PROBES):
                    row[f"{name}, to best {BIASED}"] = starred(oracle[:, i], best[:, i])
                table.add(row)


def without_labels(column, against_best, study, args):
    """Differences of the losses without labels from InfoNCE, and of the oracle."""
    against = "best" if against_best else "same"
    name = f"{PROBES[column]}, {against} temperature"
    with Table(name, args, ratios=[], labels=2, packages=("scipy",)) as table:
        for data in args.sets:
            best = study.at_best(data, BIASED)
            for t in TEMPERATURES:
                reference = (best if against_best else study.of(data, BIASED, t))[:, column]
                row = {"data": data, "t": t}
                for loss in (ORACLE, *SETS[data].losses):
                    row[loss] = starred(study.of(data, loss, t)[:, column], reference)
                table.add(row)


def own_best(study, args):
    """Each loss at its own best temperature against InfoNCE at its best, by set."""
    with Table("own best", args, ratios=[], labels=2, packages=("scipy",)) as table:
        for data in args.sets:
            best = study.at_best(data, BIASED)
            for loss in (BIASED, *SETS[data].losses, ORACLE):
                scores = study.at_best(data, loss)
                table.add({"data": data, "loss": loss, **compared(loss, scores, best)})


def compared(loss, scores, biased, oracle=None):
    """Return accuracies and their differences from InfoNCE, none for InfoNCE itself."""
    row = cells(scores, None if loss == BIASED else biased)
    if oracle is not None:
        for i, name in enumerate(PROBES):
            row[f"of the gap, {name}"] = None
            if loss != BIASED:
                share = (scores - biased)[:, i].mean() / (oracle - biased)[:, i].mean()
                row[f"of the gap, {name}"] = f"{share:.0%}"
    return row


def best(study, args):
    """Each loss at the temperature that is best for it on other seeds."""
    found = {loss: study.chosen(BEST, loss, REPORTED) for loss in ALL}
    biased, oracle = found[BIASED][1], found[ORACLE][1]
    with Table("best of each", args, ratios=PROBES, packages=("scipy",)) as table:
        for loss, (temperatures, scores) in found.items():
            row = {"loss": loss, "t": " and ".join(f"{t:g}" for t in temperatures)}
            table.add(row | compared(loss, scores, biased, oracle))


def views(study, args):
    """InfoNCE with poorer views, compared with the views of the study."""
    for title, data in VIEWED.items():
        with Table(f"views, {title}", args, ratios=PROBES, packages=("scipy",)) as table:
            poorer, full = (study.of(data, row, 0.5)[:, :2] for row in (POORER, BIASED))
            table.add({"views": POORER, **cells(poorer)})
            table.add({"views": "those of the study", **cells(full, poorer)})


def floors(study, args):
    """What needs no training, and the default embedder with its wide part."""
    with Table("floors", args, ratios=PROBES, labels=2) as table:
        for data in args.sets:
            for row in (RAW, FEATURES, UNTRAINED, BIASED, DEFAULT):
                no_other_default = row == DEFAULT and SETS[data].encoder is None
                if no_other_default or (row == RAW and data == "ENZYMES"):
                    continue
                scores = study.of(data, row, 0.5)[:, :2]
                table.add({"data": data, "row": row, **_means(scores)})


def _means(scores):
    """Return means and standard deviations by column."""
    return {name: spread(scores[:, i].tolist()) for i, name in enumerate(PROBES)}


TABLES = {
    "gap": gap,
    "5 labels, same": partial(without_labels, 0, False),
    "5 labels, best": partial(without_labels, 0, True),
    "20-NN, same": partial(without_labels, 1, False),
    "20-NN, best": partial(without_labels, 1, True),
    "own best": own_best,
    "best": best,
    "floors": floors,
    "views": views,
}


def main():
    """Print the tables."""
    parser = make_parser(__doc__)
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=list(TABLES))
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--cache", help="file that keeps the figures of each fit")
    args = parser.parse_args()
    torch.set_num_threads(1)
    study = Study(args.cache)
    for name in args.tables:
        TABLES[name](study, args)


if __name__ == "__main__":
    main()
