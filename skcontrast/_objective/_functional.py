r"""From scores to a loss: the estimate of an expectation over true negatives, and its gradient.

Every loss of the package estimates, for a function :math:`\varphi` of the score,

.. math:: \hat E^-[\varphi] = a \cdot \frac1N \sum_j w_j\, \varphi(s_j)
    - b \cdot \frac1M \sum_m \varphi(s^+_m), \qquad w_j \propto c_j\, e^{\beta s_j}

and defines (c, β, a, b). The rest is common to all losses. `contrastive_loss` is the entry point
for custom training loops.
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, TypeVar, cast

import torch
from torch import Tensor

from .._checks import StrOptions
from .._checks._arguments import check_argument, check_component
from .._checks._names import names_checked
from .._data._batches import Metadata
from .._runtime import guarded
from .._warnings import warn
from ..losses import InfoNCE, Loss
from ..schedules._numbers import check_hyperparameters
from ..similarity import Cosine, Similarity
from ..similarity._base import check_kinds, check_view_embeddings, in_one_dtype
from ._contrast import Contrast, embed_views, in_batch, pairs_with
from ._mean_loss import SameGroup, objective_value

# Embeddings, or for a similarity with concentrations, directions and concentrations.
View: TypeAlias = Tensor | tuple[Tensor, Tensor]
# Classes or groups of the samples, and those of the queue.
_LabelPair: TypeAlias = tuple[Tensor | None, Tensor | None]
_F = TypeVar("_F", bound=Callable[..., Tensor])
_SAME_GROUP = [StrOptions({"neutral", "positive", "correct"})]


def _uncompiled(function: _F) -> _F:
    """Return a function that ``torch.compile`` does not compile."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Tensor:
        value = torch.compiler.disable(function) if torch.compiler.is_compiling() else function
        return value(*args, **kwargs)

    return cast(_F, call)


