"""The base class of similarities whose embeddings are distributions on the sphere."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import clone
from torch import Tensor
from torch.nn import functional as F

from ._base import Similarity, missing, with_divisor
from ._validation import Embeddings


class ProbabilisticSimilarity(Similarity):
    r"""Base class of the similarities whose embeddings are distributions on the unit sphere.

    Each embedding has a mean direction :math:`\mu` and a concentration :math:`\kappa \ge 0`: it
    is the von Mises–Fisher distribution with the density :math:`\propto e^{\kappa \mu \cdot x}`,
    unless a subclass overrides ``product`` and ``draw``. For each sample the network returns a
    direction, of any length, and `n_extra` more numbers x. An embedder with such a similarity has
    the methods ``concentration``, ``sample`` and ``log_score``.

    A subclass implements ``concentrations``, which maps x to κ, and ``embed``, which starts with
    ``mu, kappa = self.distribution(z)``; unless its score is the dot product of the embedded
    vectors, also ``scores`` and ``pairs``, as for every :class:`Similarity`.

    See Also
    --------
    VonMisesFisher : The mutual likelihood of two distributions.

    Examples
    --------
    The cosine with a temperature of its own for each pair, :math:`1/(\kappa_i \kappa_j)`:

    >>> import torch
    >>> from skcontrast.similarity import ProbabilisticSimilarity
    >>> class WeightedCosine(ProbabilisticSimilarity):
    ...     def concentrations(self, x, d):
    ...         return torch.nn.functional.softplus(x)
    ...
    ...     def embed(self, z):
    ...         mu, kappa = self.distribution(z)
    ...         return mu * kappa[..., None]
    >>> mu, kappa = torch.eye(2), torch.tensor([1.0, 3.0])
    >>> WeightedCosine()((mu, kappa), (mu, kappa))
    tensor([[1., 0.],
            [0., 9.]])

    An embedder learns the concentrations with the directions:

    >>> import numpy as np
    >>> from skcontrast import ContrastiveEmbedder
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> embedder = ContrastiveEmbedder(similarity=WeightedCosine(), max_epochs=2, random_state=0)
    >>> embedder.fit(X).concentration(X).shape
    (100,)
    """

    n_extra = 1
    least_dimension = 2

    def concentrations(self, x: Tensor, d: int) -> Tensor:
        """Return the concentrations κ ≥ 0, shape (...).

        Parameters
        ----------
        x : Tensor of shape (...), or (..., n_extra) if there are several
            The numbers that the network returns in addition to directions.
        d : int
            Dimension of the directions.
        """
        raise missing(self, "concentrations(x, d)", "it maps the network's output x to κ ≥ 0")

    def distribution(self, z: Embeddings) -> tuple[Tensor, Tensor]:
        """Return mean directions and concentrations of what the network returns.

        Parameters
        ----------
        z : Tensor of shape (..., d + n_extra), or tuple of two Tensors
            Direction and x; or directions of any length, (..., d), and concentrations, (...).

        Returns
        -------
        mu : Tensor of shape (..., d)
            Of length 1; 0 where there is no direction, at a right angle to all.
        kappa : Tensor of shape (...)
            As `concentrations` returns them.
        """
        if isinstance(z, tuple):
            direction, kappa = z
        else:
            direction, x = z[..., : -self.n_extra], z[..., -self.n_extra :].squeeze(-1)
            kappa = self.concentrations(x, direction.shape[-1])
        return _unit_and_length(direction)[0], kappa

    def product(self, mu: Tensor, kappa: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean directions (n, d) and concentrations (n,) of products of distributions.

        Parameters
        ----------
        mu : Tensor of shape (n, n_parts, d)
            Mean directions of the factors.
        kappa : Tensor of shape (n, n_parts)
            Their concentrations.
        """
        return _unit_and_length((mu * kappa[..., None]).sum(1))

    def draw(
        self, mu: NDArray, kappa: NDArray, n: int, rng: np.random.RandomState
    ) -> NDArray[np.float64]:
        """Draw points from several distributions, shape (n_distributions, n, d).

        Parameters
        ----------
        mu : ndarray of shape (n_distributions, d)
            Mean directions, of length 1, or 0.
        kappa : ndarray of shape (n_distributions,)
            Concentrations.
        n : int
            Number of draws from each.
        rng : numpy.random.RandomState
            Source of randomness.
        """
        return draw_von_mises_fisher(mu, kappa, n, rng)

    def check_concentrations(self, kappa: Tensor, name: str) -> None:
        """Raise ValueError unless all concentrations are admissible: finite, and at least 0.

        Parameters
        ----------
        kappa : Tensor of shape (n,)
            The concentrations.
        name : str
            Whose they are, for the message.
        """
        if not ((kappa >= 0) & kappa.isfinite()).all():
            raise ValueError(f"The concentrations of {name} must be finite and at least 0.")

    def without_temperature(self) -> ProbabilisticSimilarity:
        """Return a copy whose scores are not divided by a temperature, for ``log_score``."""
        copy = clone(self)
        if "temperature" in copy.get_params(deep=False):
            copy.set_params(temperature=1.0)
        return copy

    def bank_vectors(self, z: Tensor) -> Tensor:
        """Return the direction at length 1, and x unchanged."""
        direction, x = z[..., : -self.n_extra], z[..., -self.n_extra :]
        return torch.cat([F.normalize(direction, dim=-1), x], -1)

    def directions(self, z: Tensor) -> Tensor:
        """Return the mean directions, (..., d)."""
        return self.distribution(z)[0]


