"""Augmentations of series: in time, in magnitude, in frequency and over channels."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .._checks import FRACTION, NON_NEGATIVE, POSITIVE_INT, Interval, Pair, parameter
from ..kinds._base import Kind
from ._base import Augmentation, as_float, changed, generator_for
from ._matrices import between, uniform

# Draws through which a smooth random curve goes.
_N_KNOTS = 4


class SeriesAugmentation(Augmentation):
    """Base class of the augmentations of series, which stay as long as they are."""

    kind = "series"

    def augment(self, batch: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Return one view per series.

        Parameters
        ----------
        batch : Tensor of shape (n, n_channels, n_times)
            Series; NaN follows the end of a series.
        generator : torch.Generator, default=None
            Source of randomness, see the base class.

        Returns
        -------
        views : Tensor of shape (n, n_channels, n_times)
            NaN where `batch` is.
        """
        batch = as_float(batch)
        if batch.ndim != 3:
            raise ValueError(
                f"batch must hold series, (n, n_channels, n_times), got {tuple(batch.shape)}."
            )
        return self.view(batch, _Steps(batch), generator_for(batch, generator))

    def view(self, batch: Tensor, steps: _Steps, generator: torch.Generator) -> Tensor:
        """Return views of a batch of floats whose steps are known."""
        raise NotImplementedError


class _Steps:
    """The steps of series of unequal lengths.

    Attributes
    ----------
    place : Tensor of shape (1, n_times)
        0, 1, 2, …
    last : Tensor of shape (n, 1)
        Place of the last step of each series.
    are_own : Tensor of shape (n, n_times), bool
        Which steps are before the end of their series.
    """

    def __init__(self, batch: Tensor):
        self.are_own = ~batch[:, 0].isnan()
        self.last = (self.are_own.sum(1, keepdim=True) - 1).clamp(min=0)
        self.place = torch.arange(batch.shape[2], device=batch.device)[None]

    @property
    def relative(self) -> Tensor:
        """Places from 0 at the first step of a series to 1 at its last, (n, n_times)."""
        return (self.place / self.last.clamp(min=1)).clamp(max=1)

    def only(self, batch: Tensor) -> Tensor:
        """Return a batch with NaN behind the ends."""
        return torch.where(self.are_own[:, None], batch, torch.nan)

    def at(self, batch: Tensor, places: Tensor) -> Tensor:
        """Return series at places (n, n_times) between 0 and the last step, linearly."""
        places = places.clamp(min=0).minimum(self.last)
        low = places.floor().long()
        weight = (places - low)[:, None].to(batch.dtype)
        high = (low + 1).minimum(self.last)
        low, high = (batch.gather(2, step[:, None].expand_as(batch)) for step in (low, high))
        return self.only(low + weight * (high - low))


def _curves(n: int, relative: Tensor, generator: torch.Generator) -> Tensor:
    """Return n smooth random curves for each series, (len(relative), n, n_times).

    Each goes through four draws from the standard normal distribution, evenly spaced from the
    first step to the last, on waves of half a cosine.
    """
    shape = (len(relative), n, _N_KNOTS)
    knots = torch.randn(shape, generator=generator, device=relative.device)
    place = relative * (_N_KNOTS - 1)
    low = place.floor().clamp(max=_N_KNOTS - 2)
    weight = (0.5 - 0.5 * torch.cos(math.pi * (place - low)))[:, None]
    places = [step.long()[:, None].expand(-1, n, -1) for step in (low, low + 1)]
    start, end = (knots.gather(2, step) for step in places)
    return start + weight * (end - start)


