"""Losses against the truth on real scores, along a training with InfoNCE.

    python -m benchmarks.studies.real_scores  # digits; fetches PTC_MR once
    python -m benchmarks.studies.real_scores --sets Fashion-MNIST CIFAR-10

At several lengths of training, two views of 256 samples are projected, so that every anchor has
510 candidates, and compared with what the labels say. Parameters that are fitted to labels were
fitted to 256 other samples.

- the macro-AUC of the scores;
- the relative bias of each loss's estimate of the mean over true negatives, with views as
  positives, and for DCL with samples of the same class as positives too;
- the share of the gradient's push that lands on false negatives;
- how reliable p(true negative | rank) is: the largest gap of a decile, and the Brier score.

0 epochs is the encoder with its first weights. Images of CIFAR-10 are drawn from the first 10,000.
"""

from __future__ import annotations

import numpy as np
import torch
from sklearn.datasets import load_digits

from benchmarks._bcl_scores import sharpness_of
from benchmarks._graph_sets import load_graphs
from benchmarks._image_sets import load_images
from benchmarks._results import Table, make_parser, means
from skcontrast import ContrastiveEmbedder
from skcontrast.augmentation import ColorJitter, NodeDrop, RandomAffine, RandomFlip
from skcontrast.estimation import (
    ScoreSample,
    alpha_from_auc,
    estimate_soft_ring,
    macro_auc,
    negative_bias,
    project_views,
    push_share,
    reliability,
)
from skcontrast.frameworks import SimCLR
from skcontrast.losses import BCL, DCL, HCL, PUCL, InfoNCE, Ring, SoftRing
from skcontrast.similarity import Cosine

BATCH = 256
LENGTHS = (0, 1, 3, 10, 30, 60)
GREY = [RandomAffine(), RandomFlip(), ColorJitter(brightness=0.6, contrast=0.6)]


def digits(args, seed):
    """Return images, classes and what the embedder has besides its defaults."""
    X, y = load_digits(return_X_y=True)
    return X.reshape(-1, 1, 8, 8), y, {}


def fashion(args, seed):
    """Return the same for Fashion-MNIST."""
    X, y = load_images("Fashion-MNIST")[:2]
    rows = np.random.default_rng(seed).choice(len(X), args.images, replace=False)
    return X[rows, None], y[rows], {"similarity": Cosine(0.2), "augmentation": GREY}


def cifar(args, seed):
    """Return the same for CIFAR-10."""
    X, y = load_images("CIFAR-10")[:2]
    rows = np.random.default_rng(seed).choice(10_000, args.images, replace=False)
    return X[rows], y[rows], {"similarity": Cosine(0.2)}


def graphs(args, seed):
    """Return the same for a set of graphs."""
    X, y = load_graphs(args.graphs, args.data_home)
    X.attributes = None
    own = {"similarity": Cosine(0.2), "framework": SimCLR(), "augmentation": NodeDrop(0.2)}
    return X, y, own


def stages(X, own, lengths, seed):
    """Yield an embedder after each number of epochs."""
    own = {"random_state": seed, "device": "cpu", **own}
    if 0 in lengths:
        yield ContrastiveEmbedder(lr=1e-12, max_epochs=1, **own).fit(X)
    embedder, trained = ContrastiveEmbedder(**own), 0
    for length in sorted(set(lengths) - {0}):
        for _ in range(length - trained):
            embedder.partial_fit(X)
        trained = length
        yield embedder


def losses(auc, sample):
    """Return the losses by name; those with "fitted" know what labels say of other samples."""
    tau_plus = (~sample.is_negative).mean()
    alpha, sharpness = alpha_from_auc(auc).value, sharpness_of(auc.value, tau_plus)
    return {
        "InfoNCE": InfoNCE(),
        "DCL": DCL(tau_plus=tau_plus),
        "PUCL": PUCL(tau_plus=min(1.2 * tau_plus, 0.9), c=0.1),
        "BCL(.9), printed": BCL(alpha=0.9, tau_plus=tau_plus, form="printed"),
        "BCL(.9)": BCL(alpha=0.9, tau_plus=tau_plus),
        "BCL(.999)": BCL(alpha=0.999, tau_plus=tau_plus),
        "BCL fitted": BCL(alpha=alpha, tau_plus=tau_plus),
        "HCL(1)": HCL(tau_plus=tau_plus, beta=1.0),
        "BCL(.85), β=1": BCL(alpha=0.85, beta=1.0, tau_plus=tau_plus),
        "Ring": Ring(outer=1.0, inner=tau_plus),
        "SoftRing, fitted AUC": SoftRing(sharpness=sharpness, tau_plus=tau_plus),
        "SoftRing, fitted k, f": SoftRing(**estimate_soft_ring(sample)),
    }


def scores_of(embedder, X, y, seed):
    """Return the AUC, and scores with views and with samples of the same class as positives."""
    views = project_views(embedder, X, random_state=seed)
    given = {"y": y, "similarity": embedder.similarity_}
    samples = (
        ScoreSample.from_views(*views, **given, positives=kind) for kind in ("views", "same class")
    )
    return macro_auc(*views, **given), *samples


def observe(embedder, X, y, seed):
    """Return all figures of one embedder, by table and column."""
    n = min(BATCH, len(y) // 2)
    rows, known = np.split(np.random.default_rng(seed).permutation(len(y))[: 2 * n], 2)
    auc, fitted_on, _ = scores_of(embedder, X[known], y[known], seed)
    compared = losses(auc, fitted_on)
    auc, sample, mates = scores_of(embedder, X[rows], y[rows], seed)
    bias = {name: negative_bias(loss, sample).value for name, loss in compared.items()}
    bias["DCL, same class"] = negative_bias(compared["DCL"], mates).value
    push = {name: push_share(loss, sample).value for name, loss in compared.items()}
    found = {name: reliability(loss, sample) for name, loss in compared.items()}
    gaps = {}
    for name in ("DCL", "BCL(.9)", *(name for name in compared if "fitted" in name)):
        label = "constant" if name == "DCL" else name
        gaps[f"{label}: gap"] = found[name].largest_gap
        gaps[f"{label}: Brier"] = found[name].brier
    return {"bias": bias, "push": push, "reliability": {"AUC": auc.value, **gaps}}


def main():
    """Print three tables of each set."""
    options = {"data_home": str, "graphs": "PTC_MR", "images": 1500, "seeds": 5}
    parser = make_parser(__doc__, **options, image_seeds=3, lengths=LENGTHS)
    parser.add_argument("--sets", nargs="+", help="names of the sets; else digits and graphs")
    args = parser.parse_args()
    torch.set_num_threads(1)
    sets = {
        "digits": (digits, args.seeds),
        args.graphs: (graphs, args.seeds),
        "Fashion-MNIST": (fashion, args.image_seeds),
        "CIFAR-10": (cifar, args.image_seeds),
    }
    for name in args.sets or ("digits", args.graphs):
        add_tables(name, *sets[name], args)


def add_tables(name, load, n_seeds, args):
    """Print the tables of one set, one row per length of training."""
    runs = []
    for seed in range(n_seeds):
        X, y, own = load(args, seed)
        runs.append([observe(one, X, y, seed) for one in stages(X, own, args.lengths, seed)])
    for table in ("bias", "push", "reliability"):
        with Table(f"{name} {table}", args) as rows:
            for length, *by_seed in zip(sorted(args.lengths), *runs, strict=True):
                rows.add({"epochs": length, **means([one[table] for one in by_seed])})


if __name__ == "__main__":
    main()
