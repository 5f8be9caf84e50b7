"""α and τ⁺ estimated without labels, against what labels say, on digits and Fashion-MNIST.

    python -m benchmarks.studies.estimation  # digits only
    python -m benchmarks.studies.estimation --fashion  # both

At several lengths of training with InfoNCE, in batches of 256 (N = 510 candidates):

- from labels: τ⁺ = Σ p_k², α = (6 A − 1)/4 of the macro-AUC A;
- from ranks of views: the positive is a second view of the same sample, as in training;
- from ranks of samples of the same class: the positive is a view of another sample of the same
class, as the
  model has it. Where this disagrees with the labels, the model is wrong, not the choice of the
  positives.
"""

from __future__ import annotations

import numpy as np
import torch
from sklearn.datasets import load_digits

from benchmarks._image_sets import load_images
from benchmarks._results import Table, make_parser
from skcontrast import ContrastiveEmbedder
from skcontrast.augmentation import RandomAffine
from skcontrast.encoders import PatchNet
from skcontrast.estimation import (
    alpha_from_auc,
    estimate_alpha_and_tau_plus,
    macro_auc,
    positive_ranks,
    tau_plus_from_labels,
)

BATCH = 256


def projections(embedder, X, generator):
    """Return the projections of one fresh view of each sample."""
    batch = torch.from_numpy(X)
    for augmentation in embedder.augmentation_:
        batch = augmentation.augment(batch, generator)
    with torch.inference_mode():
        return embedder.projector_(embedder.encoder_(batch))


def next_of_class(y, rng):
    """Return for each sample the position of another of its class."""
    mates = np.empty(len(y), dtype=int)
    for k in np.unique(y):
        members = rng.permutation(np.flatnonzero(y == k))
        mates[members] = np.roll(members, 1)
    return mates


def observe(embedder, X, y, n_positives):
    """Return ranks of views, ranks of samples of the same class and AUCs, over enough batches."""
    generator, rng = torch.Generator().manual_seed(0), np.random.default_rng(0)
    views, mates, aucs = [], [], []
    while len(views) * 2 * BATCH < n_positives:
        rows = rng.choice(len(X), BATCH, replace=False)
        z1, z2 = (projections(embedder, X[rows], generator) for _ in range(2))
        views.append(positive_ranks(z1, z2))
        mates.append(positive_ranks(z1, z2[next_of_class(y[rows], rng)]))
        aucs.append(macro_auc(z1, z2, y=y[rows]).value)
    return np.concatenate(views), np.concatenate(mates), np.mean(aucs)


def row(name, epochs, embedder, X, y, n_positives):
    """Return one row of the table; the spread of an estimate is its standard error."""
    views, mates, auc = observe(embedder, X, y, n_positives)
    n = 2 * BATCH - 2

    def figure(name, ranks):
        value, error = estimate_alpha_and_tau_plus(ranks, n_candidates=n)[name]
        return {"mean": value, "std": error}

    return {
        "data": name,
        "epochs": epochs,
        "α labels": alpha_from_auc(auc).value,
        "α same class": figure("alpha", mates),
        "α views": figure("alpha", views),
        "τ⁺ labels": tau_plus_from_labels(y).value,
        "τ⁺ same class": figure("tau_plus", mates),
        "τ⁺ views": figure("tau_plus", views),
    }


def main():
    """Print the table."""
    options = {"fashion": False, "n_positives": 50_000, "lengths": [1, 10, 40], "device": "cpu"}
    args = make_parser(__doc__, **options).parse_args()
    X, y = load_digits(return_X_y=True)
    X = X.reshape(-1, 1, 8, 8).astype(np.float32) / 16
    augmentation = RandomAffine()
    digits = ContrastiveEmbedder(augmentation=augmentation, random_state=0, device=args.device)
    sets = [("digits", X, y, digits, args.lengths)]
    if args.fashion:
        X, y = load_images("Fashion-MNIST")[:2]
        fashion = ContrastiveEmbedder(encoder=PatchNet(), random_state=0, device=args.device)
        sets.append(("Fashion-MNIST", X[:10000, None], y[:10000], fashion, (1, 4, 8)))
    with Table("estimates", args, labels=2) as table:
        for name, X, y, embedder, lengths in sets:
            trained = 0
            for length in lengths:
                for _ in range(length - trained):
                    embedder.partial_fit(X)
                trained = length
                table.add(row(name, length, embedder, X, y, args.n_positives))


if __name__ == "__main__":
    main()
