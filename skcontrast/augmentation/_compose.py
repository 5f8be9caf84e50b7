"""A chain of augmentations as one callable on tensors, with as few passes as possible."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any

import torch
from torch import Tensor

from .._arguments import Interval, checked
from .._parameters import check_component
from ..kinds._base import Kind
from ..kinds._recognise import kind_of_shape
from ._base import Augmentation
from ._stage import Stage, as_float, checked_views, generator_for

_SIZE = Interval(Integral, 0, None, closed="left")


class Composition:
    """A chain of stages: ``composition(batch, generator)`` draws one view per sample.

    Parameters
    ----------
    stages : list of Stage
        Applied one after the other.
    image_shape : tuple (channels, height, width) or None
        The shape that stages need; None leaves batches in theirs.
    """

    def __init__(self, stages: list[Stage], image_shape: tuple[int, ...] | None):
        self.stages = stages
        self.image_shape = image_shape

    def __call__(self, batch: Tensor, generator: torch.Generator | None = None) -> Tensor:
        generator = generator_for(batch, generator)
        views = as_float(batch)
        if self.image_shape is not None:
            views = views.reshape(len(batch), *self.image_shape)
        for stage in self.stages:
            views = stage(views, generator)
        return views.reshape(batch.shape)


class PlainComposition:
    """A chain of augmentations of batches that are not float tensors, one after the other.

    Parameters
    ----------
    augmentations : sequence of Augmentation
        Fitted.
    """

    def __init__(self, augmentations: Sequence[Augmentation]):
        self.augmentations = augmentations

    def __call__(self, batch: Any, generator: torch.Generator | None = None) -> Any:
        generator = generator_for(batch, generator)
        for augmentation in self.augmentations:
            views = augmentation.augment(batch, generator)
            batch = checked_views(views, batch, type(augmentation))
        return batch


@checked(
    augmentations=[list, tuple, Augmentation],
    sample_shape=[tuple, list],
    kind=[Kind, None],
    convert=[callable, None],
)
def compose(
    augmentations: Sequence[Augmentation],
    sample_shape: Sequence[int | None],
    *,
    kind: Kind | None = None,
    convert: Callable[[Any], Any] | None = None,
) -> Callable[..., Any]:
    """Return a callable that applies a chain of fitted augmentations to a batch.

    Neighbouring augmentations of images that move pixels (affine maps, crops, flips) or recolour
    them form a run. All movements of a run are multiplied into one map per image and drawn by one
    interpolation. All recolourings are multiplied into one colour matrix per image, which is
    applied afterwards, with one final clamp to [0, 1]. The result differs from one pass per
    augmentation in two ways: nothing is lost by repeated interpolation and clamping, and the
    padding is recoloured too. A blur, a noise, or an affine map with a different padding ends a
    run.

    Parameters
    ----------
    augmentations : sequence of Augmentation
        Fitted augmentations, in the order in which they are applied.
    sample_shape : tuple of int
        Shape of one sample: ``(n_features,)``, ``(height, width)`` or
        ``(channels, height, width)``; ``(None, n_node_features)`` for graphs.
    kind : Kind, default=None
        What the samples are; None infers it from their shape.
    convert : callable, default=None
        Maps samples in the units of X to a batch, see `Augmentation.prepared`; None if batches
        are in the units of X.

    Returns
    -------
    views : callable
        ``views(batch, generator)`` maps a tensor of shape (n, ...) to a fresh floating-point view
        of the same shape. An empty chain only converts to floats: uint8 images to [0, 1].

    Raises
    ------
    ValueError
        If an augmentation does not apply to samples of this shape.

    See Also
    --------
    Augmentation : Base class of the augmentations.
    Views : Samples and a chain, for an embedder.

    Examples
    --------
    >>> import torch
    >>> from skcontrast.augmentation import ColorJitter, RandomFlip, compose
    >>> views = compose([RandomFlip(), ColorJitter()], (3, 8, 8))
    >>> batch = torch.zeros(5, 3, 8, 8, dtype=torch.uint8)
    >>> views(batch, torch.Generator().manual_seed(0)).dtype
    torch.float32
    """
    if isinstance(augmentations, Augmentation):
        augmentations = [augmentations]
    for augmentation in augmentations:
        check_component(augmentation, Augmentation, owner="compose", parameter="augmentations")
    shape = tuple(sample_shape)
    # The shape of samples of several parts is a tuple of shapes.
    sizes = [size for one in shape for size in (one if isinstance(one, tuple) else (one,))]
    if not sizes or not all(size is None or _SIZE.is_satisfied_by(size) for size in sizes):
        raise ValueError(f"sample_shape must hold ints of at least 0, got {sample_shape!r}.")
    kind = kind_of_shape(shape) if kind is None else kind
    for augmentation in augmentations:
        augmentation.check_kind(shape, kind)
    if convert is not None:
        augmentations = [augmentation.prepared(convert) for augmentation in augmentations]
    if not kind.float_batches:
        return PlainComposition(augmentations)
    stages: list[Stage] = []
    for augmentation in augmentations:
        for part in augmentation.parts(shape):
            if not (stages and stages[-1].absorb(part)):
                stages.append(part.stage())
    return Composition(stages, kind.image_shape(shape))
