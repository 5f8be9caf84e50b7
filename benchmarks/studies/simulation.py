"""Losses without labels as estimators of E⁻[e^s], on scores drawn from BCL's model.

    python -m benchmarks.studies.simulation

Mean squared error against the mean over the true negatives of the same sample, and bias, times
10⁴, for class priors, location parameters and numbers of candidates; temperature .5, losses set to
the true α and τ⁺. All losses see the same scores. "nearest other" is the least advantage of BCL
with the inverted cdf in squared error over another loss, in standard errors of the paired
difference: negative where another loss is better. Two small tables have relative biases: of
candidates that are the rest after a share c of the class was taken as positives, the premise of
PUCL; and by hardness β, with which the estimates aim elsewhere.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from benchmarks._bcl_scores import ScoreModel, compare_estimators, matched_estimators
from benchmarks._results import Table, make_parser
from skcontrast.losses import BCL, NonparametricBCL

TAUS = (0.05, 0.1, 0.2, 0.3)
ALPHAS = (0.6, 0.7, 0.8, 0.9, 0.99)
SIZES = (64, 256, 1024)
OURS = "BCL (inverted)"
NAMES = ("BIASED", "DCL", "HCL", "BCL (printed)", OURS, "NonparametricBCL")


def advantage(found, other):
    """Return by how many standard errors our squared error is below another's."""
    ours, theirs = ((found.estimates[name] - found.supervised) ** 2 for name in (OURS, other))
    difference = theirs - ours
    error = difference.std(ddof=1) / np.sqrt(len(difference))
    return difference.mean() / error if error else 0.0


def simulate(args):
    """Print error and bias of every loss in every setting."""
    rng, biases = np.random.default_rng(args.seed), []
    with Table("mse", args, labels=3, digits=2) as table:
        for tau_plus, alpha, n in product(TAUS, ALPHAS, SIZES):
            model = ScoreModel(alpha=alpha, tau_plus=tau_plus, temperature=0.5)
            losses = {name: matched_estimators(model)[name] for name in NAMES}
            size = {"n_anchors": args.n_anchors, "n_candidates": n}
            found = compare_estimators(model, losses, random_state=rng, **size)
            setting = {"τ⁺": tau_plus, "α": alpha, "N": n}
            nearest = min(advantage(found, other) for other in NAMES if other != OURS)
            mse, bias = found.summary("mse"), found.summary("bias")
            row = {name: 1e4 * mse[name][0] for name in NAMES}
            table.add({**setting, **row, "nearest other": nearest})
            biases.append({**setting, **{name: 1e4 * bias[name][0] for name in NAMES}})
    with Table("bias", args, ratios=[], labels=3, digits=2) as table:
        for row in biases:
            table.add(row)


def relative_bias(model, losses, args, n_candidates):
    """Return the bias of losses as a share of the truth."""
    size = {"n_anchors": args.n_anchors, "n_candidates": n_candidates}
    found = compare_estimators(model, losses, random_state=args.seed, **size)
    truth = found.supervised.mean()
    return {name: bias / truth for name, (bias, _) in found.summary("bias").items()}


def label_frequency(args):
    """Print the bias where a share c of the class is not among the candidates."""
    with Table("label frequency", args, ratios=[], labels=2) as table:
        for tau_plus, c in product((0.1, 0.3), (0.0, 0.2, 0.4)):
            model = ScoreModel(tau_plus=tau_plus, c=c)
            losses = {name: matched_estimators(model)[name] for name in ("BIASED", "DCL", "PUCL")}
            table.add({"τ⁺": tau_plus, "c": c, **relative_bias(model, losses, args, 256)})


def hardness(args):
    """Print the bias of BCL and NonparametricBCL by their β, which differ in meaning."""
    with Table("hardness", args, ratios=[]) as table:
        for beta in (0.0, 0.25, 0.5, 0.75, 1.0):
            losses = {
                "BCL": BCL(alpha=0.9, beta=beta, tau_plus=0.1),
                "NonparametricBCL": NonparametricBCL(alpha=0.9, beta=beta, tau_plus=0.1),
                "the same, printed": NonparametricBCL(
                    alpha=0.9, beta=beta, tau_plus=0.1, form="printed"
                ),
            }
            table.add({"β": beta, **relative_bias(ScoreModel(), losses, args, 512)})


def main():
    """Print the tables."""
    args = make_parser(__doc__, n_anchors=4000, seed=0).parse_args()
    for study in (label_frequency, hardness, simulate):
        study(args)


if __name__ == "__main__":
    main()
