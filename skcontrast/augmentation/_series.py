"""Augmentations of series: in time and in magnitude."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from .._checks import FRACTION, NON_NEGATIVE, Pair, parameter
from .._runtime import guarded
from ._base import Augmentation, as_float, generator_for
from ._matrices import between, uniform

# Random knots of a smooth curve.
_N_KNOTS = 4


class SeriesAugmentation(Augmentation):
    """Base class of the augmentations of series, which keep their length."""

    kind = "series"

    @guarded(gradients=False)
    def augment(self, batch: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Return one view per series.

        Parameters
        ----------
        batch : Tensor of shape (n, n_channels, n_times)
            Series, padded with NaN.
        generator : torch.Generator, default=None
            Source of randomness, see the base class.

        Returns
        -------
        views : Tensor of shape (n, n_channels, n_times)
            NaN where `batch` is.
        """
        batch = as_float(batch)
        return self.view(batch, _Steps(batch), generator_for(batch, generator))

    def view(self, batch: Tensor, steps: _Steps, generator: torch.Generator) -> Tensor:
        """Return views of a floating batch."""
        raise NotImplementedError


class _Steps:
    """The steps of series of unequal lengths.

    Attributes
    ----------
    index : Tensor of shape (1, n_times)
        0, 1, 2, …
    last : Tensor of shape (n, 1)
        Index of the last step of each series.
    exist : Tensor of shape (n, n_times), bool
        Whether a step is before the end of its series.
    """

    def __init__(self, batch: Tensor):
        self.exist = ~batch[:, 0].isnan()
        self.last = (self.exist.sum(1, keepdim=True) - 1).clamp(min=0)
        self.index = torch.arange(batch.shape[2], device=batch.device)[None]

    @property
    def relative(self) -> Tensor:
        """Time from 0 at the first step of a series to 1 at its last, (n, n_times)."""
        return (self.index / self.last.clamp(min=1)).clamp(max=1)

    def at(self, batch: Tensor, positions: Tensor) -> Tensor:
        """Interpolate series linearly at positions (n, n_times) between 0 and the last step."""
        positions = positions.clamp(min=0).minimum(self.last)
        low = positions.floor().long()
        weight = (positions - low)[:, None].to(batch.dtype)
        high = (low + 1).minimum(self.last)
        low, high = (batch.gather(2, step[:, None].expand_as(batch)) for step in (low, high))
        return torch.where(self.exist[:, None], low + weight * (high - low), torch.nan)


def _curve(relative: Tensor, generator: torch.Generator) -> Tensor:
    """Return a smooth random curve for each series, (n, n_times).

    It interpolates four draws from the standard normal distribution, evenly spaced from the first
    step to the last, by half cosine waves.
    """
    knots = torch.randn(len(relative), _N_KNOTS, generator=generator, device=relative.device)
    position = relative * (_N_KNOTS - 1)
    low = position.floor().clamp(max=_N_KNOTS - 2)
    weight = 0.5 - 0.5 * torch.cos(math.pi * (position - low))
    start, end = (knots.gather(1, step.long()) for step in (low, low + 1))
    return start + weight * (end - start)


class TimeCrop(SeriesAugmentation):
    """Cut a random segment out of each series, and stretch it to the length of the series.

    The length of the segment is a uniform fraction of that of the series, its position is
    uniform, and values are interpolated linearly.

    Parameters
    ----------
    scale : tuple of two floats, default=(0.5, 1.0)
        Minimum and maximum length, in (0, 1], as a fraction of the series.

    See Also
    --------
    TimeMask : Hides a segment instead.
    TimeWarp : Changes the speed smoothly.

    Examples
    --------
    >>> import torch
    >>> from skcontrast.augmentation import TimeCrop
    >>> TimeCrop().augment(torch.randn(8, 3, 100)).shape
    torch.Size([8, 3, 100])
    """

    scale: tuple[float, float] = parameter([Pair(most=1)], default=(0.5, 1.0))

    def view(self, batch: Tensor, steps: _Steps, generator: torch.Generator) -> Tensor:
        """Return stretched crops."""
        u = uniform(len(batch), 2, generator)
        share = between(u[:, :1], self.scale)
        return steps.at(batch, ((1 - share) * u[:, 1:] + share * steps.relative) * steps.last)


