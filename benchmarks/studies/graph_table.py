"""Graph classification by unsupervised embeddings: Table 2 of the PUCL paper, and its neighbours.

    python -m benchmarks.studies.graph_table --sets PTC_MR ENZYMES  # fetched once
    python -m benchmarks.studies.graph_table --data-home DIR --sets DD --seeds 3

Protocol of InfoGraph: an encoder (GIN, 3 layers of width 32, sum pooling without the input,
batches of 128) is trained on all graphs without labels, and a standardised SVM with an RBF kernel
on its representation is scored by 10-fold cross-validation, with C chosen by 5 inner folds. A row
is the mean and standard deviation over the seeds, which change folds, weights and batches. The
number of epochs is the same for all rows of losses.

The paper's rows have its class priors: .1, and .5 for the last PUCL. In rows with "τ⁺ of classes"
the prior is the probability that two graphs share a class, Σ p_k², about .5 for two classes.

Beside the losses stand what needs no training: the encoder with its first weights, and a bag of
the labels, or where there are none the degrees, of the nodes, as counts and as logarithms of
counts. Rows of the default are the embedder with nothing chosen, whose representation contains
the bag, trained and untrained. The row "best of" chooses one of several wider embedders together
with C, by the inner folds, so that no test label is looked at; "best of untrained" does the same
with encoders as wide and as deep that are not trained. Δ is the difference of the rows after
InfoGraph from it, p that of a paired t-test, uncorrected.

``--cache FILE`` keeps each fit's figures, so that a run that was cut off continues.
"""

from __future__ import annotations

from functools import partial
from time import perf_counter

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from benchmarks._graph_sets import load_graphs
from benchmarks._protocol import bag, gin
from benchmarks._results import Table, make_parser, spread
from benchmarks.studies._digit_fits import Figures, differences
from skcontrast import ContrastiveEmbedder
from skcontrast.augmentation import AttributeMask, EdgePerturb, NodeDrop
from skcontrast.estimation import tau_plus_from_labels
from skcontrast.frameworks import InfoGraph, SimCLR
from skcontrast.losses import BCL, DCL, HCL, PUCL, InfoNCE, Ring

VIEWS = [NodeDrop(0.1), EdgePerturb(0.1), AttributeMask(0.1)]
UNTRAINED = {"lr": 1e-12, "max_epochs": 1}
CONTRASTIVE = {"framework": InfoGraph("contrastive"), "loss": PUCL(tau_plus=0.1, c=0.1)}


WIDE, DEEP = {"encoder": gin(width=128)}, {"encoder": gin(n_layers=5, width=64)}
DROPPED = {"framework": SimCLR(), "augmentation": NodeDrop(0.1)}
BAGS = {"bag": np.asarray, "bag, log": np.log1p}
DEFAULTS = {"default, untrained": UNTRAINED, "default": {}}


def losses_of(classes):
    """Return the losses of the rows, given the class prior Σ p_k²."""
    return {
        "InfoGraph": InfoNCE(),
        "+DEB (DCL)": DCL(tau_plus=0.1),
        "+Hard (HCL)": HCL(tau_plus=0.1, beta=1.0),
        "+Ring": Ring(outer=0.5, inner=0.1),
        "+PUCL": PUCL(tau_plus=0.1, c=0.1),
        "+PUCL, α = .5": PUCL(tau_plus=0.5, c=0.1),
        "+BCL": BCL(alpha=0.7, tau_plus=0.1),
        "+DEB (DCL), τ⁺ of classes": DCL(tau_plus=classes),
        "+PUCL, τ⁺ of classes": PUCL(tau_plus=classes, c=0.1),
        "+BCL, τ⁺ of classes": BCL(alpha=0.7, tau_plus=classes),
    }


