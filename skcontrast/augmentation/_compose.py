"""Composition of augmentations into one callable on tensors, and a check of custom ones."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import numpy as np
import torch
from sklearn.base import clone
from torch import Tensor

from .._checks._arguments import check_component, validated
from .._checks._names import belongs_to_package
from .._data._arrays import representative_array
from .._layers._images import reduced
from .._runtime import guarded
from ..kinds._base import Kind, with_scaler
from ..kinds._recognise import declared_kind, kind_of_shape, read_samples
from ._base import Augmentation, as_float, check_batch, checked_views, generator_for
from ._function import FunctionAugmentation
from ._matrices import after, apply, recolor, warp
from ._views import base_of


class ImageAugmentation(Augmentation):
    """Base class of the augmentations of images that share passes over a batch."""

    kind = "images"

    @guarded(gradients=False)
    def augment(self, batch: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Return one view per image: a tensor of the shape of `batch`, see the base class."""
        check_batch(batch)
        return compose((self,), batch.shape[1:])(batch, generator)


class GeometricAugmentation(ImageAugmentation):
    """Base class of the augmentations that move pixels by one affine map per image."""

    padding: str | None = None
    """How images continue beyond their edges; None for maps that stay inside."""

    def affine(self, n: int, shape: tuple[int, int], generator: torch.Generator) -> Tensor:
        """Draw the maps from output to input coordinates.

        Parameters
        ----------
        n : int
            Number of images.
        shape : tuple of int
            Height and width.
        generator : torch.Generator
            Source of randomness, on the device of the maps.

        Returns
        -------
        maps : Tensor of shape (n, 2, 3)
        """
        raise NotImplementedError


class ColorAugmentation(ImageAugmentation):
    """Base class of the augmentations that map the colours of an image affinely."""

    def color_matrix(self, mean: Tensor, generator: torch.Generator) -> Tensor:
        """Draw the colour maps.

        Parameters
        ----------
        mean : Tensor of shape (n, C)
            Mean colour of each image.
        generator : torch.Generator
            Source of randomness.

        Returns
        -------
        maps : Tensor of shape (n, C, C + 1)
        """
        raise NotImplementedError


class _Fused:
    """Consecutive augmentations, applied as one interpolation and then one colour matrix."""

    def __init__(self, augmentation: GeometricAugmentation | ColorAugmentation):
        self.padding: str | None = None
        self.movements: list[GeometricAugmentation] = []
        self.recolorings: list[ColorAugmentation] = []
        self.absorb(augmentation)

    def absorb(self, augmentation: GeometricAugmentation | ColorAugmentation) -> bool:
        """Add an augmentation to this pass, and return True; return False if it does not fit."""
        if isinstance(augmentation, ColorAugmentation):
            self.recolorings.append(augmentation)
            return True
        padding = augmentation.padding or self.padding
        if self.padding not in (None, padding):
            return False
        self.padding = padding
        self.movements.append(augmentation)
        return True

    def __call__(self, batch: Tensor, generator: torch.Generator) -> Tensor:
        n, _, height, width = batch.shape
        if self.movements:
            maps = [step.affine(n, (height, width), generator) for step in self.movements]
            batch = warp(batch, reduce(after, maps), self.padding or "border")
        if self.recolorings:
            mean, drawn = batch.mean(dim=(2, 3)), []
            for step in self.recolorings:
                drawn.append(step.color_matrix(mean, generator))
                mean = apply(drawn[-1], mean)
            batch = recolor(batch, reduce(lambda inner, outer: after(outer, inner), drawn))
        return batch


