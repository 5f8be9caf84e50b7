"""A pretrained backbone: as it is, frozen, fine-tuned, or as vectors under a contrastive head.

    python -m benchmarks.studies.pretrained
    python -m benchmarks.studies.pretrained --tables transfer --n-train 300 \\
        --epochs 30 --suffix ", 300 images"

A seed draws which half of the classes is the source and which the target. A ConvNet learns the
source classes with labels, and its state dict is what "pretrained" means here. The table
"transfer" trains it on images of the target classes without labels, by two learning rates or
frozen, and compares that with a network from scratch. The table "vectors" takes what the network
returns for the target images as vectors and trains an MLP on these, by several kinds of views.

All rows are judged on test images of the target classes: a standardised logistic regression on a
few labels of each class, a mean over draws of these labels, and 20 neighbours by cosine. In
"SemiSupCon" `fit` gets the labels of each draw, too. Differences in few labels are from the first
row, paired by seed, with the p-value of a t-test; rows with labels in `fit` say so.
"""

from __future__ import annotations

import copy

import numpy as np
import torch
import torch.nn.functional as F
from scipy.stats import ttest_rel
from sklearn.decomposition import PCA
from sklearn.preprocessing import Normalizer
from sklearn.semi_supervised import LabelSpreading
from torch import nn

from benchmarks._image_sets import SETS, load_images
from benchmarks._results import Table, make_parser, spread
from benchmarks.studies.few_labels import draw_labels
from skcontrast import ContrastiveEmbedder
from skcontrast.augmentation import FeatureDropout, GaussianNoise, MarginalCorruption
from skcontrast.encoders import ConvNet
from skcontrast.losses import InfoNCE, SemiSupCon, SoftSupCon
from skcontrast.metrics import knn_accuracy, linear_probe
from skcontrast.optimizers import Optimizer


class Normalise(nn.Module):
    """The backbone's own normalisation of intensities in [0, 1]."""

    def forward(self, x):
        return (x - 0.5) / 0.5


class Backbone(nn.Module):
    """Two stages with an own normalisation and a classifier, which Identity can replace."""

    def __init__(self, shape, n_classes):
        super().__init__()
        layers = list(ConvNet().build(shape))
        self.normalise = Normalise()
        self.early, self.late = nn.Sequential(*layers[:8]), nn.Sequential(*layers[8:])
        width = self.late(self.early(torch.zeros(2, *shape))).shape[1]
        self.fc = nn.Linear(width, n_classes)

    def forward(self, x):
        return self.fc(self.late(self.early(self.normalise(x))))


def load(name):
    """Return X_train, y_train, X_test, y_test, images with a channel axis."""
    X, y, X_test, y_test = load_images(name)
    if X.ndim == 3:
        X, X_test = X[:, None], X_test[:, None]
    return X, y, X_test, y_test


def halves(data, args, rng):
    """Return images and classes of the source, and train and test images of the target."""
    X, y, X_test, y_test = data
    classes = rng.permutation(np.unique(y))
    source, target = np.array_split(classes, 2)
    rows = rng.choice(np.flatnonzero(np.isin(y, source)), args.n_source, replace=False)
    own = rng.choice(np.flatnonzero(np.isin(y, target)), args.n_train, replace=False)
    tested = np.isin(y_test, target)
    codes = np.searchsorted(np.sort(source), y[rows])
    return (X[rows], codes), (X[own], y[own], X_test[tested], y_test[tested])


def pretrain(X, y, args, seed):
    """Return a backbone that has learned to classify, its classifier replaced by Identity."""
    torch.manual_seed(seed)
    network = Backbone(X.shape[1:], len(np.unique(y)))
    network.to(memory_format=torch.channels_last)
    optimizer = torch.optim.Adam(network.parameters(), 1e-3)
    for _ in range(args.source_epochs):
        for rows in torch.randperm(len(X)).split(128):
            x = torch.from_numpy(X[rows.numpy()]).float() / 255
            with torch.autocast("cpu", torch.bfloat16):
                scores = network(x.contiguous(memory_format=torch.channels_last))
            optimizer.zero_grad()
            F.cross_entropy(scores.float(), torch.from_numpy(y[rows.numpy()])).backward()
            optimizer.step()
    network.fc = nn.Identity()
    return network.eval()


