"""The embedder with default settings on tables: breast cancer, wine and flattened digits.

    python benchmarks/vectors.py

Linear probes on the embedding and on the standardised raw features, with all labels and with 5
per class; 3 splits, 10 draws of labels each. The features go in as they come: unscaled.
"""

from __future__ import annotations

import numpy as np
from _probe import few_label_probe, linear_probe
from _results import Table, make_parser
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.model_selection import train_test_split

from skcontrast import ContrastiveEmbedder
from skcontrast.augmentation import MarginalCorruption

COLUMNS = (
    "all labels, raw",
    "all labels, embedded",
    "5 per class, raw",
    "5 per class, embedded",
)
SETS = {"breast cancer": load_breast_cancer, "wine": load_wine, "digits": load_digits}


def accuracies(X, y, seed, **params):
    """Return accuracies (all labels: raw, embedded; 5 per class: raw, embedded) of one split."""
    split = train_test_split(X, y, test_size=0.3, stratify=y, random_state=seed)
    X_train, X_test, y_train, y_test = split
    embedder = ContrastiveEmbedder(
        augmentation=MarginalCorruption(), random_state=seed, device="cpu", **params
    )
    H_train = embedder.fit_transform(X_train)
    pairs = (X_train, X_test), (H_train, embedder.transform(X_test))
    full = [linear_probe(a, y_train, b, y_test) for a, b in pairs]
    few = [few_label_probe(a, y_train, b, y_test, 5).mean() for a, b in pairs]
    return [*full, *few]


def main():
    """Print the table."""
    with Table("accuracy", make_parser(__doc__).parse_args()) as table:
        rows = []
        for name, load in SETS.items():
            X, y = load(return_X_y=True)
            rows.append(np.mean([accuracies(X, y, seed) for seed in range(3)], axis=0))
            table.add({"data": name, **dict(zip(COLUMNS, rows[-1], strict=True))})
        mean = np.mean(rows, axis=0)
        table.add({"data": "mean", **dict(zip(COLUMNS, mean, strict=True))})


if __name__ == "__main__":
    main()