def rows_of(classes):
    """Return for each row the parameters of the embedder beside those that all share."""
    losses = losses_of(classes).items()
    return {
        "untrained GIN": UNTRAINED,
        **{name: {"framework": InfoGraph(), "loss": loss} for name, loss in losses},
        **{
            f"{name}, contrastive": {"framework": InfoGraph("contrastive"), "loss": loss}
            for name, loss in losses
        },
        "SimCLR, NodeDrop": {"framework": SimCLR(), "augmentation": NodeDrop(0.2)},
        "SimCLR, three augmentations": {"framework": SimCLR(), "augmentation": VIEWS},
        "best of untrained": [{**UNTRAINED, **WIDE}, {**UNTRAINED, **DEEP}],
        "best of": [
            {**some, **encoder} for some in (CONTRASTIVE, DROPPED) for encoder in (WIDE, DEEP)
        ],
    }


ROWS = [*BAGS, *DEFAULTS, *rows_of(0.5)]


class Choice(TransformerMixin, BaseEstimator):
    """Take some of the columns: those of one representation."""

    def __init__(self, ends, which=0):
        self.ends = ends
        self.which = which

    def fit(self, X, y=None):
        """Do nothing."""
        return self

    def transform(self, X):
        """Return the columns."""
        return np.split(X, self.ends[:-1], axis=1)[self.which]


def accuracy(representations, y, seed):
    """Return the accuracy of an SVM, its C and its representation chosen inside, on ten folds."""
    ends = tuple(np.cumsum([H.shape[1] for H in representations]))
    svm = GridSearchCV(
        make_pipeline(Choice(ends), StandardScaler(), SVC()),
        {"choice__which": range(len(ends)), "svc__C": [0.1, 1, 10, 100, 1000]},
        cv=5,
    )
    folds = StratifiedKFold(10, shuffle=True, random_state=seed)
    return cross_val_score(svm, np.hstack(representations), y, cv=folds).mean()


def representations(row, graphs, y, args, seed):
    """Return the representations of a row, one or several, and the seconds that they took."""
    start = perf_counter()
    if row in BAGS:
        return [BAGS[row](bag(graphs))], perf_counter() - start
    if row in DEFAULTS:
        embedder = ContrastiveEmbedder(**DEFAULTS[row], random_state=seed)
        return [embedder.fit_transform(graphs)], perf_counter() - start
    several = rows_of(tau_plus_from_labels(y).value)[row]
    found = []
    for own in several if isinstance(several, list) else [several]:
        params = {
            "encoder": gin(width=args.width),
            "framework": InfoGraph(),
            "batch_size": 128,
            "max_epochs": args.epochs,
            "lr": args.lr,
            "random_state": seed,
            **own,
        }
        found.append(ContrastiveEmbedder(**params).fit_transform(graphs))
    return found, perf_counter() - start


def scored(row, graphs, y, args, seed):
    """Return the accuracy of a row in percent, and the seconds of training."""
    found, seconds = representations(row, graphs, y, args, seed)
    return [float(100 * accuracy(found, y, seed)), seconds]


def main():
    """Print a table per dataset."""
    parser = make_parser(__doc__)
    parser.add_argument("--data-home", help="directory of the datasets; else they are fetched")
    parser.add_argument("--sets", nargs="+", default=["PTC_MR", "ENZYMES"])
    parser.add_argument("--rows", nargs="+", default=ROWS, choices=ROWS)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--attributes", action="store_true", help="use numeric attributes too")
    parser.add_argument("--cache", help="file that keeps the figures of each fit")
    args = parser.parse_args()
    figures = Figures(args.cache)
    for name in args.sets:
        graphs, y = load_graphs(name, args.data_home)
        if not args.attributes:
            graphs.attributes = None
        packages = ["torch_geometric", "scipy"]
        with Table(name, args, packages=packages, ratios=["accuracy, %"], digits=2) as table:
            base = None
            for row in args.rows:
                key = f"{name} {args.epochs} {args.lr} {args.width} {args.attributes} {row}"
                compute = partial(scored, row, graphs, y, args)
                scores, seconds = figures.over(key, compute, args.seeds).T
                cells = {"accuracy, %": spread(scores.tolist())}
                cells |= differences(scores[:, None], base, ["accuracy, %"])
                table.add({"row": row, **cells, "training, s": np.mean(seconds)})
                base = scores[:, None] if row == "InfoGraph" else base


if __name__ == "__main__":
    main()
