"""Images of 96 pixels from nothing: the default embedder and what costs less.

    python -m benchmarks.studies.image_sizes --sets steel cells
    python -m benchmarks.studies.image_sizes --sets textures --side 192

Sets, halves and columns are those of pretrained.py. "default" is
``ContrastiveEmbedder(random_state=seed)``, "learned" its learned columns, "codes" and "gradients"
the other two blocks. Beside them stand the standardised pixels of images of 24×24, the embedder
with its first weights, and the default trained on the images reduced to 32 pixels. CPU seconds are
those of `fit`.
"""

from __future__ import annotations

import time

import numpy as np
import torch
from PIL import Image

from benchmarks._photographs import COLUMNS, ZIPS, judge, load
from benchmarks._results import Table, make_parser, spread
from skcontrast import ContrastiveEmbedder


def resized(X, side):
    """Return images of another size."""
    images = (Image.fromarray(x.transpose(1, 2, 0)) for x in X)
    small = [np.asarray(image.resize((side, side), Image.BILINEAR)) for image in images]
    return np.stack(small).transpose(0, 3, 1, 2).copy()


def pixels(X, X_test):
    """Return standardised pixels of images of 24×24."""
    u, v = (resized(part, 24).reshape(len(part), -1) / 255 for part in (X, X_test))
    mean, std = u.mean(0), u.std(0) + 1e-9
    return (u - mean) / std, (v - mean) / std


def embedded(X, X_test, **params):
    """Return both parts embedded, where the blocks end, and CPU seconds of the fit."""
    start = time.process_time()
    embedder = ContrastiveEmbedder(**params).fit(X)
    spent = time.process_time() - start
    beside = embedder.encoder_[1].beside
    ends = np.cumsum([beside.learned_width, *(len(scale.mean) for scale in beside.scales)])
    return embedder.transform(X), embedder.transform(X_test), ends, spent


def rows_of(data, seed):
    """Return accuracies, and the seconds where something was trained, by row."""
    X, y, X_test, y_test = data
    found = {"pixels, 24×24": (pixels(X, X_test), None)}
    *start, _, _ = embedded(X, X_test, random_state=seed, max_epochs=1, lr=1e-12)
    *small, _, spent = embedded(resized(X, 32), resized(X_test, 32), random_state=seed)
    found |= {"default, its start": (start, None), "default, at 32 pixels": (small, spent)}
    *both, ends, spent = embedded(X, X_test, random_state=seed)
    blocks = {
        "codes": slice(ends[0], ends[1]),
        "gradients": slice(ends[1], ends[2]),
        "learned": slice(ends[0]),
        "default": slice(None),
    }
    for name, block in blocks.items():
        h = [part[:, block] for part in both]
        found[name] = (h, spent if name == "default" else None)
    return {name: (judge(u, y, v, y_test), s) for name, ((u, v), s) in found.items()}


def main():
    """Print a table for each set."""
    parser = make_parser(__doc__)
    parser.add_argument("--sets", nargs="*", default=[*ZIPS])
    parser.add_argument("--side", type=int, default=96)
    parser.add_argument("--seeds", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(1)
    for name in args.sets:
        data = load(name, args.side)
        runs = [rows_of(data, seed) for seed in range(args.seeds)]
        with Table(f"{name}, {args.side}", args, ratios=COLUMNS) as table:
            for row in runs[0]:
                scores = np.array([run[row][0] for run in runs])
                figures = map(spread, scores.T.tolist())
                seconds = [run[row][1] for run in runs]
                spent = None if seconds[0] is None else float(np.mean(seconds))
                table.add({"row": row, **dict(zip(COLUMNS, figures, strict=True)), "CPU s": spent})


if __name__ == "__main__":
    main()