@dataclass(eq=False)
class Composition:
    """A chain of passes: ``composition(batch, generator)`` draws one view per sample.

    Parameters
    ----------
    passes : list of callable
        Applied to a batch and a generator, one after the other.
    augmentations : list of Augmentation
        The augmentations that the passes apply.
    float_batches : bool
        Whether the batches of the kind are floats.
    image_shape : tuple of int or None
        Shape of a sample with a channel axis, if samples are images.
    sides : tuple of int or None
        Height and width to which images are reduced before augmentation.
    """

    passes: Sequence[Callable[..., Any]]
    augmentations: Sequence[Augmentation]
    float_batches: bool
    image_shape: tuple[int, ...] | None
    sides: Sequence[int] | None = None

    @property
    def takes_any_size(self) -> bool:
        """Whether images may have another size than in the fit of the augmentations."""
        return all(belongs_to_package(type(a)) and not a.uses_samples for a in self.augmentations)

    @guarded(gradients=False)
    def __call__(self, batch: Any, generator: torch.Generator | None = None) -> Any:
        generator, views = generator_for(batch, generator), self._as_augmented(batch)
        for draw in self.passes:
            views = draw(views, generator)
        if self.image_shape is None:
            return views
        return views.reshape(*batch.shape[:-2], *views.shape[-2:])

    def _as_augmented(self, batch: Any) -> Any:
        """Return a batch in the form that augmentations receive."""
        if self.image_shape is None:
            return as_float(batch) if self.float_batches else batch
        return as_float(reduced(batch.reshape(-1, *self.image_shape), self.sides))


def _drawn(step: Augmentation, keeps_ends: bool, batch: Any, generator: torch.Generator) -> Any:
    """Return validated views of an augmentation that is not fused."""
    version, name = _version(batch), type(step).__name__
    views = step.augment(batch, generator)
    if _version(batch) != version:
        raise ValueError(f"{name}.augment changes its batch in place: use batch.clone().")
    views = checked_views(views, batch, type(step))
    if keeps_ends and not torch.equal(views.isnan(), batch.isnan()):
        raise ValueError(
            f"{name} must return NaN exactly where its batch has NaN, which is the padding of "
            "shorter series."
        )
    return views


def _version(batch: Any) -> int:
    """Return a number that grows when a tensor is changed in place."""
    return batch._version if isinstance(batch, Tensor) and not batch.is_inference() else 0


