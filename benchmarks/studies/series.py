"""Series: the default embedder against raw series, random kernels, whitened ones, and losses.

    python -m benchmarks.studies.series --data-home FOLDER
    python -m benchmarks.studies.series --data-home FOLDER --sets HAR_part --n 1200
    python -m benchmarks.studies.series --data-home FOLDER --standardize series --rows default
    python -m benchmarks.studies.series --data-home FOLDER --parts  # train and test as in the file
    python -m benchmarks.studies.series --data-home FOLDER --sets SwedishLeaf ItalyPowerDemand \
        --rows MiniRocket "whitened" "whitened, shrinkage .5" --title "choice of whitening"

``--rows`` without names averages the stored tables of the sets.

Both parts of a set are pooled and split anew: at most ``--n`` series and at most half of them to
train on, at most ``--n-test`` others to test on; so the figures are not those of the official
splits. A seed sets the split, the labels, the weights and the views, for all rows alike.

Rows that learn nothing: the numbers of the series, catch22 with mean and deviation (needs
``pycatch22``), features of MiniRocket, the default with its first weights, and the nearest
neighbour by dynamic time warping without a window (needs ``dtaidistance``), which is a distance
and has that column alone. Whitened is ``ViewWhitening(MiniRocket())``, and the same with other
parameters; with what is learned, both are divided by their root mean square. Then come
the default (``ContrastiveEmbedder(random_state=seed)``), the
same with other losses at the prior of the classes, and SupCon, which has all labels. On request:
100 epochs; with these, ``SeriesNet`` whose maps are also averaged over 1, 2 and 8 cells, or whose
proportions of positive values are added (for series of one length); and TS2Vec (Yue et al. 2022)
by its authors' package ``ts2vec`` with its defaults, standardised.

Columns: accuracy on the test part of a logistic regression with 1, 5 and 20 labels per class, or
all of a class that has fewer, mean of ten draws; of one neighbour (Euclidean) and of five
(cosine); of a logistic regression and of an SVM with a Gaussian kernel and C = 10 with all labels
of the training part; CPU minutes of training and embedding. Embeddings are used as they are; the
other rows are standardised by the training part, without labels. With ``--parts`` the SVM is that
of TS2Vec (Yue et al. 2022): fitted on the train part of the file alone, C from 10⁻⁴ to 10⁴ or no
penalty by five folds of it.
"""

from __future__ import annotations

from time import process_time

import numpy as np
import torch
import torch.nn.functional as F
from scipy.stats import zscore
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from benchmarks._protocol import use_threads
from benchmarks._results import Table, load, make_parser, means, middle
from benchmarks._series_sets import load_series
from skcontrast import ContrastiveEmbedder, ViewWhitening
from skcontrast._checks import StrOptions, parameter
from skcontrast.augmentation import GaussianNoise, MagnitudeScale, TimeCrop, TimeMask, TimeWarp
from skcontrast.encoders import SeriesNet
from skcontrast.estimation import tau_plus_from_labels
from skcontrast.features import MiniRocket
from skcontrast.kinds import Series
from skcontrast.losses import BCL, DCL, HCL, SoftRing, SupCon
from skcontrast.metrics import knn_accuracy, linear_probe

UCR = (
    "SwedishLeaf", "SyntheticControl", "FacesUCR", "MedicalImages", "CBF", "ECG5000",
    "TwoPatterns", "PhalangesOutlinesCorrect", "ECGFiveDays",
)  # fmt: skip
OTHERS = ("ItalyPowerDemand", "GunPoint", "ArrowHead", "OSULeaf")
SETS = (*UCR, *OTHERS, "BasicMotions", "JapaneseVowels", "HAR_part")
LABELS = (1, 5, 20)
N_DRAWS = 10
RAW, DTW, CATCH22, KERNELS = "raw", "DTW", "catch22", "MiniRocket"
LATER = [GaussianNoise(), MagnitudeScale(), TimeMask()]
WHITENED = {
    "whitened": {},
    "whitened, shrinkage .5": {"shrinkage": 0.5},
    "whitened, shrinkage .75": {"shrinkage": 0.75},
    "whitened, shrinkage .9": {"shrinkage": 0.9},
    "whitened, 6 views": {"n_views": 6},
    "whitened, 12 views": {"n_views": 12},
    "whitened, crops from .8": {"augmentation": [TimeCrop((0.8, 1.0)), *LATER]},
    "whitened, no crops": {"augmentation": LATER},
    "whitened, warps alone": {"augmentation": TimeWarp()},
}
CONCATENATED, SHORTER, TS2VEC = "default and whitened", "100 epochs", "TS2Vec"
POOLED = ("several scales", "positive proportions")


