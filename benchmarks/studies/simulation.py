"""The label-free losses as estimators of E⁻[e^s] on scores drawn from BCL's model.

    python -m benchmarks.studies.simulation

Mean squared error against the mean over the true negatives, and bias, for class priors, location
parameters and numbers of candidates; temperature .5, the losses set to the true α and τ⁺. All
losses see the same scores, so that their errors are compared anchor by anchor. A cell is marked
where BCL with the inverted cdf is worse than another loss; at the end stands which claims hold.
Two small tables: candidates that are the rest after a share c of the class was taken as positives,
the premise of PUCL; and hardness β, with which the estimates aim elsewhere.
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np

from benchmarks._bcl_scores import ScoreModel, compare_estimators, matched_estimators
from benchmarks._results import Table, make_parser
from skcontrast.losses import BCL, NonparametricBCL

TAUS = (0.05, 0.1, 0.2, 0.3)
ALPHAS = (0.6, 0.7, 0.8, 0.9, 0.99)
SIZES = (64, 256, 1024)
OURS = "BCL (inverted)"
OTHERS = ("BIASED", "DCL", "HCL", "BCL (printed)", "NonparametricBCL")
NAMES = ("BIASED", "DCL", "HCL", "BCL (printed)", OURS, "NonparametricBCL")
BOUND = 3  # Monte-Carlo standard errors


class Cell(NamedTuple):
    """One setting and its comparison."""

    tau_plus: float
    alpha: float
    n_candidates: int
    comparison: object

    def __str__(self):
        return f"τ⁺={self.tau_plus:g} α={self.alpha:g} N={self.n_candidates}"


def simulate(n_anchors):
    """Return the comparison of every setting, all independent."""
    rng, cells = np.random.default_rng(0), []
    for tau_plus, alpha, n in product(TAUS, ALPHAS, SIZES):
        model = ScoreModel(alpha=alpha, tau_plus=tau_plus, temperature=0.5)
        losses = {name: loss for name, loss in matched_estimators(model).items() if name in NAMES}
        size = {"n_anchors": n_anchors, "n_candidates": n}
        found = compare_estimators(model, losses, random_state=rng, **size)
        cells.append(Cell(tau_plus, alpha, n, found))
    return cells


def worse_than(cell, other, factor=1.0):
    """Return whether our squared error is above factor · another's, in standard errors."""
    estimates, truth = cell.comparison.estimates, cell.comparison.supervised
    difference = (estimates[OURS] - truth) ** 2 - factor * (estimates[other] - truth) ** 2
    error = difference.std(ddof=1) / np.sqrt(len(difference))
    return difference.mean() / error if error else 0.0


def add_cells(table, cells, quantity):
    """Add 10⁴ times an error of every loss in every setting."""
    for cell in cells:
        setting = {"τ⁺": cell.tau_plus, "α": cell.alpha, "N": cell.n_candidates}
        found = cell.comparison.summary(quantity)
        table.add({**setting, **{name: found[name][0] * 1e4 for name in NAMES}})


def add_frequencies(args):
    """Store the relative bias where a share c of the class is not among the candidates."""
    with Table("label frequency", args, ratios=[], labels=2) as table:
        for tau_plus, c in product((0.1, 0.3), (0.0, 0.2, 0.4)):
            model = ScoreModel(tau_plus=tau_plus, c=c)
            names = ("BIASED", "DCL", "PUCL")
            table.add({"τ⁺": tau_plus, "c": c, **relative_bias(model, names, args.n_anchors)})


def add_hardness(args):
    """Store the relative bias of BCL and NonparametricBCL by their β, which differ in meaning."""
    with Table("hardness", args, ratios=[]) as table:
        for beta in (0.0, 0.25, 0.5, 0.75, 1.0):
            losses = {
                "BCL": BCL(0.9, beta, tau_plus=0.1),
                "NonparametricBCL": NonparametricBCL(0.9, beta, tau_plus=0.1),
                "the same, printed": NonparametricBCL(0.9, beta, tau_plus=0.1, form="printed"),
            }
            table.add({"β": beta, **relative_bias(ScoreModel(), losses, args.n_anchors, 512)})


