"""Augmentations of series: what each one changes, and what stays."""

import numpy as np
import pytest
import torch

from skcontrast import ContrastiveEmbedder
from skcontrast.augmentation import (
    AxisRotation,
    ChannelDropout,
    FrequencyMask,
    FunctionAugmentation,
    GaussianNoise,
    MagnitudeScale,
    MagnitudeWarp,
    SegmentPermutation,
    TimeCrop,
    TimeMask,
    TimeWarp,
    compose,
)
from skcontrast.kinds import Series

VIEWS = [
    TimeCrop(),
    TimeWarp(),
    TimeMask(0.5),
    MagnitudeScale(),
    MagnitudeWarp(),
    SegmentPermutation(),
    FrequencyMask(0.5),
    ChannelDropout(0.5),
    AxisRotation(),
    GaussianNoise(),
]
LENGTHS = torch.tensor([40, 1, 2, 3, 17, 33, 40, 9])


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def batch(n_times=40, lengths=LENGTHS, dtype=torch.float32):
    x = torch.randn(len(lengths), 6, n_times, generator=generator(1), dtype=dtype).cumsum(2)
    return torch.where(torch.arange(n_times) < lengths[:, None, None], x, torch.nan)


def drawn(view, x, seed=0):
    return view.augment(x, generator(seed))


@pytest.mark.parametrize("view", VIEWS, ids=repr)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_ends_stay_ends(view, dtype):
    x = batch(dtype=dtype)
    before = x.clone()
    views = drawn(view, x)
    assert views.dtype == dtype and views.shape == x.shape
    torch.testing.assert_close(views.isnan(), x.isnan())
    torch.testing.assert_close(x, before, equal_nan=True)
    assert not torch.equal(views.nan_to_num(), x.nan_to_num())


@pytest.mark.parametrize("view", VIEWS, ids=repr)
def test_views_are_drawn_for_each_series_and_from_the_generator(view):
    x = batch()[:1].expand(30, -1, -1)
    views = drawn(view, x)
    torch.testing.assert_close(drawn(view, x), views)
    assert len(views.flatten(1).unique(dim=0)) > 15
    assert not torch.equal(drawn(view, x, seed=1), views)


@pytest.mark.parametrize("view", [v for v in VIEWS if type(v) is not FrequencyMask], ids=repr)
def test_a_view_of_a_short_series_depends_on_its_own_length_alone(view):
    lengths = torch.full((20,), 17)
    short, longer = batch(17, lengths), batch(17, lengths)
    longer = torch.cat([longer, torch.full((20, 6, 23), torch.nan)], 2)
    if type(view) is GaussianNoise:  # which draws for every step
        return
    torch.testing.assert_close(drawn(view, longer)[:, :, :17], drawn(view, short))


@pytest.mark.parametrize(
    "view",
    [
        TimeCrop((1, 1)), TimeWarp(0), TimeMask(0), MagnitudeScale(0), MagnitudeWarp(0),
        SegmentPermutation(1), FrequencyMask(0), ChannelDropout(0), AxisRotation(0),
    ],
    ids=repr,
)  # fmt: skip
def test_nothing_changes_at_strength_0(view):
    torch.testing.assert_close(drawn(view, batch()), batch(), atol=1e-5, rtol=0, equal_nan=True)


def ramps(n=200, n_times=50):
    return torch.arange(float(n_times)).expand(n, 1, n_times)


def test_crops_are_lines_of_a_line_inside_it():
    views = drawn(TimeCrop((0.5, 0.8)), ramps())
    share = (views[:, 0, -1] - views[:, 0, 0]) / 49
    assert 0.5 <= share.min() < 0.52 and 0.78 < share.max() <= 0.8
    assert views.min() >= 0 and views.max() <= 49
    torch.testing.assert_close(views.diff(dim=2), share[:, None, None].expand(-1, 1, 49))
    assert views[:, 0, 0].min() < 1 and views[:, 0, -1].max() > 48


def test_warps_go_on_from_the_first_step_to_the_last():
    views = drawn(TimeWarp(1.0), ramps())
    assert (views[:, 0, 0] == 0).all() and (views.diff(dim=2) > 0).all()
    torch.testing.assert_close(views[:, 0, -1], torch.full((200,), 49.0))
    assert views.diff(dim=2).amax(2).max() > 3


def test_masks_hide_one_stretch_of_at_most_their_scale_in_all_channels():
    hidden = drawn(TimeMask(0.3), torch.ones(500, 2, 50)) == 0
    assert (hidden[:, 0] == hidden[:, 1]).all()
    counts = hidden[:, 0].sum(1)
    assert counts.unique().tolist() == list(range(16))
    assert ((hidden[:, 0].int().diff(dim=1) == 1).sum(1) <= 1).all()
    assert hidden[:, 0, 0].any() and hidden[:, 0, -1].any()