class OtherPooling(SeriesNet):
    """SeriesNet with more summaries of its maps, for series of one length."""

    summaries: str = parameter([StrOptions(set(POOLED))], default=POOLED[0])

    def build(self, sample_shape, n_components=None):
        """Return a new network; `n_components` is not used."""
        return _Pooled(super().build(sample_shape).blocks, self.summaries)


class _Pooled(torch.nn.Module):
    def __init__(self, blocks, summaries):
        super().__init__()
        self.blocks, self.summaries = blocks, summaries

    def forward(self, x):
        found = []
        for k, block in enumerate(self.blocks):
            x = F.max_pool1d(x, 2, ceil_mode=True) if k else x
            (x,) = block([x], None)
            cells = (1, 2, 4, 8) if self.summaries == POOLED[0] else (4,)
            found += [F.adaptive_avg_pool1d(x, n).flatten(1) for n in cells] + [x.amax(-1)]
            if self.summaries == POOLED[1]:  # smooth, so that it has a gradient
                found.append(F.adaptive_avg_pool1d((4 * x).tanh(), 4).flatten(1))
        return torch.cat(found, 1)


def losses(tau_plus):
    """Return the losses by row, at the prior of the classes."""
    return {
        "default": None,
        "DCL": DCL(tau_plus=tau_plus),
        "HCL, β .5": HCL(tau_plus=tau_plus, beta=0.5),
        "BCL, α .9, β 0": BCL(alpha=0.9, tau_plus=tau_plus),
        "SoftRing, k 4": SoftRing(sharpness=4.0, tau_plus=tau_plus),
        "SupCon (all labels)": SupCon(),
    }


ROWS = [RAW, DTW, CATCH22, KERNELS, "whitened", "untrained", *losses(0.1)]


