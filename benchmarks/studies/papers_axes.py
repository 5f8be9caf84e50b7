"""The axes along which the papers vary their losses, on the digits, paired over seeds.

    python -m benchmarks.studies.papers_axes
    python -m benchmarks.studies.papers_axes --axes temperature tau_plus  # some

Embedders of 1,347 images of 8×8 without labels, default encoder, affine views with jitter of
brightness and contrast, temperature .2, batches of 128 (N = 254) and 24 epochs, except where the
axis says otherwise. Measured on the other 450 images: 5 labels per class (logistic regression,
mean of 10 draws) and 20 nearest neighbours. Every seed has its own split. Δ is the difference from
InfoNCE in the same column of the axis with the same seeds, p that of a paired t-test.

``--cache FILE`` keeps each fit's figures, so that a run that was cut off continues.
"""

from __future__ import annotations

from functools import partial
from itertools import product

import numpy as np
import torch

from benchmarks._bcl_scores import ScoreModel
from benchmarks._results import Table, make_parser
from benchmarks.studies._digit_fits import (
    PROBES,
    RAW,
    UNTRAINED,
    Figures,
    Setting,
    cells,
    differences,
    embedding_probes,
    make_embedder,
    split,
)
from skcontrast.augmentation import RandomAffine
from skcontrast.losses import (
    BCL,
    DCL,
    HCL,
    PUCL,
    SINCERE,
    InfoNCE,
    NonparametricBCL,
    PositiveDebiased,
    Ring,
    SoftRing,
    SoftSupCon,
    SupCon,
    Supervised,
)
from skcontrast.schedules import Auto, Linear

BIASED, ORACLE = "InfoNCE", "Supervised-y"
BATCH_SIZES = (16, 32, 64, 128, 256)
N_STEPS = 264
TEMPERATURES = (0.1, 0.2, 0.5, 1.0)
BEST_OF = TEMPERATURES[:3]
N_CLASSES = (2, 3, 10)
CHECKPOINTS = (1, 2, 3, 5, 8, 15)
N_DRAWN = (30, 126, 510, 2046)
PRIORS = (0.02, 0.05, 0.1, 0.12, 0.15, 0.2, 0.3, 0.5)  # τ⁺′
# (τ⁺, c) and (τ⁺, c) of the same τ⁺′
PAIRS = (((0.1, 0.0), (2 / 11, 0.5)), ((0.2, 0.0), (1 / 3, 0.5)), ((0.5, 0.0), (2 / 3, 0.5)))


def losses_of(tau_plus):
    """Return the losses that are compared, set to a class prior."""
    return {
        BIASED: InfoNCE(),
        "DCL": DCL(tau_plus=tau_plus),
        "PUCL, c .1": PUCL(tau_plus=tau_plus, c=0.1),
        "HCL, β .5": HCL(tau_plus=tau_plus, beta=0.5),
        "BCL, α .9, β 0": BCL(alpha=0.9, tau_plus=tau_plus),
        "SoftRing, k 4": SoftRing(sharpness=4.0, tau_plus=tau_plus),
        "Ring(1, τ⁺)": Ring(outer=1.0, inner=tau_plus),
        ORACLE: Supervised(),
    }


LOSSES = losses_of(0.1)


def add_rows(table, name, value, rows, figures, args):
    """Add a row for each setting of one point of an axis, compared with its InfoNCE."""
    scores = {label: figures.of(setting, args.seeds) for label, setting in rows.items()}
    for label, of in scores.items():
        is_compared = label not in (BIASED, RAW, UNTRAINED)
        reference = scores[BIASED] if is_compared else None
        table.add({name: value, "loss": label, **cells(of, reference)})


def settings_of(names, losses=LOSSES, **kwargs):
    """Return the settings of some losses by name; a name that ends with -y trains with labels."""
    return {name: Setting(losses[name], with_y=name.endswith("-y"), **kwargs) for name in names}


