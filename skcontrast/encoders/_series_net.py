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
# The minimum length of a series that is shortened, and the minimum number of its segments.
_LONG, _LEAST_SEGMENTS = 1000, 250


class SeriesNet(Encoder):
    """A dilated residual convolutional network: the default encoder of series.

    Each block is a convolution with a kernel of 5, batch normalisation, a linear shortcut and a
    ReLU. Each halves the number of steps, the first by its stride, the others by a max-pooling,
    and the dilation doubles from block to block. So the receptive field is about 170 steps for
    three blocks, and grows by a factor of 4 with each further one [1]_. The maps of all blocks are
    averaged over the cells of a grid, from the start to the end of each series, and concatenated
    with their maxima. Padding is masked everywhere. A series of 1,000 steps or more is divided
    into 250 to 500 segments of equal length, which become means and standard deviations in
    alternation, so that a training step takes no longer than for 1,000 steps.

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
            Width of a last linear layer. With None there is no such layer, and the width is the
            sum of `widths` times ``pool_size + 1``.

        Returns
        -------
        module : torch.nn.Module
            Maps a float32 batch (n, channels, times), padded with NaN, to a batch
            (n, n_components).

        Raises
        ------
        ValueError
            If a hyperparameter is outside its range, or the samples are not series.
        """
        check_build(self, sample_shape, n_components)
        sizes = enumerate(pairwise([sample_shape[0], *self.widths]))
        blocks = [_SeriesBlock(channels, width, k) for k, (channels, width) in sizes]
        learned_width = sum(self.widths) * (self.pool_size + 1)
        return _SeriesNetwork(blocks, self.pool_size, last_layer(learned_width, n_components))


class _SeriesNetwork(nn.Module):
    """The blocks and their read-out."""

    def __init__(self, blocks: Sequence[_SeriesBlock], pool_size: int, last: nn.Module):
        super().__init__()
        self.pool_size = pool_size
        self.blocks, self.last = nn.ModuleList(blocks), last

    def forward(self, x: Tensor) -> Tensor:
        x, mask = shortened(*without_end(x))
        # Training is faster without masks.
        is_full = self.training and bool(mask.all())
        groups = of_like_length(mask)
        maps, masks = ([tensor[rows] for rows in groups] for tensor in (x, mask))
        masks = [masks[0][:1]] if is_full else masks
        outputs: list[list[Tensor]] = [[] for _ in groups]
        for k, block in enumerate(self.blocks):
            # Two-dimensional pooling can be exported for any length.
            masks = [F.max_pool2d(mask, (1, 2), ceil_mode=True) for mask in masks]
            if k:  # padding is 0, and maps are at least 0
                maps = [F.max_pool2d(h, (1, 2), ceil_mode=True) for h in maps]
            maps = block(maps, None if is_full else masks)
            for of_group, h, mask in zip(outputs, maps, masks, strict=True):
                cells = _cells(mask, self.pool_size)
                # One matrix product if all series have the same length.
                of_group += [(h @ (cells[0] if is_full else cells)).flatten(1), h.amax(-1)]
        return self.last(in_order([torch.cat(of_group, 1) for of_group in outputs], groups))


def shortened(x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Return long series as means and deviations of segments, in alternation; others unchanged.

    The length of the segments only depends on the length of the series.

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
    size = torch.where(lengths < _LONG, 1, lengths // _LEAST_SEGMENTS)
    index = torch.arange(x.shape[-1], device=x.device)
    first = (index // 2 * size).minimum(lengths)
    last = (first + size).minimum(lengths)
    at = [edge.expand(-1, x.shape[1], -1) for edge in (first, last)]

    def mean(values: Tensor) -> Tensor:
        sums = F.pad(values.cumsum(-1), (1, 0))
        return (sums.gather(2, at[1]) - sums.gather(2, at[0])) / (last - first).clamp(min=1)

    means, squares = mean(x.double()), mean(x.double().square())
    exists = last > first
    deviations = (squares - means.square()).clamp(min=_TINY).sqrt() * exists
    both = torch.where(index % 2 == 0, means, deviations).to(x.dtype)
    # Not `where`, which ONNX Runtime lacks for three booleans.
    is_long = size > 1
    mask = ((is_long & exists) | (~is_long & (index < lengths))).to(x.dtype)
    x = torch.where(is_long, both, x)
    n_times = x.shape[-1] if is_traced(x) else int(mask.sum(-1).max())
    return x[..., :n_times], mask[..., :n_times]


class _SeriesBlock(nn.Module):
    """A dilated convolution, batch normalisation and, except in the first, a linear shortcut."""

    def __init__(self, channels: int, width: int, index: int):
        super().__init__()
        stride, dilation = 1 if index else _FIRST_STRIDE, 2**index
        padding = _SIZE // 2 * dilation
        convolution = nn.Conv1d(channels, width, _SIZE, stride, padding, dilation, bias=False)
        self.convolution: nn.Module = init_kaiming(convolution)
        self.normal = nn.BatchNorm1d(width)
        self.short_cut: nn.Module | None = None
        if index:
            self.short_cut = init_kaiming(nn.Conv1d(channels, width, 1, bias=False))

    def forward(self, maps: list[Tensor], masks: list[Tensor] | None) -> list[Tensor]:
        """Map (n, channels, times) to (n, width, times), at least 0, and 0 where the mask is.

        Groups of a batch have maps of their own length, and are normalised together.
        """
        outputs = self._normalised([self.convolution(x) for x in maps], masks)
        if self.short_cut is not None:
            short_cut = self.short_cut
            outputs = [h + short_cut(x) for h, x in zip(outputs, maps, strict=True)]
        outputs = [h.relu() for h in outputs]
        if masks is None:
            return outputs
        return [h * mask for h, mask in zip(outputs, masks, strict=True)]

    def _normalised(self, maps: list[Tensor], masks: list[Tensor] | None) -> list[Tensor]:
        """Return maps normalised over the batch, without padding."""
        if masks is None or not self.training:
            return [self.normal(x) for x in maps]
        masks_1d, rows = [m[:, 0] > 0 for m in masks], [x.transpose(1, 2) for x in maps]
        pairs = list(zip(rows, masks_1d, strict=True))
        normal = self.normal(torch.cat([x[mask] for x, mask in pairs]))
        groups = normal.split([int(mask.sum()) for mask in masks_1d])
        return [
            normal.new_zeros(x.shape).index_put((mask,), group).transpose(1, 2)
            for (x, mask), group in zip(pairs, groups, strict=True)
        ]


def _cells(mask: Tensor, n_cells: int) -> Tensor:
    """Return weights (n, times, n_cells) that average each series over cells of equal length.

    A step that two cells share counts for each by its fraction.
    """
    lengths = mask.sum(-1, keepdim=True)  # (n, 1, 1)
    first = torch.arange(mask.shape[-1], device=mask.device, dtype=mask.dtype)[:, None]
    cell = torch.arange(n_cells, device=mask.device, dtype=mask.dtype)
    size = lengths / n_cells
    shared = torch.minimum(first + 1, (cell + 1) * size) - torch.maximum(first, cell * size)
    return shared.clamp(min=0) / size