def untrained(network, seed):
    """Return a backbone of the same shape with new weights."""
    torch.manual_seed(seed)
    new = copy.deepcopy(network)
    for layer in new.modules():
        if hasattr(layer, "reset_parameters"):
            layer.reset_parameters()
    return new


def frozen(network, *parts):
    """Return a copy of a backbone in which these parts are frozen."""
    network = copy.deepcopy(network)
    for part in parts:
        getattr(network, part).requires_grad_(False)
    return network


def image_embedders(network, args, seed):
    """Yield the rows of the table "transfer" that are trained."""
    params = {
        "standardize": False,
        "max_epochs": args.epochs,
        "precision": args.precision,
        "random_state": seed,
    }
    slow = Optimizer(param_groups=[("encoder.*", {"lr": args.lr / 10})])
    yield "from scratch", ContrastiveEmbedder(untrained(network, seed), lr=args.lr, **params)
    yield "pretrained, one rate", ContrastiveEmbedder(network, lr=args.lr, **params)
    yield (
        "pretrained, a tenth of the rate",
        ContrastiveEmbedder(network, lr=args.lr, optimizer=slow, **params),
    )
    yield (
        "pretrained, first stage frozen",
        ContrastiveEmbedder(frozen(network, "early"), lr=args.lr, **params),
    )
    yield (
        "pretrained, frozen, head of 64",
        ContrastiveEmbedder(
            frozen(network, "early", "late"), output="projection", lr=args.lr, **params
        ),
    )


def vector_embedders(args, seed):
    """Yield the rows of the table "vectors" that are trained, each with whether it gets labels."""
    views = {
        "MarginalCorruption": MarginalCorruption(),
        "GaussianNoise": GaussianNoise(),
        "FeatureDropout": FeatureDropout(),
    }
    for name, augmentation in views.items():
        yield f"MLP, {name}", _head(augmentation, InfoNCE(), args, seed), False
    noise = views["MarginalCorruption"]
    yield "MLP, MarginalCorruption, SoftSupCon", _head(noise, SoftSupCon(), args, seed), False
    yield "MLP, MarginalCorruption, SemiSupCon", _head(noise, SemiSupCon(), args, seed), True


def _head(augmentation, loss, args, seed):
    return ContrastiveEmbedder(
        augmentation=augmentation, loss=loss, max_epochs=args.vector_epochs, random_state=seed
    )


def draws(y, args, seed):
    """Return the labeled rows of each draw."""
    seeds = 100 * seed + np.arange(args.n_draws)
    return [np.flatnonzero(draw_labels(y, args.n_labels, k) >= 0) for k in seeds]


def judge(h, h_test, y, y_test, drawn, *, scale=True):
    """Return the accuracies by few labels, a mean over draws, and of 20 neighbours."""
    few = [linear_probe(h[rows], y[rows], h_test, y_test, scale=scale) for rows in drawn]
    return np.mean(few), knn_accuracy(h, y, h_test, y_test)


def spread_labels(h, h_test, y, y_test, drawn):
    """Return the accuracy by few labels that are spread to neighbours, and no second one."""
    accuracies = []
    for rows in drawn:
        spreading = LabelSpreading(kernel="knn", n_neighbors=20, alpha=0.9, max_iter=200)
        spreading.fit(h, with_unknown(y, rows))
        accuracies.append(spreading.score(h_test, y_test))
    return np.mean(accuracies), np.nan


def with_unknown(y, rows):
    """Return the classes of some rows, −1 for all others."""
    few = np.full(len(y), -1)
    few[rows] = y[rows]
    return few


def transfer_rows(network, target, args, seed):
    """Yield the name and the scores of each row of the table "transfer"."""
    X, y, X_test, y_test = target
    drawn = draws(y, args, seed)
    h, h_test = (features(network, images) for images in (X, X_test))
    yield "pretrained, as it is", judge(h, h_test, y, y_test, drawn)
    yield "raw pixels", judge(X.reshape(len(X), -1), flat(X_test), y, y_test, drawn)
    for name, embedder in image_embedders(network, args, seed):
        embedder.fit(X)
        yield name, judge(embedder.transform(X), embedder.transform(X_test), y, y_test, drawn)


