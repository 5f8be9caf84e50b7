"""The base class of the similarities: an embedding of each sample and a score of two of them."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from .._checks import ParameterObject
from ..schedules._numbers import check_numbers
from ._validation import Embeddings, check_kinds, in_one_dtype

# Below this length the direction of a vector is rounding noise; such vectors count as zero.
_SHORTEST = 1e-8


class Similarity(ParameterObject):
    """Base class of the similarities.

    A similarity works in two stages, so that work on a single sample is done once per sample and
    not once per pair: ``embed`` maps the network's output to the vectors that are compared,
    ``scores`` compares all pairs of two sets of them.

    A subclass implements ``embed``. If its score is not the dot product of the embedded vectors,
    it also overrides ``scores``, which is then differentiated by autograd, and should override
    ``pairs``, which is the diagonal of ``scores`` otherwise. ``bounds`` are the lowest and the
    highest score there is, which losses that subtract false negatives need. The slope of the score
    must be finite, also of a sample with itself: a distance is ``(squares + 1e-12).sqrt()``.

    Attributes
    ----------
    bilinear : bool
        Whether ``scores(u, v)`` is ``u @ v.T``, so that its gradient is two matrix products. True
        unless ``scores`` is overridden.
    n_extra : int
        How many numbers the network returns for each sample in addition to a direction. Only
        :class:`VonMisesFisher` has any.
    least_dimension : int
        The fewest components that a direction may have.

    See Also
    --------
    Cosine : The default.
    VonMisesFisher : Its embeddings are distributions.

    Examples
    --------
    A custom similarity, the negative squared distance of points on the unit sphere:

    >>> import torch
    >>> from torch.nn import functional as F
    >>> from skcontrast import contrastive_loss
    >>> from skcontrast.similarity import Similarity
    >>> class NegativeSquaredDistance(Similarity):
    ...     def bounds(self, width):
    ...         return -4.0, 0.0
    ...
    ...     def embed(self, z):
    ...         return F.normalize(z, dim=-1)
    ...
    ...     def scores(self, u, v):
    ...         return -(u[:, None] - v).square().sum(-1)
    ...
    ...     def pairs(self, u, v):
    ...         return -(u - v).square().sum(-1)
    >>> z = torch.eye(3)
    >>> NegativeSquaredDistance()(z[:1], z)
    tensor([[-0., -2., -2.]])
    >>> contrastive_loss(z, z, similarity=NegativeSquaredDistance())
    tensor(0.4327)
    """

    n_extra: ClassVar[int] = 0
    least_dimension: ClassVar[int] = 1

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _check_class(cls)

    @property
    def bilinear(self) -> bool:
        """Whether ``scores(u, v)`` is ``u @ v.T``."""
        return type(self).scores is Similarity.scores

    def __call__(self, z1: Embeddings, z2: Embeddings) -> Tensor:
        """Return the scores of all pairs of two sets of embeddings.

        Parameters
        ----------
        z1, z2 : Tensor of shapes (n, d) and (m, d), floating, or tuples of two
            Embeddings of any length. For :class:`VonMisesFisher` tuples of mean directions,
            (n, d), and concentrations, (n,); or tensors (n, d + 1), as the network of an embedder
            returns them.

        Returns
        -------
        scores : Tensor of shape (n, m)
            Computed in float32, or float64 if an embedding is, even under autocast.

        Raises
        ------
        TypeError, ValueError
            If types or widths differ, or a concentration is out of range.
        """
        check_numbers(self)
        check_kinds({"z1": z1, "z2": z2}, self)
        first, second = in_one_dtype([z1, z2])
        device = (first[0] if isinstance(first, tuple) else first).device
        with torch.autocast(device.type, enabled=False):
            return self.scores(self.embed(first), self.embed(second))

    def embed(self, z: Any) -> Tensor:
        """Map the network's output, shape (..., d), to the vectors that are compared, (..., k)."""
        raise NotImplementedError(f"{type(self).__name__} must implement embed(z).")

    def scores(self, u: Tensor, v: Tensor) -> Tensor:
        """Return all pairwise scores, shape (n, m), of vectors of shapes (n, k) and (m, k)."""
        return u @ v.T

    def pairs(self, u: Tensor, v: Tensor) -> Tensor:
        """Return the scores of matching rows, shape (n,), of vectors of shape (n, k)."""
        return (u * v).sum(-1) if self.bilinear else self.scores(u, v).diagonal()

    def bounds(self, width: int) -> tuple[float, float]:
        """Return a lower and an upper bound of all scores; infinite by default.

        Parameters
        ----------
        width : int
            The number of components of the vectors that are compared.
        """
        return -math.inf, math.inf

    def self_scores(self, u: Tensor) -> Tensor | float:
        """Return the score of each vector with itself, shape (n,), or one float for all.

        By default it is the upper bound.
        """
        return self.bounds(u.shape[-1])[1]

    def bank_vectors(self, z: Tensor) -> Tensor:
        """Return the form in which a memory bank stores and averages projections, (..., d)."""
        return F.normalize(z, dim=-1)

    def directions(self, z: Tensor) -> Tensor:
        """Return the vectors that ``transform`` returns for the projections z, shape (..., d)."""
        return z


def inverse_length(vectors: Tensor) -> tuple[Tensor, Tensor]:
    """Return factors (..., 1) that scale vectors to length 1, and their lengths (..., 1).

    The factor is 0 for a vector without a direction, whose gradient would be unbounded. It is NaN
    where the length overflows: such a vector must not pass for a vector of zeros.
    """
    length = torch.linalg.vector_norm(vectors, dim=-1, keepdim=True)
    has_direction = length > _SHORTEST
    factor = has_direction / torch.where(has_direction, length, 1.0)
    return factor.masked_fill(length.isinf(), torch.nan), length


def _check_class(cls: type[Similarity]) -> None:
    """Raise TypeError for a subclass whose methods cannot agree with each other."""
    name = cls.__name__
    if cls.__call__ is not Similarity.__call__:
        raise TypeError(f"{name} overrides __call__, which no loss calls: override scores.")
    if cls.n_extra and not hasattr(cls, "distribution"):
        raise TypeError(
            f"{name} has n_extra={cls.n_extra}, so its embeddings are distributions: derive it "
            "from skcontrast.similarity.VonMisesFisher."
        )
    # What goes with scores has to come from the class that has them: inherited, it is of others.
    if "scores" not in vars(cls):
        return
    for method in ("pairs",):
        if method not in vars(cls) and getattr(cls, method) is not getattr(Similarity, method):
            raise TypeError(
                f"{name} overrides scores but inherits {method}, which computes the scores of its "
                f"base class: override {method} too."
            )
