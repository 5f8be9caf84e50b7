"""The convolutional network of series, of any length."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .._checks import POSITIVE_INT, parameter
from .._layers._kernels import in_order, is_traced, of_like_length, without_end
from ._base import LAYER_WIDTHS, Encoder, check_build, init_kaiming, last_layer

_SIZE, _FIRST_STRIDE = 5, 2
_TINY = 1e-12  # a variance, so that its root has a gradient
# The least number of times of a series that is read in stretches, and of these.
_LONG, _LEAST_STRETCHES = 1000, 250


class SeriesNet(Encoder):
    """A dilated residual convolutional network: the default encoder of series.

    Each block is a convolution with a kernel of 5, normalised over the batch, to which a linear
    map of what the block got is added, and rectified. Each halves the number of times, the first
    by its stride, the others by a max-pooling before them, and from block to block the dilation
    doubles, so that three blocks see some 170 times at once, and each further one four times as
    many [1]_. The maps of all blocks are averaged over the cells of a grid, from the beginning to
    the end of each series, of any length, and concatenated with their greatest values. Times
    behind the end of a series count nowhere. A series of 1,000 times or more is read in 250 to
    500 stretches of one length, as their means and standard deviations in turn, so that a step
    costs no more than for 1,000 times: the first convolution finds means at its even places and
    deviations, which tell what changes faster, at its odd ones.

    Parameters
    ----------
    widths : tuple of int, default=(32, 64, 128)
        Number of channels of each block, one block or more.
    pool_size : int, default=4
        Cells of the grid.

    See Also
    --------
    skcontrast.features.MiniRocket : Fixed kernels, training-free.

    References
    ----------
    .. [1] S. Bai, J. Z. Kolter, V. Koltun, "An Empirical Evaluation of Generic Convolutional and
       Recurrent Networks for Sequence Modeling", 2018.

    Examples
    --------
    >>> import torch
    >>> from skcontrast.encoders import SeriesNet
    >>> network = SeriesNet(widths=(8, 16)).build((3, None))
    >>> network(torch.zeros(2, 3, 50)).shape, network(torch.zeros(2, 3, 70)).shape
    (torch.Size([2, 120]), torch.Size([2, 120]))
    """

    kind = "series"
    widths: Sequence[int] = parameter([LAYER_WIDTHS], default=(32, 64, 128))
    pool_size: int = parameter(POSITIVE_INT, default=4)

    def build(self, sample_shape: tuple, n_components: int | None = None) -> nn.Module:
        """Return a new network for series of shape `sample_shape`.

        The weights are drawn from torch's global random state.

        Parameters
        ----------
        sample_shape : tuple
            ``(channels, None)``: series of any length.
        n_components : int or None, default=None
            Width of the representation, which a last linear layer gives. None leaves this layer
            out; the width is then the sum of `widths` times ``pool_size + 1``.

        Returns
        -------
        module : torch.nn.Module
            Maps a float32 batch (n, channels, times), NaN behind the end of a series, to a batch
            (n, n_components).

        Raises
        ------
        ValueError
            If a hyperparameter is outside its range, or the samples are not series.
        """
        check_build(self, sample_shape, n_components)
        sizes = enumerate(pairwise([sample_shape[0], *self.widths]))
        blocks = [_SeriesBlock(channels, width, place) for place, (channels, width) in sizes]
        learned_width = sum(self.widths) * (self.pool_size + 1)
        return _SeriesNetwork(blocks, self.pool_size, last_layer(learned_width, n_components))


class _SeriesNetwork(nn.Module):
    """The blocks, and what is read out of them."""

    def __init__(self, blocks: Sequence[_SeriesBlock], pool_size: int, last: nn.Module):
        super().__init__()
        self.pool_size = pool_size
        self.blocks, self.last = nn.ModuleList(blocks), last

    def forward(self, x: Tensor) -> Tensor:
        whole, mask = shortened(*without_end(x))
        # Training is faster where nothing is masked.
        is_full = self.training and bool(mask.all())
        parts = of_like_length(mask)
        maps, masks = ([tensor[part] for part in parts] for tensor in (whole, mask))
        masks = [masks[0][:1]] if is_full else masks
        found: list[list[Tensor]] = [[] for _ in parts]
        for place, block in enumerate(self.blocks):
            # In two dimensions, whose length an exported network leaves open.
            masks = [F.max_pool2d(mask, (1, 2), ceil_mode=True) for mask in masks]
            if place:  # maps are at least 0, as they are behind the end of a series
                maps = [F.max_pool2d(h, (1, 2), ceil_mode=True) for h in maps]
            maps = block(maps, None if is_full else masks)
            for of_part, h, mask in zip(found, maps, masks, strict=True):
                cells = _cells(mask, self.pool_size)
                # One product of matrices for all series, where they are equally long.
                of_part += [(h @ (cells[0] if is_full else cells)).flatten(1), h.amax(-1)]
        return self.last(in_order([torch.cat(of_part, 1) for of_part in found], parts))


def shortened(x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Return long series as means and deviations of stretches, in turn, and others as they are.

    The length of the stretches depends on that of the series alone.

    Parameters
    ----------
    x : Tensor of shape (n, channels, times)
        Series, 0 where the mask is.
    mask : Tensor of shape (n, 1, times)
        1 up to the end of a series, then 0.

    Returns
    -------
    x : Tensor of shape (n, channels, m)
    mask : Tensor of shape (n, 1, m)
    """
    if not is_traced(x) and x.shape[-1] < _LONG:
        return x, mask
    lengths = mask.sum(-1, keepdim=True).long()
    size = torch.where(lengths < _LONG, 1, lengths // _LEAST_STRETCHES)
    place = torch.arange(x.shape[-1], device=x.device)
    first = (place // 2 * size).minimum(lengths)
    last = (first + size).minimum(lengths)
    at = [edge.expand(-1, x.shape[1], -1) for edge in (first, last)]

    def mean(values: Tensor) -> Tensor:
        sums = F.pad(values.cumsum(-1), (1, 0))
        return (sums.gather(2, at[1]) - sums.gather(2, at[0])) / (last - first).clamp(min=1)

    means, squares = mean(x.double()), mean(x.double().square())
    is_there = last > first
    deviations = (squares - means.square()).clamp(min=_TINY).sqrt() * is_there
    both = torch.where(place % 2 == 0, means, deviations).to(x.dtype)
    # Not `where`, which ONNX Runtime does not have for three booleans.
    is_long = size > 1
    mask = ((is_long & is_there) | (~is_long & (place < lengths))).to(x.dtype)
    x = torch.where(is_long, both, x)
    n_times = x.shape[-1] if is_traced(x) else int(mask.sum(-1).max())
    return x[..., :n_times], mask[..., :n_times]


class _SeriesBlock(nn.Module):
    """A dilated convolution, normalised, and a linear map of what it got; the first has none."""

    def __init__(self, channels: int, width: int, place: int):
        super().__init__()
        stride, dilation = 1 if place else _FIRST_STRIDE, 2**place
        padding = _SIZE // 2 * dilation
        convolution = nn.Conv1d(channels, width, _SIZE, stride, padding, dilation, bias=False)
        self.convolution: nn.Module = init_kaiming(convolution)
        self.normal = nn.BatchNorm1d(width)
        self.short_cut: nn.Module | None = None
        if place:
            self.short_cut = init_kaiming(nn.Conv1d(channels, width, 1, bias=False))

    def forward(self, maps: list[Tensor], masks: list[Tensor] | None) -> list[Tensor]:
        """Map (n, channels, times) to (n, width, times), at least 0, and 0 where the mask is.

        Each for the parts of a batch, which are normalised together.
        """
        found = self._normalised([self.convolution(x) for x in maps], masks)
        if self.short_cut is not None:
            short_cut = self.short_cut
            found = [h + short_cut(x) for h, x in zip(found, maps, strict=True)]
        found = [h.relu() for h in found]
        if masks is None:
            return found
        return [h * mask for h, mask in zip(found, masks, strict=True)]

    def _normalised(self, maps: list[Tensor], masks: list[Tensor] | None) -> list[Tensor]:
        """Return maps normalised over the times of the batch at which series are."""
        if masks is None or not self.training:
            return [self.normal(x) for x in maps]
        are_there, rows = [m[:, 0] > 0 for m in masks], [x.transpose(1, 2) for x in maps]
        pairs = list(zip(rows, are_there, strict=True))
        normal = self.normal(torch.cat([x[is_there] for x, is_there in pairs]))
        parts = normal.split([int(is_there.sum()) for is_there in are_there])
        return [
            normal.new_zeros(x.shape).index_put((is_there,), part).transpose(1, 2)
            for (x, is_there), part in zip(pairs, parts, strict=True)
        ]


def _cells(mask: Tensor, n_cells: int) -> Tensor:
    """Return weights (n, times, n_cells) that average each series over cells of equal length.

    A time that two cells share counts for each by its part in it.
    """
    lengths = mask.sum(-1, keepdim=True)  # (n, 1, 1)
    first = torch.arange(mask.shape[-1], device=mask.device, dtype=mask.dtype)[:, None]
    cell = torch.arange(n_cells, device=mask.device, dtype=mask.dtype)
    size = lengths / n_cells
    shared = torch.minimum(first + 1, (cell + 1) * size) - torch.maximum(first, cell * size)
    return shared.clamp(min=0) / size
