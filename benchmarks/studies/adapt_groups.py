"""A pretrained network adapted by views or by groups: quadrants of photographs, which are groups.

    SKCONTRAST_BENCHMARK_DATA=FOLDER python -m benchmarks.studies.adapt_groups FOLDER
    python -m benchmarks.studies.adapt_groups FOLDER --report

EfficientNet-lite0 on quadrants of 96 pixels; 800 quadrants of 200 photographs to learn from, 1,200
of 300 others to judge. A seed sets the photographs, the labels and the views, for all rows alike:
"frozen", and ``adapt=True`` by "views", by groups with ``same_group="positive"``, and by groups
that correct DCL. Each is judged as it is, and after `GroupWhitening`. The classifiers have 5
labels per class, the mean of three draws, and no groups: `ContrastiveClassifier` on the frozen
network, on the one adapted by views, and on both as two weighted blocks.

Each row is stored when it is measured, in results/adapt_groups.jsonl, and skipped afterwards.
"""

from __future__ import annotations

import argparse
import io
import os
import zipfile
from itertools import product
from pathlib import Path
from time import process_time

import numpy as np
from PIL import Image
from scipy.stats import t as student
from sklearn.frozen import FrozenEstimator

from benchmarks._image_sets import FOLDER
from benchmarks._photographs import COLUMNS, ZIPS, judge, pretrained_encoder, some_of_each
from benchmarks._protocol import remembering
from benchmarks.studies.gap_closed import run, stored
from skcontrast import ContrastiveClassifier, ContrastiveEmbedder, GroupWhitening
from skcontrast.losses import DCL

RESULTS = Path(__file__).parent / "results" / "adapt_groups.jsonl"
SETS, N_SEEDS, SIDE = ("satellite", "textures"), 3, 96
N_TRAINED, N_PHOTOGRAPHS, N_LABELS, N_DRAWS = 200, 500, 5, 3
ROWS = {
    "frozen": {},
    "views": {},
    "positive": {"same_group": "positive"},
    "correct": {"same_group": "correct", "loss": DCL()},
}
NAMES = ("set", "seed", "row")


def quadrants(name, seed):
    """Return quadrants of photographs, their classes, and the numbers of the photographs."""
    path = Path(os.environ.get(FOLDER, ""), "images", f"{ZIPS[name]}.zip")
    X, y, g = [], [], []
    with zipfile.ZipFile(path) as file:
        names = sorted(n for n in file.namelist() if n.lower().endswith((".jpg", ".jpeg", ".png")))
        order = np.random.default_rng(seed).permutation(len(names))[:N_PHOTOGRAPHS]
        for i, n in enumerate(order):
            image = Image.open(io.BytesIO(file.read(names[n]))).convert("RGB")
            side = min(image.size)
            image = image.crop((0, 0, side, side)).resize((2 * SIDE,) * 2, Image.BILINEAR)
            pixels = np.asarray(image).transpose(2, 0, 1)
            for top, left in product((0, SIDE), repeat=2):
                X.append(pixels[:, top : top + SIDE, left : left + SIDE])
                y.append(names[n].split("/")[-2])
                g.append(i)
    return np.stack(X), np.unique(y, return_inverse=True)[1], np.array(g)


def classifiers(frozen, adapted, X, y, X_test, y_test):
    """Return the accuracies of classifiers on the frozen network, the adapted one, and both."""
    found = {"frozen": [], "adapted": [], "both": []}
    for draw in range(N_DRAWS):
        codes = np.full(len(y), -1)
        rows = some_of_each(y, N_LABELS, draw)
        codes[rows] = y[rows]
        second = [FrozenEstimator(adapted)]
        for key, first, blocks in (
            ("frozen", frozen, []),
            ("adapted", adapted, []),
            ("both", frozen, second),
        ):
            model = ContrastiveClassifier(first, blocks=blocks, random_state=draw)
            found[key].append(model.fit(X, codes).score(X_test, y_test))
    return {k: round(float(np.mean(v)), 4) for k, v in found.items()}


def cells(args):
    """Yield each row that is not yet stored, as it is measured."""
    done = {tuple(row[name] for name in NAMES) for row in stored(args.rows)}
    for seed, name in product(range(N_SEEDS), SETS):
        if all((name, seed, row) in done for row in ROWS):
            continue
        X, y, g = quadrants(name, seed)
        train, frozen = g < N_TRAINED, None
        X_train, X_test, y_train, y_test = X[train], X[~train], y[train], y[~train]
        for row, parameters in ROWS.items():
            if (name, seed, row) in done and row != "frozen":
                continue
            begin = process_time()
            encoder = pretrained_encoder("lite0", adapt=row != "frozen")
            embedder = ContrastiveEmbedder(encoder, random_state=seed, device="cpu", **parameters)
            embedder.fit(X_train, **({"groups": g[train]} if parameters else {}))
            H, H_test = map(remembering(embedder).transform, (X_train, X_test))
            seconds = round(process_time() - begin, 1)
            frozen = frozen or embedder
            if (name, seed, row) in done:
                continue
            L = GroupWhitening().fit(H, groups=g[train])
            found = {
                "plain": judge(H, y_train, H_test, y_test),
                "whitened": judge(L.transform(H), y_train, L.transform(H_test), y_test),
            }
            found = {k: [round(float(x), 4) for x in v] for k, v in found.items()}
            if row == "views":
                found["classifiers"] = classifiers(
                    frozen, embedder, X_train, y_train, X_test, y_test
                )
            yield dict(zip(NAMES, (name, seed, row), strict=True)) | found | {"CPU s": seconds}


def report(rows):
    """Print the accuracies of the frozen network and the differences of the others from it."""
    print("| set | row |", " | ".join(COLUMNS), "|")
    frozen = {(r["set"], r["seed"]): np.array(r["plain"]) for r in rows if r["row"] == "frozen"}
    for name, row, output in product(SETS, ROWS, ("plain", "whitened")):
        some = [r for r in rows if (r["set"], r["row"]) == (name, row)]
        gains = np.array([np.array(r[output]) - frozen[name, r["seed"]] for r in some])
        if (row, output) == ("frozen", "plain"):
            texts = [f"{x:.3f}" for x in np.mean([r["plain"] for r in some], axis=0)]
        elif len(gains) > 1:
            half = student.ppf(0.975, len(gains) - 1) * gains.std(0, ddof=1) / len(gains) ** 0.5
            texts = [f"{m:+.3f} ± {h:.3f}" for m, h in zip(gains.mean(0), half, strict=True)]
        else:
            texts = [f"{x:+.3f}" for x in gains.sum(0)]
        title = row if output == "plain" else f"{row}, whitened"
        print(f"| {name}, {len(some)} seeds | {title} |", " | ".join(texts), "|")
    print("| set, seed | frozen | adapted | both |")
    for r in rows:
        if r["row"] == "views":
            texts = [f"{x:.3f}" for x in r["classifiers"].values()]
            print(f"| {r['set']}, {r['seed']} |", " | ".join(texts), "|")


def main():
    """Measure the rows that are missing, or report those that are stored."""
    run(argparse.ArgumentParser(description=__doc__.splitlines()[0]), RESULTS, cells, report)


if __name__ == "__main__":
    main()