def untouched(**kwargs):
    """Return the settings of raw pixels and of the encoder before training."""
    return {name: Setting(name, **kwargs) for name in (RAW, UNTRAINED)}


def axis_table(name, args, labels=2):
    """Return a table of accuracies."""
    return Table(name, args, ratios=PROBES, labels=labels, packages=("scipy",))


def negatives(figures, args):
    """Number of negatives, N = 2(B − 1), with 264 steps for any batch size."""
    n_samples = len(split(0)[0])
    with axis_table("negatives, equal steps", args) as table:
        add_rows(table, "N", "–", untouched(), figures, args)
        for size in BATCH_SIZES:
            epochs = round(N_STEPS / -(-n_samples // size))
            rows = settings_of(
                (BIASED, "DCL", "HCL, β .5", "BCL, α .9, β 0"), batch_size=size, epochs=epochs
            )
            add_rows(table, "N", 2 * (size - 1), rows, figures, args)


def temperature(figures, args):
    """Temperature of the cosine."""
    names = (BIASED, "BCL, α .9, β 0", "Ring(1, τ⁺)", "SoftRing, k 4", "Supervised-y")
    with axis_table("temperature", args) as table:
        add_rows(table, "t", "–", untouched(), figures, args)
        for t in TEMPERATURES:
            add_rows(table, "t", t, settings_of(names, temperature=t), figures, args)


def tau_plus(figures, args):
    """Few classes: 260 samples of 2, 3 or 10 digits, losses set to τ⁺."""
    with axis_table("tau_plus", args) as table:
        for n in N_CLASSES:
            untrained = untouched(n_classes=n)
            trained = settings_of(LOSSES, losses_of(1 / n), n_classes=n, batch_size=64, epochs=50)
            add_rows(table, "τ⁺", f"1/{n}", untrained | trained, figures, args)


def schedules(figures, args):
    """The schedules of BCL's paper and of the rebuttal, in shares of the epochs."""
    losses = {
        BIASED: InfoNCE(),
        "HCL, β 2 → 0": HCL(tau_plus=0.1, beta=Linear(2, 0, n_steps=20)),
        "HCL, β .5": HCL(tau_plus=0.1, beta=0.5),
        "HCL, β 1": HCL(tau_plus=0.1, beta=1.0),
        "BCL, warm start, β 2 → 0 (paper)": BCL.paper(),
        "the same, cdf as printed": BCL.paper(form="printed"),
        "BCL, warm start, β 0": BCL.paper(beta=0.0),
        "BCL, α .5 → .85, β 2 → 0": BCL.paper(alpha=Linear(0.5, 0.85)),
        "NonparametricBCL, α .5 → .85, β 1 (rebuttal)": NonparametricBCL.paper(),
        "the rebuttal as printed": NonparametricBCL.paper(form="printed"),
        "BCL, α .7, β 0": BCL(alpha=0.7),
        "BCL, α .7, β 1": BCL(alpha=0.7, beta=1.0),
        "BCL, α .9, β 0": BCL(alpha=0.9),
        "BCL, timely α from labels-y": BCL(alpha=Auto(every=2)),
    }
    with axis_table("schedules", args, labels=1) as table:
        rows = {name: Setting(name) for name in (RAW, UNTRAINED)} | settings_of(losses, losses)
        scores = {label: figures.of(setting, args.seeds) for label, setting in rows.items()}
        for label, of in scores.items():
            is_compared = label not in (BIASED, RAW, UNTRAINED)
            table.add({"loss": label, **cells(of, scores[BIASED] if is_compared else None)})


class Drawn(NonparametricBCL):
    """The rebuttal's loss on as many candidates, drawn with ψ instead of weighted by it."""

    def losses(self, rows):
        """Return the InfoNCE of each anchor with its positives and the drawn candidates."""
        scores, positives = rows.scores, rows.positives
        is_candidate = scores.isfinite()
        n = int(is_candidate[0].sum())
        ranks = (scores.argsort(1).argsort(1) + 1 - scores.shape[1] + n).clamp_min(1)
        weights = self.rank_weights(ranks.double(), n) * is_candidate
        drawn = scores.gather(1, torch.multinomial(weights, n, replacement=True))
        return (torch.logaddexp(drawn.logsumexp(1, keepdim=True), positives) - positives).mean(1)


def rebuttal(figures, args):
    """The rebuttal's loss, by rank alone, against what mines by score, and drawn."""
    losses = {
        BIASED: InfoNCE(),
        "HCL, β 2 → 0": HCL(tau_plus=0.1, beta=Linear(2, 0, n_steps=20)),
        "HCL, β .5": HCL(tau_plus=0.1, beta=0.5),
        "HCL, β 1": HCL(tau_plus=0.1, beta=1.0),
        "rebuttal": NonparametricBCL.paper(),
        "rebuttal, drawn": Drawn.paper(),
    }
    settings = settings_of(losses, losses)
    scores = {name: figures.of(setting, args.seeds) for name, setting in settings.items()}
    with axis_table("rebuttal", args, labels=2) as table:
        for name, reference in product(losses, [*losses][:-1]):
            if name != reference and ("rebuttal" in name or reference == BIASED):
                found = differences(scores[name], scores[reference], PROBES)
                table.add({"loss": name, "from": reference, **found})


def ring(figures, args):
    """Ring's percentiles: the share of the candidates that is kept, and of these dropped."""
    base = figures.of(Setting(InfoNCE()), args.seeds)
    with axis_table("ring", args) as table:
        for outer, inner in product((0.2, 0.4, 0.6, 0.8, 1.0), (0.0, 0.05, 0.1, 0.2)):
            if (outer, inner) != (1.0, 0.0):  # which is InfoNCE
                scores = figures.of(Setting(Ring(outer=outer, inner=inner)), args.seeds)
                table.add({"outer": outer, "inner": inner, **cells(scores, base)})


def pucl(figures, args):
    """PUCL's curve over τ⁺′, the one number that its τ⁺ and c come to, at two temperatures."""
    for t, title in ((0.2, "PUCL curve"), (0.5, "PUCL curve at .5")):
        with axis_table(title, args) as table:
            bases = settings_of([BIASED], temperature=t)
            add_rows(table, "τ⁺′", "–", untouched() | bases, figures, args)
            base = figures.of(bases[BIASED], args.seeds)
            for prior in PRIORS:
                scores = figures.of(Setting(DCL(tau_plus=prior), temperature=t), args.seeds)
                table.add({"τ⁺′": prior, "loss": "PUCL = DCL(τ⁺′)", **cells(scores, base)})


def pucl_pairs(figures, args):
    """Two (τ⁺, c) of the same τ⁺′ give the same embedding."""
    with Table("PUCL pairs", args, ratios=[], labels=1, digits=4) as table:
        for pair in PAIRS:
            add_pair(table, pair, figures)


def add_pair(table, pair, figures):
    """Add the accuracies of two (τ⁺, c) of one τ⁺′, and how far their embeddings are apart."""
    first, second = (PUCL(tau_plus=tau_plus, c=c) for tau_plus, c in pair)
    compute = partial(same_embedding, first, second)
    apart, accuracy, other = figures.get(f"pair {first} {second}", compute)
    row = {"τ⁺′": round(first.effective_tau_plus, 3)}
    row["(τ⁺, c)"] = " and ".join(f"({tau_plus:.3g}, {c:g})" for tau_plus, c in pair)
    row["largest difference, relative"] = f"{apart:.1e}"
    table.add({**row, "20-NN of both": [accuracy, other]})


def same_embedding(*losses):
    """Return the relative distance of two embeddings after 3 epochs, and their 20-NN."""
    data = split(0)
    embedders = [make_embedder(Setting(loss, epochs=3)).fit(data[0]) for loss in losses]
    H, other = (embedder.transform(data[2]) for embedder in embedders)
    scores = [embedding_probes(embedder, data)[1] for embedder in embedders]
    return [float(np.abs(H - other).max() / np.abs(H).max()), *scores]


def curves(figures, args):
    """Learning curves at a constant learning rate."""
    names = (BIASED, "DCL", "HCL, β .5", "BCL, α .9, β 0", "SoftRing, k 4", "Ring(1, τ⁺)")
    losses = {name: LOSSES[name] for name in names} | {
        "PositiveDebiased": PositiveDebiased(tau_plus=0.1)
    }
    scores = {
        name: np.array([curve_of(loss, seed, figures) for seed in range(args.seeds)])
        for name, loss in losses.items()
    }
    with axis_table("curves", args) as table:
        add_rows(table, "epochs", "–", untouched(), figures, args)
        for i, epochs in enumerate(CHECKPOINTS):
            for name, of in scores.items():
                reference = None if name == BIASED else scores[BIASED][:, i]
                table.add({"epochs": epochs, "loss": name, **cells(of[:, i], reference)})


def positive(figures, args):
    """PositiveDebiased as the mean over the row and as printed, 15 epochs, at two temperatures."""
    losses = {
        BIASED: InfoNCE(),
        "PositiveDebiased": PositiveDebiased(tau_plus=0.1),
        "PositiveDebiased, printed": PositiveDebiased(tau_plus=0.1, form="printed"),
    }
    with axis_table("positive", args) as table:
        for t in (0.2, 0.5):
            rows = settings_of(losses, losses, temperature=t, epochs=15)
            add_rows(table, "t", t, rows, figures, args)


def curve_of(loss, seed, figures):
    """Return the accuracies at every checkpoint of one fit."""

    def compute():
        data, found = split(seed), []
        embedder = make_embedder(Setting(loss, seed=seed))
        for epoch in range(1, CHECKPOINTS[-1] + 1):
            embedder.partial_fit(data[0])
            if epoch in CHECKPOINTS:
                found.append(embedding_probes(embedder, data))
        return found

    return figures.get(f"curve {loss} {seed}", compute)


def theorem(figures, args):
    """Gap of Theorem 1 of PUCL: N draws against N times their expectation."""
    scores_of = {"simulated": simulated_scores, "digits": digit_scores}
    with Table("theorem", args, ratios=[], labels=3, digits=2) as table:
        for (source, scores), t in product(scores_of.items(), (0.2, 0.5)):
            compute = partial(lambda scores, t: gaps(*scores(t)), scores, t)
            found = figures.get(f"theorem {source} {t}", compute)
            bounds = [(np.exp(2 / t) - 1) / (2 * n**0.5) for n in N_DRAWN]
            for n, gap, bound in zip(N_DRAWN, found, bounds, strict=True):
                row = {"scores": source, "t": t, "N": n, "gap": f"{gap:.1e}"}
                table.add({**row, "N · gap": n * gap, "bound": f"{bound:.1f}"})


def simulated_scores(t):
    """Return scores of 450 anchors with a positive and with 2,000 true negatives, α = .9."""
    sample = ScoreModel(0.9, tau_plus=0.0, temperature=t).sample(450, 2000, 1, random_state=0)
    return sample.positives[:, 0], list(sample.scores)


def digit_scores(t):
    """Return scores of test images with a sample of the same class and with all true negatives."""
    X_train, _, X_test, y_test = split(0)
    embedder = make_embedder(Setting(InfoNCE(), temperature=t)).fit(X_train)
    Z = embedder.set_params(output="projection").transform(X_test)
    Z = Z / np.linalg.norm(Z, axis=1, keepdims=True)
    scores, rng = (Z @ Z.T).astype(float) / t, np.random.default_rng(0)
    same, itself = y_test[:, None] == y_test, np.eye(len(Z), dtype=bool)
    mates = [rng.choice(np.flatnonzero(row)) for row in same & ~itself]
    return scores[range(len(Z)), mates], [scores[i, ~same[i]] for i in range(len(Z))]


def gaps(positives, populations, n_draws=20):
    """Return the mean over anchors of log(p + Nμ) − E log(p + Σ n_j) for every N.

    μ is the mean of e^s over an anchor's population, from which the N negatives are drawn. With δ
    the relative error of the denominator, of expectation 0, the gap is E[δ − log(1 + δ)].
    """
    rng, found = np.random.default_rng(0), []
    for n in N_DRAWN:
        total = 0.0
        for positive, population in zip(np.exp(positives), populations, strict=True):
            exponentials = np.exp(population)
            ideal = positive + n * exponentials.mean()
            drawn = rng.choice(exponentials, (n_draws, n)).sum(axis=1) + positive
            delta = drawn / ideal - 1
            total += float((delta - np.log1p(delta)).mean())
        found.append(total / len(positives))
    return found


def sincere(figures, args):
    """SINCERE, whose positives do not push each other, against SupCon; all labels in both."""
    losses = {"SupCon-y": SupCon(), "SINCERE-y": SINCERE()}
    with axis_table("sincere", args) as table:
        for t in (0.1, 0.2, 0.5):
            rows = settings_of(losses, losses, temperature=t)
            supcon, ours = (figures.of(setting, args.seeds) for setting in rows.values())
            table.add({"t": t, "loss": "SupCon", **cells(supcon)})
            table.add({"t": t, "loss": "SINCERE", **cells(ours, supcon)})


def best(figures, args):
    """Each loss at the temperature that is best on the other seeds, in each column for itself."""
    losses = {
        **LOSSES,
        "PositiveDebiased": PositiveDebiased(tau_plus=0.1),
        "SoftSupCon, k 20": SoftSupCon(tau_plus=0.1),
    }
    chosen, temperatures = {}, {}
    for name in losses:
        rows = [settings_of([name], losses, temperature=t)[name] for t in BEST_OF]
        scores = np.array([figures.of(setting, args.seeds) for setting in rows])
        at = (scores.sum(1, keepdims=True) - scores).argmax(0)
        chosen[name] = np.take_along_axis(scores, at[None], 0)[0]
        often = [BEST_OF[np.bincount(column).argmax()] for column in at.T]
        temperatures[name] = " and ".join(map(str, often))
    gap = (chosen[ORACLE] - chosen[BIASED]).mean(0)
    with axis_table("best of each", args, labels=1) as table:
        for name, of in chosen.items():
            share = (of - chosen[BIASED]).mean(0)[0] / gap[0]
            reference = None if name == BIASED else chosen[BIASED]
            row = {"loss": name, "t": temperatures[name], **cells(of, reference)}
            table.add({**row, "of the gap, 5 labels": f"{share:.0%}"})


def light(figures, args):
    """Views that change brightness and contrast, too, against turns and shifts alone."""

    def alone(seed):
        embedder = make_embedder(Setting(InfoNCE(), seed=seed))
        embedder.set_params(augmentation=RandomAffine()).fit(split(seed)[0])
        return embedding_probes(embedder, split(seed))

    without = figures.over("turns and shifts alone", alone, args.seeds)
    with axis_table("light", args, labels=1) as table:
        table.add({"views": "turns and shifts alone", **cells(without)})
        of = figures.of(Setting(InfoNCE()), args.seeds)
        table.add({"views": "and light", **cells(of, without)})


AXES = {
    "theorem": theorem,
    "negatives": negatives,
    "temperature": temperature,
    "tau_plus": tau_plus,
    "schedules": schedules,
    "rebuttal": rebuttal,
    "ring": ring,
    "sincere": sincere,
    "best": best,
    "light": light,
    "curves": curves,
    "positive": positive,
    "pucl": pucl,
    "pucl_pairs": pucl_pairs,
}


def main():
    """Print a table for each axis."""
    args = make_parser(__doc__, axes=AXES, seeds=5, cache=str, threads=1).parse_args()
    torch.set_num_threads(args.threads)
    figures = Figures(args.cache)
    for name in args.axes:
        AXES[name](figures, args)


if __name__ == "__main__":
    main()
