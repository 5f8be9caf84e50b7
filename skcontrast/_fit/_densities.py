"""What an embedder knows beyond points: how sure each embedding is, where the similarity says."""

from __future__ import annotations

from numbers import Integral

import numpy as np
import torch
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .._network._network import Network
from ..similarity import Cosine
from ._choices import resolve_seed


def _has_concentrations(embedder):
    similarity = getattr(embedder, "similarity_", embedder.similarity)
    similarity = Cosine() if similarity is None else similarity
    if not getattr(similarity, "n_extra", 0):
        raise AttributeError(
            f"The similarity {similarity!r} has no concentrations: an embedder with "
            "similarity=VonMisesFisher() learns how sure each embedding is."
        )
    return True


class Densities:
    """Mixin of the embedder: each sample as a von Mises–Fisher distribution."""

    @available_if(_has_concentrations)
    def concentration(self, X):
        """Return how sure the embedding of each sample is.

        Only where the similarity has concentrations: ``similarity=VonMisesFisher()``.

        Parameters
        ----------
        X : array-like or Dataset
            Samples of the shape seen in `fit`.

        Returns
        -------
        kappa : ndarray of shape (n_samples,), dtype float32
            Concentrations κ > 0; high where the sample's views lie close together and away from
            others. A sample's κ does not depend on the samples beside it. Where the framework
            has an encoder for each of two parts, that of the product of both distributions,
            :math:`|\\kappa_1 \\mu_1 + \\kappa_2 \\mu_2|`, at most 2κ_max.

        Examples
        --------
        >>> import numpy as np
        >>> from skcontrast import ContrastiveEmbedder
        >>> from skcontrast.similarity import VonMisesFisher
        >>> X = np.random.default_rng(0).normal(size=(100, 5))
        >>> embedder = ContrastiveEmbedder(
        ...     similarity=VonMisesFisher(), max_epochs=2, random_state=0
        ... )
        >>> embedder.fit(X).concentration(X).shape
        (100,)
        """
        return self._distributions(X)[1].float().numpy()

    @available_if(_has_concentrations)
    def sample(self, X, n=1, *, random_state=None):
        """Draw embeddings of each sample from its distribution.

        Only where the similarity has concentrations: ``similarity=VonMisesFisher()``.

        Parameters
        ----------
        X : array-like or Dataset
            Samples of the shape seen in `fit`.
        n : int, default=1
            Draws of each sample, at least 1.
        random_state : int, RandomState instance or None, default=None
            Seeds the draws; None gives other ones at each call. The global generators are left
            untouched.

        Returns
        -------
        z : ndarray of shape (n_samples, n, d), dtype float32
            Points of length 1, where d is the width of the projection.

        Examples
        --------
        >>> import numpy as np
        >>> from skcontrast import ContrastiveEmbedder
        >>> from skcontrast.similarity import VonMisesFisher
        >>> X = np.random.default_rng(0).normal(size=(100, 5))
        >>> embedder = ContrastiveEmbedder(
        ...     similarity=VonMisesFisher(), max_epochs=2, random_state=0
        ... )
        >>> embedder.fit(X).sample(X[:3], 10, random_state=0).shape
        (3, 10, 64)
        """
        if not isinstance(n, Integral) or isinstance(n, bool) or n < 1:
            raise ValueError(
                f"The 'n' parameter of sample must be an int of at least 1, got {n!r}."
            )
        rng = np.random.RandomState(resolve_seed(random_state, "sample"))
        mu, kappa = self._distributions(X)
        return self.similarity_.draw(mu.numpy(), kappa.numpy(), n, rng).astype("float32")

    @available_if(_has_concentrations)
    def log_score(self, X1, X2=None):
        r"""Return the mutual likelihood scores of all pairs of samples, for retrieval.

        The logarithm of the probability density that both embeddings are the same point, relative
        to chance, :math:`h(\tilde\kappa) - h(\kappa_i) - h(\kappa_j)`: above 0 where the two
        rather agree. With one encoder it is what training maximises for views of one sample,
        without the temperature; with one for each of two parts it compares the products of their
        distributions, see `concentration`.

        Only where the similarity has concentrations: ``similarity=VonMisesFisher()``.

        Parameters
        ----------
        X1 : array-like or Dataset
            n samples of the shape seen in `fit`.
        X2 : array-like or Dataset, default=None
            m samples; None takes those of X1.

        Returns
        -------
        scores : ndarray of shape (n, m), dtype float64

        Examples
        --------
        >>> import numpy as np
        >>> from skcontrast import ContrastiveEmbedder
        >>> from skcontrast.similarity import VonMisesFisher
        >>> X = np.random.default_rng(0).normal(size=(100, 5))
        >>> embedder = ContrastiveEmbedder(
        ...     similarity=VonMisesFisher(), max_epochs=2, random_state=0
        ... )
        >>> embedder.fit(X).log_score(X[:3], X).shape
        (3, 100)
        """
        check_is_fitted(self)
        similarity = self.similarity_.without_temperature()
        first = second = similarity.embed(self._named_distributions("X1", X1))
        if X2 is not None:
            second = similarity.embed(self._named_distributions("X2", X2))
        return similarity.scores(first, second).numpy()

    def _named_distributions(self, name, X):
        try:
            return self._distributions(X)
        except ValueError as error:
            raise ValueError(f"{name} of log_score: {error}") from error

    def _distributions(self, X):
        """Return mean directions (n, d) and concentrations (n,), float64."""
        check_is_fitted(self)
        z = torch.from_numpy(self._encode(X, Network(self.encoder_, self.projector_))).double()
        mu, kappa = self.similarity_.distribution(z.unflatten(1, (self._n_parts, -1)))
        if self._n_parts == 1:
            return mu[:, 0], kappa[:, 0]
        return self.similarity_.product(mu, kappa)
