"""What a framework is: the anchors, positives and candidate negatives of a training step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from .._parameters import ParameterObject
from ..similarity import Cosine


@dataclass(frozen=True)
class FitContext:
    """What a framework may know of the fit that it takes part in.

    Attributes
    ----------
    module : torch.nn.Module
        The encoder and projection head that are trained, (n, ...) → (n, width), on the device.
    network : callable
        The same as the fit runs it: compiled or shared among processes, where the fit is.
    prepare : callable
        ``prepare(module)`` returns any other module as the fit runs it.
    n_samples : int
        Samples that the fit is given.
    n_views, batch_size : int
        Views per sample; the most samples in a step.
    width : int
        Of the network's output.
    device : torch.device
        Of the training.
    generator : torch.Generator
        For what the framework draws, on the device; seeded again in every epoch.
    """

    module: nn.Module
    network: Callable
    prepare: Callable
    n_samples: int
    n_views: int
    batch_size: int
    width: int
    device: torch.device
    generator: torch.Generator


class Framework(ParameterObject):
    """Base class of the frameworks: objects with hyperparameters, and without any state.

    A framework that needs no memory from step to step implements `contrast`. One that does, a
    queue of keys or a second network, implements `start`, which returns the `Session` that keeps
    it while the fit lasts.

    Attributes
    ----------
    draws_random_numbers : bool
        Whether it may draw from torch's global generators while it trains, as dropout does. If it
        never does, fits in several threads need not wait for each other.
    n_views : int or None
        Views per sample where it needs another number than the user's.
    default_similarity : type
        The similarity where the user names none.
    takes_pairs : bool
        Whether X may be a pair of arrays, and `split_samples` gives two parts.
    """

    draws_random_numbers = True
    n_views: int | None = None
    default_similarity: type = Cosine
    takes_pairs = False

    @property
    def structure(self):
        """What of this framework the network is built for, None if it is any: a str."""
        return None

    def split_samples(self, kind, sample_shape, border=None):
        """Return how samples are split into parts with an encoder each, or None for one encoder.

        Parameters
        ----------
        kind : Kind
            What the samples are.
        sample_shape : tuple of int
            Shape of one sample of a batch.
        border : int, default=None
            Where the second array begins, if X is a pair of arrays.
        """
        return None

    def start(self, fit):
        """Return what contrasts the batches of one fit.

        Parameters
        ----------
        fit : FitContext
            The fit that begins.

        Returns
        -------
        session : Session
            By default one that calls `contrast` and remembers nothing.
        """
        return _WithoutMemory(self, fit)

    def contrast(self, network, views, similarity, batch):
        """Encode the views of a batch and say who is contrasted with whom.

        Parameters
        ----------
        network : callable
            Encoder and projection head, (n, ...) → (n, d).
        views : list of Tensor of shape (n, ...)
            The views of the same n samples.
        similarity : Similarity
            Its ``embed`` maps the network's output to the vectors that are compared.
        batch : Batch
            What is known about the n samples: ``rows``, their places in X; ``labels``; and
            ``anchor_weights(z)``, the factors on the losses of the anchors. The last two may be
            None.

        Returns
        -------
        contrast : skcontrast.frameworks.Contrast
        """
        raise NotImplementedError


class Session(nn.Module):
    """What a framework keeps while a fit lasts.

    It is a module so that what it registers is taken care of: buffers and submodules move to the
    device and stand in its ``state_dict``, which ``warm_start`` and ``partial_fit`` go on from and
    skorch's ``Checkpoint`` saves (``f_criterion``); parameters that require a gradient are trained
    along. The network of the fit is not to be registered: it is not the session's own.

    Parameters
    ----------
    fit : FitContext
        The fit that begins.

    Attributes
    ----------
    objective : {"contrastive", "jensen-shannon"}
        What is made of the scores.
    """

    objective = "contrastive"

    def __init__(self, fit):
        super().__init__()
        self.fit = fit

    def contrast(self, views, similarity, batch):
        """Encode the views of a batch and say who is contrasted with whom.

        Parameters
        ----------
        views : list of Tensor of shape (n, ...)
            The views of the same n samples.
        similarity : Similarity
            Its ``embed`` maps the network's output to the vectors that are compared.
        batch : Batch
            As in `Framework.contrast`.

        Returns
        -------
        contrast : skcontrast.frameworks.Contrast or list of them
            The loss is the mean over the anchors of all.
        """
        raise NotImplementedError

    def update(self):
        """Do what is due after a step of the optimizer."""

    def resume(self, state, same_samples):
        """Go on from where the session of an earlier fit was.

        By default all of it is taken over if the samples and all shapes are the same, else the
        parameters whose shapes are.

        Parameters
        ----------
        state : dict
            Its ``state_dict``.
        same_samples : bool
            Whether this fit has the same samples and labels in the same order. If not, what is
            remembered about single samples means nothing any more.
        """
        mine = self.state_dict()
        fits = {k for k, v in state.items() if k in mine and _shape(v) == _shape(mine[k])}
        if not (same_samples and fits == mine.keys()):
            state = {k: state[k] for k, _ in self.named_parameters() if k in fits}
        self.load_state_dict(state, strict=False)


def _shape(value):
    return getattr(value, "shape", None)


class _WithoutMemory(Session):
    """The session of a framework that has none of its own."""

    def __init__(self, framework, fit):
        super().__init__(fit)
        self.framework = framework

    def contrast(self, views, similarity, batch):
        return self.framework.contrast(self.fit.network, views, similarity, batch)