def split(y, n_first, args, seed):
    """Return rows to train on, which have some of each class, and rows to test on."""
    if args.parts:
        return np.arange(n_first), np.arange(n_first, len(y))
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(y))
    n = min(args.n, len(y) // 2)
    two = [order[y[order] == k][:2] for k in np.unique(y)]
    order = np.concatenate([*two, order[~np.isin(order, np.concatenate(two))]])
    return order[:n], order[n : n + args.n_test]


def few_labels(H, y, H_test, y_test, k, seed):
    """Return the mean accuracy over draws of k labels per class, or all of a smaller class."""
    found = []
    for draw in range(N_DRAWS):
        rng = np.random.default_rng([seed, draw])
        rows = np.concatenate(
            [rng.permutation(np.flatnonzero(y == label))[:k] for label in np.unique(y)]
        )
        # In the span of the labeled rows the regression is the same, and much faster.
        span = np.linalg.qr(H[rows].T)[0]
        probe = LogisticRegression(max_iter=2000).fit(H[rows] @ span, y[rows])
        found.append(probe.score(H_test @ span, y_test))
    return np.mean(found)


def support_vectors(n_least, args):
    """Return the SVM of the last column, where the rarest class has enough samples."""
    if not args.parts or n_least < 5:
        return SVC(C=10)
    return GridSearchCV(SVC(), {"C": [*10.0 ** np.arange(-4, 5), np.inf]}, cv=5)


def judged(H, y, H_test, y_test, args, seed):
    """Return the columns of a representation."""
    data = H, y, H_test, y_test
    found = {f"{k} label" + "s" * (k > 1): few_labels(*data, k, seed) for k in LABELS}
    found["1-NN"] = knn_accuracy(*data, n_neighbors=1, metric="euclidean")
    found["5-NN"] = knn_accuracy(*data, n_neighbors=5, metric="cosine")
    found["linear"] = linear_probe(*data, scale=False)
    svm = support_vectors(np.bincount(y).min(), args)
    found["SVM"] = svm.fit(H, y).score(H_test, y_test)
    return found


def warped(X, y, X_test, y_test):
    """Return the accuracy of the nearest neighbour by dynamic time warping."""
    from dtaidistance import dtw_ndim

    X, X_test = ([x.T[~np.isnan(x).all(0)].astype(float) for x in part] for part in (X, X_test))
    block = ((0, len(X_test)), (len(X_test), len(X_test) + len(X)))
    found = dtw_ndim.distance_matrix_fast([*X_test, *X], block=block, parallel=False)
    return np.mean(y[found[: len(X_test), len(X_test) :].argmin(1)] == y_test)


def catch22(X):
    """Return the 22 features, mean and deviation of each channel."""
    from pycatch22 import catch22_all

    ends = (~np.isnan(X).all(1)).sum(1)
    return np.nan_to_num(
        [
            [v for row in x[:, :end] for v in catch22_all(row.tolist(), catch24=True)["values"]]
            for x, end in zip(X, ends, strict=True)
        ]
    )


def fitted(row, X, y, args, seed):
    """Return the fitted embedder of a row."""
    given = {"kind": Series(), "random_state": seed, "device": "cpu"}
    if args.epochs:
        given["max_epochs"] = args.epochs
    if row in (SHORTER, *POOLED):
        encoder = OtherPooling(summaries=row) if row in POOLED else None
        return ContrastiveEmbedder(encoder, **{**given, "max_epochs": 100}).fit(X)
    if row == "untrained":
        return ContrastiveEmbedder(**{**given, "max_epochs": 1, "lr": 1e-12}).fit(X)
    own = losses(tau_plus_from_labels(y).value)
    return ContrastiveEmbedder(**given, loss=own[row]).fit(X, y)


def representations(row, X, y, X_test, args, seed):
    """Return training and test part as a row has them."""
    features = {
        RAW: lambda X: np.nan_to_num(X.reshape(len(X), -1)),
        CATCH22: catch22,
        KERNELS: MiniRocket(random_state=seed).fit(X).transform if row == KERNELS else None,
    }
    if row in features:
        H = features[row](X)
        scaler = StandardScaler().fit(H)
        return scaler.transform(H), scaler.transform(features[row](X_test))
    if row == TS2VEC:
        from ts2vec.ts2vec import TS2Vec

        torch.manual_seed(seed)
        np.random.seed(seed)  # noqa: NPY002
        X, X_test = (x.swapaxes(1, 2) for x in (X, X_test))
        model = TS2Vec(X.shape[2], device="cpu")
        model.fit(X)
        H, H_test = (model.encode(x, encoding_window="full_series") for x in (X, X_test))
        scaler = StandardScaler().fit(H)
        return scaler.transform(H), scaler.transform(H_test)
    if row in WHITENED:
        kernels = MiniRocket(random_state=seed)
        model = ViewWhitening(kernels, random_state=seed, **WHITENED[row]).fit(X)
        return model.transform(X), model.transform(X_test)
    if row == CONCATENATED:
        blocks = []
        for one in ("default", "whitened"):
            H, H_test = representations(one, X, y, X_test, args, seed)
            unit = np.sqrt(np.square(H).sum(1).mean())
            blocks.append((H / unit, H_test / unit))
        return map(np.hstack, zip(*blocks, strict=True))
    embedder = fitted(row, X, y, args, seed)
    return embedder.transform(X), embedder.transform(X_test)


def run(row, X, y, n_first, args, seed):
    """Return the columns of a row for a seed."""
    train, test = split(y, n_first, args, seed)
    start = process_time()
    if row == DTW:
        nearest = warped(X[train], y[train], X[test], y[test])
        return {"1-NN": nearest, "CPU min": (process_time() - start) / 60}
    H, H_test = representations(row, X[train], y[train], X[test], args, seed)
    minutes = (process_time() - start) / 60
    return {**judged(H, y[train], H_test, y[test], args, seed), "CPU min": minutes}


def main():
    """Print a table for each set, and one of the means over the sets."""
    options = {"data_home": str, "standardize": "channel", "parts": False, "n": 250}
    parser = make_parser(__doc__, **options, n_test=1000, epochs=int, seeds=3, title="")
    parser.add_argument("--sets", nargs="+", default=list(UCR), choices=SETS)
    rows = [*dict.fromkeys([*ROWS, *WHITENED, CONCATENATED, SHORTER, *POOLED, TS2VEC])]
    parser.add_argument("--rows", nargs="*", default=ROWS, choices=rows)
    args = parser.parse_args()
    use_threads()
    tables = []
    suffix = "" if args.standardize == "channel" else ", standardised by series"
    suffix += ", parts of the file" if args.parts else ""
    suffix += f", {args.title}" if args.title else ""
    ratios = ["5 labels", "5-NN", "SVM"]
    for name in args.sets:
        table = Table(f"{name}{suffix}", args, ratios=ratios)
        if not args.rows:
            tables.append(load(table.path)[table.name])
            continue
        X, y, n_first = load_series(name, args.data_home)
        if args.standardize == "series":
            X = zscore(X, axis=-1, nan_policy="omit")
        with table:
            for row in args.rows:
                runs = [run(row, X, y, n_first, args, seed) for seed in range(args.seeds)]
                table.add({"row": row, **means(runs)})
        tables.append(table.content)
    with Table(f"mean of {len(tables)} sets{suffix}", args, ratios=ratios) as table:
        for row in averaged(tables):
            table.add(row)


def averaged(tables):
    """Return the rows that all tables have, with the means of their figures."""
    by_row = [{row["row"]: row for row in table["rows"]} for table in tables]
    for name in [name for name in by_row[0] if all(name in rows for rows in by_row)]:
        rows = [rows[name] for rows in by_row]
        columns = [column for column in rows[0] if column != "row"]
        yield {"row": name} | {c: np.mean([middle(row[c]) for row in rows]) for c in columns}


if __name__ == "__main__":
    main()
