"""Image augmentations that share one interpolation and one colour product."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..kinds._base import Kind
from ._base import Augmentation
from ._compose import compose
from ._matrices import after, apply, recolor, warp
from ._stage import Stage, check_batch


class GeometricAugmentation(Augmentation):
    """Base class of the augmentations that move pixels by one affine map per image."""

    kind = "images"

    padding: str | None = None
    """The padding outside the image; None for maps that stay inside."""

    def affine(
        self, n: int, shape: tuple[int, int], generator: torch.Generator, device: torch.device
    ) -> Tensor:
        """Draw the maps from output to input coordinates.

        Parameters
        ----------
        n : int
            Number of images.
        shape : tuple of int
            Height and width.
        generator : torch.Generator
            Source of randomness.
        device : torch.device
            Device of the maps.

        Returns
        -------
        maps : Tensor of shape (n, 2, 3)
        """
        raise NotImplementedError

    def augment(self, batch: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Return `batch` moved: a tensor of the same shape, see the base class."""
        check_batch(batch)
        return compose((self,), batch.shape[1:])(batch, generator)

    def stage(self) -> Stage:
        """Return the pass that this augmentation shares with its neighbours."""
        return _Fused(self)


class ColorAugmentation(Augmentation):
    """Base class of the augmentations that map the colours of an image affinely."""

    kind = "images"

    def color_matrix(self, mean: Tensor, n: int, generator: torch.Generator) -> Tensor:
        """Draw the colour maps.

        Parameters
        ----------
        mean : Tensor of shape (n, C)
            Mean colour of each image.
        n : int
            Number of images.
        generator : torch.Generator
            Source of randomness.

        Returns
        -------
        maps : Tensor of shape (n, C, C + 1)
        """
        raise NotImplementedError

    def augment(self, batch: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Return `batch` recoloured: a tensor of the same shape, see the base class."""
        check_batch(batch)
        return compose((self,), batch.shape[1:])(batch, generator)

    def check_kind(self, sample_shape: tuple, kind: Kind | None = None) -> None:
        """Raise ValueError unless samples are images with one or three channels."""
        super().check_kind(sample_shape, kind)
        channels = (1, *sample_shape)[-3]
        if channels not in (1, 3):
            raise ValueError(
                f"{type(self).__name__} expects images with 1 channel (grey) or 3 (red, green, "
                f"blue), got {channels} channels in X of shape "
                f"(n, {', '.join(map(str, sample_shape))})."
            )

    def stage(self) -> Stage:
        """Return the pass that this augmentation shares with its neighbours."""
        return _Fused(self)


class _Fused(Stage):
    """All movements of a run as one interpolation, then all recolourings as one product."""

    def __init__(self, augmentation: Augmentation):
        self.padding: str | None = None
        self.movements: list[GeometricAugmentation] = []
        self.recolorings: list[ColorAugmentation] = []
        self.absorb(augmentation)

    def absorb(self, augmentation: Augmentation) -> bool:
        if isinstance(augmentation, ColorAugmentation):
            self.recolorings.append(augmentation)
            return True
        if not isinstance(augmentation, GeometricAugmentation):
            return False
        if None not in (self.padding, augmentation.padding) and (
            self.padding != augmentation.padding
        ):
            return False
        self.padding = self.padding or augmentation.padding
        self.movements.append(augmentation)
        return True

    def __call__(self, batch: Tensor, generator: torch.Generator) -> Tensor:
        if self.movements:
            batch = warp(batch, self._affine(batch, generator), self.padding or "border")
        if self.recolorings:
            batch = recolor(batch, self._color_matrix(batch, generator))
        return batch

    def _affine(self, batch: Tensor, generator: torch.Generator) -> Any:
        n, _, height, width = batch.shape
        maps = None
        for movement in self.movements:
            drawn = movement.affine(n, (height, width), generator, batch.device)
            maps = drawn if maps is None else after(maps, drawn)
        return maps

    def _color_matrix(self, batch: Tensor, generator: torch.Generator) -> Any:
        mean = batch.mean(dim=(2, 3))
        maps = None
        for recoloring in self.recolorings:
            drawn = recoloring.color_matrix(mean, len(batch), generator)
            maps = drawn if maps is None else after(drawn, maps)
            mean = apply(drawn, mean)
        return maps


def check_pair(
    owner: Augmentation, name: str, *, least: float, most: float = float("inf")
) -> None:
    """Raise ValueError unless a parameter is a pair with ``least < low <= high <= most``.

    Parameters
    ----------
    owner : Augmentation
        Whose parameter it is.
    name : str
        Name of the parameter.
    least, most : float
        Bounds; `least` itself is excluded.
    """
    pair = getattr(owner, name)
    try:
        low, high = (float(value) for value in pair)
        valid = least < low <= high <= most and high < float("inf")
    except (TypeError, ValueError):
        valid = False
    if not valid:
        upper = "" if most == float("inf") else f" <= {most:g}"
        raise ValueError(
            f"The {name!r} parameter of {type(owner).__name__} must be a pair (low, high) with "
            f"{least:g} < low <= high{upper}, got {pair!r}."
        )
