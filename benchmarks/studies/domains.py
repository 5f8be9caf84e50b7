"""Plates, sites, subjects: what it gains to draw every batch from one domain.

    python -m benchmarks.studies.domains

The digits, as if they came from five plates: "background" mixes an image of its own into those of
each plate, "gain and offset" multiplies, lifts and shifts them. Embedders of all images without
labels, default encoder and views. "Same domain" is the share of the ten nearest neighbours that
are from the plate of the image; a fifth is chance. The accuracies are those of ten neighbours and
of a logistic regression that know the classes of one plate and are judged on the others, means
over the plates. "By domain" standardises each plate by itself, which costs nothing.
"""

from __future__ import annotations

import os

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors
from sklearn.preprocessing import StandardScaler

from benchmarks._results import Table, make_parser, spread
from skcontrast import ContrastiveEmbedder

N_DOMAINS = 5
COLUMNS = ("same domain", "10-NN elsewhere", "linear elsewhere")


def background(X, domains, rng):
    """Mix an image of noise into those of each domain."""
    noise = rng.random((N_DOMAINS, *X.shape[1:]))
    return 0.6 * X + 0.24 * noise[domains]


def gain_and_offset(X, domains, rng):
    """Multiply, lift and shift the images of each domain."""
    gain = np.linspace(0.3, 1.0, N_DOMAINS)[domains, None, None, None]
    offset = rng.permutation(np.linspace(0.0, 0.3, N_DOMAINS))[domains, None, None, None]
    shifts = rng.integers(-1, 2, (N_DOMAINS, 2))
    moved = np.stack([np.roll(x, shifts[k], (1, 2)) for x, k in zip(X, domains, strict=True)])
    return 0.7 * gain * moved + offset


MADE = {"background": background, "gain and offset": gain_and_offset}


def by_domain(H, domains):
    """Standardise each domain by itself."""
    H = H.copy()
    for k in np.unique(domains):
        H[domains == k] = StandardScaler().fit_transform(H[domains == k])
    return H


def judged(H, y, domains):
    """Return the columns of a representation."""
    H = StandardScaler().fit_transform(H)
    neighbors = NearestNeighbors(n_neighbors=11).fit(H).kneighbors(H, return_distance=False)[:, 1:]
    known = [domains == k for k in np.unique(domains)]

    def elsewhere(classifier):
        return np.mean([classifier.fit(H[a], y[a]).score(H[~a], y[~a]) for a in known])

    same = np.mean(domains[neighbors] == domains[:, None])
    found = elsewhere(KNeighborsClassifier(10)), elsewhere(LogisticRegression(max_iter=300))
    return dict(zip(COLUMNS, (same, *found), strict=True))


def run(made, args, seed):
    """Return the columns of all rows for a seed."""
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(seed)
    domains = rng.integers(0, N_DOMAINS, len(X))
    X = MADE[made](X.reshape(-1, 1, 8, 8) / 16, domains, rng).astype(np.float32)
    embedder = ContrastiveEmbedder(max_epochs=args.epochs, random_state=seed, device="cpu")
    start = ContrastiveEmbedder(max_epochs=1, lr=1e-12, random_state=seed, device="cpu")
    rows = {
        "as they are": X.reshape(len(X), -1),
        "untrained": start.fit_transform(X),
        "default": embedder.fit_transform(X),
        "domains=": embedder.fit(X, domains=domains).transform(X),
    }
    rows |= {f"{name}, by domain": by_domain(H, domains) for name, H in rows.items()}
    return {name: judged(H, y, domains) for name, H in rows.items()}


def main():
    """Print a table for each way in which plates are made."""
    parser = make_parser(__doc__)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--seeds", type=int, default=5)
    args = parser.parse_args()
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "2")))
    for made in MADE:
        found = [run(made, args, seed) for seed in range(args.seeds)]
        with Table(f"domains: {made}", args, ratios=COLUMNS) as table:
            for row in found[0]:
                of = {column: spread([one[row][column] for one in found]) for column in COLUMNS}
                table.add({"row": row, **of})


if __name__ == "__main__":
    main()
