"""What a similarity is: an embedding of each sample and a score of two of them."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from .._parameters import ParameterObject, check_numbers
from ._validation import check_pair


class Similarity(ParameterObject):
    """Base class of the similarities.

    A similarity works in two stages, so that what concerns one sample is done once per sample and
    not once per pair: ``embed`` maps what the encoder returns to the vectors that are compared,
    ``scores`` compares all pairs of two sets of them.

    Attributes
    ----------
    bilinear : bool
        Whether ``scores(u, v)`` is ``u @ v.T``; its gradient is then two matrix products.
    n_terms : int
        Where positive, ``scores(u, v)`` is a function of the products of all but the last
        `n_terms` components, and of these; ``link`` and ``pull_terms`` then give value and
        gradient, which costs two matrix products too. Any other similarity is differentiated by
        autograd.
    n_extra : int
        Numbers that the network returns for each sample beside a direction.
    least_dimension : int
        The fewest components that a direction may have.
    bounds : tuple of float
        The lowest and the highest score there is (or numbers below and above all that occur).
    """

    bilinear = False
    n_terms = 0
    n_extra = 0
    least_dimension = 1
    bounds = (float("-inf"), float("inf"))

    @property
    def structure(self):
        """What of this similarity the network is built for, None if it is any: a str."""
        return type(self).__name__ if self.n_extra else None

    def __call__(self, z1, z2):
        """Return the scores of all pairs of two sets of embeddings.

        Parameters
        ----------
        z1, z2 : Tensor of shapes (n, d) and (m, d), floating, or tuples of two
            Embeddings of any length. For ``VonMisesFisher`` tuples of mean directions, (n, d), and
            concentrations, (n,); or tensors (n, d + 1), as the network of an embedder returns
            them.

        Returns
        -------
        scores : Tensor of shape (n, m)
            Computed in float32, or float64 if an embedding is, under autocast too.

        Raises
        ------
        TypeError, ValueError
            If kinds or widths differ, or a concentration lies outside [0, κ_max].
        """
        check_numbers(self)
        z1, z2 = check_pair(z1, z2, self)
        device = (z1[0] if isinstance(z1, tuple) else z1).device
        with torch.autocast(device.type, enabled=False):
            return self.scores(self.embed(z1), self.embed(z2))

    def embed(self, z):
        """Map the encoder's output, shape (n, d), to the vectors that are compared, (n, k)."""
        raise NotImplementedError

    def scores(self, u, v):
        """Return all pairwise scores, shape (n, m), of vectors of shapes (n, k) and (m, k)."""
        raise NotImplementedError

    def pairs(self, u, v):
        """Return the scores of matching rows, shape (n,), of vectors of shape (n, k)."""
        raise NotImplementedError

    def limits(self, u):
        """Return the lowest and the highest score of vectors of shape (n, k), floats."""
        return self.bounds

    def highest(self, u):
        """Return the score of each vector with itself, shape (n,), or one float for all."""
        return self.bounds[1]

    def link(self, products, u_terms, v_terms, slopes=None, *, d):
        """Turn the products of vectors into scores, in place; where `n_terms` is positive.

        Parameters
        ----------
        products : Tensor of shape (n, m)
            Of all but the last `n_terms` components; overwritten by the scores.
        u_terms : Tensor of shape (n, n_terms)
            The last components of the first vectors.
        v_terms : Tensor of shape (m, n_terms)
            Of the second.
        slopes : Tensor of shape (n, m), default=None
            Overwritten by the derivatives of the scores with respect to the products.
        d : int
            Components that the products are taken over.
        """
        raise NotImplementedError

    def pull_terms(self, terms, d_scores, d_products, *, d):
        """Return the gradient with respect to the terms of some vectors, shape (n, n_terms).

        Parameters
        ----------
        terms : Tensor of shape (n, n_terms)
            As in `link`.
        d_scores : Tensor of shape (n,)
            Of each vector, the sum of the gradient with respect to its scores.
        d_products : Tensor of shape (n,)
            The same for its products.
        d : int
            As in `link`.
        """
        raise NotImplementedError

    def remembered(self, z):
        """Return what a memory bank averages, and makes of an average, shape (..., d) as z."""
        return F.normalize(z, dim=-1)

    def directions(self, z):
        """Return what ``transform`` hands out of the projections z, shape (..., d)."""
        return z
