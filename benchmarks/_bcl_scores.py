r"""Scores drawn from BCL's model, of which the truth is known, and losses as estimators on them.

Every anchor has a density φ with cdf Φ, of which the lower and the upper of two draws have the
densities 2φ(1 − Φ) and 2φΦ. True negatives are draws of the lower with probability α and of the
upper with 1 − α; false negatives, a share τ⁺ of the candidates, and positives the other way round
(Liu and Wang, "Bayesian Self-Supervised Contrastive Learning", 2023, section 4 and appendix B.1).

The losses use e^(cos / t); the paper's experiment uses e^(x / t) with x in [−1/t², 1/t²]. Its text
does not say which τ⁺ it uses; here it is .1. Its published code draws the two ends of the interval
independently, within γ/t² of ±1/t². Its accept–reject sampling needs the maximum where it writes
"c = min[…]"; the value 2α that it uses is right.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm, uniform

from skcontrast.estimation import ScoreSample
from skcontrast.estimation._known_scores import estimate
from skcontrast.losses import (
    BCL,
    DCL,
    HCL,
    PUCL,
    InfoNCE,
    NonparametricBCL,
    Ring,
    SoftRing,
    Supervised,
)
from skcontrast.losses._posterior import false_negative_probability, ranks_inside

# Scores drawn at a time: enough to keep the arrays efficient, few enough to stay in cache.
CHUNK = 2**19


@dataclass(frozen=True)
class ScoreModel:
    """The model; φ is uniform on [−.5, .5], or standard normal, before a shift of each anchor.

    The shift is uniform, at most γ times that which moves [−.5, .5] to the end of the range of x:
    [−1, 1], that of a cosine ("once"), or [−1/t², 1/t²] as the paper prints it. Where a share c of
    the class serves as positives, the candidates are the rest.
    """

    alpha: float = 0.9
    tau_plus: float = 0.1
    temperature: float = 0.5
    gamma: float = 0.1
    form: str = "once"
    proposal: str = "uniform"
    c: float = 0.0

    @property
    def auc(self):
        """Probability that a false negative scores above a true one."""
        return (1 + 4 * self.alpha) / 6

    @property
    def lower_bound(self):
        """The lowest possible score, −inf if φ is normal."""
        if self.proposal == "normal":
            return -np.inf
        # Past t = √2 the printed range is narrower than the interval [−.5, .5] itself.
        return -max(self._largest, 0.5) / self.temperature

    @property
    def _largest(self):
        return 1.0 if self.form == "once" else 1 / self.temperature**2

    @property
    def _proposal(self):
        return uniform(-0.5, 1) if self.proposal == "uniform" else norm()

    @property
    def rest_prior(self):
        """The probability that a candidate is a false negative."""
        return self.tau_plus * (1 - self.c) / (1 - self.tau_plus * self.c)

    def sample(self, n_anchors=1000, n_candidates=64, n_positives=10, random_state=None):
        """Draw the scores of anchors with candidates and positives, and the truth."""
        rng = np.random.default_rng(random_state)
        is_negative = rng.random((n_anchors, n_candidates)) >= self.rest_prior
        phi_candidates = _draw(np.where(is_negative, self.alpha, 1 - self.alpha), rng)
        phi_positives = _draw(np.full((n_anchors, n_positives), 1 - self.alpha), rng)
        largest_shift = self.gamma * max(self._largest - 0.5, 0.0)
        shift = rng.uniform(-largest_shift, largest_shift, (n_anchors, 1))
        scores, positives = (
            (self._proposal.ppf(phi) + shift) / self.temperature
            for phi in (phi_candidates, phi_positives)
        )
        return ScoreSample(scores, is_negative, positives, self.lower_bound)

    def density(self, x, component):
        """Return the density of x = s · t of true, false or all candidates, "TN", "FN", "UN"."""
        lower, phi = self._lower_share(component), self._proposal.cdf(x)
        return 2 * (lower * (1 - phi) + (1 - lower) * phi) * self._proposal.pdf(x)

    def cdf(self, x, component="UN"):
        """Return the cdf of `density`, 2λΦ + (1 − 2λ)Φ²."""
        lower, phi = self._lower_share(component), self._proposal.cdf(x)
        return 2 * lower * phi + (1 - 2 * lower) * phi**2

    def _lower_share(self, component):
        """Return the share λ of the lower of two draws."""
        shares = {"TN": self.alpha, "FN": 1 - self.alpha}
        shares["UN"] = (1 - self.rest_prior) * self.alpha + self.rest_prior * (1 - self.alpha)
        return shares[component]


def _draw(lower, rng):
    """Draw u of cdf 2λu + (1 − 2λ)u² for every share λ, by inversion."""
    p = 1 - rng.random(lower.shape)  # never 0, where λ = 0 would give 0/0
    return p / (lower + np.sqrt(np.maximum(lower**2 + (1 - 2 * lower) * p, 0)))


def sharpness_of(auc, tau_plus):
    """Return the sharpness, at most 100, with which SoftRing's ranks have an AUC."""
    u = ranks_inside(2**12)

    def excess(sharpness):
        p = false_negative_probability(u, sharpness, tau_plus)
        true = (1 - p) / (1 - p).sum()
        return float((p * (true.cumsum(0) - true / 2)).sum() / p.sum()) - auc

    if excess(0.0) >= 0:
        return 0.0
    return brentq(excess, 0.0, 100.0) if excess(100.0) > 0 else 100.0