@guarded()
@validated(
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

    Consecutive augmentations of images that move pixels (affine maps, crops, flips) or recolour
    them form a run. All movements of a run are multiplied into one map per image, with one
    interpolation. All recolourings are multiplied into one colour matrix per image, which is
    applied afterwards, with one final clamp to [0, 1]. The result differs from one pass per
    augmentation in two ways: nothing is lost by repeated interpolation and clamping, and the
    padding is recoloured too. A blur, a noise, or an affine map with a different padding ends a
    run.

    Parameters
    ----------
    augmentations : sequence of Augmentation
        Model augmentations, in the order in which they are applied.
    sample_shape : tuple of int
        Shape of one sample: ``(n_features,)``, ``(height, width)`` or
        ``(channels, height, width)``; ``(None, n_node_features)`` for graphs.
    kind : Kind, default=None
        Their kind; None infers it from their shape.
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
        check_component(augmentation, Augmentation, "compose", "augmentations")
    shape = tuple(sample_shape)
    kind = kind_of_shape(shape) if kind is None else kind
    for augmentation in augmentations:
        augmentation.check_kind(shape, kind)
    if convert is not None:
        augmentations = [augmentation.prepared(convert) for augmentation in augmentations]
    passes: list[Callable[..., Any]] = []
    steps = [step for augmentation in augmentations for step in augmentation.expand(shape)]
    for step in steps:
        if not isinstance(step, (GeometricAugmentation, ColorAugmentation)):
            is_users = isinstance(step, FunctionAugmentation) or not belongs_to_package(type(step))
            passes.append(partial(_drawn, step, is_users and kind.differs_in_length))
        elif not (passes and isinstance(passes[-1], _Fused) and passes[-1].absorb(step)):
            passes.append(_Fused(step))
    image_shape = kind.image_shape(shape) if kind.float_batches else None
    return Composition(passes, steps, kind.float_batches, image_shape)


# The number of samples, of copies of a sample, and of seeds.
_FEW = 8
# Views of the same samples that differ by less were drawn with the same random numbers.
_SAME = 1e-4


@guarded()
@validated(augmentation=Augmentation)
def check_augmentation(augmentation: Augmentation, X: Any) -> None:
    """Check that a custom augmentation draws independent random views, determined by the seed.

    Call this in a test of your class, or on a :class:`FunctionAugmentation`. ``fit`` only checks
    the type and the shape of views, and that they are finite.

    Parameters
    ----------
    augmentation : Augmentation
        Not modified; a clone is fitted to X.
    X : array-like of shape (n_samples, ...)
        Samples that differ from each other, such as the first 100 of a data set.

    Raises
    ------
    TypeError, ValueError
        If views have another type or shape than the samples, or are not finite; if the batch is
        changed in place; if the same seed draws different views; if
        all samples of a batch share their random numbers; if a view depends on other samples, as
        mixed samples do; or if views of images are far outside of [0, 1].

    See Also
    --------
    skcontrast.encoders.check_encoder : The same for an encoder.
    skcontrast.kinds.check_kind : The same for a kind of data.

    Examples
    --------
    >>> import numpy as np, torch
    >>> from skcontrast.augmentation import FunctionAugmentation, check_augmentation
    >>> X = np.random.default_rng(0).normal(size=(20, 3))
    >>> check_augmentation(FunctionAugmentation(lambda x: x + torch.randn(x.shape)), X)
    >>> check_augmentation(FunctionAugmentation(lambda x: x + torch.randn(1)), X)
    Traceback (most recent call last):
    ...
    ValueError: FunctionAugmentation(<lambda>) draws the same random numbers for all samples of...
    """
    hint = declared_kind(augmentation)
    X, schema = read_samples(base_of(X), hint=hint, estimator=augmentation, min_samples=2)
    fitted = clone(augmentation).fit_checked(representative_array(X), schema)
    _, scaler, batch = with_scaler(schema.kind, X)

    def convert(samples: Any) -> Any:
        return scaler.to_tensor(samples, torch.device("cpu"))

    shape = schema.sample_shape
    composed = compose([fitted], shape, kind=schema.kind, convert=convert)
    samples = compose([], shape, kind=schema.kind)(batch[torch.arange(len(batch))[:_FEW]])

    def draw(samples: Any, seed: int) -> Any:
        return composed(samples, torch.Generator().manual_seed(seed))

    name = getattr(augmentation, "_name", f"{type(augmentation).__name__}.augment")
    if isinstance(samples, Tensor):
        _check_views(name, draw, samples)
    else:
        draw(samples, 0)


def _check_views(name: str, draw: Callable[[Tensor, int], Tensor], samples: Tensor) -> None:
    """Raise ValueError unless the seed and each sample alone determine a view."""
    first, second = draw(samples, 0), draw(samples, 0)
    if not torch.allclose(first, second, _SAME, _SAME, equal_nan=True):
        raise ValueError(
            f"{name} returned two different views of the same samples for the same seed: it draws "
            "from its own generator or a global one, and random_state has no effect. "
            "Let it draw only from a parameter 'seed', 'rng' or 'generator'."
        )
    seeds = np.random.default_rng(0).integers(2**32, size=_FEW).tolist()
    some, copies = samples[torch.arange(_FEW) % len(samples)], samples[[0] * _FEW]
    of_some, of_copies = ([draw(batch, seed) for seed in seeds] for batch in (some, copies))
    are_alike = all(torch.equal(views, views[:1].expand_as(views)) for views in of_copies)
    if are_alike and not all(torch.equal(views, of_copies[0]) for views in of_copies):
        raise ValueError(
            f"{name} draws the same random numbers for all samples of a batch: write "
            "torch.rand(len(x), ...), or FunctionAugmentation(..., per_sample=True)."
        )
    first, copy = (torch.stack([v[0] for v in views]) for views in (of_some, of_copies))
    if not torch.allclose(first, copy, _SAME, _SAME, equal_nan=True):
        raise ValueError(
            f"{name} mixes samples: row i of its output must depend only on row i of the batch."
        )