def test_magnitudes_have_one_factor_per_channel_or_a_smooth_curve():
    factors = drawn(MagnitudeScale(0.3), torch.ones(4000, 2, 3))
    assert (factors == factors[:, :, :1]).all()
    assert abs(factors.mean() - 1) < 0.02 and abs(factors[:, :, 0].std() - 0.3) < 0.02
    curves = drawn(MagnitudeWarp(0.3), torch.ones(4000, 1, 31))[:, 0]
    assert abs(curves[:, ::10].std() - 0.3) < 0.02  # at the knots
    assert curves.diff(dim=1).abs().max() < 0.3 * 8 * torch.pi / 20


def test_permutations_keep_segments_together():
    views = drawn(SegmentPermutation(4), ramps())
    torch.testing.assert_close(views.sort(dim=2).values, ramps())
    breaks = (views.diff(dim=2) != 1).sum(2)
    assert breaks.max() == 3 and (views[:, 0, 0] > 0).any()


def test_masked_frequencies_are_a_band_and_means_stay():
    x = torch.randn(300, 2, 64, generator=generator(2))
    views = drawn(FrequencyMask(0.25), x)
    torch.testing.assert_close(views.mean(2), x.mean(2), atol=1e-5, rtol=0)
    ratio = torch.fft.rfft(views).abs() / torch.fft.rfft(x).abs()
    hidden = ratio[:, 0, 1:-1] < 1e-3
    assert ((ratio[:, :, 1:-1] < 1e-3) | (ratio[:, :, 1:-1] > 0.999)).all()
    assert 7 <= hidden.sum(1).max() <= 9
    assert ((hidden.int().diff(dim=1) == 1).sum(1) <= 1).all()


def test_one_channel_at_least_stays():
    kept = drawn(ChannelDropout(0.5), torch.ones(2000, 4, 3))[:, :, 0]
    assert kept.sum(1).min() == 1 and abs(kept.mean() - 0.5) < 0.04
    assert drawn(ChannelDropout(1.0), torch.ones(20, 4, 3))[:, :, 0].sum(1).unique() == 1


def test_rotations_keep_norms_and_turn_all_sensors_together():
    x = torch.randn(50, 3, 20, generator=generator(3))
    views = drawn(AxisRotation(180), torch.cat([x, x, x[:, :1]], 1)[:, :6])
    torch.testing.assert_close(views[:, :3].norm(dim=1), x.norm(dim=1))
    torch.testing.assert_close(views[:, :3], views[:, 3:])
    axes = torch.eye(3).expand(500, 3, 3)
    turned = drawn(AxisRotation(30), axes)
    torch.testing.assert_close(torch.linalg.det(turned), torch.ones(500))
    cos = (turned.diagonal(dim1=1, dim2=2).sum(1) - 1) / 2
    assert abs(torch.rad2deg(cos.min().arccos()) - 30) < 1
    some = drawn(AxisRotation(30, sensors=[[4, 0, 2]]), torch.ones(5, 5, 2))
    assert (some[:, [1, 3]] == 1).all() and (some[:, [0, 2, 4]] != 1).any()


def test_axes_are_turned_in_the_units_of_X():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3, 30)) * np.array([1, 20, 3])[:, None] + np.array([[0], [9], [-5]])
    (views,) = ContrastiveEmbedder(augmentation=AxisRotation(180)).views(X, n_views=1)
    assert np.abs(views - X).max() > 5
    np.testing.assert_allclose(np.linalg.norm(views, axis=1), np.linalg.norm(X, axis=1), rtol=1e-4)


@pytest.mark.parametrize(
    ("view", "shape", "message"),
    [
        (ChannelDropout(), (1, None), "ChannelDropout expects series of at least 2 channels"),
        (AxisRotation(), (4, None), r"expects series of 3, 6, 9, … channels, got 4"),
        (AxisRotation(sensors=[[0, 1]]), (3, None), "lists of three channels below 3"),
        (AxisRotation(sensors=[[0, 1, 3]]), (3, None), "lists of three channels below 3"),
        (AxisRotation(sensors=[[0, 1, 1]]), (3, None), "none of them twice"),
        (AxisRotation(sensors=[0, 1, 2]), (3, None), "lists of three channels below 3"),
        (TimeCrop(), (8, 8), "TimeCrop expects series, X of shape .* got images"),
        (TimeCrop(), (8,), "TimeCrop expects series, X of shape .* got vectors"),
    ],
)
def test_series_that_a_view_is_not_for_are_refused(view, shape, message):
    with pytest.raises(ValueError, match=message):
        compose([view], shape)


def test_a_batch_of_two_dimensions_is_refused():
    with pytest.raises(ValueError, match=r"batch must hold series, \(n, n_channels, n_times\)"):
        TimeCrop().augment(torch.zeros(3, 5))


def test_functions_of_ones_own_draw_views_of_series():
    flip = FunctionAugmentation(torch.neg, kind="series")
    torch.testing.assert_close(compose([flip], (6, None))(batch()), -batch(), equal_nan=True)


def test_one_step_of_a_pipeline_declares_square_arrays_as_series():
    views = TimeCrop().fit_transform(np.zeros((20, 8, 8)))
    assert isinstance(views.inputs[1].kind, Series)
