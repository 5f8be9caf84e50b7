"""Fixed kernels: convolutions, shares above thresholds, dilations, channels, ends of series."""

from itertools import combinations, groupby

import numpy as np
import pytest
import torch
import torch.nn.functional as F

# private: layers against naive code
from skcontrast._layers._kernels import KernelLayer, _counted_times, convolutions, without_end
from tests.encoders.common import random_batch

WEIGHTS = np.full((84, 9), -1)
for row, twos in zip(WEIGHTS, combinations(range(9), 3), strict=True):
    row[list(twos)] = 2


def layer_of(x, n_features=504, seed=0):
    return KernelLayer.of(x, n_features, np.random.RandomState(seed))


def naive(layer, x):
    """Return the shares of one series (channels, times) with loops."""
    n_channels, n_times = x.shape
    x = np.vstack([x, np.zeros(n_times)]) if n_channels > 1 else x
    found, column = [], 0
    for place, (dilation, group) in enumerate(groupby(layer.dilations)):
        n_thresholds = len(list(group))
        for threshold in range(column, column + n_thresholds):
            for kernel in range(84):
                chosen = layer.channels[(kernel - place) % 84] if n_channels > 1 else [0]
                read = x[np.asarray(chosen)].sum(0)
                above = []
                for t in range(n_times):
                    at = t + dilation * np.arange(-4, 5)
                    is_inside = (at >= 0) & (at < n_times)
                    if (kernel + place) % 2 and not is_inside.all():
                        continue
                    total = (WEIGHTS[kernel] * is_inside * read[at.clip(0, n_times - 1)]).sum()
                    above.append(total > float(layer.thresholds[kernel, threshold]))
                found.append(np.mean(above) if above else 0.0)
        column += n_thresholds
    return np.array(found)


def convolved(x, dilation, times=None):
    twos, nine = convolutions(x, times, dilation)
    return twos - nine


@pytest.mark.parametrize("n_maps", [1, 84])
@pytest.mark.parametrize("dilation", [1, 2, 7, 40])
def test_convolutions_are_those_of_torch(dilation, n_maps):
    x = random_batch(3, (n_maps, 50))
    weights = torch.from_numpy(WEIGHTS)[:, None].float()
    every = {"padding": 4 * dilation, "dilation": dilation, "groups": 84}
    expected = F.conv1d(x.expand(-1, 84, -1), weights, **every)
    torch.testing.assert_close(convolved(x, dilation), expected, rtol=0, atol=1e-5)
    times = torch.tensor([[[0, 3, 4, 49]]]).expand(3, 1, -1)
    found = convolved(x, dilation, times)
    torch.testing.assert_close(found, expected[..., times[0, 0]], rtol=0, atol=1e-5)


def test_one_channel_has_the_bits_of_84_that_are_alike():
    x = random_batch(3, (1, 50))
    assert torch.equal(convolved(x, 3), convolved(x.repeat(1, 84, 1), 3))


def test_where_a_series_is_constant_nothing_is_found():
    x = random_batch(40, (1, 1)).expand(-1, 1, 30)
    for n_maps in (1, 84):
        assert not convolved(x.repeat(1, n_maps, 1), 2)[..., 8:-8].any()


@pytest.mark.parametrize("shape", [(1, 12), (4, 17), (2, 5), (12, 1)])
def test_a_feature_is_the_share_of_times_above_a_threshold(shape):
    x = torch.randint(-20, 20, (6, *shape), generator=torch.Generator().manual_seed(0)).float()
    layer = layer_of(x, 168)
    np.testing.assert_allclose(layer(x[:1])[0], naive(layer, x[0].numpy()), atol=1e-6)


def test_a_kernel_that_is_longer_than_a_series_has_no_share_inside_of_it():
    layer = layer_of(random_batch(9, (1, 200)))
    last = layer(random_batch(2, (1, 20)))[:, -84:]
    n_groups = len(set(layer.dilations))
    inside = (torch.arange(84) + n_groups - 1) % 2 == 1
    assert not last[:, inside].any() and last[:, ~inside].any()


