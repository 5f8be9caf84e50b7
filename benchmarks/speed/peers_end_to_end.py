"""Peers end to end: what scripts with other libraries give, in seconds and in quality.

    pip install kornia lightly pytorch-metric-learning umap-learn torch_geometric
    OMP_WAIT_POLICY=PASSIVE python -m benchmarks.speed.peers_end_to_end
    python -m benchmarks.speed.peers_end_to_end --sets CIFAR-10 --n 4000 --epochs 25

Images: the loops are written as scripts are, a DataLoader, kornia on batches, one network for both
views, and Adam with a cosine schedule. "skcontrast" has their encoder (ConvNet), projection head,
recipe of views (that of SimCLR for colours, affine maps for grey images) and number of steps. They
differ in the loss: NT-Xent by ``F.cross_entropy``, lightly's, or that of pytorch-metric-learning.
Graphs: the loop is the usual InfoGraph of PyTorch Geometric, see graph_epoch.py, and both have GIN
of 3 layers of width 32 with sum pooling. "skcontrast, default" is the embedder with nothing chosen
but the epochs. Further rows are raw data, UMAP in ten dimensions (warmed up, since it
compiles itself), and the encoder with its first weights.

Seconds, of the CPU and on the clock, are those of training and of embedding training and test
samples; the quality is that of logistic regressions on standardised columns, with 5 labels per
class or all, and of 20 neighbours, on test samples. A seed changes the split, the weights, the
batches and the labels; contestants run in turn, in another order for each seed. p is that of a
paired t-test of the accuracies with 5 labels against those of skcontrast; "CPU ratio" is the
median over the seeds of the seconds in relation to those of skcontrast. What is not installed is
left out, and said.
"""

from __future__ import annotations

import importlib.util
from statistics import median
from time import perf_counter, process_time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from benchmarks._protocol import FEW, GRAPHS, SETS, gin, plain, split, use_threads
from benchmarks._results import Table, make_parser, means, paired
from benchmarks.speed._bench import lightly_ntxent, metric_learning, nt_xent, with_head
from benchmarks.speed.augmentation import simclr_kornia
from skcontrast import ContrastiveEmbedder
from skcontrast.augmentation import RandomAffine, SimCLRAugmentation
from skcontrast.encoders import ConvNet
from skcontrast.frameworks import InfoGraph
from skcontrast.graphs._features import NodeFeatures
from skcontrast.metrics import few_label_accuracy, knn_accuracy, linear_probe

BATCH = 128
OURS = "skcontrast"
UNTRAINED = {"max_epochs": 1, "lr": 1e-12}


def kornia_recipe(X):
    """Return what draws views of a batch by kornia: the recipe of the embedder; None without."""
    if X.shape[1] == 3:
        return simclr_kornia(X.shape[-1], "resample")
    if importlib.util.find_spec("kornia") is None:
        return None
    import kornia.augmentation as K

    options = {"scale": (0.8, 1.2), "shear": 15.0, "padding_mode": "border", "p": 1.0}
    affine = K.RandomAffine(15.0, (0.1, 0.1), **options)
    return lambda images: affine(unit(images))


def unit(images):
    """Return images in [0, 1]."""
    return images.float() / 255 if images.dtype == torch.uint8 else images


def training(network, n_steps):
    """Return the optimizer and the schedule that the embedder has by default."""
    optimizer = torch.optim.Adam(network.parameters(), 1e-3, weight_decay=1e-6)
    return optimizer, torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, n_steps)


def image_loop(loss):
    """Return a contestant: a training loop with kornia and a loss of two views."""

    def embed(X, train, test, args, seed):
        torch.manual_seed(seed)
        recipe, images = kornia_recipe(X), torch.from_numpy(X[train])
        encoder, head = with_head(ConvNet(), X.shape[1:])
        network = nn.Sequential(encoder, head)
        channels = unit(images).transpose(0, 1).flatten(1)
        mean, std = (part[:, None, None] for part in (channels.mean(1), channels.std(1)))
        batches = DataLoader(TensorDataset(images), BATCH, shuffle=True)
        optimizer, schedule = training(network, args.epochs * len(batches))
        for _ in range(args.epochs):
            for (batch,) in batches:
                z = network((torch.cat([recipe(batch), recipe(batch)]) - mean) / std)
                optimizer.zero_grad()
                loss(*z.chunk(2)).backward()
                optimizer.step()
                schedule.step()
        encoder.eval()
        with torch.no_grad():
            return [
                torch.cat([encoder((unit(part) - mean) / std) for part in some.split(512)]).numpy()
                for some in (images, torch.from_numpy(X[test]))
            ]

    return embed


def image_peers(X):
    """Return the loops by name, None for those that lack a package."""
    losses = {
        "kornia, plain NT-Xent": nt_xent,
        "kornia, lightly": lightly_ntxent(),
        "kornia, pytorch-metric-learning": metric_learning("NTXentLoss"),
    }
    has_kornia = kornia_recipe(X) is not None
    return {
        name: image_loop(loss) if has_kornia and loss is not None else None
        for name, loss in losses.items()
    }