@names_checked
@_uncompiled
@guarded(gradients=False)
def contrastive_loss(
    *views: View,
    loss: Loss | None = None,
    similarity: Similarity | None = None,
    queue: View | None = None,
    y: Tensor | None = None,
    queue_y: Tensor | None = None,
    sample_weight: Tensor | None = None,
    groups: Tensor | None = None,
    queue_groups: Tensor | None = None,
    same_group: SameGroup = "neutral",
    correct_with: View | Sequence[View] | None = None,
) -> Tensor:
    r"""Contrastive loss of two or more views of the same samples, differentiable.

    For custom training loops. The loss is the mean over the anchors of

    .. math:: L_i = -\log \frac{e^{s_i^+}}{e^{s_i^+} + N \hat E_i^-}

    where :math:`\hat E^-_i` is the estimate of the mean of :math:`e^s` over true negatives that
    `loss` makes. With more than two views, the mean over an anchor's positives is
    outside the logarithm. Loss and gradient are computed together, in tiles of anchors: memory
    grows with n, not with its square.

    Parameters
    ----------
    *views : Tensor of shape (n, d)
        View of the same n samples, at least two tensors, floating. They need not be
        normalised: the similarity does that. Computed in float32, or float64 if they are. For
        ``VonMisesFisher`` each is a tuple of mean directions (n, d), of any length, and
        concentrations κ (n,) in [0, κ_max]; or a tensor (n, d + 1) as the network of an embedder
        returns it.
    loss : Loss, default=None
        How the expectation over true negatives is estimated; None is
        :class:`~skcontrast.losses.InfoNCE`.
    similarity : Similarity, default=None
        The score of two embeddings; None is ``Cosine()``.
    queue : Tensor of shape (m, d), default=None
        View, of the form of the views, that serve as the negatives, as in MoCo. Then the
        first view gives the anchors and the others their positives. Without a queue, every view
        is an anchor and its negatives are the views of the other samples.
    y : Tensor of shape (n,), dtype int, default=None
        Classes of the samples, −1 where unknown, for losses that read labels. Others ignore them,
        with a warning.
    queue_y : Tensor of shape (m,), dtype int, default=None
        The same for the queue.
    sample_weight : Tensor of shape (n,), default=None
        Factors ≥ 0 on the losses of the samples, which are not checked on a GPU. The sum is
        divided by n, not by theirs.
    groups : Tensor of shape (n,), dtype int, default=None
        Groups of samples that are known to belong together, −1 where there is none. Candidates of
        the anchor's group are no negatives: the estimate is over the others.
    queue_groups : Tensor of shape (m,), dtype int, default=None
        The same for the queue; needed with both.
    same_group : {"neutral", "positive", "correct"}, default="neutral"
        Whether samples of one group are ignored for each other, pulled like views of one sample,
        or, with the losses of `correct_with`, stay candidates and correct the loss: their mean
        :math:`e^s` replaces that of the positives. An anchor without one keeps its positives.
    correct_with : Tensor of shape (n, d), or sequence of M of them, default=None
        Other samples of the class of each sample, in the form of the views: the
        :math:`v \sim p^+` of :class:`~skcontrast.losses.DCL`, ``HCL``, ``PUCL`` and
        ``PositiveDebiased(negatives=...)`` of these, which subtract the mean of their
        :math:`e^s` in place of that of the positives. They correct all anchors of their sample,
        are no candidates, and attract nothing; gradients flow into them. For a sample without
        one, pass a further view of it: a view that is an anchor would correct itself.

    Returns
    -------
    value : Tensor of shape ()
        The mean loss over the anchors; NaN if a view or the queue holds NaN or infinity.

    Raises
    ------
    ValueError
        If shapes disagree, there are fewer than 2 samples and no queue, or a
        hyperparameter is outside its range or is a schedule.
    TypeError
        If views are not dense floating tensors, or a class is passed instead of an instance.
    RuntimeError
        If the gradient is asked for with ``create_graph=True``: it is not itself differentiable.
        Under the transforms of ``torch.func`` and in forward mode, for the same reason.

    See Also
    --------
    skcontrast.ContrastiveEmbedder : Trains an encoder with any of these losses.
    skcontrast.losses.Loss : How to write a loss.

    Notes
    -----
    Within ``torch.compile`` it runs uncompiled, between the compiled parts of its caller, so
    ``fullgraph=True`` fails. Under autocast it computes in float32.

    Examples
    --------
    >>> import torch
    >>> from skcontrast import contrastive_loss
    >>> from skcontrast.losses import HCL
    >>> from skcontrast.similarity import Cosine
    >>> z = torch.randn(2, 64, 16, generator=torch.Generator().manual_seed(0)).requires_grad_()
    >>> value = contrastive_loss(z[0], z[1], loss=HCL(tau_plus=0.1), similarity=Cosine(0.5))
    >>> value.backward()
    >>> z.grad.shape
    torch.Size([2, 64, 16])

    Other samples of the class of each sample, which correct the loss:

    >>> of_class = torch.randn(64, 16, generator=torch.Generator().manual_seed(1))
    >>> contrastive_loss(z[0], z[1], loss=HCL(), correct_with=of_class).isfinite().item()
    True
    """
    owner = "contrastive_loss"
    for view in views:
        if isinstance(view, (Loss, Similarity)):
            role = "loss" if isinstance(view, Loss) else "similarity"
            raise TypeError(f"{owner} takes the {role} by name: pass {role}={view!r}.")
    loss = check_component(loss, Loss, owner, "loss", InfoNCE)
    similarity = check_component(similarity, Similarity, owner, "similarity", Cosine)
    loss.check_overrides()
    for component in (loss, similarity):
        check_hyperparameters(component)
    check_argument(owner, "same_group", same_group, _SAME_GROUP)
    # Views and queue are validated before they are converted to one dtype.
    check_view_embeddings(views, queue, similarity)
    correcting = _correcting_views(correct_with, views[0], similarity)
    if correcting and same_group == "correct":
        raise ValueError(f"{owner} takes correct_with or same_group='correct', not both.")
    tensors = in_one_dtype([*views, *correcting, *([] if queue is None else [queue])])
    queue = None if queue is None else tensors[-1]
    correcting = tensors[len(views) : len(views) + len(correcting)]
    views = tuple(tensors[: len(views)])
    anchors_view, n_queue = _tensor_of(views[0]), None if queue is None else len(_tensor_of(queue))
    # Classes are needed if the loss reads them; groups are those of all samples or of none.
    message = f"{type(loss).__name__} needs labels: pass {{}}." if loss.requires_y else None
    labels = _validate_pair("y", (y, queue_y), anchors_view, n_queue, message)
    if message is None and (y is not None or queue_y is not None):
        warn(f"{type(loss).__name__} ignores y: pass a loss that reads classes, groups=, or no y.")
    has_groups = groups is not None or queue_groups is not None
    if same_group != "neutral" and not has_groups:
        warn(f"same_group={same_group!r} has no effect without groups: pass groups=, such as y.")
    passed = "groups" if queue_groups is None else "queue_groups"
    message = f"{passed} was passed without {{}}. Pass both, or neither." if has_groups else None
    group_pair = _validate_pair("groups", (groups, queue_groups), anchors_view, n_queue, message)
    weights = _sample_weights(sample_weight, anchors_view)
    contrast = _contrast(views, similarity, queue, weights, labels, group_pair)
    if correcting:
        n_repeats = len(contrast.anchors) // len(anchors_view)  # without a queue, each view
        repeated = [similarity.embed(view).repeat(n_repeats, 1) for view in correcting]
        contrast = replace(contrast, correcting=pairs_with(contrast.anchors, repeated, similarity))
    return objective_value(contrast, loss, similarity, same_group=same_group)