@pytest.mark.parametrize("n_channels", [1, 3])
def test_a_series_has_the_same_bits_alone_and_among_longer_ones(n_channels):
    x = random_batch(40, (n_channels, 90)).round(decimals=1)  # numbers that occur again
    lengths = torch.arange(40) * 2 + 1
    for row, length in zip(x, lengths, strict=True):
        row[:, length:] = torch.nan
    layer = layer_of(x)
    together = layer(x)
    alone = torch.cat([layer(row[None, :, :n]) for row, n in zip(x, lengths, strict=True)])
    assert torch.equal(together, alone)
    assert torch.equal(layer(x[7:9]), together[7:9])


@pytest.mark.parametrize("n_times", [999, 1000, 1499, 1500, 20_011])
def test_of_a_long_series_some_500_to_1000_times_are_counted_one_in_each_stretch(n_times):
    mask = torch.ones(2, 1, n_times)
    mask[1, :, 700:] = 0
    times, exist = _counted_times(mask)
    if n_times < 1000:
        assert times is None and torch.equal(exist, mask > 0)
        return
    long, short = (row[there] for row, there in zip(times, exist, strict=True))
    assert short.tolist() == list(range(700))
    assert 500 <= len(long) < 1001
    stride = n_times // 500
    assert (long // stride).tolist() == list(range(len(long))) and long.max() < n_times
    assert len((long % stride).unique()) == stride


def test_shares_of_long_series_are_nearly_those_at_all_times(monkeypatch):
    steps, phase = torch.arange(5000.0), torch.arange(2.0)[:, None]
    x = torch.cat([torch.sin(2 * torch.pi * steps / 10 + phase), torch.sin(steps / 70 + phase)])
    x = x[:, None] + 0.1 * random_batch(4, (1, 5000))  # a tenth are counted: a wave's period
    layer = layer_of(x, 252)
    some = layer(x)
    monkeypatch.setattr("skcontrast._layers._kernels._LEAST_TIMES", 5000)
    difference = (layer(x) - some).abs()[:, :-84]  # the last are counted at 8 times alone
    assert difference.mean() < 0.01 and difference.max() < 0.1


@pytest.mark.parametrize("n_channels", [1, 3])
def test_a_long_series_has_the_same_bits_alone_and_among_others(n_channels):
    x = random_batch(5, (n_channels, 3000)).round(decimals=1)
    lengths = [3000, 2000, 1000, 999, 40]
    for row, length in zip(x, lengths, strict=True):
        row[:, length:] = torch.nan
    layer = layer_of(x, 168)
    together = layer(x)
    alone = torch.cat([layer(row[None, :, :n]) for row, n in zip(x, lengths, strict=True)])
    assert torch.equal(together, alone)
    assert torch.equal(layer(x[:1].repeat(9, 1, 1)), together[:1].repeat(9, 1))


def test_dilations_go_from_one_to_the_length_of_the_longest_series():
    x = random_batch(5, (1, 129))
    found = layer_of(x, 84 * 34).dilations
    assert len(found) == 34 and found == tuple(sorted(found))
    assert found[0] == 1 and found[-1] == 16
    x[:, :, 65:] = torch.nan
    assert layer_of(x).dilations[-1] == 8
    assert set(layer_of(random_batch(3, (2, 4))).dilations) == {1}


def test_thresholds_are_met_at_shares_that_are_spread_evenly():
    x = random_batch(60, (1, 50))
    shares = layer_of(x, 1008)(x).mean(0)
    found = torch.histc(shares, 10, 0, 1)
    assert (found > 50).all() and 0.45 < shares.mean() < 0.55


@pytest.mark.parametrize("n_channels", [1, 2, 5, 30])
def test_a_kernel_reads_up_to_nine_channels(n_channels):
    channels = layer_of(random_batch(4, (n_channels, 20))).channels
    sizes = (channels < n_channels).sum(1)
    assert sizes.min() == 1 and sizes.max() <= min(n_channels, 9)
    assert set(channels.flatten().tolist()) - {n_channels} == set(range(n_channels))
    for row in channels:
        own = row[row < n_channels]
        assert len(own.unique()) == len(own)


def test_what_is_behind_the_end_is_zero_and_masked():
    x = random_batch(2, (3, 6))
    x[1, :, 4:] = torch.nan
    found, mask = without_end(x)
    assert mask.tolist() == [[[1] * 6], [[1, 1, 1, 1, 0, 0]]]
    assert torch.equal(found[0], x[0]) and not found[1, :, 4:].any()
