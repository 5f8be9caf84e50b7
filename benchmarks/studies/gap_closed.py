"""What share of the gap from InfoNCE to the oracle is closed, and by which samples of p⁺.

    python -m benchmarks.studies.gap_closed FOLDER  # which holds fashion_mnist.npz
    python -m benchmarks.studies.gap_closed FOLDER --embedder
    python -m benchmarks.studies.gap_closed FOLDER --kinds images series
    python -m benchmarks.studies.gap_closed FOLDER --report

DCL and its successors assume samples v ~ p⁺ of the anchor's class that correct the mean over
candidates. An MLP is trained on pixels, with 256 negatives of other samples, and v is

- "view": the other view of the sample, as in every implementation;
- "5 labels": samples of the class, drawn from five labels per class; others keep the view;
- "groups": samples of the same tenth of a class, which nobody knows to be of one class;
- "neighbours": the 5 mutual nearest neighbours in the embedding of a third of the steps;
- "all": samples of the class, drawn with all labels.

They correct, or as "attract" are further positives; "view, attract" has two more views of the
sample as positives, as an anchor without mates. "Supervised" is the oracle, with all labels.
τ⁺ is the share of a class. All are judged on held-out samples by a linear probe with all labels,
and by the mean of ten draws of 5 labels per class. Each row is stored when it is measured, in
results/gap_closed.jsonl, and skipped when the script runs again.

With `--embedder`, a ``ContrastiveEmbedder`` of digits gets the groups, "neutral", "positive" or
"correct", with weak views (noise of .3 standard deviations). Batches of 128 are pairs of a group,
or random with "neutral" and all labels, and the other samples are candidates. With `--kinds`,
embedders of images, series, graphs and the features of a frozen network have the encoder and, as
"usual" views, the augmentation of their kind, for as many steps; the samples of p⁺ are groups of
five labels per class, or of all.
"""

from __future__ import annotations

import argparse
import json
import os
from functools import lru_cache
from itertools import product
from pathlib import Path
from time import process_time

import numpy as np
import torch
from scipy.stats import t as student
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import NearestNeighbors
from torch import nn

from benchmarks._graph_sets import load_graphs
from benchmarks._image_sets import FOLDER
from benchmarks._photographs import load as load_photographs
from benchmarks._photographs import pretrained_encoder
from benchmarks._series_sets import load_series
from skcontrast import ContrastiveEmbedder, contrastive_loss
from skcontrast.augmentation import GaussianNoise, NodeDrop
from skcontrast.encoders import MLP
from skcontrast.features import Frozen
from skcontrast.losses import DCL, HCL, PUCL, InfoNCE, PositiveDebiased, Supervised
from skcontrast.similarity import Cosine

RESULTS = Path(__file__).parent / "results" / "gap_closed.jsonl"
SETS = {"digits": range(10), "garments 0 2 4 6": (0, 2, 4, 6)}
# Noise, and the share of pixels that are set to 0.
VIEWS = {"weak": (0.1, 0.0), "usual": (0.3, 0.1), "strong": (0.5, 0.3)}
TEMPERATURES = (0.2, 0.5)
# Weak views where they are not noise of .1.
WEAK = {"graphs": NodeDrop(0.05), "frozen features": GaussianNoise(0.3)}
KINDS = {
    "digits as images": "digits",
    "images": "Fashion-MNIST",
    "series": "FacesUCR",
    "graphs": "ENZYMES",
    "frozen features": "pbc",
}
SOURCES = ("5 labels", "groups", "neighbours", "all")
N_TRAIN, N_TEST, BATCH, STEPS, N_MATES, N_SEEDS = 600, 1500, 128, 150, 2, 5
COLUMNS = ("5 labels per class", "linear probe")
NAMES = ("set", "views", "temperature", "loss", "v", "role", "seed")