def _correcting_views(given: Any, first: View, similarity: Similarity) -> list[View]:
    """Return `correct_with` as a list of validated views."""
    if given is None:
        return []
    is_one = isinstance(given, Tensor) or (
        isinstance(given, tuple) and len(given) == 2 and getattr(given[1], "ndim", 0) == 1
    )
    correcting = [given] if is_one or not isinstance(given, (list, tuple)) else list(given)
    if not correcting:
        raise ValueError("correct_with must hold at least one tensor; omit it for none.")
    named = {f"correct_with[{k}]": view for k, view in enumerate(correcting)}
    n = len(_tensor_of(first))
    for name, z in check_kinds({"view 1": first} | named, similarity).items():
        if len(z) != n:
            raise ValueError(f"{name} must have {n} rows, one for each sample, got {len(z)}.")
    return correcting


def _tensor_of(view: View) -> Tensor:
    return view[0] if isinstance(view, tuple) else view


def _contrast(
    views: Sequence[View],
    similarity: Similarity,
    queue: View | None,
    sample_weight: Tensor | None,
    labels: _LabelPair,
    groups: _LabelPair,
) -> Contrast:
    """Return the contrast of views with each other or, if there is a queue, with the queue."""
    embedded = embed_views(views, similarity)
    if queue is None:
        if sample_weight is not None:
            sample_weight = sample_weight.expand(len(views), -1)
        return in_batch(embedded, labels[0], sample_weight, groups[0])
    # With a queue, only view 1 gives anchors. Their positives are the other views (n, M); the
    # queue has no keys of the same samples, so none is excluded.
    positives = pairs_with(embedded[0], embedded[1:], similarity)
    no_columns = torch.empty(len(positives), 0, dtype=torch.int64, device=positives.device)
    of_anchors, of_queue = map(Metadata, labels, groups)
    return Contrast(
        anchors=embedded[0],
        candidates=similarity.embed(queue),
        positives=positives,
        excluded=no_columns,
        **of_anchors._replace(weights=sample_weight).of_anchors(of_queue),
    )


def _validate_pair(
    name: str, pair: _LabelPair, first: Tensor, n_queue: int | None, message: str | None
) -> _LabelPair:
    """Validate classes or groups of samples and queue; needed if there is a message for that."""
    if pair[1] is not None and n_queue is None:
        raise ValueError(f"queue_{name} describes the samples of a queue: pass queue, too.")
    lengths = len(first), n_queue
    for argument, values, n in zip((name, f"queue_{name}"), pair, lengths, strict=True):
        if message is None or n is None:
            continue
        if values is None:
            raise ValueError(message.format(argument))
        if not isinstance(values, Tensor) or values.is_floating_point() or values.ndim != 1:
            raise TypeError(f"{argument} must be a tensor of integers of shape ({n},).")
        if len(values) != n:
            raise ValueError(f"{argument} must have {n} entries, got {len(values)}.")
    return (None, None) if message is None else pair


def _sample_weights(weights: Any, first: Tensor) -> Tensor | None:
    """Return the weights in the dtype of the views."""
    if weights is None:
        return None
    n = len(first)
    if not isinstance(weights, Tensor) or weights.shape != (n,):
        got = tuple(weights.shape) if isinstance(weights, Tensor) else type(weights).__name__
        raise ValueError(f"sample_weight must be a tensor of shape ({n},), got {got}.")
    if weights.requires_grad:
        raise ValueError("sample_weight must not require a gradient: pass sample_weight.detach().")
    # Values on a GPU are not checked, because that would wait for the GPU.
    if weights.device.type == "cpu" and not ((weights >= 0) & weights.isfinite()).all():
        raise ValueError("sample_weight must hold no negative numbers, no infinity and no NaN.")
    return weights.to(first.dtype)
