"""A generative model of scores."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.stats import norm, uniform

from .._checks import (
    FRACTION,
    POSITIVE,
    POSITIVE_INT,
    Interval,
    ParameterObject,
    StrOptions,
    checked,
    naming,
    validate_parameters,
)
from .._runtime._memory import check_memory
from ..estimation._samples import ScoreSample

RandomState: TypeAlias = int | np.random.Generator | None

# Constraints of the numbers of scores that are drawn, and of what draws them.
DRAWN: dict = dict.fromkeys(("n_anchors", "n_candidates", "n_positives"), POSITIVE_INT)
_SEED = Interval(Integral, 0, 2**63 - 1, closed="both")
DRAWN["random_state"] = [_SEED, np.random.Generator, None]
Component: TypeAlias = Literal["TN", "FN", "UN", "lower", "upper", "wanted"]
_COMPONENT = [StrOptions(set(get_args(Component)))]


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
        # In float64, and a few arrays of this size at a time.
        n_numbers = 8 * n_anchors * (n_candidates + n_positives)
        check_memory(n_numbers, torch.device("cpu"), "n_anchors, n_candidates and n_positives")
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