def load(name, seed, folder):
    """Return training and test samples, pixels in [0, 1], and their classes from 0."""
    if name in KINDS:
        X, y = samples(name, folder)
    elif name == "digits":
        X, y = load_digits(return_X_y=True)
        X = X / 16
    else:
        with np.load(folder / "fashion_mnist.npz") as file:
            X, y = file["X_train"][:20_000].reshape(20_000, -1) / 255, file["y_train"][:20_000]
    kept = np.flatnonzero(np.isin(y, SETS.get(name, y)))
    kept = np.random.default_rng(seed).permutation(kept)[: N_TRAIN + N_TEST]
    X, y = X[kept], np.unique(y[kept], return_inverse=True)[1]
    X, n = X if name in KINDS else X.astype(np.float32), min(N_TRAIN, 2 * len(kept) // 3)
    return X[:n], y[:n], X[n:], y[n:]


def mutual_neighbors(H, k=5):
    """Return for each row the nearest neighbours that have it among theirs, at most k."""
    found = NearestNeighbors(n_neighbors=k + 1).fit(H).kneighbors(H)[1][:, 1:]
    are_near = np.zeros((len(H), len(H)), bool)
    np.put_along_axis(are_near, found, True, 1)
    return [np.flatnonzero(row) for row in are_near & are_near.T]


def known_mates(source, y, rng):
    """Return for each sample the rows from which its mates are drawn; none leaves the view."""
    if source == "all":
        labels = y
    elif source == "groups":  # each class in ten parts
        labels = y * 10 + rng.integers(0, 10, len(y))
    else:
        few = [rng.choice(np.flatnonzero(y == k), 5, replace=False) for k in np.unique(y)]
        labels = np.full(len(y), -1)
        labels[np.concatenate(few)] = y[np.concatenate(few)]
    rows = [np.flatnonzero(labels == label) for label in labels]
    return [r[r != k] if labels[k] >= 0 else r[:0] for k, r in enumerate(rows)]


def fitted(X, y, loss, source, role, views, temperature, seed):
    """Return the trained network, as a function of samples."""
    torch.manual_seed(seed)
    rng, (noise, dropped) = np.random.default_rng(seed), VIEWS[views]
    net = nn.Sequential(nn.Linear(X.shape[1], 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU())
    head, x, labels = nn.Linear(128, 32), torch.tensor(X), torch.tensor(y)
    optimizer = torch.optim.Adam([*net.parameters(), *head.parameters()], lr=1e-3)
    mates = None
    if source == "view" and role == "attract":
        mates = [[]] * len(y)
    elif source not in ("view", "neighbours"):
        mates = known_mates(source, y, rng)

    def view(rows):
        kept = torch.rand(len(rows), X.shape[1]) >= dropped
        return head(net((x[rows] + noise * torch.randn(len(rows), X.shape[1])) * kept))

    for step in range(STEPS):
        if source == "neighbours" and step == STEPS // 3:
            mates = mutual_neighbors(net(x).detach().numpy())
        order = rng.permutation(len(y))
        rows, others = order[:BATCH], order[BATCH : 3 * BATCH]
        first, second, queue = view(rows), view(rows), view(others)
        more = []
        for _ in range(0 if mates is None else N_MATES):
            drawn = [rng.choice(mates[k]) if len(mates[k]) else k for k in rows]
            more.append(view(np.array(drawn)))
        given = {"correct_with": more} if more and role == "correct" else {}
        given |= {"y": labels[rows], "queue_y": labels[others]} if loss.requires_y else {}
        views_of = [first, second, *(more if role == "attract" else ())]
        value = contrastive_loss(
            *views_of, queue=queue, loss=loss, similarity=Cosine(temperature), **given
        )
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
    return lambda Z: net(torch.tensor(Z)).detach().numpy()


def judged(H, y, H_test, y_test, seed):
    """Return the accuracies with 5 labels per class, and with all."""
    mean, std = H.mean(0), H.std(0) + 1e-6
    H, H_test, rng, few = (H - mean) / std, (H_test - mean) / std, np.random.default_rng(seed), []
    for _ in range(10):
        rows = [rng.choice(np.flatnonzero(y == k), 5, replace=False) for k in np.unique(y)]
        rows = np.concatenate(rows)
        few.append(LogisticRegression(max_iter=500).fit(H[rows], y[rows]).score(H_test, y_test))
    linear = LogisticRegression(max_iter=300, C=0.1).fit(H, y).score(H_test, y_test)
    return float(np.mean(few)), float(linear)


def rows_of(name, views):
    """Yield the loss, and who corrects or attracts, of each row."""
    tau = 1 / len(SETS[name])
    yield "InfoNCE", InfoNCE(), "view", "correct"
    yield "Supervised", Supervised(), "view", "correct"
    for source, role in product(("view", *SOURCES), ("correct", "attract")):
        yield "DCL", DCL(tau_plus=tau), source, role
    others = {
        "HCL": HCL(tau_plus=tau),
        "PUCL": PUCL(tau_plus=tau),
        "PositiveDebiased": PositiveDebiased(tau_plus=tau, negatives=DCL(tau_plus=tau)),
    }
    for loss, source in product(others if views == "weak" else (), ("view", "all")):
        yield loss, others[loss], source, "correct"


def embedder_rows(y, seed):
    """Yield the loss, the groups, and what they do, of each row of an embedder."""
    tenths = y * 10 + np.random.default_rng(seed).integers(0, 10, len(y))
    for label, loss in {"InfoNCE": InfoNCE(), "DCL": DCL(tau_plus=0.1)}.items():
        yield label, loss, None, "view", "correct"
        yield label, loss, tenths, "groups", "neutral"
        yield label, loss, tenths, "groups", "positive"
    yield "DCL", DCL(tau_plus=0.1), tenths, "groups", "correct"
    yield "DCL", DCL(tau_plus=0.1), y, "all", "correct"
    yield "Supervised", Supervised(), None, "view", "correct"


def embedded(X, y, loss, groups, role, temperature, seed):
    """Return the embeddings of a trained embedder, as a function of samples."""
    same = role if groups is not None else "neutral"
    embedder = ContrastiveEmbedder(
        MLP((128, 128)),
        loss=loss,
        similarity=Cosine(temperature),
        augmentation=GaussianNoise(0.3),
        same_group=same,
        random_state=seed,
        device="cpu",
    )
    given = {} if groups is None else {"groups": groups}
    return embedder.fit(X, y if loss.requires_y else None, **given).transform


@lru_cache(maxsize=1)
def samples(kind, folder):
    """Return all samples of a kind's set, and their classes from 0."""
    name = KINDS[kind]
    if kind == "digits as images":
        return load_digits().images.astype(np.float32) / 16, load_digits().target
    if kind == "images":
        with np.load(folder / "fashion_mnist.npz") as file:
            return file["X_train"][:6000], file["y_train"][:6000].astype(int)
    if kind == "series":
        return load_series(name, folder)[:2]
    if kind == "graphs":
        return load_graphs(name, folder)
    os.environ[FOLDER] = str(folder)
    X, y, X_test, y_test = load_photographs(name, 224)
    X, y = np.concatenate([X, X_test]), np.concatenate([y, y_test])
    return Frozen(pretrained_encoder("lite0")).fit(X[:128]).transform(X), y


def kind_rows(y, seed):
    """Yield the loss, the groups, and what they do, of each row of an embedder of a kind."""
    mates = known_mates("5 labels", y, np.random.default_rng(seed))
    few = np.where([len(rows) > 0 for rows in mates], y, -1)
    dcl = DCL(tau_plus=1 / len(np.unique(y)))
    yield "InfoNCE", InfoNCE(), None, "view", "correct"
    yield "Supervised", Supervised(), None, "view", "correct"
    yield "DCL", dcl, None, "view", "correct"
    for groups, source in ((few, "5 labels"), (y, "all")):
        yield "DCL", dcl, groups, source, "correct"
        yield "DCL", dcl, groups, source, "positive"


def of_kind(X, y, kind, loss, groups, role, views, temperature, seed):
    """Return the trained embedder of a kind, as a function of samples."""
    embedder = ContrastiveEmbedder(
        loss=loss,
        similarity=Cosine(temperature),
        augmentation=WEAK.get(kind, GaussianNoise(0.1)) if views == "weak" else None,
        same_group="neutral" if groups is None else role,
        batch_size=BATCH,
        max_epochs=STEPS // -(-len(y) // BATCH),
        random_state=seed,
        device="cpu",
    )
    given = {} if groups is None else {"groups": groups}
    return embedder.fit(X, y if loss.requires_y else None, **given).transform


def stored(path):
    """Return the rows that have been measured."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def report(rows):
    """Print the differences from InfoNCE, with 95 % intervals, and the share of the gap."""
    by = {}
    for row in rows:
        cell = by.setdefault((row["set"], row["views"], row["temperature"]), {})
        cell.setdefault((row["loss"], row["v"], row["role"]), {})[row["seed"]] = row
    print("| set, views, temperature | loss, v, role |", " | ".join(COLUMNS), "|")
    for key, cells in by.items():
        start, oracle = (cells.get((k, "view", "correct")) for k in ("InfoNCE", "Supervised"))
        for label, of_seeds in cells.items():
            seeds = sorted(set(of_seeds) & set(start or {}) & set(oracle or {}))
            texts = [", ".join(map(str, key)), ", ".join(label)]
            for column in COLUMNS if len(seeds) > 1 else ():
                gain = np.array([of_seeds[s][column] - start[s][column] for s in seeds])
                gap = np.array([oracle[s][column] - start[s][column] for s in seeds])
                half, least = (
                    student.ppf(0.975, len(seeds) - 1) * x.std(ddof=1) / len(seeds) ** 0.5
                    for x in (gain, gap)
                )  # of a gap that is not significant, no share is reported
                share = f" ({gain.mean() / gap.mean():.0%})" if gap.mean() > least else ""
                texts.append(f"{gain.mean():+.3f} ± {half:.3f}{share}")
            print("|", " | ".join(texts), "|")


def run(parser, path, cells, report):
    """Measure the rows that are missing, or report those that are stored.

    `cells` yields rows for the options; each is stored before the next is measured.
    """
    parser.add_argument("folder", type=Path)
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--rows", type=Path, default=path, help="file of the rows")
    args = parser.parse_args()
    if args.report:
        report(stored(args.rows))
        return
    torch.set_num_threads(1)
    for row in cells(args):
        with args.rows.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print("|", " | ".join(map(str, row.values())), "|", flush=True)


def main():
    """Measure the rows that are missing, or report those that are stored."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--embedder", action="store_true", help="with the embedder's batches")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, help="embedders of other kinds")
    run(parser, RESULTS, cells, report)


