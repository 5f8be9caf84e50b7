"""The mutual likelihood score of von Mises–Fisher distributions."""

import functools
import math
from numbers import Real
from typing import Any, Self

import torch
from torch import Tensor
from torch.nn import functional as F

from .._checks import Interval, parameter
from ..schedules._numbers import Number, interval
from ._base import Embeddings, Similarity, inverse_length, map_entries
from ._mutual_likelihood import log_partition, mutual_score, terms_of

# Outside, differences of scores, or tiny scores, need more than float32 precision.
_IN_FLOAT32 = (0.1, 2000.0)
_LARGEST = 1e6
# Components of an embedded vector in addition to κμ: m and −g(κ).
_N_TERMS = 2


class VonMisesFisher(Similarity):
    r"""Mutual likelihood of two embeddings with concentrations.

    Each embedding is a von Mises–Fisher distribution on the unit sphere in d dimensions, with a
    mean direction :math:`\mu` and a concentration :math:`\kappa > 0`, which the network learns
    without supervision: the more certain the direction is, the higher. It is low for samples that
    are unlike the training samples, if the views are hard; which predictions of a classifier are
    uncertain, the margin of `predict_proba` tells better, see :ref:`how-sure`. The score of two
    embeddings is the logarithm of the probability density that both draw the same point, relative
    to chance [1]_,

    .. math:: s_{ij} = \frac{h(\tilde\kappa) - h(\kappa_i) - h(\kappa_j)}{t}, \qquad
        \tilde\kappa = |\kappa_i \mu_i + \kappa_j \mu_j|,

    where :math:`h(\kappa) = \log \mathrm{E}\,e^{\kappa \cos\theta}` over uniform directions, so
    that :math:`h' = I_{d/2} / I_{d/2 - 1}`. For small concentrations it is
    :math:`\kappa_i \kappa_j \cos\theta / (d\,t)`: the cosine with a temperature for each pair. It
    is 0 if one of the two concentrations is 0. If both are equal and well above d, the score for
    an angle θ is highest at about :math:`\kappa^* = (d - 1) / (4 (1 - \cos(\theta/2)))`, 3 % lower
    at cos θ = .9 and 16 % lower at .6, and falls beyond it.

    The network returns d + 1 numbers: a direction, of any length, and x, from which
    :math:`\kappa = \kappa_{\max}\,\sigma(x + x_0)`. The radius r of the paper's sphere cancels
    from the loss and is left out.

    Call it as ``similarity((mu1, kappa1), (mu2, kappa2))`` with mean directions of shape (n, d),
    of any length, and concentrations of shape (n,); or with tensors of d + 1 columns, the last of
    which is x.

    Parameters
    ----------
    temperature : float or Schedule, default=8.0
        The temperature t in [1e-30, 1e30] that scores are divided by. 1 is the likelihood itself,
        whose scores range over tens, so that the closest negatives dominate the loss.
        Concentrations, and the differences between them, grow with t.
    kappa_max : float, default=1000.0
        Upper bound of the concentrations of each encoder, in (0, 1e6].

    See Also
    --------
    Cosine : One temperature for all pairs.

    Notes
    -----
    In float32, differences of scores are correct to .001/t, except for nearly opposite
    directions, whose scores are the lowest. If `kappa_max` exceeds 2,000, or is below .1, which
    makes scores tiny, scores are computed in float64 (except on MPS, which lacks it), which takes
    six times as long; SciPy computes a part of them on the CPU, for which a GPU waits. Float64 is
    correct to 5e-10 up to κ = 1e4, and to a few 1e-9 up to 1e6.

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

    temperature: Number = parameter(interval(1e-30, 1e30, "both"), default=8.0)
    kappa_max: float = parameter([Interval(Real, 0, _LARGEST, closed="right")], default=1000.0)
    n_extra = 1
    least_dimension = 2

    @classmethod
    def paper(cls, **changes: Any) -> Self:
        """Return the similarity of the paper, the likelihood itself: t is 1."""
        return cls(**{"temperature": 1.0} | changes)

    def bounds(self, width: int) -> tuple[float, float]:
        """Return the scores of opposite and of equal directions, both of concentration κ_max."""
        h, of_both = _extreme_partitions(self.kappa_max, width - _N_TERMS)
        return -2 * h / self.temperature, (of_both - 2 * h) / self.temperature

    def self_scores(self, u: Tensor) -> Tensor:
        """Return the score of each vector with itself, shape (n,)."""
        return self.pairs(u, u)

    def concentrations(self, x: Tensor, d: int) -> Tensor:
        """Return κ_max σ(x + x₀), in (0, κ_max); x = 0 means d, or half of κ_max if that is less.

        Parameters
        ----------
        x : Tensor of shape (...)
            The last output of the network.
        d : int
            Dimension of the directions.
        """
        share = min(0.5, d / self.kappa_max)
        start = math.log(share / (1 - share))
        return self.kappa_max * torch.sigmoid(x + start)

    def distribution(self, z: Embeddings) -> tuple[Tensor, Tensor]:
        """Return mean directions and concentrations of what the network returns.

        Parameters
        ----------
        z : Tensor of shape (..., d + 1), or tuple of two Tensors
            Direction and x; or directions of any length, (..., d), and concentrations, (...).

        Returns
        -------
        mu : Tensor of shape (..., d)
            Of length 1; 0 for vectors without a direction.
        kappa : Tensor of shape (...)
            As `concentrations` returns them.
        """
        if isinstance(z, tuple):
            direction, kappa = z
        else:
            direction = z[..., :-1]
            kappa = self.concentrations(z[..., -1], direction.shape[-1])
        return _unit_and_length(direction)[0], kappa

    def product(self, mu: Tensor, kappa: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean directions (n, d) and concentrations (n,) of products of distributions.

        Parameters
        ----------
        mu : Tensor of shape (n, n_modalities, d)
            Mean directions of the factors.
        kappa : Tensor of shape (n, n_modalities)
            Their concentrations.
        """
        return _unit_and_length((mu * kappa[..., None]).sum(1))

    def bank_vectors(self, z: Tensor) -> Tensor:
        """Return the direction at length 1, and x unchanged."""
        return torch.cat([F.normalize(z[..., :-1], dim=-1), z[..., -1:]], -1)

    def directions(self, z: Tensor) -> Tensor:
        """Return the mean directions, (..., d)."""
        return self.distribution(z)[0]

    def check_concentrations(self, kappa: Tensor, name: str) -> None:
        """Raise ValueError unless all concentrations on a CPU are in [0, κ_max].

        Parameters
        ----------
        kappa : Tensor of shape (n,)
        name : str
            Their name in the message.
        """
        # Reading values would synchronise with a GPU.
        if not (kappa.is_cuda or ((kappa >= 0) & (kappa <= self.kappa_max)).all()):
            raise ValueError(
                f"The concentrations of {name} must be in [0, kappa_max={self.kappa_max:g}], got "
                f"{kappa.min():.4g} to {kappa.max():.4g}."
            )

    def embed(self, z: Embeddings) -> Tensor:
        """Return κμ, m and −g(κ), shape (..., d + 2), of what `distribution` takes."""
        d = z[0].shape[-1] if isinstance(z, tuple) else z.shape[-1] - 1
        if d < self.least_dimension:
            raise ValueError(f"VonMisesFisher needs directions in at least 2 dimensions, got {d}.")
        if not _IN_FLOAT32[0] <= self.kappa_max <= _IN_FLOAT32[1]:
            z = map_entries(lambda t: t if t.device.type == "mps" else t.double(), z)
        mu, kappa = self.distribution(z)
        return torch.cat([mu * kappa[..., None], torch.stack(terms_of(kappa, d), -1)], -1)

    def scores(self, u: Tensor, v: Tensor) -> Tensor:
        """Return the mutual likelihood scores of all pairs."""
        d = u.shape[-1] - _N_TERMS
        products = u[:, :d] @ v[:, :d].T
        return mutual_score(products, u[:, None, d:], v[:, d:], d) / self.temperature

    def pairs(self, u: Tensor, v: Tensor) -> Tensor:
        """Return the mutual likelihood scores of matching rows."""
        d = u.shape[-1] - _N_TERMS
        products = (u[..., :d] * v[..., :d]).sum(-1)
        return mutual_score(products, u[..., d:], v[..., d:], d) / self.temperature


@functools.lru_cache(maxsize=256)
def _extreme_partitions(kappa_max: float, d: int) -> tuple[float, float]:
    """Return h(κ_max) and h(2κ_max)."""
    kappa = torch.tensor([kappa_max, 2 * kappa_max], dtype=torch.float64)
    h, of_both = log_partition(kappa, d).tolist()
    return h, of_both


def _unit_and_length(vectors: Tensor) -> tuple[Tensor, Tensor]:
    """Return normalised vectors, 0 without a direction, and their lengths."""
    factor, length = inverse_length(vectors)
    return vectors * factor, length[..., 0]
