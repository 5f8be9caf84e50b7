"""Posteriors of a true negative: by rank (BCL, SoftRing), and by mixtures that EM fits to scores.

    python -m benchmarks.studies.posteriors  # digits
    python -m benchmarks.studies.posteriors --sets CIFAR-10 --seeds 1

The Brier score of p(true negative) along a training with InfoNCE, on the embedders and scores of
`real_scores`. A mixture of two Gaussian or two beta densities (Xia et al. 2022) is fitted to all
scores of the candidates, without labels, as are the constant 1 − τ⁺ and BCL with α = .9, which
know τ⁺ alone; "labels" are those of other samples. "mixed" is the prior that the EM has found for
the component of the higher mean.
"""

from __future__ import annotations

import numpy as np
import torch
from scipy.stats import beta, norm

from benchmarks._results import Table, make_parser, spread
from benchmarks.studies.real_scores import (
    LENGTHS,
    cifar,
    digits,
    fashion,
    losses,
    scores_of,
    stages,
)
from skcontrast.estimation import reliability

SETS = {"digits": digits, "Fashion-MNIST": fashion, "CIFAR-10": cifar}
BY_RANK = {
    "constant": "DCL",
    "BCL(.9)": "BCL(.9)",
    "BCL, α by labels": "BCL fitted",
    "SoftRing, k by labels": "SoftRing, fitted AUC",
    "SoftRing, k and f by labels": "SoftRing, fitted k, f",
}
N_SCORES, N_STEPS = 50_000, 100


def gaussian(x, mean, variance):
    """Return the density of a Gaussian."""
    return norm.pdf(x, mean, np.sqrt(variance))


def beta_density(x, mean, variance):
    """Return the density of a beta distribution, on (0, 1), by its moments."""
    total = mean * (1 - mean) / variance - 1
    return beta.pdf(x, mean * total, (1 - mean) * total)


def fit(scores, density, prior):
    """Return a function from scores to p(true negative), and the prior of the upper component.

    EM on a mixture of two densities; the M step takes weighted moments, which for beta densities
    is not the maximum of the likelihood, but the common way. It starts at the upper share `prior`
    of the scores against the rest.
    """
    low, high = scores.min(), scores.max()

    def scaled(s):
        return np.clip((s - low) / (high - low), 1e-4, 1 - 1e-4)

    x = scaled(np.random.default_rng(0).choice(scores.ravel(), N_SCORES))
    upper = (x > np.quantile(x, 1 - prior)).astype(float)
    for _ in range(N_STEPS):
        shares, parts = [], []
        for p in (1 - upper, upper):
            mean = (p * x).sum() / p.sum()
            shares.append(p.mean())
            parts.append((mean, max((p * (x - mean) ** 2).sum() / p.sum(), 1e-6)))

        def p_upper(x, shares=tuple(shares), parts=tuple(parts)):
            one, other = (w * density(x, *m) for w, m in zip(shares, parts, strict=True))
            return other / np.maximum(one + other, 1e-300)

        upper = p_upper(x)
    return lambda s: 1 - p_upper(scaled(s)), shares[1]


def observe(embedder, X, y, seed):
    """Return the figures of one embedder."""
    n = min(256, len(y) // 2)
    rows, known = np.split(np.random.default_rng(seed).permutation(len(y))[: 2 * n], 2)
    auc, fitted_on, _ = scores_of(embedder, X[known], y[known], seed)
    rivals = losses(auc, fitted_on)
    auc, sample, _ = scores_of(embedder, X[rows], y[rows], seed)
    found = {"AUC": auc.value}
    found |= {name: reliability(rivals[of], sample).brier for name, of in BY_RANK.items()}
    prior = (~sample.is_negative).mean()
    for name, density in (("Gaussian", gaussian), ("beta", beta_density)):
        p, mixed = fit(sample.scores, density, prior)
        found[f"{name} EM"] = ((p(sample.scores) - sample.is_negative) ** 2).mean()
        found[f"{name}: mixed"] = mixed
    return found


def main():
    """Print and store a table for each set."""
    parser = make_parser(__doc__)
    parser.add_argument("--sets", nargs="+", default=["digits"], choices=list(SETS))
    parser.add_argument("--images", type=int, default=1500, help="number of images")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS)
    args = parser.parse_args()
    torch.set_num_threads(1)
    for name in args.sets:
        runs = []
        for seed in range(args.seeds):
            X, y, own = SETS[name](args, seed)
            runs.append([observe(one, X, y, seed) for one in stages(X, own, args.lengths, seed)])
        with Table(name, args) as table:
            for length, *by_seed in zip(sorted(args.lengths), *runs, strict=True):
                means = {key: spread([float(one[key]) for one in by_seed]) for key in by_seed[0]}
                table.add({"epochs": length, **means})


if __name__ == "__main__":
    main()
