"""Images of any size from scratch: the default embedder, what costs less, and both.

    python -m benchmarks.studies.image_sizes --sets steel cells
    python -m benchmarks.studies.image_sizes --side 16 --rows ConvNet PatchNet --n 300
    python -m benchmarks.studies.image_sizes --rows --n 250  # compares the encoders

Sets, halves and columns are those of pretrained.py; ``--n`` is the most images to train on.
"default" is ``ContrastiveEmbedder(random_state=seed)``, "ConvNet" and "PatchNet" the same with
that encoder. "patches" and "HOG" are those of `skcontrast.features`, "whitened" are whitened
patches, and the last row has the default, patches and HOG, with equal weight. Next to them are the
pixels of images of 24×24 and the embedder with its first weights. All columns are standardised.
CPU seconds are those of `fit`. ``--rows`` without names compares "ConvNet" and "PatchNet" in all
stored tables of ``--n`` images: means over the sets, and the paired difference.
"""

from __future__ import annotations

import time

import numpy as np
import torch
from sklearn.base import clone
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from benchmarks._photographs import COLUMNS, ZIPS, judge, resized
from benchmarks._photographs import load as load_photographs
from benchmarks._results import Table, load, make_parser, middle, paired, spread
from skcontrast import ContrastiveEmbedder, ViewWhitening
from skcontrast.encoders import ConvNet, PatchNet
from skcontrast.features import OrientedGradients, PatchDictionary

PARTS = ("default", "patches", "HOG")
BOTH = ", ".join(PARTS)
ENCODERS = ("ConvNet", "PatchNet")
SIZES = ((16, 23), (24, 47))


def pixels(X):
    """Return the pixels of images of 24×24."""
    return resized(X, 24).reshape(len(X), -1).astype(np.float32)


ROWS = {
    "pixels, 24×24": FunctionTransformer(pixels),
    "patches": PatchDictionary(),
    "whitened": ViewWhitening(PatchDictionary(random_state=0)),
    "HOG": OrientedGradients(),
    "untrained": ContrastiveEmbedder(max_epochs=1, lr=1e-12),
    "ConvNet": ContrastiveEmbedder(ConvNet()),
    "PatchNet": ContrastiveEmbedder(PatchNet()),
    "default": ContrastiveEmbedder(),
}


def represented(row, X, X_test, epochs, seed):
    """Return both parts as a row has them, standardised, and CPU seconds of the fit."""
    model = clone(ROWS[row])
    if "random_state" in model.get_params():
        model.set_params(random_state=seed)
    if epochs and model.get_params().get("max_epochs") == "auto":
        model.set_params(max_epochs=epochs)
    start = time.process_time()
    model.fit(X)
    spent = time.process_time() - start
    scaler = StandardScaler().fit(H := model.transform(X))
    return scaler.transform(H), scaler.transform(model.transform(X_test)), spent


def run(data, args, seed):
    """Return accuracies and CPU seconds by row."""
    X, y, X_test, y_test = data
    X, y = X[: args.n], y[: args.n]
    made = {row: represented(row, X, X_test, args.epochs, seed) for row in args.rows}
    if made.keys() >= set(PARTS):
        blocks = [[H / H.shape[1] ** 0.5 for H in made[part][:2]] for part in PARTS]
        made[BOTH] = *(np.hstack(part) for part in zip(*blocks, strict=True)), None
    return {row: (judge(u, y, v, y_test), spent) for row, (u, v, spent) in made.items()}


def compared(tables, n):
    """Yield means over sets of n images and paired differences of two encoders, by size.

    A set that is stored at several sizes of a range counts once, with their mean.
    """
    for low, high in SIZES:
        sets = {}
        for name, table in tables.items():
            data, side, *rest = name.split(", ")
            if rest == [f"{n} images"] and low <= int(side) <= high:
                sets.setdefault(data, []).append({row["row"]: row for row in table["rows"]})
        for column in (*COLUMNS, "CPU s"):
            ours, theirs = ([_mean(of, row, column) for of in sets.values()] for row in ENCODERS)
            means = dict(zip(ENCODERS, (np.mean(ours), np.mean(theirs)), strict=True))
            means["difference"] = means[ENCODERS[0]] - means[ENCODERS[1]]
            yield {"pixels": f"{low} to {high}", "column": column, **means, **paired(ours, theirs)}


def _mean(tables, row, column):
    return np.mean([middle(rows[row][column]) for rows in tables])


def main():
    """Print a table for each set, or one that compares two encoders."""
    parser = make_parser(__doc__, side=96, seeds=1, n=800, epochs=int)
    parser.add_argument("--sets", nargs="+", default=[*ZIPS])
    parser.add_argument("--rows", nargs="*", default=[*ROWS], choices=ROWS)
    parser.add_argument("--suffix", default="", help="of the name under which --save stores it")
    args = parser.parse_args()
    torch.set_num_threads(1)
    if not args.rows:
        with Table(f"ConvNet and PatchNet, n = {args.n}", args, labels=2) as table:
            for row in compared(load(table.path), args.n):
                table.add(row)
        return
    for name in args.sets:
        data = load_photographs(name, args.side)
        runs = [run(data, args, seed) for seed in range(args.seeds)]
        title = f"{name}, {data[0].shape[-1]}" + (f", {args.n} images" if args.n < 800 else "")
        with Table(title + args.suffix, args, ratios=COLUMNS) as table:
            for row in runs[0]:
                figures = map(spread, np.transpose([one[row][0] for one in runs]).tolist())
                spent = [one[row][1] for one in runs]
                seconds = None if None in spent else float(np.mean(spent))
                columns = dict(zip(COLUMNS, figures, strict=True))
                table.add({"row": row, **columns, "CPU s": seconds})


if __name__ == "__main__":
    main()
