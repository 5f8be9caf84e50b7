"""The mutual likelihood score of von Mises–Fisher distributions."""

from __future__ import annotations

import functools
import math
from numbers import Real

import torch
from torch.nn import functional as F

from .._parameters import Interval, interval
from ._base import Similarity
from ._bessel import log_partition
from ._mutual_likelihood import link_in_place, mutual_score, parts_of

__all__ = ["VonMisesFisher"]

# Below this length the direction of a vector is rounding noise; such vectors have none.
_SHORTEST = 1e-8
# Outside, differences of scores, or tiny scores themselves, need more digits than float32 has.
_IN_FLOAT32 = (0.1, 2000.0)
_LARGEST = 1e6


class VonMisesFisher(Similarity):
    r"""Mutual likelihood of two embeddings that know how sure they are.

    Each embedding is a von Mises–Fisher distribution on the unit sphere in d dimensions, with a
    mean direction :math:`\mu` and a concentration :math:`\kappa > 0`, which the network learns
    without being told: the surer of its direction, the higher. The score of two is the logarithm
    of the probability density that both have drawn the same point, relative to chance [1]_,

    .. math:: s_{ij} = \frac{h(\tilde\kappa) - h(\kappa_i) - h(\kappa_j)}{t}, \qquad
        \tilde\kappa = |\kappa_i \mu_i + \kappa_j \mu_j|,

    where :math:`h(\kappa) = \log \mathrm{E}\,e^{\kappa \cos\theta}` over uniform directions, so
    that :math:`h' = I_{d/2} / I_{d/2 - 1}`. For small concentrations it is
    :math:`\kappa_i \kappa_j \cos\theta / (d\,t)`: the cosine with a temperature for each pair. It
    is 0 where one of the two knows nothing. Of two equal concentrations that are well above d, the
    best for an angle θ is about :math:`\kappa^* = (d - 1) / (4 (1 - \cos(\theta/2)))`; beyond it
    the score falls again.

    The network returns d + 1 numbers: a direction, of any length, and x, from which
    :math:`\kappa = \kappa_{\max}\,\sigma(x + x_0)`. The radius r of the paper's sphere cancels
    from the loss and is left out.

    It is called as ``similarity((mu1, kappa1), (mu2, kappa2))`` with mean directions of shape
    (n, d), of any length, and concentrations of shape (n,); a single tensor has d + 1 columns, the
    last of which is x.

    Parameters
    ----------
    temperature : float or Schedule, default=8.0
        The temperature t > 0 that scores are divided by. 1 is the likelihood itself, whose scores
        range over tens and make the loss look at the closest negatives only. Concentrations grow
        with t, and so does how much they differ.
    kappa_max : float, default=1000.0
        The bound of the concentrations of each encoder, in (0, 1e6].

    Notes
    -----
    Differences of scores are right to .001/t in float32, except for nearly opposite directions,
    whose scores are the lowest. That needs more digits than float32 has where `kappa_max` exceeds
    2,000, and so do the tiny scores where it is below .1: they are then computed in float64 (but
    on MPS, which has none), at six times the cost. Float64 is right to 1e-10 up to κ = 1e4, and to
    a few 1e-9 up to 1e6.

    References
    ----------
    .. [1] S. Li, J. Xu, B. Hooi, "Probabilistic Contrastive Loss for Self-Supervised Learning",
       2021.

    Examples
    --------
    >>> import torch
    >>> from skcontrast.similarity import VonMisesFisher
    >>> mu, kappa = torch.eye(3)[:2], torch.tensor([2.0, 20.0])
    >>> VonMisesFisher(temperature=1.0)((mu, kappa), (mu, kappa))
    tensor([[ 0.7298, -0.5004],
            [-0.5004,  2.9957]])
    """

    _parameter_constraints: dict = {
        "temperature": interval(0, None, "neither"),
        "kappa_max": [Interval(Real, 0, _LARGEST, closed="right")],
    }
    n_terms = 2
    n_extra = 1
    least_dimension = 2

    def __init__(self, temperature=8.0, kappa_max=1000.0):
        self.temperature = temperature
        self.kappa_max = kappa_max

    @property
    def bounds(self):
        """Numbers below and above the scores in any dimension, (−2κ_max/t, κ_max/t)."""
        return -2 * self.kappa_max / self.temperature, self.kappa_max / self.temperature

    def limits(self, u):
        """Return the scores of opposite and of equal directions, both of concentration κ_max."""
        h, of_both = _largest(self.kappa_max, u.shape[-1] - self.n_terms)
        return -2 * h / self.temperature, (of_both - 2 * h) / self.temperature

    def highest(self, u):
        """Return the score of each vector with itself, shape (n,)."""
        return self.pairs(u, u)

    def distribution(self, z):
        """Return mean directions and concentrations of what the network returns.

        Parameters
        ----------
        z : Tensor of shape (..., d + 1), or tuple of two Tensors
            Direction and x; or directions of any length, (..., d), and concentrations, (...).

        Returns
        -------
        mu : Tensor of shape (..., d)
            Of length 1; 0 where there is no direction, at a right angle to all.
        kappa : Tensor of shape (...)
            In (0, κ_max).
        """
        if isinstance(z, tuple):
            direction, kappa = z
        else:
            direction, x = z[..., :-1], z[..., -1]
            kappa = self.kappa_max * torch.sigmoid(x + self._start(direction.shape[-1]))
        return _unit_and_length(direction)[0], kappa

    def product(self, mu, kappa):
        """Return mean directions and concentrations of products of distributions.

        Parameters
        ----------
        mu : Tensor of shape (n, n_parts, d)
            Mean directions of the factors.
        kappa : Tensor of shape (n, n_parts)
            Their concentrations.
        """
        return _unit_and_length((mu * kappa[..., None]).sum(1))

    def check_concentrations(self, kappa, name):
        """Raise ValueError unless all concentrations lie in [0, κ_max].

        Parameters
        ----------
        kappa : Tensor of shape (n,)
        name : str
            Whose they are, for the message.
        """
        if ((kappa >= 0) & (kappa <= self.kappa_max)).all():
            return
        got = f"some in [{kappa.min():.4g}, {kappa.max():.4g}]: raise kappa_max"
        raise ValueError(
            f"The concentrations of {name} must lie in [0, kappa_max={self.kappa_max:g}], got "
            f"{'NaN' if kappa.isnan().any() else got if kappa.min() >= 0 else 'negative ones'}."
        )

    def _start(self, d):
        """Return x₀, so that x = 0 means a concentration of d, or half of κ_max."""
        share = min(0.5, d / self.kappa_max)
        return math.log(share / (1 - share))

    def embed(self, z):
        """Return κμ, m and −g(κ), shape (..., d + 2), of what `distribution` takes."""
        d = z[0].shape[-1] if isinstance(z, tuple) else z.shape[-1] - self.n_extra
        if d < self.least_dimension:
            raise ValueError(f"VonMisesFisher needs directions in at least 2 dimensions, got {d}.")
        if not _IN_FLOAT32[0] <= self.kappa_max <= _IN_FLOAT32[1]:
            z = _in_float64(z)
        mu, kappa = self.distribution(z)
        terms = torch.stack(parts_of(kappa, d), -1)
        return torch.cat([mu * kappa[..., None], terms], -1)

    def scores(self, u, v):
        """Return the mutual likelihood scores of all pairs."""
        d = u.shape[-1] - self.n_terms
        products = u[:, :d] @ v[:, :d].T
        if products.requires_grad:
            return self._scores(products, u[:, None, d:], v[:, d:], d)
        self.link(products, u[:, d:], v[:, d:], d=d)  # in much less memory and time
        return products

    def pairs(self, u, v):
        """Return the mutual likelihood scores of matching rows."""
        d = u.shape[-1] - self.n_terms
        return self._scores((u[..., :d] * v[..., :d]).sum(-1), u[..., d:], v[..., d:], d)

    def _scores(self, products, u_terms, v_terms, d):
        terms = (*u_terms.unbind(-1), *v_terms.unbind(-1))
        return mutual_score(products, *terms, d) / self.temperature

    def link(self, products, u_terms, v_terms, slopes=None, *, d):
        """Turn products κ_i κ_j cos θ into scores, in place, and write their slopes."""
        terms = (*u_terms.unbind(-1), *v_terms.unbind(-1))
        link_in_place(products, *terms, d, self.temperature, slopes)

    def pull_terms(self, terms, d_scores, d_products, *, d):
        """Return the gradient with respect to m and −g(κ).

        The score is a function of κ_i²/2 = m(m + d + 1)/2 as it is of the products, minus m.
        """
        t = terms[:, 0] + (d + 1) / 2
        d_scores = d_scores / self.temperature
        return torch.stack([t * d_products - d_scores, d_scores], 1)

    def remembered(self, z):
        """Return the direction at length 1, and x as it is."""
        return torch.cat([F.normalize(z[..., :-1], dim=-1), z[..., -1:]], -1)

    def directions(self, z):
        """Return the mean directions, (..., d)."""
        return self.distribution(z)[0]


def _in_float64(z):
    if isinstance(z, tuple):
        return tuple(map(_in_float64, z))
    return z if z.device.type == "mps" else z.double()


def _unit_and_length(vectors):
    """Return vectors at length 1, or 0 where they have no direction, and their lengths."""
    length = torch.linalg.vector_norm(vectors, dim=-1, keepdim=True)
    has_direction = length > _SHORTEST
    return vectors * has_direction / torch.where(has_direction, length, 1.0), length[..., 0]


@functools.lru_cache(maxsize=256)
def _largest(kappa_max, d):
    """Return h(κ_max) and h(2κ_max)."""
    kappa = torch.tensor([kappa_max, 2 * kappa_max], dtype=torch.float64)
    return tuple(log_partition(kappa, d).tolist())
