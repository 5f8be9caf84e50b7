"""Random convolutions of series, counted above thresholds."""

from __future__ import annotations

from numbers import Integral

import numpy as np
from torch import Tensor, nn

from .._checks import Interval, parameter
from .._layers._kernels import N_KERNELS, KernelLayer
from ._base import Features


class MiniRocket(Features):
    r"""Convolve series with fixed kernels, and count how often the result exceeds a threshold.

    The features of [1]_. There are 84 kernels w of length 9, whose weights are 2 three times and
    -1 six times. Each is spread over a series by several dilations d, from 1 to that at which it
    is as long as the longest training series, and has several thresholds b: quantiles of its
    convolution with a training series drawn at random. A feature is the share of times at which

    .. math:: \sum_{j=-4}^{4} w_j\, x_{t + jd} > b.

    Every second convolution sees zeros before and after the series, the others are counted only
    where the kernel is inside of it; where it is longer than a series, the feature is 0. Times
    behind the end of a shorter series do not count. Of several channels, a kernel reads the sum of
    a few, drawn at random, as in the multivariate form of the authors. Of a series of 1,000 times
    or more, some 500 to 1,000 are counted, spread evenly, so that features of 5,000 times cost
    little more than those of 500. With a linear classifier after it, it is level with far larger
    methods on most small sets of series.

    Parameters
    ----------
    n_features : int, default=2016
        Number of features, at least 84, rounded down to a multiple of 84.
    random_state : int, RandomState instance or None, default=None
        Seeds the choice of channels and of the series that give the thresholds.

    Attributes
    ----------
    module_ : torch.nn.Module
        The map from series to features.

    See Also
    --------
    skcontrast.encoders.SeriesNet : Learns, and has these features beside it.

    References
    ----------
    .. [1] A. Dempster, D. F. Schmidt, G. I. Webb, "MiniRocket: A Very Fast (Almost) Deterministic
       Transform for Time Series Classification", KDD 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from skcontrast.features import MiniRocket
    >>> X = np.random.default_rng(0).normal(size=(20, 3, 100))  # 3 channels, 100 times
    >>> MiniRocket(random_state=0).fit_transform(X).shape
    (20, 2016)
    """

    kind = "series"
    n_features: int = parameter([Interval(Integral, N_KERNELS, None, closed="left")], default=2016)
    random_state: int | np.random.RandomState | None = parameter(["random_state"], default=None)

    def learn(self, batch: Tensor, rng: np.random.RandomState) -> nn.Module:
        """Return kernels with their thresholds as a module; see `Features.learn`."""
        return KernelLayer.of(batch, self.n_features, rng)