def graph_loop(graphs):
    """Return a contestant: InfoGraph by PyTorch Geometric on its own data; None without it."""
    try:
        from torch_geometric.loader import DataLoader as GraphLoader

        from benchmarks.speed.graph_epoch import UsualNetwork, as_data, usual_loss
    except ImportError:
        return None

    batch = NodeFeatures("auto", True).fit(graphs).to_tensor(graphs, "cpu")
    data = as_data(batch, len(graphs))

    def embed(X, train, test, args, seed):
        torch.manual_seed(seed)
        parts = [[data[k] for k in rows] for rows in (train, test)]
        network = UsualNetwork(batch.shape[2])
        batches = GraphLoader(parts[0], BATCH, shuffle=True)
        optimizer, schedule = training(network, args.epochs * len(batches))
        for _ in range(args.epochs):
            for step in batches:
                optimizer.zero_grad()
                projections = network(step.x, step.edge_index, step.batch)
                usual_loss(*projections, step.batch).backward()
                optimizer.step()
                schedule.step()
        network.heads = nn.ModuleList([nn.Identity(), nn.Identity()])
        network.eval()
        with torch.no_grad():
            return [
                torch.cat([network(b.x, b.edge_index, b.batch)[1] for b in GraphLoader(some, 512)])
                for some in parts
            ]

    return embed


def by_embedder(**params):
    """Return a contestant: an embedder with these parameters."""

    def embed(X, train, test, args, seed):
        given = {"max_epochs": args.epochs, "batch_size": BATCH, "device": "cpu", **params}
        embedder = ContrastiveEmbedder(**given, random_state=seed).fit(X[train])
        return embedder.transform(X[train]), embedder.transform(X[test])

    return embed


def unlearned(name):
    """Return a contestant: raw data, or UMAP, compiled; None where it is missing."""
    if name == "UMAP":
        if importlib.util.find_spec("umap") is None:
            return None
        noise = np.random.default_rng(0).normal(size=(200, 20)).astype(np.float32)
        plain(name, noise, np.arange(150), np.arange(150, 200), 0)
    return lambda X, train, test, args, seed: plain(name, X, train, test, seed)


def contestants(name, X):
    """Return the contestants of a set by name, None for those that lack a package."""
    if name in GRAPHS:
        own = {"encoder": gin(), "framework": InfoGraph()}
        peers = {"PyG, InfoGraph": graph_loop(X)}
    else:
        colours = X.shape[1] == 3
        views = SimCLRAugmentation() if colours else RandomAffine()
        own = {"encoder": ConvNet(), "augmentation": views}
        peers = image_peers(X)
    return {
        "raw": unlearned("raw"),
        "UMAP": unlearned("UMAP"),
        "untrained": by_embedder(**{**own, **UNTRAINED}),
        OURS: by_embedder(**own),
        f"{OURS}, default": by_embedder(),
        **peers,
    }


def measured(embed, X, y, rows, args, seed):
    """Return the columns of a contestant for a seed; `rows` are those of training and test."""
    train, test = rows
    use_threads()  # UMAP takes all cores, and leaves it so
    wall, cpu = perf_counter(), process_time()
    H, H_test = (np.asarray(part) for part in embed(X, train, test, args, seed))
    wall, cpu = perf_counter() - wall, process_time() - cpu
    given = H, y[train], H_test, y[test]
    return {
        "CPU s": cpu,
        "s": wall,
        FEW: few_label_accuracy(*given, n_labels=5, random_state=100 * seed).mean(),
        "20-NN": knn_accuracy(*given, metric="euclidean"),
        "linear": linear_probe(*given),
    }


def row_of(name, runs, ours):
    """Return a row of the table: means over the seeds, and how it compares."""
    row = {"row": name, **means(runs)}
    if runs is not ours:
        pairs = list(zip(runs, ours, strict=True))
        row["CPU ratio"] = median(one["CPU s"] / other["CPU s"] for one, other in pairs)
        row |= paired(*([one[FEW] for one in some] for some in (runs, ours)))
    return row


def main():
    """Print a table for each set."""
    options = {"sets": ["digits", "PTC_MR"], "data_home": str, "n": 4000, "epochs": 30}
    args = make_parser(__doc__, **options, seeds=5).parse_args()
    packages = ["kornia", "lightly", "pytorch-metric-learning", "umap-learn", "torch_geometric"]
    for name in args.sets:
        X, y, test = SETS[name](args)
        rows = contestants(name, X)
        missing = [row for row, embed in rows.items() if embed is None]
        if missing:
            print(f"left out, since a package is not installed: {', '.join(missing)}")
        rows = {row: embed for row, embed in rows.items() if embed is not None}
        found = {row: [] for row in rows}
        for seed in range(args.seeds):
            parts = split(y, test, args.n, seed)
            for row in sorted(rows, reverse=seed % 2):
                found[row].append(measured(rows[row], X, y, parts, args, seed))
        use_threads()
        title = f"{name}, {args.n:,}" if isinstance(test, int) else name
        with Table(title, args, packages=packages, ratios=[FEW, "20-NN", "linear"]) as table:
            for row, runs in found.items():
                table.add(row_of(row, runs, found[OURS]))


if __name__ == "__main__":
    main()
