"""Base classes of the frameworks, and of sessions, which hold their memory during a fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from .._checks import ParameterObject
from .._data._batches import Batch
from .._objective._contrast import Contrast
from .._objective._mean_loss import ObjectiveName
from ..kinds._base import Kind
from ..similarity import Cosine, Similarity
from ._modalities import AnySplit


@dataclass(frozen=True)
class FitContext:
    """The fit in which a framework is used.

    Attributes
    ----------
    module : torch.nn.Module
        The encoder and projection head that are trained, (n, ...) → (n, width), on the device.
    network : callable
        The same module as the fit runs it: in half precision, if the fit is.
    prepare : callable
        ``prepare(module)`` returns any other module or function as the fit runs it.
    n_samples : int
        Number of samples in X.
    n_views, batch_size : int
        Views per sample; maximum number of samples in a step.
    width : int
        Width of the network's output, of all modalities together.
    device : torch.device
        The device of the training.
    generator : torch.Generator
        Random numbers for the framework, on the device; seeded again in every epoch.
    groups : Tensor of shape (n_samples,), dtype int64, or None
        The groups of all samples in the order of X, −1 where there is none; None if `fit` got
        none. For memories, which hold row numbers of X.
    n_modalities : int
        Number of modalities, with an encoder each.

    See Also
    --------
    Framework : Its `start` receives the context of a fit.
    Session : Has it as the attribute `context`.
    """

    module: nn.Module
    network: Callable[[Any], Any]
    prepare: Callable[[Callable], Callable]
    n_samples: int
    n_views: int
    batch_size: int
    width: int
    device: torch.device
    generator: torch.Generator
    groups: Tensor | None = None
    n_modalities: int = 1

    def groups_of(self, rows: Tensor) -> Tensor | None:
        """Return the groups of rows of X, −1 for unknown rows.

        Parameters
        ----------
        rows : Tensor of shape (k,), dtype int64
            Row numbers of X; negative where unknown.

        Returns
        -------
        groups : Tensor of shape (k,), dtype int64, or None
            None if `fit` got no groups.
        """
        return None if self.groups is None else self.groups[rows].masked_fill_(rows < 0, -1)


class Framework(ParameterObject):
    """Base class of the frameworks: objects with hyperparameters, but without state.

    A framework without memory implements `contrast`. One that needs a
    memory, such as a queue of keys or a second network, implements `start`, which returns the
    `Session` that holds the memory during a fit.

    Attributes
    ----------
    n_views : int or None
        Views per sample, if the framework needs a certain number; None leaves it to the user.
    takes_modalities : bool
        Whether X may have several modalities, which `split_samples` returns.
    remembers_samples : bool
        Whether candidates may be samples of earlier batches, as from a queue. Then `fit` raises
        an error for ``domains``.

    See Also
    --------
    Session : Base class of the memory of a fit.
    Contrast : The result of a framework for each batch.
    SimCLR, MoCo, CMC, InfoGraph : The frameworks of the package.

    Examples
    --------
    A custom framework. The anchors are the first views of the samples, and the candidates are the
    second views; the candidate of an anchor's own sample is its positive:

    >>> import numpy as np
    >>> import torch
    >>> from skcontrast import ContrastiveEmbedder
    >>> from skcontrast.frameworks import Contrast, Framework
    >>> class FirstAgainstSecond(Framework):
    ...     n_views = 2
    ...
    ...     def contrast(self, network, views, similarity, batch):
    ...         z = network(torch.cat(views)).float().unflatten(0, (2, -1))
    ...         anchors, candidates = similarity.embed(z)
    ...         known = batch.metadata(z[:1])
    ...         return Contrast(
    ...             anchors=anchors,
    ...             candidates=candidates,
    ...             positives=similarity.pairs(anchors, candidates),
    ...             excluded=torch.arange(len(anchors), device=anchors.device),
    ...             weights=known.weights,
    ...             anchor_labels=known.labels,
    ...             candidate_labels=batch.labels,
    ...             anchor_groups=known.groups,
    ...             candidate_groups=batch.groups,
    ...         )
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> framework = FirstAgainstSecond()
    >>> embedder = ContrastiveEmbedder(framework=framework, max_epochs=2, random_state=0)
    >>> embedder.fit_transform(X).shape
    (100, 128)

    `Session` has an example with a memory.
    """

    n_views: ClassVar[int | None] = None
    takes_modalities: ClassVar[bool] = False
    remembers_samples: ClassVar[bool] = False

    @property
    def default_similarity(self) -> type[Similarity]:
        """The similarity if the user passes None; a subclass may set another."""
        return Cosine

    @property
    def network_signature(self) -> str | None:
        """The framework for which the network is built; None if any framework can use it."""
        return None

    def split_samples(self, kind: Kind, sample_shape: tuple) -> AnySplit:
        """Return the split of samples into modalities, or None for one encoder.

        Parameters
        ----------
        kind : Kind
            The kind of the samples.
        sample_shape : tuple of int
            Shape of one sample of a batch.
        """
        return None

    def start(self, context: FitContext) -> Session:
        """Return the session that contrasts the batches of one fit.

        Parameters
        ----------
        context : FitContext
            The fit that starts.

        Returns
        -------
        session : Session
            By default, a session without memory, which calls `contrast`.
        """
        return _WithoutMemory(self, context)

    def contrast(
        self,
        network: Callable[[Any], Tensor],
        views: list[Any],
        similarity: Similarity,
        batch: Batch,
    ) -> Contrast | list[Contrast]:
        """Encode the views of a batch, and return the anchors, positives and candidates.

        Parameters
        ----------
        network : callable
            Encoder and projection head, (n, ...) → (n, d).
        views : list of Tensor of shape (n, ...)
            The views of the same n samples; for graphs, a list of
            :class:`~skcontrast.graphs.GraphBatch`.
        similarity : Similarity
            Its ``embed`` maps the network's output to the vectors that are compared.
        batch : Batch
            The metadata of the n samples: ``rows``, their row numbers in X; ``labels`` and
            ``groups``, or None; and ``metadata(z)``, the metadata of their views as anchors.

        Returns
        -------
        contrast : skcontrast.frameworks.Contrast or list of them
            The loss is the mean over the anchors of all.
        """
        raise NotImplementedError(
            f"{type(self).__name__} must implement contrast or, if it has a memory, start."
        )


class Session(nn.Module):
    """The memory of a framework during a fit.

    A session is a module: its buffers and submodules
    move to the device and are part of its ``state_dict``, from which ``warm_start`` and
    ``partial_fit`` resume and which skorch's ``Checkpoint`` saves (as ``f_criterion``). Its
    parameters that require a gradient are trained too. The network of the fit does not belong to
    the session: call ``self.context.network``, and do not assign it to an attribute.

    Parameters
    ----------
    context : FitContext
        The fit that starts.

    Attributes
    ----------
    context : FitContext
        The context of the fit.
    objective : {"contrastive", "jensen-shannon"}
        The loss that is computed from the scores.

    See Also
    --------
    Framework : Its `start` returns a session.
    KeyQueue : A memory of the keys of earlier batches.
    MomentumNetwork : A moving average of the trained network.

    References
    ----------
    .. [1] X. Chen, S. Xie, K. He, "An Empirical Study of Training Self-Supervised Vision
       Transformers", ICCV 2021.

    Examples
    --------
    A custom framework with a second network, similar to MoCo v3 [1]_. Anchors are encoded by the
    network and candidates by its momentum copy; the negatives are the other samples of the batch:

    >>> import numpy as np
    >>> import torch
    >>> from skcontrast import ContrastiveEmbedder
    >>> from skcontrast.frameworks import Contrast, Framework, MomentumNetwork, Session
    >>> class MomentumPairs(Framework):
    ...     n_views = 2
    ...
    ...     def __init__(self, momentum=0.99):
    ...         self.momentum = momentum
    ...
    ...     def start(self, context):
    ...         return MomentumSession(context, self.momentum)
    >>> class MomentumSession(Session):
    ...     def __init__(self, context, momentum):
    ...         super().__init__(context)
    ...         self.slow = MomentumNetwork(context, momentum)
    ...
    ...     def contrast(self, views, similarity, batch):
    ...         candidates = similarity.embed(self.slow(views[1]))
    ...         z = self.context.network(views[0]).float()
    ...         anchors, known = similarity.embed(z), batch.metadata(z[None])
    ...         return Contrast(
    ...             anchors=anchors,
    ...             candidates=candidates,
    ...             positives=similarity.pairs(anchors, candidates),
    ...             excluded=torch.arange(len(anchors), device=anchors.device),
    ...             weights=known.weights,
    ...             anchor_labels=known.labels,
    ...             candidate_labels=batch.labels,
    ...             anchor_groups=known.groups,
    ...             candidate_groups=batch.groups,
    ...         )
    ...
    ...     def update(self):
    ...         self.slow.follow()
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> framework = MomentumPairs()
    >>> embedder = ContrastiveEmbedder(framework=framework, max_epochs=2, random_state=0)
    >>> embedder.set_params(framework__momentum=0.9).fit_transform(X).shape
    (100, 128)
    """

    objective: ObjectiveName = "contrastive"

    def __init__(self, context: FitContext):
        super().__init__()
        self.context = context

    def contrast(
        self, views: list[Any], similarity: Similarity, batch: Batch
    ) -> Contrast | list[Contrast]:
        """Encode the views of a batch, and return the anchors, positives and candidates.

        Parameters
        ----------
        views : list of Tensor of shape (n, ...)
            The views of the same n samples; for graphs, a list of
            :class:`~skcontrast.graphs.GraphBatch`.
        similarity : Similarity
            Its ``embed`` maps the network's output to the vectors that are compared.
        batch : Batch
            As in `Framework.contrast`.

        Returns
        -------
        contrast : skcontrast.frameworks.Contrast or list of them
            The loss is the mean over the anchors of all.
        """
        raise NotImplementedError(f"{type(self).__name__} must implement contrast.")

    def update(self) -> None:
        """Update the memory after a step of the optimizer; by default, do nothing."""

    def resume(self, state: dict[str, Any], same_samples: bool) -> None:
        """Continue from the state of the session of an earlier fit.

        By default, the whole state is loaded if the samples and all shapes are the same;
        otherwise only parameters of the same shape.

        Parameters
        ----------
        state : dict
            The ``state_dict`` of the earlier session.
        same_samples : bool
            Whether this fit has the same samples and labels in the same order. If not, what was
            stored about single samples is meaningless.
        """
        mine = self.state_dict()
        fits = {k for k, v in state.items() if k in mine and _shape(v) == _shape(mine[k])}
        if not (same_samples and fits == mine.keys()):
            state = {k: state[k] for k, _ in self.named_parameters() if k in fits}
        self.load_state_dict(state, strict=False)


def _shape(value: Any) -> Any:
    return getattr(value, "shape", None)


def state_of(part: str, state: dict[str, Any]) -> dict[str, Any]:
    """Return the state of a submodule, from that of its parent."""
    prefix = f"{part}."
    return {k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)}


class _WithoutMemory(Session):
    """The session of a framework without memory."""

    def __init__(self, framework: Framework, context: FitContext):
        super().__init__(context)
        self.framework = framework

    def contrast(
        self, views: list[Any], similarity: Similarity, batch: Batch
    ) -> Contrast | list[Contrast]:
        return self.framework.contrast(self.context.network, views, similarity, batch)