def relative_bias(model, losses, n_anchors, n_candidates=256):
    """Return the bias of losses, or of matched ones by their names, as a share of the truth."""
    if not isinstance(losses, dict):
        losses = {name: matched_estimators(model)[name] for name in losses}
    size = {"n_anchors": n_anchors, "n_candidates": n_candidates}
    found = compare_estimators(model, losses, random_state=0, **size)
    truth = found.supervised.mean()
    return {name: bias / truth for name, (bias, _) in found.summary("bias").items()}


def worse_in(cell):
    """Return the losses whose squared error is below ours by more than `BOUND` errors."""
    return [other for other in OTHERS if worse_than(cell, other) > BOUND]


def check_smallest(cells):
    """Print where another loss has the smaller error."""
    worse = [(cell, other) for cell in cells for other in worse_in(cell)]
    scores = [worse_than(cell, other) for cell in cells for other in OTHERS]
    print(f"\n{len(scores)} comparisons of {OURS} with another loss: the other's error is smaller")
    print(
        f"in {sum(z > 0 for z in scores)} (by at most {max(scores):.1f} SE), by more than 2 SE in "
        f"{sum(z > 2 for z in scores)}, by more than {BOUND} SE in {len(worse)}"
    )
    for cell, other in worse:
        mse = cell.comparison.summary("mse")
        print(f"  {cell}: {other}, {1 - mse[other][0] / mse[OURS][0]:.2%} smaller")


def check_half(cells):
    """Print where our error is not at most half of DCL's and of the printed form's."""
    claimed = [cell for cell in cells if cell.alpha >= 0.9 and cell.n_candidates >= 256]
    for other in ("DCL", "BCL (printed)"):
        sure = sum(worse_than(cell, other, 0.5) < -BOUND for cell in claimed)
        fails = [cell for cell in claimed if worse_than(cell, other, 0.5) > 0]
        print(f"\nα ≥ .9, N ≥ 256: at most half of the error of {other}: ", end="")
        print(f"{len(claimed) - len(fails)} of {len(claimed)}, {sure} by more than {BOUND} SE")
        for cell in fails:
            mse = cell.comparison.summary("mse")
            z = worse_than(cell, other, 0.5)
            print(f"  fails at {cell}: {mse[OURS][0] / mse[other][0]:.2f} of it ({z:+.1f} SE)")


def check_bias(cells):
    """Print where the bias neither falls to a quarter with N nor is lost in the noise."""
    few = {(c.tau_plus, c.alpha): c for c in cells if c.n_candidates == SIZES[0]}
    many = [cell for cell in cells if cell.n_candidates == SIZES[-1]]
    for name in ("BCL (printed)", OURS):
        stays = []
        for cell in many:
            before, _ = few[cell.tau_plus, cell.alpha].comparison.summary("bias")[name]
            after, error = cell.comparison.summary("bias")[name]
            if abs(after) > max(abs(before) / 4, BOUND * error):
                stays.append(f"  stays at {cell}: {before:+.4f} → {after:+.4f} ± {error:.4f}")
        print(
            f"\nbias of {name} at N = {SIZES[-1]} at most a quarter of that at N = {SIZES[0]}, or "
            f"within {BOUND} SE of 0: {len(many) - len(stays)} of {len(many)}",
            *stays,
            sep="\n",
        )


def main():
    """Print the table and the claims."""
    parser = make_parser(__doc__)
    parser.add_argument("--n-anchors", type=int, default=4000)
    parser.add_argument("--parameters", action="store_true", help="tables of c and β only")
    args = parser.parse_args()
    add_frequencies(args)
    add_hardness(args)
    if args.parameters:
        return
    cells = simulate(args.n_anchors)
    with Table("mse", args, labels=3, digits=2) as table:
        add_cells(table, cells, "mse")
    with Table("bias", args, ratios=[], labels=3, digits=2) as table:
        add_cells(table, cells, "bias")
    check_smallest(cells)
    check_half(cells)
    check_bias(cells)


if __name__ == "__main__":
    main()
