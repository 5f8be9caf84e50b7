"""Fixed kernels: convolutions, shares above thresholds, dilations, channels, ends of series."""

from itertools import groupby

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from skcontrast._layers._kernels import KernelLayer, kernels, without_end
from tests.encoders.common import random_batch, same_state


def layer_of(x, n_features=504, seed=0):
    return KernelLayer.of(x, n_features, np.random.RandomState(seed))


def naive(layer, x):
    """Return the shares of one series (channels, times) with loops."""
    n_channels, n_times = x.shape
    x = np.vstack([x, np.zeros(n_times)]) if n_channels > 1 else x
    weights, found, column = kernels().numpy().astype(int), [], 0
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
                    total = (weights[kernel] * is_inside * read[at.clip(0, n_times - 1)]).sum()
                    above.append(total > float(layer.thresholds[kernel, threshold]))
                found.append(np.mean(above) if above else 0.0)
        column += n_thresholds
    return np.array(found)


def test_the_kernels_are_all_that_are_2_three_times_and_minus_1_six_times():
    found = kernels()
    assert found.shape == (84, 9) and len(found.unique(dim=0)) == 84
    assert ((found == 2).sum(1) == 3).all() and ((found == -1).sum(1) == 6).all()


@pytest.mark.parametrize("n_maps", [1, 84])
@pytest.mark.parametrize("dilation", [1, 2, 7, 40])
def test_convolutions_are_those_of_torch(dilation, n_maps):
    x = random_batch(3, (n_maps, 50))
    expected = F.conv1d(
        x.expand(-1, 84, -1),
        kernels()[:, None],
        padding=4 * dilation,
        dilation=dilation,
        groups=84,
    )
    found = layer_of(random_batch(3, (2, 50))).convolved(x, dilation)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


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


def test_the_seed_decides():
    x = random_batch(20, (3, 40))
    assert same_state(layer_of(x), layer_of(x))
    assert not same_state(layer_of(x), layer_of(x, seed=1))


def test_constant_series_have_finite_shares():
    x = torch.ones(5, 2, 30)
    assert layer_of(x)(x).isfinite().all()
    assert layer_of(x)(random_batch(5, (2, 30))).isfinite().all()


def test_a_dilation_that_no_series_needs_is_refused():
    layer = layer_of(random_batch(4, (1, 20)))
    layer.dilations = (10**9, *layer.dilations[1:])
    with pytest.raises(ValueError, match="Dilations must be at most 4096, got 1000000000"):
        layer(random_batch(4, (1, 20)))


def test_what_is_behind_the_end_is_zero_and_masked():
    x = random_batch(2, (3, 6))
    x[1, :, 4:] = torch.nan
    found, mask = without_end(x)
    assert mask.tolist() == [[[1] * 6], [[1, 1, 1, 1, 0, 0]]]
    assert torch.equal(found[0], x[0]) and not found[1, :, 4:].any()
