"""SimCLR: the other samples of the batch are the negatives."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .._data._batches import Batch
from .._objective._contrast import Contrast, in_batch
from ..similarity import Similarity
from ._base import Framework


class SimCLR(Framework):
    """In-batch contrast: every view of every sample is an anchor.

    The positives of an anchor are the other views of its sample. Its candidate negatives are all
    views of the other samples of the batch: N = ``n_views * (batch_size - 1)`` [1]_.

    See Also
    --------
    MoCo : Keys of earlier batches are negatives too, so batches can be small.
    CMC : The positives are another modality of the sample.
    InfoGraph : The nodes of graphs are contrasted with the graphs.
    in_batch : Builds this contrast from embedded views.

    References
    ----------
    .. [1] T. Chen, S. Kornblith, M. Norouzi, G. Hinton, "A Simple Framework for Contrastive
       Learning of Visual Representations", ICML 2020.

    Examples
    --------
    >>> from skcontrast import ContrastiveEmbedder
    >>> from skcontrast.frameworks import SimCLR
    >>> ContrastiveEmbedder(framework=SimCLR())
    ContrastiveEmbedder(framework=SimCLR())
    """

    def contrast(
        self,
        network: Callable[[Any], Tensor],
        views: list[Any],
        similarity: Similarity,
        batch: Batch,
    ) -> Contrast:
        """Encode all views in one call and contrast them within the batch."""
        z = network(torch.cat(views)).float().unflatten(0, (len(views), -1))
        return in_batch(similarity.embed(z), batch.labels, batch.anchor_weights(z), batch.groups)
