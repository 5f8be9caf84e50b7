"""Every loss of the papers at the values of its paper, next to the defaults of this library.

    python -m benchmarks.studies.paper_losses --data-home FOLDER
    python -m benchmarks.studies.paper_losses --sets digits --seeds 10

Embedders without labels and without training-free features, with the default views of each set,
Adam .001 and batches of 128. A seed sets the split, the labels of the probes, the weights and the
views, for all rows alike. Digits have 24 epochs and ConvNet; Fashion-MNIST and CIFAR-10 1,000
images, 10 epochs and a PatchNet of half the width, but for 10,000 images of CIFAR-10, with the
default encoder, 6 epochs and the losses of the papers alone; ENZYMES and PTC_MR 60 epochs, GIN and
InfoGraph, which has neither temperature nor views. τ⁺ is .1 as in the papers, and of graphs the
class prior but for PUCL.

The values are those of the papers: BCL has α .5, and .7 in the last quarter of the epochs, and β
from 2 to 0 in 20 steps; its rebuttal α from .5 to .85 and β 1; HCL β 1; PUCL its best on CIFAR-10,
τ⁺ .12 and c .1. The temperature is .5. Rows with "t .2" have losses that are of none of the five
papers.

Columns: those of ``worth``. Δ is the difference from InfoNCE with the same seeds and, of the
measured temperatures, that of the best mean in this column, with its 95 % interval. Every fit is
stored in ``results/paper_losses.jsonl`` as soon as it is measured, and the command continues where
it ended; a row has as many seeds as were measured.
``--stored`` makes the tables from what is stored.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from statistics import mean

import numpy as np

from benchmarks._protocol import SETS, gin, judged, split, use_threads
from benchmarks._results import Table, make_parser, paired, spread
from benchmarks.studies._digit_fits import Figures
from skcontrast import ContrastiveEmbedder
from skcontrast.encoders import ConvNet, PatchNet
from skcontrast.estimation import tau_plus_from_labels
from skcontrast.frameworks import InfoGraph
from skcontrast.losses import (
    BCL,
    DCL,
    HCL,
    PUCL,
    InfoNCE,
    NonparametricBCL,
    PositiveDebiased,
    Ring,
    SoftRing,
    SoftSupCon,
    Supervised,
)
from skcontrast.similarity import Cosine, VonMisesFisher

FITS = Path(__file__).parent / "results" / "paper_losses.jsonl"
LARGE = "CIFAR-10, 10,000"
# set: (encoder, epochs, framework, seeds at most)
SETTINGS = {
    "digits": (ConvNet(), 24, None, 10),
    "ENZYMES": (gin(), 60, InfoGraph(), 10),
    "PTC_MR": (gin(), 60, InfoGraph(), 10),
    "Fashion-MNIST": (PatchNet(64, widths=(64, 64)), 10, None, 5),
    "CIFAR-10": (PatchNet(64, widths=(64, 64)), 10, None, 5),
    LARGE: (PatchNet(), 6, None, 3),
}
N_IMAGES = 1000  # of the sets that have a test set of their own
REFERENCE = "InfoNCE"
COLUMNS = ("5 labels", "20-NN", "linear")


def paper_rows(tau_plus):
    """Return the losses of the papers by row."""
    return {
        REFERENCE: InfoNCE(),
        "BCL, α .5 → .7, β 2 → 0 (paper)": BCL.paper(tau_plus=tau_plus),
        "NonparametricBCL, α .5 → .85, β 1 (rebuttal)": NonparametricBCL.paper(tau_plus=tau_plus),
        "DCL (paper)": DCL(tau_plus=tau_plus),
        "HCL, β 1 (paper)": HCL(tau_plus=tau_plus, beta=1.0),
        "PUCL, τ⁺ .12, c .1 (paper)": PUCL(tau_plus=0.12, c=0.1),
        "BCL, α .7, β 0 (default)": BCL(alpha=0.7, beta=0.0, tau_plus=tau_plus),
        "BCL, α .9, β 0": BCL(alpha=0.9, beta=0.0, tau_plus=tau_plus),
        "NonparametricBCL, α .7, β 1 (default)": NonparametricBCL(
            alpha=0.7, beta=1.0, tau_plus=tau_plus
        ),
        "Supervised (all labels)": Supervised(),
    }


def rows_of(name, tau_plus):
    """Return the rows of a set: a loss and a similarity by the row's name."""
    rows = paper_rows(tau_plus)
    if SETTINGS[name][2] is not None:  # a framework of graphs, whose paper is PUCL's
        rows |= {
            "PUCL, τ⁺ .1, c .1 (paper)": PUCL(tau_plus=0.1, c=0.1),
            "PUCL, τ⁺ .5, c .1 (paper)": PUCL(tau_plus=0.5, c=0.1),
            "Ring(.5, .1)": Ring(outer=0.5, inner=0.1),
        }
        del rows["PUCL, τ⁺ .12, c .1 (paper)"]
        return {row: (loss, None) for row, loss in rows.items()}
    if name == LARGE:
        lower = {f"{REFERENCE}, t .1": (InfoNCE(), Cosine(0.1))}
        return {row: (loss, Cosine(0.5)) for row, loss in rows.items()} | lower
    others = {
        REFERENCE: InfoNCE(),
        "Ring(1, τ⁺)": Ring(outer=1.0, inner=tau_plus),
        "SoftRing, k 4": SoftRing(sharpness=4.0, tau_plus=tau_plus),
        "SoftSupCon, k 20, pull .3": SoftSupCon(tau_plus=tau_plus),
    }
    rows |= {
        "PositiveDebiased (authors' code)": PositiveDebiased(tau_plus=tau_plus),
        "PositiveDebiased, printed (paper)": PositiveDebiased(tau_plus=tau_plus, form="printed"),
        "Ring(.5, .1)": Ring(outer=0.5, inner=0.1),
    }
    return {
        **{row: (loss, Cosine(0.5)) for row, loss in rows.items()},
        "VonMisesFisher, t 1 (paper)": (InfoNCE(), VonMisesFisher(1.0)),
        "VonMisesFisher, t 8 (default)": (InfoNCE(), VonMisesFisher()),
        **{f"{row}, t .2": (loss, Cosine(0.2)) for row, loss in others.items()},
    }


