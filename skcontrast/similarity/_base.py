"""Base class of the similarities, the similarities of vectors, and a check of custom ones."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, TypeAlias

import torch
from torch import Tensor
from torch.nn import functional as F

from .._checks import POSITIVE_INT, ParameterObject, parameter
from .._checks._arguments import check_returned, validated
from .._runtime import guarded, seeded_rng
from ..schedules._numbers import Number, check_hyperparameters, interval

# Vectors; or mean directions and concentrations.
Embeddings: TypeAlias = "Tensor | tuple[Tensor, Tensor]"
# Below this length the direction of a vector is rounding noise; such vectors count as zero.
_SHORTEST = 1e-8


class Similarity(ParameterObject):
    """Base class of the similarities.

    A similarity has two stages, so that work on a single sample is not repeated for each pair:
    ``embed`` maps the network's output to the vectors that are compared,
    ``scores`` compares all pairs of two sets of them.

    A subclass implements ``embed``. If its score is not the dot product of the embedded vectors,
    it also overrides ``scores``, which is then differentiated by autograd, and should override
    ``pairs``, which is the diagonal of ``scores`` otherwise. ``bounds`` returns the minimum
    and the maximum score, which losses that subtract false negatives need. The gradient of the
    score must be finite, also for two equal vectors: write a distance as
    ``(squares + 1e-12).sqrt()``. A similarity has no trainable parameters.

    Attributes
    ----------
    bilinear : bool
        Whether ``scores(u, v)`` is ``u @ v.T``, so that its gradient is two matrix products. True
        unless ``scores`` is overridden.
    n_extra : int
        Number of outputs of the network in addition to a direction, 0 except for
        :class:`VonMisesFisher`.
    least_dimension : int
        Minimum number of components of a direction.

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
        check_hyperparameters(self)
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
            The number of components of embedded vectors.
        """
        return -math.inf, math.inf

    def self_scores(self, u: Tensor) -> Tensor | float:
        """Return the score of each vector with itself, shape (n,), or one float for all.

        By default it is the upper bound.
        """
        return self.bounds(u.shape[-1])[1]

    def bank_vectors(self, z: Tensor) -> Tensor:
        """Return projections as a memory bank stores and averages them, (..., d)."""
        return F.normalize(z, dim=-1)

    def directions(self, z: Tensor) -> Tensor:
        """Return the vectors that ``transform`` returns for the projections z, shape (..., d)."""
        return z


def inverse_length(vectors: Tensor) -> tuple[Tensor, Tensor]:
    """Return factors (..., 1) that scale vectors to length 1, and their lengths (..., 1).

    The factor is 0 for a vector without a direction, whose gradient would be unbounded. It is NaN
    if the length overflows, so that such a vector is not treated as zero.
    """
    length = torch.linalg.vector_norm(vectors, dim=-1, keepdim=True)
    is_short = length <= _SHORTEST
    numerator = 0 * length.detach() + ~is_short  # NaN where the length is infinite
    return numerator / length.masked_fill(is_short, 1.0), length


def check_view_embeddings(
    views: Sequence[Embeddings], queue: Embeddings | None, similarity: Any, least: int = 2
) -> None:
    """Raise TypeError or ValueError unless views and queue are embeddings of the same kind.

    Parameters
    ----------
    views : sequence of Tensor or of tuple of Tensor
    queue : Tensor, tuple of Tensor or None
    similarity : Similarity
        Determines whether tuples are valid.
    least : int, default=2
        The minimum number of views.
    """
    if len(views) < least:
        raise ValueError(f"At least {least} views are needed, got {len(views)}: pass z1, z2.")
    named = {f"view {k + 1}": view for k, view in enumerate(views)}
    if queue is not None:
        named["queue"] = queue
    tensors = check_kinds(named, similarity)
    n = len(tensors["view 1"])
    for name, tensor in tensors.items():
        if name != "queue" and len(tensor) != n:
            raise ValueError(
                f"Views must hold the same samples: {name} has {len(tensor)} rows, view 1 has {n}."
            )
    if queue is None and n < 2:
        raise ValueError("Without a queue, at least 2 samples are needed, to have negatives.")
    if min(map(len, tensors.values())) == 0:
        raise ValueError("views and queue must hold at least one row.")


def check_kinds(named: Mapping[str, Embeddings], similarity: Any) -> dict[str, Tensor]:
    """Check types and widths, and return the tensors, or the directions of tuples.

    Parameters
    ----------
    named : dict of str to Tensor or tuple of Tensor
        The embeddings by their names in messages.
    similarity : Similarity
        Determines whether tuples are valid.
    """
    tensors: dict[str, Any] = dict(named)
    if any(isinstance(z, tuple) for z in named.values()):
        tensors = _directions_of(tensors, similarity)
    names, first = ", ".join(tensors), next(iter(tensors.values()))
    for name, z in tensors.items():
        _check_tensor(name, z)
        if z.ndim != 2 or z.shape[1] != first.shape[1]:
            width = "d" if z is first else first.shape[1]
            raise ValueError(f"{name} must have shape (n, {width}), got {tuple(z.shape)}.")
    if not first.shape[1]:
        raise ValueError(f"{names} must have at least one column, got shape (n, 0).")
    return tensors


def _check_tensor(name: str, tensor: Any, shape: str = "(n, d)") -> None:
    is_tensor = isinstance(tensor, Tensor)
    if not (is_tensor and tensor.is_floating_point() and tensor.layout == torch.strided):
        got = f"{tensor.dtype}, {tensor.layout}" if is_tensor else type(tensor).__name__
        raise TypeError(f"{name} must be a dense floating tensor of shape {shape}, got {got}.")


def _directions_of(named: dict[str, Any], similarity: Any) -> dict[str, Any]:
    """Check the concentrations of tuples, and return the mean directions."""
    if not similarity.n_extra:
        raise TypeError(
            f"Directions with concentrations need similarity=VonMisesFisher(), not {similarity!r}."
        )
    for name, view in named.items():
        if not isinstance(view, tuple) or len(view) != 2:
            raise TypeError(
                f"{', '.join(named)} must all be tuples (mu, kappa), or all be tensors: {name} is "
                f"{type(view).__name__}."
            )
        mu, kappa = view
        _check_tensor(f"The directions of {name}", mu)
        _check_tensor(f"The concentrations of {name}", kappa, "(n,)")
        if kappa.shape != mu.shape[:1]:
            raise ValueError(
                f"The concentrations of {name} must have shape {tuple(mu.shape[:1])}, got "
                f"{tuple(kappa.shape)}."
            )
        similarity.check_concentrations(kappa, name)
    return {name: mu for name, (mu, _) in named.items()}


def map_entries(function: Callable[[Any], Any], z: Any) -> Any:
    """Apply a function to an array or tensor, or to each of a tuple."""
    return tuple(map(function, z)) if isinstance(z, tuple) else function(z)


def in_one_dtype(embeddings: Sequence[Embeddings]) -> list[Any]:
    """Return the tensors in float64 if one of them is, else in float32."""
    flat = [t for z in embeddings for t in (z if isinstance(z, tuple) else (z,))]
    dtype = torch.float64 if any(t.dtype == torch.float64 for t in flat) else torch.float32
    return [map_entries(lambda tensor: tensor.to(dtype), z) for z in embeddings]


@guarded()
@validated(similarity=Similarity, width=POSITIVE_INT)
def check_similarity(similarity: Similarity, width: int = 64) -> None:
    """Check that the methods of a custom similarity are consistent.

    The methods are called on synthetic vectors of several lengths, some of which are nearly equal
    or nearly opposite. Call this in a test of your class: ``fit`` does not.

    Parameters
    ----------
    similarity : Similarity
        An instance with numbers, not schedules, as hyperparameters. The package's own pass.
    width : int, default=64
        The number of outputs of the network.

    Raises
    ------
    TypeError, ValueError
        If a method returns anything but a tensor of the right shape, NaN for finite vectors, or a
        score outside of ``bounds``; if it changes its arguments; if a vector or a score depends on
        other vectors, or has no finite gradient; if opposite vectors score higher than equal ones;
        or if ``pairs`` is not the diagonal of ``scores``.

    See Also
    --------
    skcontrast.losses.check_loss : The same for a loss.
    skcontrast.frameworks.check_framework : The same for a framework.

    Examples
    --------
    >>> from skcontrast.similarity import Similarity, check_similarity
    >>> class Narrow(Similarity):
    ...     def bounds(self, width):
    ...         return -1.0, 1.0
    ...
    ...     def embed(self, z):
    ...         return z
    >>> check_similarity(Narrow())
    Traceback (most recent call last):
    ...
    ValueError: Narrow.scores returns a score of ... but Narrow.bounds is [-1, 1].
    """
    check_hyperparameters(similarity)
    similarity, owner = copy.copy(similarity), type(similarity).__name__
    with seeded_rng(0, torch.device("cpu")):
        # Six pairs of directions: equal, opposite or independent; short and long.
        synthetic = torch.arange(1.0, 1 + 12 * width).sin().view(2, 6, width)
        z, noise = torch.nn.functional.normalize(synthetic, dim=-1)
        signs, lengths = torch.tensor([[1.0, -1, 0, 1, -1, 0], [0.1, 0.1, 1, 1, 3, 3]])[..., None]
        z = torch.stack([z, signs * z + (1.1 - signs.abs()) * noise]) * lengths
        u, v = _returned(similarity, "embed", z)
        _returned(similarity, "bank_vectors", z)
        scores = _returned(similarity, "scores", u, v)
        check_scores(similarity, scores, u, v, f"{owner}.scores returns")
        pairs, diagonal = _returned(similarity, "pairs", u, v), scores.diagonal()
        # The same for fewer vectors, with a gradient; scores of equal and of opposite vectors.
        some = _returned(similarity, "embed", z[0, :4].clone().requires_grad_())
        some_scores = _returned(similarity, "scores", some, v[:3])
        equal, opposite = (similarity.pairs(some, similarity.embed(w[0, :4])) for w in (z, -z))
    if not some_scores.requires_grad:
        raise ValueError(f"{owner} must return differentiable scores: leave out detach.")
    leaf = some.detach().requires_grad_()
    (slope,) = torch.autograd.grad(similarity.scores(leaf, leaf).sum(), leaf)
    if not slope.isfinite().all():
        raise ValueError(
            f"{owner}.scores must have a finite gradient, also for equal vectors: write a "
            "distance as (squares + 1e-12).sqrt()."
        )
    for what, together, alone in (("embed", u[:4], some), ("scores", scores[:4, :3], some_scores)):
        if not _are_close(together, alone):
            raise ValueError(f"{owner}.{what} must not depend on other vectors of the batch.")
    if not similarity.n_extra and (equal < opposite - 1e-3).all():
        raise ValueError(f"{owner} scores opposite vectors above equal ones: negate a distance.")
    if not _are_close(pairs, diagonal):
        raise ValueError(f"{owner}.pairs(u, v) must be the diagonal of scores: override both.")


def _are_close(actual: Tensor, expected: Tensor) -> bool:
    return torch.allclose(actual, expected, rtol=1e-2, atol=1e-3, equal_nan=True)


def _returned(similarity: Similarity, name: str, *vectors: Tensor) -> Tensor:
    """Return the validated output of a method."""
    owner, before = f"{type(similarity).__name__}.{name}", [z.clone() for z in vectors]
    output: Any = getattr(similarity, name)(*vectors)
    shape = [len(z) for z in vectors] if name == "scores" else list(vectors[0].shape[:-1])
    if name in ("embed", "bank_vectors"):
        shape += getattr(output, "shape", [])[-1:] or vectors[0].shape[-1:]
    check_returned(owner, output, shape)
    if not all(map(torch.equal, vectors, before)):
        raise ValueError(f"{owner} changes its arguments in place.")
    if name != "scores" and output.isnan().any():
        raise ValueError(f"{owner} returns NaN for finite numbers.")
    return output


def check_scores(similarity: Any, scores: Tensor, u: Tensor, v: Tensor, what: str) -> None:
    """Raise ValueError for scores of finite vectors that are out of bounds or NaN.

    Parameters
    ----------
    similarity : Similarity
        Its `bounds` are checked.
    scores : Tensor of any shape
        Scores of the vectors.
    u, v : Tensor of shape (n, k) and (m, k)
        Embedded vectors.
    what : str
        The beginning of the message, such as "Own.scores returns".
    """
    low, high = similarity.bounds(u.shape[1])
    slack = 1e-3 * max([1.0, *(abs(end) for end in (low, high) if math.isfinite(end))])
    outside = scores[~((scores >= low - slack) & (scores <= high + slack))]
    if len(outside) and u.isfinite().all() and v.isfinite().all():
        raise ValueError(
            f"{what} a score of {float(outside[0]):g} for finite vectors, but "
            f"{type(similarity).__name__}.bounds is [{low:g}, {high:g}]."
        )


class Cosine(Similarity):
    r"""Cosine of the angle between two embeddings, divided by a temperature.

    .. math:: s(z_1, z_2) = \frac{z_1 \cdot z_2}{t\,|z_1|\,|z_2|}

    Parameters
    ----------
    temperature : float or Schedule, default=0.5
        The temperature t in [1e-30, 1e30]. Scores are in [−1/t, 1/t]. With small values,
        the closest negatives dominate the loss.

    See Also
    --------
    DotProduct : The same without the division by lengths and temperature.
    VonMisesFisher : Learns a concentration for each sample.

    Examples
    --------
    >>> import torch
    >>> from skcontrast.similarity import Cosine
    >>> Cosine(temperature=0.5)(torch.tensor([[3.0, 4.0]]), torch.tensor([[1.0, 0.0], [3.0, 4.0]]))
    tensor([[1.2000, 2.0000]])
    """

    temperature: Number = parameter(interval(1e-30, 1e30, "both"), default=0.5)

    def bounds(self, width: int) -> tuple[float, float]:
        """Return the scores of opposite and of equal directions, (−1/t, 1/t)."""
        return -1 / self.temperature, 1 / self.temperature

    def embed(self, z: Tensor) -> Tensor:
        """Return `z` scaled to length 1/√t, so that scores are plain dot products."""
        return z * (inverse_length(z)[0] / math.sqrt(self.temperature))


class DotProduct(Similarity):
    r"""The plain dot product of two embeddings.

    .. math:: s(z_1, z_2) = z_1 \cdot z_2

    It is unbounded: with the contrastive objective, longer embeddings lower the loss.
    InfoGraph uses it with the Jensen–Shannon objective.

    See Also
    --------
    Cosine : The dot product of directions, over a temperature.

    Examples
    --------
    >>> import torch
    >>> from skcontrast.similarity import DotProduct
    >>> DotProduct()(torch.tensor([[3.0, 4.0]]), torch.tensor([[1.0, 0.0], [3.0, 4.0]]))
    tensor([[ 3., 25.]])
    """

    def embed(self, z: Tensor) -> Tensor:
        """Return `z` unchanged."""
        return z


class Cauchy(Similarity):
    r"""Logarithm of the Cauchy kernel, the similarity of t-SNE, for embeddings in the plane.

    .. math:: s(z_1, z_2) = -\log\left(1 + |z_1 - z_2|^2\right)

    With ``InfoNCE`` it is the objective of t-SimCNE [1]_. Projections are points, not directions,
    so that those in two dimensions are a map of the samples, see :ref:`map`. The kernel has heavy
    tails, so that moderately dissimilar samples may lie far apart.
    Scores are at most 0 and have no lower bound, which ``PositiveDebiased`` requires.

    See Also
    --------
    Cosine : For representations in many dimensions.
    skcontrast.plotting.EmbeddingDisplay : Draws the map.

    References
    ----------
    .. [1] J. N. Böhm, P. Berens, D. Kobak, "Unsupervised visualization of image datasets using
       contrastive learning", ICLR 2023.

    Examples
    --------
    >>> import torch
    >>> from skcontrast.similarity import Cauchy
    >>> Cauchy()(torch.tensor([[3.0, 4.0]]), torch.tensor([[0.0, 0.0], [3.0, 4.0]]))
    tensor([[-3.2581, -0.0000]])

    Projections in the plane:

    >>> import numpy as np
    >>> from skcontrast import ContrastiveEmbedder
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> embedder = ContrastiveEmbedder(
    ...     similarity=Cauchy(),
    ...     projection_dim=2,
    ...     output="projection",
    ...     max_epochs=1,
    ...     random_state=0,
    ... )
    >>> embedder.fit_transform(X).shape
    (100, 2)
    """

    def bounds(self, width: int) -> tuple[float, float]:
        """Return (−∞, 0)."""
        return -math.inf, 0.0

    def embed(self, z: Tensor) -> Tensor:
        """Return `z` and its squared length, shape (..., d + 1)."""
        return torch.cat([z, z.square().sum(-1, keepdim=True)], -1)

    def scores(self, u: Tensor, v: Tensor) -> Tensor:
        """Return the scores of all pairs."""
        squares = u[:, -1:] + v[:, -1] - 2 * u[:, :-1] @ v[:, :-1].T
        return -squares.clamp_min(0).log1p()  # may be negative by rounding

    def pairs(self, u: Tensor, v: Tensor) -> Tensor:
        """Return the scores of matching rows."""
        return -(u - v)[..., :-1].square().sum(-1).log1p()

    def bank_vectors(self, z: Tensor) -> Tensor:
        """Return `z` unchanged: points are averaged."""
        return z