def _unit_and_length(vectors: Tensor) -> tuple[Tensor, Tensor]:
    """Return vectors at length 1, or 0 where they have no direction, and their lengths."""
    kept, divisor, length = with_divisor(vectors)
    return kept / divisor, length[..., 0]


def draw_von_mises_fisher(
    mu: NDArray, kappa: NDArray, n: int, rng: np.random.RandomState
) -> NDArray[np.float64]:
    r"""Draw points on the unit sphere from several distributions at once, by rejection [1]_.

    Parameters
    ----------
    mu : ndarray of shape (n_distributions, d)
        Mean directions, of length 1; if one is 0, its draws are uniform.
    kappa : ndarray of shape (n_distributions,)
        Concentrations κ ≥ 0.
    n : int
        Number of draws from each.
    rng : numpy.random.RandomState
        Source of randomness.

    Returns
    -------
    points : ndarray of shape (n_distributions, n, d)

    References
    ----------
    .. [1] A. T. A. Wood, "Simulation of the von Mises Fisher distribution", Communications in
       Statistics - Simulation and Computation 23 (1994), after G. Ulrich, Applied Statistics 33
       (1984).
    """
    d = mu.shape[1]
    has_direction = np.asarray(mu.any(1))
    mu = np.where(has_direction[:, None], mu, np.eye(1, d))
    kappa = np.where(has_direction, kappa, 0.0)
    away = _away_from_the_mean(np.repeat(kappa, n), d, rng).reshape(len(mu), n, 1)
    across = rng.normal(size=(len(mu), n, d))
    across -= (across * mu[:, None]).sum(-1, keepdims=True) * mu[:, None]
    across /= np.linalg.norm(across, axis=-1, keepdims=True)
    return (1 - away) * mu[:, None] + np.sqrt(away * (2 - away)) * across


def _away_from_the_mean(kappa: NDArray, d: int, rng: np.random.RandomState) -> NDArray:
    """Draw 1 − cos θ, which may be tiny, directly and not by subtraction, for each κ."""
    b = (d - 1) / (2 * kappa + np.hypot(2 * kappa, d - 1))
    x0 = (1 - b) / (1 + b)
    # log(1 − x₀ w) with w = 1 − away, and its value at w = x₀
    least = 2 * b / (1 + b)
    away, pending = np.empty_like(kappa), np.arange(len(kappa))
    while len(pending):
        bp, xp, lp = b[pending], x0[pending], least[pending]
        z = rng.beta((d - 1) / 2, (d - 1) / 2, size=len(pending))
        new = 2 * bp * z / (1 - (1 - bp) * z)
        log_ratio = kappa[pending] * (lp - new) + (d - 1) * np.log(
            (lp + xp * new) / (lp * (1 + xp))
        )
        # NaN counts as accepted: it would otherwise be drawn again forever.
        accepted = ~(log_ratio < np.log1p(-rng.random_sample(len(pending))))
        away[pending[accepted]] = new[accepted]
        pending = pending[~accepted]
    return away
