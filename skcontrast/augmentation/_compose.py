"""A chain of augmentations as one callable on tensors, with as few passes as possible."""

from __future__ import annotations

import torch

from .._data._guess import kind_of_shape


class Stage:
    """One pass over the batch; neighbouring augmentations may share it."""

    def __init__(self, augmentation):
        self.augmentation = augmentation

    def absorb(self, augmentation):
        """Take `augmentation` into this pass and return True, or return False."""
        return False

    def __call__(self, batch, generator):
        return self.augmentation.augment(batch, generator)


class Composition:
    """A chain of stages: ``composition(batch, generator)`` draws one view per sample."""

    def __init__(self, stages, image_shape):
        self.stages = stages
        self.image_shape = image_shape

    def __call__(self, batch, generator=None):
        generator = generator_for(batch, generator)
        views = as_float(batch)
        if self.image_shape is not None:
            views = views.reshape(len(batch), *self.image_shape)
        for stage in self.stages:
            views = stage(views, generator)
        return views.reshape(batch.shape)


class PlainComposition:
    """A chain of augmentations of batches that are not tensors of floats, one after the other."""

    def __init__(self, augmentations):
        self.augmentations = augmentations

    def __call__(self, batch, generator=None):
        generator = generator_for(batch, generator)
        for augmentation in self.augmentations:
            batch = augmentation.augment(batch, generator)
        return batch


def compose(augmentations, sample_shape, *, kind=None, convert=None):
    """Return a callable that applies a chain of fitted augmentations to a batch of tensors.

    Within a run of image augmentations that move pixels (affine maps, crops, flips) or recolour
    them, all movements are multiplied into one map per image and drawn by one interpolation, and
    all recolourings into one colour matrix per image, applied after it with one final clamp to
    [0, 1]. The result differs from one pass per augmentation in what repeated interpolation and
    clamping lose, and in the padding, which is recoloured too. A blur, a noise, or an affine map
    with another padding ends a run.

    Parameters
    ----------
    augmentations : sequence of Augmentation
        Fitted augmentations, in the order in which they are applied.
    sample_shape : tuple of int
        Shape of one sample: ``(n_features,)``, ``(height, width)`` or
        ``(channels, height, width)``; ``(None, n_node_features)`` for graphs.
    kind : Kind, default=None
        What the samples are; None tells it from their shape.
    convert : callable, default=None
        From samples in the units of X to those of a batch, see `Augmentation.prepared`; None where
        they are the same.

    Returns
    -------
    views : callable
        ``views(batch, generator)`` maps a tensor of shape (n, ...) to a fresh floating-point view
        of the same shape. An empty chain only converts to floats: uint8 images to [0, 1].

    Raises
    ------
    ValueError
        If an augmentation does not apply to samples of this shape.

    Examples
    --------
    >>> import torch
    >>> from skcontrast.augmentation import ColorJitter, RandomFlip, compose
    >>> views = compose([RandomFlip(), ColorJitter()], (3, 8, 8))
    >>> batch = torch.zeros(5, 3, 8, 8, dtype=torch.uint8)
    >>> views(batch, torch.Generator().manual_seed(0)).dtype
    torch.float32
    """
    sample_shape = tuple(sample_shape)
    kind = kind_of_shape(sample_shape) if kind is None else kind
    for augmentation in augmentations:
        augmentation.check_kind(sample_shape, kind)
    if convert is not None:
        augmentations = [augmentation.prepared(convert) for augmentation in augmentations]
    if not kind.float_batches:
        return PlainComposition(augmentations)
    stages = []
    for augmentation in augmentations:
        for part in augmentation.parts(sample_shape):
            if not (stages and stages[-1].absorb(part)):
                stages.append(part.stage())
    return Composition(stages, kind.image_shape(sample_shape))


def as_float(batch):
    """Return `batch` as float32 (float64 stays), uint8 images of 0 to 255 scaled to [0, 1]."""
    if batch.dtype in (torch.float32, torch.float64):
        return batch
    if batch.dtype == torch.uint8 and batch.ndim > 2:
        return batch.to(torch.float32).div_(255)
    return batch.to(torch.float32)


def generator_for(batch, generator):
    """Return `generator`, or for None a new one on the batch's device, unpredictably seeded."""
    if generator is None:
        generator = torch.Generator(batch.device)
        generator.seed()
    return generator