class TimeCrop(SeriesAugmentation):
    """Cut a random stretch out of each series, and stretch it to the length of the series.

    The length of the stretch is a uniform fraction of that of the series, its place is uniform,
    and values are interpolated linearly.

    Parameters
    ----------
    scale : tuple of two floats, default=(0.5, 1.0)
        Least and largest length, in (0, 1], as a fraction of the series.

    See Also
    --------
    TimeMask : Hides a stretch instead.
    TimeWarp : Goes through a series at changing speed.

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
        start = (1 - share) * u[:, 1:]
        return steps.at(batch, (start + share * steps.relative) * steps.last)


class TimeWarp(SeriesAugmentation):
    """Go through each series at a speed that changes smoothly, from its beginning to its end.

    The logarithm of the speed is a smooth random curve through four draws from a normal
    distribution with standard deviation `scale` [1]_.

    Parameters
    ----------
    scale : float, default=0.3
        Strength, at least 0.

    See Also
    --------
    TimeCrop : Goes through a stretch at constant speed.
    MagnitudeWarp : Changes the magnitude as smoothly.

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
        curves = _curves(1, steps.relative, generator)[:, 0]
        speed = (self.scale * curves).clamp(-20, 20).exp() * steps.are_own
        passed = speed.double().cumsum(1)
        passed = passed - passed[:, :1]
        whole = passed[:, -1:]
        share = passed / torch.where(whole > 0, whole, 1.0)
        return steps.at(batch, (share * steps.last).to(batch.dtype))