class TimeWarp(SeriesAugmentation):
    """Change the speed of each series smoothly, and keep its length.

    The logarithm of the speed is a smooth random curve through four draws from a normal
    distribution with standard deviation `scale` [1]_.

    Parameters
    ----------
    scale : float, default=0.3
        Strength, at least 0.

    See Also
    --------
    TimeCrop : Stretches a segment uniformly.

    References
    ----------
    .. [1] T. T. Um et al., "Data Augmentation of Wearable Sensor Data for Parkinson's Disease
       Monitoring using Convolutional Neural Networks", ICMI 2017.

    Examples
    --------
    >>> import torch
    >>> from skcontrast.augmentation import TimeWarp
    >>> ramp = torch.arange(5.0).reshape(1, 1, 5)
    >>> view = TimeWarp().augment(ramp)
    >>> view[0, 0, 0], view[0, 0, -1], bool((view.diff() > 0).all())
    (tensor(0.), tensor(4.), True)
    """

    scale: float = parameter(NON_NEGATIVE, default=0.3)

    def view(self, batch: Tensor, steps: _Steps, generator: torch.Generator) -> Tensor:
        """Return warped series."""
        curve = self.scale * _curve(steps.relative, generator)
        speed = curve.clamp(-20, 20).exp() * steps.exist
        passed = speed.double().cumsum(1)
        passed = passed - passed[:, :1]
        total = passed[:, -1:]
        share = passed / torch.where(total > 0, total, 1.0)
        return steps.at(batch, (share * steps.last).to(batch.dtype))


class TimeMask(SeriesAugmentation):
    """Set a random segment of each series to 0, in all channels.

    0 is the mean of a channel in the training set if series are standardised, see
    :class:`skcontrast.kinds.Series`. The length and the position of the segment are uniform.

    Parameters
    ----------
    scale : float, default=0.2
        Maximum length, in [0, 1], as a fraction of the series.

    See Also
    --------
    TimeCrop : Keeps only a segment.

    Examples
    --------
    >>> import torch
    >>> from skcontrast.augmentation import TimeMask
    >>> views = TimeMask(scale=0.5).augment(torch.ones(100, 1, 40))
    >>> bool((views.sum(2) >= 20).all())
    True
    """

    scale: float = parameter(FRACTION, default=0.2)

    def view(self, batch: Tensor, steps: _Steps, generator: torch.Generator) -> Tensor:
        """Return series with a segment of zeros."""
        u = uniform(len(batch), 2, generator)
        n_times = steps.last + 1
        length = (u[:, :1] * ((self.scale * n_times).floor() + 1)).floor()
        start = ((n_times - length + 1) * u[:, 1:]).floor()
        is_hidden = (steps.index >= start) & (steps.index < start + length) & steps.exist
        return batch.masked_fill(is_hidden[:, None], 0.0)


class MagnitudeScale(SeriesAugmentation):
    """Multiply each channel of each series by a random factor.

    .. math:: \\tilde x_{ct} = (1 + \\mathrm{scale} \\cdot \\varepsilon_c)\\, x_{ct},
        \\qquad \\varepsilon_c \\sim \\mathcal{N}(0, 1)

    Parameters
    ----------
    scale : float, default=0.2
        Standard deviation of the factors, at least 0.

    See Also
    --------
    GaussianNoise : Adds noise to each step.

    Examples
    --------
    >>> import torch
    >>> from skcontrast.augmentation import MagnitudeScale
    >>> view = MagnitudeScale().augment(torch.tensor([[[1.0, 2.0, 4.0]]]))
    >>> torch.allclose(view / view[..., :1], torch.tensor([1.0, 2.0, 4.0]))
    True
    """

    scale: float = parameter(NON_NEGATIVE, default=0.2)

    def view(self, batch: Tensor, steps: _Steps, generator: torch.Generator) -> Tensor:
        """Return scaled series."""
        shape = (*batch.shape[:2], 1)
        noise = torch.randn(shape, generator=generator, dtype=batch.dtype, device=batch.device)
        return batch * (1 + self.scale * noise)