def vector_rows(network, target, args, seed):
    """Yield the name and the scores of each row of the table "vectors"."""
    X, y, X_test, y_test = target
    V, V_test = (features(network, images) for images in (X, X_test))
    drawn = draws(y, args, seed)
    yield "the vectors", judge(V, V_test, y, y_test, drawn)
    unit, unit_test = (Normalizer().transform(v) * 10 for v in (V, V_test))
    plain = {"scale": False}
    yield "of one length, not standardised", judge(unit, unit_test, y, y_test, drawn, **plain)
    pca = PCA(64, random_state=seed).fit(unit)
    axes, axes_test = pca.transform(unit), pca.transform(unit_test)
    yield "64 principal components of these", judge(axes, axes_test, y, y_test, drawn, **plain)
    yield "these, LabelSpreading", spread_labels(axes, axes_test, y, y_test, drawn)
    for name, embedder, gets_labels in vector_embedders(args, seed):
        if gets_labels:
            scores = [with_labels(embedder, V, V_test, y, y_test, rows) for rows in drawn]
            yield f"{name}, labels in fit", np.mean(scores, 0)
        else:
            H, H_test = embedder.fit(V).transform(V), embedder.transform(V_test)
            yield name, judge(H, H_test, y, y_test, drawn)


def with_labels(embedder, V, V_test, y, y_test, rows):
    """Return the scores of an embedder that gets the labels of one draw."""
    embedder.fit(V, with_unknown(y, rows))
    return judge(embedder.transform(V), embedder.transform(V_test), y, y_test, [rows])


def flat(X):
    """Return images as vectors."""
    return X.reshape(len(X), -1)


@torch.inference_mode()
def features(network, X):
    """Return what a network returns for uint8 images."""
    return torch.cat([network(x.float() / 255) for x in torch.from_numpy(X).split(500)]).numpy()


def table_row(name, scores, base):
    """Return a row of a table from the scores of the seeds, shape (n_seeds, 2)."""
    few, difference = scores[:, 0], scores[:, 0] - base[:, 0]
    has_test = len(few) > 1 and difference.any()
    return {
        "embedding": name,
        "few labels": spread(few.tolist()),
        "20-NN, all labels": None if np.isnan(scores).any() else spread(scores[:, 1].tolist()),
        "difference": float(difference.mean()),
        "p": float(ttest_rel(few, base[:, 0]).pvalue) if has_test else None,
    }


def main():
    """Pretrain, train and print one row per embedding."""
    parser = make_parser(__doc__)
    parser.add_argument("--data", choices=SETS, default="Fashion-MNIST")
    parser.add_argument("--tables", nargs="*", default=["transfer", "vectors"])
    parser.add_argument("--suffix", default="", help="of the names under which --save stores them")
    parser.add_argument("--n-source", type=int, default=6000, help="images with labels")
    parser.add_argument("--source-epochs", type=int, default=3)
    parser.add_argument("--n-train", type=int, default=2000, help="target images")
    parser.add_argument("--n-labels", type=int, default=5, help="labels of each class")
    parser.add_argument("--n-draws", type=int, default=3, help="draws of the labels")
    parser.add_argument("--epochs", type=int, default=5, help="on images")
    parser.add_argument("--vector-epochs", type=int, default=20)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--precision", default="bf16")
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    rows_of = {"transfer": transfer_rows, "vectors": vector_rows}
    data, scores = load(args.data), {name: {} for name in args.tables}
    for seed in range(args.seeds):
        source, target = halves(data, args, np.random.default_rng(seed))
        network = pretrain(*source, args, seed)
        for table in args.tables:
            for name, figures in rows_of[table](network, target, args, seed):
                scores[table].setdefault(name, []).append(figures)
                print(seed, table, name, *np.round(figures, 4), flush=True)
    for table, rows in scores.items():
        rows = {name: np.array(values) for name, values in rows.items()}
        base = next(iter(rows.values()))
        with Table(table + args.suffix, args, ratios=("few labels",), digits=4) as shown:
            for name, values in rows.items():
                shown.add(table_row(name, values, base))


if __name__ == "__main__":
    main()