class TimeMask(SeriesAugmentation):
    """Set a random stretch of each series to 0, in all channels.

    0 is the mean of a channel in the training set if series are standardised, see
    :class:`skcontrast.kinds.Series`. The length of the stretch is uniform, and so is its place.

    Parameters
    ----------
    scale : float, default=0.2
        Largest length, in [0, 1], as a fraction of the series.

    See Also
    --------
    TimeCrop : Leaves out what is before and behind a stretch.
    ChannelDropout : Hides whole channels.

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
        """Return series with a stretch of zeros."""
        u = uniform(len(batch), 2, generator)
        n_times = steps.last + 1
        length = (u[:, :1] * ((self.scale * n_times).floor() + 1)).floor()
        start = ((n_times - length + 1) * u[:, 1:]).floor()
        is_hidden = (steps.place >= start) & (steps.place < start + length) & steps.are_own
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
    MagnitudeWarp : The factor changes over time.
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


class MagnitudeWarp(SeriesAugmentation):
    """Multiply each channel of each series by a smooth random curve around 1.

    Parameters
    ----------
    scale : float, default=0.2
        Standard deviation of the curves at their knots, at least 0.

    See Also
    --------
    MagnitudeScale : The factor is constant over time.
    TimeWarp : Changes the speed as smoothly.

    Examples
    --------
    >>> import torch
    >>> from skcontrast.augmentation import MagnitudeWarp
    >>> MagnitudeWarp().augment(torch.randn(8, 3, 100)).shape
    torch.Size([8, 3, 100])
    """

    scale: float = parameter(NON_NEGATIVE, default=0.2)

    def view(self, batch: Tensor, steps: _Steps, generator: torch.Generator) -> Tensor:
        """Return series times curves."""
        curves = _curves(batch.shape[1], steps.relative, generator)
        return batch * (1 + self.scale * curves.to(batch.dtype))


class SegmentPermutation(SeriesAugmentation):
    """Cut each series at random steps, and put the segments together in random order.

    Parameters
    ----------
    n_segments : int, default=4
        Number of segments, at least 1. Of a series with few steps, some may be empty.

    See Also
    --------
    TimeCrop : Keeps the order of time.

    Examples
    --------
    >>> import torch
    >>> from skcontrast.augmentation import SegmentPermutation
    >>> view = SegmentPermutation().augment(torch.arange(10.0).reshape(1, 1, 10))
    >>> view.sort().values
    tensor([[[0., 1., 2., 3., 4., 5., 6., 7., 8., 9.]]])
    """

    n_segments: int = parameter(POSITIVE_INT, default=4)

    def view(self, batch: Tensor, steps: _Steps, generator: torch.Generator) -> Tensor:
        """Return series whose segments are in random order."""
        n, _, n_times = batch.shape
        u = uniform(n, 2 * self.n_segments, generator)
        cuts = 1 + (u[:, : self.n_segments - 1] * steps.last).floor()
        segment = (steps.place[:, :, None] >= cuts[:, None]).sum(2)
        rank = u[:, self.n_segments :].argsort(1).gather(1, segment)
        # What follows the end stays behind it.
        order = (rank + self.n_segments * ~steps.are_own) * n_times + steps.place
        return batch.gather(2, order.argsort(1)[:, None].expand_as(batch))


class FrequencyMask(SeriesAugmentation):
    """Remove a random band of frequencies from each series, in all channels.

    Means of series of full length stay. The width of the band is uniform, and so is its place.

    Parameters
    ----------
    scale : float, default=0.2
        Largest width, in [0, 1], as a fraction of all frequencies, up to one half per step.

    See Also
    --------
    TimeMask : Hides a stretch of time.

    Examples
    --------
    >>> import torch
    >>> from skcontrast.augmentation import FrequencyMask
    >>> FrequencyMask().augment(torch.randn(8, 3, 100)).shape
    torch.Size([8, 3, 100])
    """

    scale: float = parameter(FRACTION, default=0.2)

    def view(self, batch: Tensor, steps: _Steps, generator: torch.Generator) -> Tensor:
        """Return series without a band of frequencies."""
        n_times = batch.shape[2]
        u = uniform(len(batch), 2, generator)
        width = u[:, :1] * self.scale
        low = (1 - width) * u[:, 1:]
        frequency = 2 * torch.fft.rfftfreq(n_times, device=batch.device)[None]
        is_hidden = (frequency > low) & (frequency <= low + width)
        known = torch.where(steps.are_own[:, None], batch, 0.0)
        mean = known.sum(2, keepdim=True) / (steps.last + 1)[:, None]
        spectrum = torch.fft.rfft(torch.where(steps.are_own[:, None], batch - mean, 0.0))
        kept = torch.fft.irfft(spectrum.masked_fill(is_hidden[:, None], 0.0), n=n_times)
        return steps.only(mean + kept)


class ChannelDropout(SeriesAugmentation):
    """Set random channels of each series to 0; one of them always stays.

    0 is the mean of a channel in the training set if series are standardised, see
    :class:`skcontrast.kinds.Series`.

    Parameters
    ----------
    rate : float, default=0.2
        Probability, in [0, 1], with which a channel is hidden.

    See Also
    --------
    TimeMask : Hides a stretch of all channels.
    AxisRotation : Mixes channels that are axes of one sensor.

    Examples
    --------
    >>> import torch
    >>> from skcontrast.augmentation import ChannelDropout
    >>> ChannelDropout(rate=1.0).augment(torch.ones(1, 3, 4)).sum()
    tensor(4.)
    """

    rate: float = parameter(FRACTION, default=0.2)

    def check_kind(self, sample_shape: tuple, kind: Kind | None = None) -> None:
        """Raise ValueError unless samples are series of several channels."""
        super().check_kind(sample_shape, kind)
        if sample_shape[0] < 2:
            raise ValueError("ChannelDropout expects series of at least 2 channels, got 1 in X.")

    def view(self, batch: Tensor, steps: _Steps, generator: torch.Generator) -> Tensor:
        """Return series with channels of zeros."""
        u = uniform(*batch.shape[:2], generator)
        is_hidden = (u < self.rate) & (u < u.amax(1, keepdim=True))
        return batch.masked_fill(is_hidden[:, :, None] & steps.are_own[:, None], 0.0)


class AxisRotation(SeriesAugmentation):
    """Turn the axes of sensors, three channels each, about a random axis by a random angle.

    All sensors of a series turn together, as those in one device do. Channels are turned in the
    units of X if an embedder scales them over the training set.

    Parameters
    ----------
    angle : float, default=30
        Largest angle in degrees, in [0, 180].
    sensors : list of lists of three ints, default=None
        The channels of each sensor; others stay. None takes all channels, three by three.

    See Also
    --------
    ChannelDropout : Hides channels.

    Examples
    --------
    >>> import torch
    >>> from skcontrast.augmentation import AxisRotation
    >>> acceleration = torch.randn(8, 3, 100)
    >>> views = AxisRotation(angle=180).augment(acceleration)
    >>> torch.allclose(views.norm(dim=1), acceleration.norm(dim=1), atol=1e-5)
    True
    """

    angle: float = parameter([Interval(Real, 0, 180, closed="both")], default=30)
    sensors: Sequence[Sequence[int]] | None = parameter([list, tuple, None], default=None)
    # What batches are of X, where that is one line per channel.
    _offset: Any = 0.0
    _slope: Any = 1.0

    def check_kind(self, sample_shape: tuple, kind: Kind | None = None) -> None:
        """Raise ValueError unless samples are series that have the channels of the sensors."""
        super().check_kind(sample_shape, kind)
        self._channels(sample_shape[0])

    def _channels(self, n_channels: int) -> list[list[int]]:
        """Return the channels of each sensor."""
        if self.sensors is None:
            if n_channels % 3:
                raise ValueError(
                    f"AxisRotation expects series of 3, 6, 9, … channels, got {n_channels} in X: "
                    "pass sensors=[[0, 1, 2]] with the channels that are axes of one sensor."
                )
            return [[k, k + 1, k + 2] for k in range(0, n_channels, 3)]
        sensors: list[Any] = [list(s) if np.iterable(s) else [s] for s in self.sensors]
        named = [channel for sensor in sensors for channel in sensor]
        are_places = all(isinstance(c, (int, np.integer)) and 0 <= c < n_channels for c in named)
        if not are_places or len(set(named)) < len(named) or {*map(len, sensors)} - {3}:
            raise ValueError(
                "The 'sensors' parameter of AxisRotation must be lists of three channels below "
                f"{n_channels}, none of them twice, got {self.sensors!r}."
            )
        return sensors

    def prepared(self, convert: Callable[[Any], Tensor]) -> Augmentation:
        """Return a copy that turns channels in the units of X."""
        n_channels = self._schema.sample_shape[0]
        at_0, at_1 = (convert(np.full((1, n_channels, 1), value))[0] for value in (0.0, 1.0))
        slope = at_1 - at_0
        if not (slope.isfinite().all() and (slope != 0).all()):
            return self
        return changed(self, _offset=at_0, _slope=slope)

    def view(self, batch: Tensor, steps: _Steps, generator: torch.Generator) -> Tensor:
        """Return turned series."""
        n, n_channels, _ = batch.shape
        turn = self._rotations(n, generator).to(batch.dtype)
        views = (batch - self._offset) / self._slope
        for sensor in self._channels(n_channels):
            views[:, sensor] = turn @ views[:, sensor]
        return views * self._slope + self._offset

    def _rotations(self, n: int, generator: torch.Generator) -> Tensor:
        """Draw n rotations, (n, 3, 3), by the formula of Rodrigues."""
        axis = torch.randn(n, 3, generator=generator, device=generator.device)
        x, y, z = (axis / axis.norm(dim=1, keepdim=True).clamp(min=1e-12)).unbind(1)
        u = uniform(n, 1, generator)[:, 0]
        angle = (2 * u - 1) * math.radians(self.angle)
        zero = torch.zeros_like(x)
        cross = torch.stack([zero, -z, y, z, zero, -x, -y, x, zero], 1).reshape(n, 3, 3)
        sin, cos = angle.sin()[:, None, None], angle.cos()[:, None, None]
        return torch.eye(3, device=generator.device) + sin * cross + (1 - cos) * (cross @ cross)
