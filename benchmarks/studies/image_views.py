"""Four chains of views on seven sets of images, from scratch and from a pretrained network.

    python -m benchmarks.studies.image_views --start nothing
    python -m benchmarks.studies.image_views --start pretrained --epochs 7

Sets, halves and columns are those of pretrained.py, and the digits of scikit-learn. "start" is the
embedder with its first weights: the network before it is adapted, or an encoder drawn at random,
next to patches and HOG. All chains but the default's have the flips and rotations that the images
show. Changes of colour are of brightness and contrast alone on grey images.
"""

from __future__ import annotations

import numpy as np
import torch
from sklearn.datasets import load_digits

from benchmarks._photographs import COLUMNS, ZIPS, judge, load, pretrained_network
from benchmarks._results import Table, make_parser, spread
from skcontrast import ContrastiveEmbedder
from skcontrast.augmentation import (
    ColorJitter,
    GaussianBlur,
    RandomAffine,
    RandomFlip,
    RandomGrayscale,
    RandomResizedCrop,
    image_symmetries,
)
from skcontrast.encoders import Pretrained

SETS = (*ZIPS, "CIFAR-10", "Fashion-MNIST", "digits")
TURN = RandomAffine(180, 0.0, (1.0, 1.0), 0.0, padding="reflection")


def load_set(name):
    """Return X_train, y_train, X_test, y_test of a set."""
    if name != "digits":
        return load(name)
    X, y = load_digits(return_X_y=True)
    X = (X * 255 / 16).astype(np.uint8).reshape(-1, 8, 8)
    return X[:800], y[:800], X[800:], y[800:]


def chains(X):
    """Return chains of views by name; None is the default."""
    is_grey = X.ndim == 3
    shown = image_symmetries(X, random_state=0).shown or (() if is_grey else ("left_right",))
    sides = (0.5 * (side in shown) for side in ("left_right", "up_down"))
    moves = [RandomFlip(*sides), *([TURN] if "quarter_turn" in shown else [])]
    weak = ColorJitter(0.6, 0.6, 0, 0) if is_grey else ColorJitter(0.2, 0.2, 0.2, 0.02)
    blur = GaussianBlur(p=0.3 if is_grey else 0.5)
    strong = [ColorJitter(0.8, 0.8, 0, 0), blur]
    if not is_grey:
        strong = [ColorJitter(0.8, 0.8, 0.8, 0.2, p=0.8), RandomGrayscale(0.2), blur]
    return {
        "default": None,
        "no colour": [RandomResizedCrop(scale=(0.4, 1.0)), *moves],
        "small crops": [RandomResizedCrop(scale=(0.2, 1.0)), *moves, weak],
        "strong colour": [RandomResizedCrop(scale=(0.4, 1.0)), *moves, *strong],
    }


def main():
    """Print a table of sets and chains."""
    parser = make_parser(
        __doc__, sets=list(SETS), start={"nothing": 0, "pretrained": 0}, epochs=0, seeds=1
    )
    args = parser.parse_args()
    torch.set_num_threads(1)
    for start in args.start:
        encoder = None
        if start == "pretrained":
            network = pretrained_network("lite0")
            encoder = Pretrained(network, mean=127 / 255, std=128 / 255)
        with Table(f"from {start}", args, labels=2, ratios=COLUMNS) as table:
            for name in args.sets:
                X, y, X_test, y_test = load_set(name)
                todo = {"start": {"max_epochs": 1, "lr": 1e-12}}
                for chain, steps in chains(X).items():
                    todo[chain] = {"augmentation": steps, "max_epochs": args.epochs or None}
                for row, params in todo.items():
                    params = {k: v for k, v in params.items() if v is not None}
                    runs = []
                    for seed in range(args.seeds):
                        embedder = ContrastiveEmbedder(encoder, random_state=seed, **params).fit(X)
                        parts = (embedder.transform(part) for part in (X, X_test))
                        runs.append(judge(next(parts), y, next(parts), y_test))
                    figures = map(spread, np.transpose(runs).tolist())
                    found = dict(zip(COLUMNS, figures, strict=True))
                    table.add({"set": name, "views": row, **found})


if __name__ == "__main__":
    main()