def matched_estimators(model):
    """Return the losses as estimators, their hyperparameters set to the truth of a model.

    HCL and BCL with β = .5 aim at a mean that is tilted towards hard negatives, and Ring at a sum
    over fewer candidates: not all of their difference from the truth is an error. DCL, PUCL and
    HCL do better here than in training, where positives are not draws of the false negatives.
    """
    alpha, tau_plus = model.alpha, model.tau_plus
    sharpness = sharpness_of(model.auc, tau_plus) if tau_plus else 0.0
    return {
        "BIASED": InfoNCE(),
        "DCL": DCL(tau_plus=tau_plus),
        "PUCL": PUCL(tau_plus=tau_plus, c=model.c),
        "HCL": HCL(tau_plus=tau_plus, beta=0.5),
        "BCL (printed)": BCL(alpha=alpha, tau_plus=tau_plus, form="printed"),
        "BCL (inverted)": BCL(alpha=alpha, tau_plus=tau_plus),
        "BCL, β = .5": BCL(alpha=alpha, beta=0.5, tau_plus=tau_plus),
        "NonparametricBCL": NonparametricBCL(alpha=alpha, beta=0.5, tau_plus=tau_plus),
        "Ring": Ring(outer=1.0, inner=tau_plus),
        "SoftRing": SoftRing(sharpness=sharpness, tau_plus=tau_plus),
        "oracle": Supervised(),
    }


@dataclass(frozen=True)
class Comparison:
    """Estimates of several losses by name, and the mean of e^s over true negatives, by anchor."""

    supervised: np.ndarray
    estimates: dict

    def summary(self, metric="mse"):
        """Return the mean "mse", "bias" or "mean" of every estimator, and its standard error."""
        return {name: _mean_and_error(self._values(name, metric)) for name in self.estimates}

    def _values(self, name, metric):
        if metric == "mean":
            return self.estimates[name]
        error = self.estimates[name] - self.supervised
        return error if metric == "bias" else error**2


def _mean_and_error(values):
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))


def compare_estimators(
    model, losses=None, *, n_anchors=1000, n_candidates=64, n_positives=10, random_state=None
):
    """Compare losses, the matched ones by default, on anchors that have a true negative."""
    losses = matched_estimators(model) if losses is None else losses
    rng = np.random.default_rng(random_state)
    rows = max(1, CHUNK // n_candidates)
    sizes = [min(rows, n_anchors - start) for start in range(0, n_anchors, rows)]
    samples = (model.sample(size, n_candidates, n_positives, rng) for size in sizes)
    parts = [_compare(sample, losses) for sample in samples]
    together = {name: np.concatenate([found[name] for _, found in parts]) for name in losses}
    return Comparison(np.concatenate([truth for truth, _ in parts]), together)


def _compare(sample, losses):
    """Return the truth and the estimates of the anchors that have a true negative."""
    usable = sample.is_negative.any(axis=1)
    scores, is_negative, positives = (part[usable] for part in sample[:3])
    sample = sample._replace(scores=scores, is_negative=is_negative, positives=positives)
    exponentials = np.where(is_negative, np.exp(scores), 0.0)
    supervised = exponentials.sum(axis=1) / is_negative.sum(axis=1)
    return supervised, {name: estimate(loss, sample) for name, loss in losses.items()}