def cells(args):
    """Yield each row that is not yet stored, as it is measured."""
    done = {tuple(row[name] for name in NAMES) for row in stored(args.rows)}
    sets = args.kinds or (["digits"] if args.embedder else SETS)
    all_views = ["weak"] if args.embedder else ["weak", "usual"] if args.kinds else VIEWS
    for seed, name, views, temperature in product(range(N_SEEDS), sets, all_views, TEMPERATURES):
        X, y, X_test, y_test = load(name, seed, args.folder)
        rows = rows_of(name, views)
        if args.kinds or args.embedder:
            rows = (kind_rows if args.kinds else embedder_rows)(y, seed)
        for label, loss, *groups, source, role in rows:
            title = f"{name}, embedder" if args.embedder else name
            key = (title, views, temperature, label, source, role, seed)
            if key in done:
                continue
            begin = process_time()
            if args.kinds:
                embed = of_kind(X, y, name, loss, *groups, role, views, temperature, seed)
            elif args.embedder:
                embed = embedded(X, y, loss, *groups, role, temperature, seed)
            else:
                embed = fitted(X, y, loss, source, role, views, temperature, seed)
            found = judged(embed(X), y, embed(X_test), y_test, seed)
            row = dict(zip(NAMES, key, strict=True)) | dict(zip(COLUMNS, found, strict=True))
            yield row | {"CPU s": round(process_time() - begin, 2)}


if __name__ == "__main__":
    main()
