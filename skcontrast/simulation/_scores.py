"""Samples of scores, of real embeddings or of a generative model."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.stats import norm, uniform
from torch import Tensor

from .._checks import (
    FRACTION,
    POSITIVE,
    POSITIVE_INT,
    Interval,
    ParameterObject,
    StrOptions,
    checked,
    naming,
    numbers,
    refuse_masked,
    validate_parameters,
)
from .._data._metadata import validate_labels
from .._objective._functional import contrast_of
from .._objective._rows import tiles
from ..similarity import Similarity

RandomState: TypeAlias = int | np.random.Generator | None

# Constraints of the numbers of scores that are drawn, and of what draws them.
DRAWN: dict = dict.fromkeys(("n_anchors", "n_candidates", "n_positives"), POSITIVE_INT)
_SEED = Interval(Integral, 0, 2**63 - 1, closed="both")
DRAWN["random_state"] = [_SEED, np.random.Generator, None]
Component: TypeAlias = Literal["TN", "FN", "UN", "lower", "upper", "wanted"]
_COMPONENT = [StrOptions(set(get_args(Component)))]


class ScoreSample(NamedTuple):
    """Scores of anchors, and the truth that is hidden in practice.

    Attributes
    ----------
    scores : ndarray of shape (n_anchors, n_candidates)
        Scores of the candidates.
    is_negative : ndarray of shape (n_anchors, n_candidates), dtype bool
        Which candidates are true negatives.
    positives : ndarray of shape (n_anchors, n_positives)
        Scores of samples that are known to share the anchor's class.
    lower_bound : float
        The lowest score that the model or the similarity allows.
    upper_bound : float, default=inf
        The highest score that it allows.
    """

    scores: np.ndarray
    is_negative: np.ndarray
    positives: np.ndarray
    lower_bound: float
    upper_bound: float = float("inf")

    @classmethod
    @checked(positives=[StrOptions({"views", "classmates"})])
    def from_views(
        cls,
        *views: Any,
        y: Sequence | np.ndarray,
        similarity: Similarity | None = None,
        positives: Literal["views", "classmates"] = "views",
    ) -> ScoreSample:
        r"""Return the scores of real embeddings, with the truth that their labels tell.

        Every view of a sample is an anchor, and its candidates are all views of the other
        samples, as in a step of training with one batch of these samples. All anchors have the
        same number of candidates, N = n_views · (n − 1), but of rare classes a smaller share of
        them are false negatives.

        Parameters
        ----------
        *views : Tensor or array-like of shape (n, d), or tuple of two
            Embeddings of two or more views of the same n samples. For ``VonMisesFisher`` tuples
            of mean directions (n, d) and concentrations (n,).
        y : array-like of shape (n,)
            Classes; −1 where unknown: such samples are left out.
        similarity : Similarity, default=None
            The score; None is ``Cosine()``.
        positives : {"views", "classmates"}, default="views"
            The positives of an anchor: the other views of the same sample, as in training; or
            the other views of the next sample of its class (after the last comes the first),
            which are draws from the false negatives, as the theory of ``DCL`` and ``PUCL`` has
            it, if the samples are in random order. Candidates are the same in both cases.

        Returns
        -------
        sample : ScoreSample
            Of n_views · n anchors with n_views − 1 positives each, float64. It takes
            (n_views · n)² numbers of memory.

        Raises
        ------
        ValueError
            If there are fewer than two views or two samples of known class, or classmates are
            wanted of a class with one sample.

        See Also
        --------
        skcontrast.estimation.negative_bias : How far a loss is off on such scores.
        skcontrast.estimation.project_views : Views from a fitted embedder.

        Examples
        --------
        >>> import numpy as np
        >>> from skcontrast.simulation import ScoreSample
        >>> z1, z2 = np.random.default_rng(0).normal(size=(2, 6, 4))
        >>> sample = ScoreSample.from_views(z1, z2, y=[0, 0, 0, 1, 1, 1])
        >>> sample.scores.shape, sample.is_negative.sum(axis=1)[0], sample.positives.shape
        ((12, 10), np.int64(6), (12, 1))
        """
        if len(views) < 2:
            raise ValueError(f"ScoreSample.from_views needs at least two views, got {len(views)}.")
        labels = validate_labels(y, None, needed_by="ScoreSample.from_views")
        views, labels = tuple(_known(view, labels) for view in views), labels[labels >= 0]
        if len(labels) < 2:
            raise ValueError(f"y must hold the classes of two samples, got {len(labels)}.")
        contrast, similarity = contrast_of(views, similarity, torch.from_numpy(labels))
        with torch.no_grad():
            scores = torch.cat([part.clone() for _, part in tiles(contrast, similarity)])
        of_positives = contrast.positives
        if positives == "classmates":
            of_positives = _of_classmates(scores, labels, len(views))
        is_candidate = torch.ones_like(scores, dtype=torch.bool)
        is_candidate.scatter_(1, contrast.excluded, False)
        candidates, is_negative = (
            part[is_candidate].view(len(part), -1).numpy()
            for part in (scores, ~contrast.same_class(slice(None)))
        )
        bounds = similarity.bounds(contrast.anchors.shape[1])
        return cls(candidates, is_negative, of_positives.numpy(), *bounds)


def checked_sample(sample: ScoreSample) -> ScoreSample:
    """Return the arrays of a sample as float64 and bool; raise ValueError where they are none."""
    scores, positives = (
        np.ascontiguousarray(numbers(values, name, dtype=np.float64, ensure_min_samples=0))
        for name, values in (("scores", sample.scores), ("positives", sample.positives))
    )
    refuse_masked(sample.is_negative, "is_negative")
    is_negative = np.ascontiguousarray(sample.is_negative)
    if is_negative.shape != scores.shape or not np.isin(is_negative, [0, 1]).all():
        raise ValueError(f"is_negative must hold booleans of the shape of scores, {scores.shape}.")
    if len(positives) != len(scores):
        raise ValueError(
            f"positives must have a row for each of {len(scores)} anchors, got {len(positives)}."
        )
    return sample._replace(
        scores=scores, is_negative=is_negative.astype(bool), positives=positives
    )


def with_negatives(sample: ScoreSample) -> ScoreSample:
    """Return the anchors that have a true negative among their candidates."""
    usable = sample.is_negative.any(axis=1)
    scores, is_negative, positives = (part[usable] for part in sample[:3])
    return sample._replace(scores=scores, is_negative=is_negative, positives=positives)


class ScoreModel(ParameterObject):
    r"""The generative model of scores of the numerical experiments of BCL.

    Every anchor has a density φ with cdf Φ, of which the lower and the upper of two draws have the
    densities :math:`\varphi_{(1)} = 2\varphi(1 - \Phi)` and :math:`\varphi_{(2)} = 2\varphi\Phi`.
    The cosine of the anchor and a candidate, and its score, are [1]_

    .. math:: x \sim \begin{cases}
        \varphi_{\mathrm{TN}} = \alpha \varphi_{(1)} + (1 - \alpha) \varphi_{(2)}
        & \text{with probability } \tau^- = 1 - \tau^+ \text{ (true negative)} \\
        \varphi_{\mathrm{FN}} = (1 - \alpha) \varphi_{(1)} + \alpha \varphi_{(2)}
        & \text{with probability } \tau^+ \text{ (false negative)}
        \end{cases} \qquad s = x / t

    and an anchor's positives are draws of :math:`\varphi_{\mathrm{FN}}` too.

    Parameters
    ----------
    alpha : float, default=0.9
        Location parameter α in [.5, 1]: how well scores separate the classes. At .5 they do not.
    tau_plus : float, default=0.1
        Class prior τ⁺ in [0, 1): the probability that a random sample has the anchor's class, and
        with c = 0 that a candidate is a false negative.
    temperature : float, default=0.5
        The temperature t > 0.
    gamma : float, default=0.1
        How much φ differs between anchors, in [0, 1]. φ is moved by a uniform random shift of at
        most γ times the shift that moves the interval [−.5, .5] to the end of the range of x.
    form : {"once", "printed"}, default="once"
        The range of x: [−1, 1], that of a cosine, so that the temperature is applied once; or
        [−1/t², 1/t²] as the paper prints it, which applies the temperature to x already.
    proposal : {"uniform", "normal"}, default="uniform"
        φ before the shift: uniform on [−.5, .5], or standard normal as in the paper's Figures 3
        and 4. Normal scores have no lower bound.
    c : float, default=0.0
        Label frequency in [0, 1], as in :class:`~skcontrast.losses.PUCL`: where this fraction of
        the anchor's class serves as positives, the candidates are the unlabeled rest, and false
        negatives with probability τ⁺(1 − c)/(1 − τ⁺c).

    Notes
    -----
    The losses use :math:`e^{\cos / t}`; the paper's experiment uses :math:`e^{x / t}` with x in
    [−1/t², 1/t²]. Its text does not say which τ⁺ it uses; here it is .1. Its published code
    draws the two ends of the interval independently, within γ/t² of ±1/t². Its accept–reject
    sampling needs the maximum where it writes "c = min[…]"; the value 2α that it uses is right.

    References
    ----------
    .. [1] B. Liu, B. Wang, "Bayesian Self-Supervised Contrastive Learning", 2023, section 4 and
       appendix B.1.

    Examples
    --------
    >>> from skcontrast.simulation import ScoreModel
    >>> sample = ScoreModel(alpha=0.9).sample(n_anchors=3, n_candidates=64, random_state=0)
    >>> sample.scores.shape, sample.positives.shape
    ((3, 64), (3, 10))
    """

    _parameter_constraints: dict = {
        "alpha": [Interval(Real, 0.5, 1, closed="both")],
        "tau_plus": [Interval(Real, 0, 1, closed="left")],
        "temperature": POSITIVE,
        "gamma": FRACTION,
        "form": [StrOptions({"once", "printed"})],
        "proposal": [StrOptions({"uniform", "normal"})],
        "c": FRACTION,
    }

    def __init__(
        self,
        alpha: float = 0.9,
        tau_plus: float = 0.1,
        temperature: float = 0.5,
        gamma: float = 0.1,
        form: Literal["once", "printed"] = "once",
        proposal: Literal["uniform", "normal"] = "uniform",
        c: float = 0.0,
    ):
        self.alpha = alpha
        self.tau_plus = tau_plus
        self.temperature = temperature
        self.gamma = gamma
        self.form = form
        self.proposal = proposal
        self.c = c

    @property
    def auc(self) -> float:
        """Probability that a false negative scores above a true one, (1 + 4α)/6."""
        validate_parameters(self)
        return (1 + 4 * self.alpha) / 6

    @property
    def lower_bound(self) -> float:
        """The lowest possible score: −1/t, or −1/t³ as printed; −inf if φ is normal."""
        validate_parameters(self)
        if self.proposal == "normal":
            return -np.inf
        # Past t = √2 the printed range is narrower than the interval [−.5, .5] itself.
        return -max(self._largest(), 0.5) / self.temperature

    @checked(**DRAWN)
    def sample(
        self,
        n_anchors: int = 1000,
        n_candidates: int = 64,
        n_positives: int = 10,
        random_state: RandomState = None,
    ) -> ScoreSample:
        """Draw the scores of anchors, their candidates and their positives.

        Parameters
        ----------
        n_anchors : int, default=1000
            Number of anchors M ≥ 1.
        n_candidates : int, default=64
            Number of candidates of each anchor N ≥ 1.
        n_positives : int, default=10
            Number of known positives of each anchor K ≥ 1.
        random_state : int, Generator or None, default=None
            Seed of the draws. Global generators are not used.

        Returns
        -------
        sample : ScoreSample
            The scores, float64, and which candidates are true negatives.

        Raises
        ------
        ValueError
            If a parameter of the model or an argument is outside its range.

        Examples
        --------
        >>> from skcontrast.simulation import ScoreModel
        >>> sample = ScoreModel(tau_plus=0.0).sample(2, 5, random_state=0)
        >>> bool(sample.is_negative.all())
        True
        """
        validate_parameters(self)
        rng = np.random.default_rng(random_state)
        is_negative = rng.random((n_anchors, n_candidates)) >= self._rest_prior
        phi_candidates = _draw(np.where(is_negative, self.alpha, 1 - self.alpha), rng)
        phi_positives = _draw(np.full((n_anchors, n_positives), 1 - self.alpha), rng)
        largest_shift = self.gamma * max(self._largest() - 0.5, 0.0)
        shift = rng.uniform(-largest_shift, largest_shift, (n_anchors, 1))
        return ScoreSample(
            scores=(self._proposal.ppf(phi_candidates) + shift) / self.temperature,
            is_negative=is_negative,
            positives=(self._proposal.ppf(phi_positives) + shift) / self.temperature,
            lower_bound=self.lower_bound,
            upper_bound=-self.lower_bound,  # x is as far above 0 as below
        )

    @checked(component=_COMPONENT, beta=FRACTION)
    def density(self, x: ArrayLike, component: Component = "UN", beta: float = 0.5) -> np.ndarray:
        r"""Return the density of x = s · t of an anchor without shift.

        Parameters
        ----------
        x : array-like
            Where.
        component : {"TN", "FN", "UN", "lower", "upper", "wanted"}, default="UN"
            True negatives, false negatives, or unlabeled candidates:
            :math:`\varphi_{\mathrm{UN}} = \tau^- \varphi_{\mathrm{TN}}
            + \tau^+ \varphi_{\mathrm{FN}}`. Or what they are made of, :math:`\varphi_{(1)}` and
            :math:`\varphi_{(2)}`; or ψ, the mixture of true negatives that
            :class:`~skcontrast.losses.NonparametricBCL` wants.
        beta : float, default=0.5
            Share of hard negatives in ψ, in [0, 1]; not both it and α may be 1.

        Returns
        -------
        density : ndarray of the shape of x
            Values ≥ 0.

        Examples
        --------
        >>> from skcontrast.simulation import ScoreModel
        >>> ScoreModel(alpha=1.0).density([-0.5, 0.0, 0.5], "TN")
        array([2., 1., 0.])
        """
        lower, x = self._lower_share(component, beta), _points(x)
        phi = self._proposal.cdf(x)
        return 2 * (lower * (1 - phi) + (1 - lower) * phi) * self._proposal.pdf(x)

    @checked(component=_COMPONENT, beta=FRACTION)
    def cdf(self, x: ArrayLike, component: Component = "UN", beta: float = 0.5) -> np.ndarray:
        r"""Return the cdf of x = s · t of an anchor without shift.

        .. math:: 2 \lambda \Phi + (1 - 2 \lambda) \Phi^2, \qquad \lambda = \alpha
            \text{ (TN)},\; 1 - \alpha \text{ (FN)},\;
            \tau^- \alpha + \tau^+ (1 - \alpha) \text{ (UN)},\; 1 \text{ (lower)},\;
            0 \text{ (upper)},\;
            \frac{(1 - \beta)\alpha}{(1 - \beta)\alpha + \beta(1 - \alpha)} \text{ (wanted)}

        Parameters
        ----------
        x : array-like
            Where.
        component : {"TN", "FN", "UN", "lower", "upper", "wanted"}, default="UN"
            As in `density`.
        beta : float, default=0.5
            As in `density`.

        Returns
        -------
        cdf : ndarray of the shape of x
            Values in [0, 1].

        Examples
        --------
        >>> from skcontrast.simulation import ScoreModel
        >>> ScoreModel(alpha=1.0).cdf([-0.5, 0.0, 0.5], "TN")
        array([0.  , 0.75, 1.  ])
        """
        lower = self._lower_share(component, beta)
        phi = self._proposal.cdf(_points(x))
        return 2 * lower * phi + (1 - 2 * lower) * phi**2

    def _lower_share(self, component: Component, beta: float) -> float:
        """Return the share of φ₍₁₎ in a component."""
        validate_parameters(self)
        shares = {"TN": self.alpha, "FN": 1 - self.alpha, "lower": 1.0, "upper": 0.0}
        shares["UN"] = (1 - self._rest_prior) * shares["TN"] + self._rest_prior * shares["FN"]
        if component == "wanted":
            if self.alpha == beta == 1:
                raise ValueError("'beta' and 'alpha' must not both be 1: no density is wanted.")
            easy, hard = (1 - beta) * self.alpha, beta * (1 - self.alpha)
            return easy / (easy + hard)
        return shares[component]

    @property
    def _rest_prior(self) -> float:
        """The probability that a candidate is a false negative."""
        return self.tau_plus * (1 - self.c) / (1 - self.tau_plus * self.c)

    def _largest(self) -> float:
        return 1.0 if self.form == "once" else 1 / self.temperature**2

    @property
    def _proposal(self) -> Any:
        """The density φ before the shift, as a distribution of scipy."""
        return uniform(-0.5, 1) if self.proposal == "uniform" else norm()


def _points(x: ArrayLike) -> NDArray[np.float64]:
    """Return x as an array of floats, of any shape."""
    with naming("x", "an array of numbers", x):
        return np.asarray(x, dtype=float)


def _draw(lower: NDArray, rng: np.random.Generator) -> NDArray:
    """Draw u of cdf 2λu + (1 − 2λ)u² for every share λ of φ₍₁₎, by inversion."""
    p = 1 - rng.random(lower.shape)  # never 0, where λ = 0 would give 0/0
    return p / (lower + np.sqrt(np.maximum(lower**2 + (1 - 2 * lower) * p, 0)))


def _known(view: Any, labels: np.ndarray) -> Any:
    """Return the rows of a view whose classes are known."""
    if isinstance(view, tuple):
        return tuple(_known(part, labels) for part in view)
    view = numbers(view, "views", ensure_2d=False, allow_nd=True)
    if len(view) != len(labels):
        raise ValueError(f"y must have one entry per sample, {len(view)}, got {len(labels)}.")
    return view[labels >= 0]


def _of_classmates(scores: Tensor, labels: np.ndarray, n_views: int) -> Tensor:
    """Return the scores of the other views of the next sample of the class."""
    following = np.empty(len(labels), dtype=np.int64)
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        if len(members) == 1:
            raise ValueError("positives='classmates' needs two samples of each class.")
        following[members] = np.roll(members, -1)
    views = range(n_views)
    columns = [[w * len(labels) + following for w in views if w != v] for v in views]
    return scores.gather(1, torch.from_numpy(np.array(columns)).transpose(1, 2).flatten(0, 1))