def accuracies(name, data, loss, similarity, epochs, seed):
    """Return the columns of a fit."""
    X, y, test = data
    encoder, its_epochs, framework, _ = SETTINGS[name]
    n = len(y) if isinstance(test, float) else 10_000 if name == LARGE else N_IMAGES
    train, test = split(y, test, n, seed)
    given = {"framework": framework} if framework else {"similarity": similarity}
    embedder = ContrastiveEmbedder(
        encoder,
        loss=loss,
        max_epochs=epochs or its_epochs,
        lr=1e-3,
        device="cpu",
        random_state=seed,
        **given,
    ).fit(X[train], y[train] if loss.requires_y else None)
    H, H_test = (embedder.transform(X[rows]) for rows in (train, test))
    found = judged(H, y[train], H_test, y[test], seed, scale=True)
    return {column: float(value) for column, value in found.items()}


def measure(name, data, figures, args):
    """Compute the columns of all rows, seed by seed."""
    rows = rows_of(name, tau_plus_from_labels(data[1]).value if SETTINGS[name][2] else 0.1)
    for seed in range(SETTINGS[name][3] if args.seeds is None else args.seeds):
        for row, (loss, similarity) in rows.items():
            if args.rows is None or row.split(" (")[0] in args.rows:
                compute = partial(accuracies, name, data, loss, similarity, args.epochs, seed)
                figures.get(f"{name}, {row}, {seed}", compute)


def measured(name, figures):
    """Return the columns by row and seed, as far as they are known."""
    rows = rows_of(name, 0.1)
    return {
        row: {
            seed: figures.known[key]
            for seed in range(SETTINGS[name][3])
            if (key := f"{name}, {row}, {seed}") in figures.known
        }
        for row in rows
    }


def table_rows(found):
    """Return the rows of a table: means, and differences from InfoNCE with the same seeds."""
    references = [row for row, runs in found.items() if runs and row.startswith(REFERENCE)]
    for row, runs in ((row, runs) for row, runs in found.items() if runs):
        columns = {c: [one[c] for one in runs.values()] for c in next(iter(runs.values()))}
        made = {"row": row, **{c: spread(of) for c, of in columns.items()}}
        for c in columns if row not in references else ():
            means = {one: mean(run[c] for run in found[one].values()) for one in references}
            reference = max(means, key=means.get)
            seeds = [seed for seed in runs if seed in found[reference]]
            if len(seeds) < 2:
                continue
            ours, theirs = ([found[one][seed][c] for seed in seeds] for one in (row, reference))
            made[f"Δ {c}"] = f"{np.mean(ours) - np.mean(theirs):+.3f}"
            made[f"95 %, {c}"] = paired(ours, theirs, c)[f"95 %, {c}"]
        yield {**made, "n": len(runs)}


def main():
    """Print a table for each set."""
    options = {"data_home": str, "sets": SETTINGS, "seeds": int, "epochs": int, "stored": False}
    parser = make_parser(__doc__, **options, fits=str(FITS))
    parser.add_argument("--rows", nargs="+", help="such as DCL; all rows if left out")
    args = parser.parse_args()
    use_threads()
    figures = Figures(args.fits)
    for name in args.sets:
        if not args.stored:
            measure(name, SETS[name.split(",")[0]](args), figures, args)
        with Table(name, args, ratios=COLUMNS) as table:
            for row in table_rows(measured(name, figures)):
                table.add(row)


if __name__ == "__main__":
    main()
