"""What a framework is: the anchors, positives and candidate negatives of a training step."""

from __future__ import annotations

from .._sklearn_compat import ParameterObject

__all__ = ["Framework"]


class Framework(ParameterObject):
    """Base class of the frameworks."""

    def contrast(self, network, views, similarity, batch):
        """Encode the views of a batch and say who is contrasted with whom.

        Parameters
        ----------
        network : torch.nn.Module
            Encoder and projection head, (n, ...) → (n, d).
        views : list of Tensor of shape (n, ...)
            The views of the same n samples.
        similarity : Similarity
            Its ``embed`` maps the network's output to the vectors that are compared.
        batch : Samples
            What is known about the n samples: ``labels``, and ``anchor_weights(z)``, the factors
            on the losses of the anchors. Either may be None.

        Returns
        -------
        contrast : skcontrast.objective.Contrast
        """
        raise NotImplementedError
