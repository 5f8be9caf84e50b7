"""Augmentations of series: what each one changes, and what stays."""

import numpy as np
import pytest
import torch

from skcontrast.augmentation import (
    FunctionAugmentation,
    GaussianNoise,
    MagnitudeScale,
    TimeCrop,
    TimeMask,
    TimeWarp,
    compose,
)
from tests.augmentation.common import seeded

VIEWS = [TimeCrop(), TimeWarp(), TimeMask(0.5), MagnitudeScale(), GaussianNoise()]
LENGTHS = torch.tensor([40, 1, 2, 3, 17, 33, 40, 9])


def batch(n_times=40, lengths=LENGTHS, dtype=torch.float32):
    x = torch.randn(len(lengths), 6, n_times, generator=seeded(1), dtype=dtype).cumsum(2)
    return torch.where(torch.arange(n_times) < lengths[:, None, None], x, torch.nan)


def drawn(view, x, seed=0):
    return view.augment(x, seeded(seed))


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
def test_a_view_of_a_short_series_depends_on_its_own_length_alone(view):
    lengths = torch.full((20,), 17)
    short, longer = batch(17, lengths), batch(17, lengths)
    longer = torch.cat([longer, torch.full((20, 6, 23), torch.nan)], 2)
    if type(view) is GaussianNoise:  # which draws for every step
        return
    torch.testing.assert_close(drawn(view, longer)[:, :, :17], drawn(view, short))


@pytest.mark.parametrize(
    "view", [TimeCrop((1, 1)), TimeWarp(0), TimeMask(0), MagnitudeScale(0)], ids=repr
)
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


def test_the_logarithm_of_the_speed_of_a_warp_is_a_smooth_curve_of_the_given_scale():
    speed = drawn(TimeWarp(0.3), ramps(3000).double()).diff(dim=2).log()[:, 0]
    between_ends = speed[:, -1] - speed[:, 0]  # of two draws
    assert abs(between_ends.std() - 0.3 * 2**0.5) < 0.02
    assert speed.diff(dim=1).abs().max() < 0.3 * 8 * torch.pi / 2 * 3 / 49


def test_masks_hide_one_stretch_of_at_most_their_scale_in_all_channels():
    hidden = drawn(TimeMask(0.3), torch.ones(500, 2, 50)) == 0
    assert (hidden[:, 0] == hidden[:, 1]).all()
    counts = hidden[:, 0].sum(1)
    assert counts.unique().tolist() == list(range(16))
    assert ((hidden[:, 0].int().diff(dim=1) == 1).sum(1) <= 1).all()
    assert hidden[:, 0, 0].any() and hidden[:, 0, -1].any()


def test_magnitudes_have_one_factor_per_channel():
    factors = drawn(MagnitudeScale(0.3), torch.ones(4000, 2, 3))
    assert (factors == factors[:, :, :1]).all()
    assert abs(factors.mean() - 1) < 0.02 and abs(factors[:, :, 0].std() - 0.3) < 0.02


@pytest.mark.parametrize(("shape", "held"), [((8, 8), "images"), ((8,), "vectors")])
def test_samples_that_are_no_series_are_refused(shape, held):
    with pytest.raises(ValueError, match=f"TimeCrop expects series, X of shape .* got {held}"):
        compose([TimeCrop()], shape)


def test_functions_of_ones_own_draw_views_of_series():
    flip = FunctionAugmentation(torch.neg, kind="series")
    torch.testing.assert_close(compose([flip], (6, None))(batch()), -batch(), equal_nan=True)


def test_one_step_of_a_pipeline_declares_arrays_as_series_for_the_steps_after_it():
    X = np.zeros((20, 5, 9))
    with pytest.raises(ValueError, match="may hold grey images"):
        GaussianNoise().fit_transform(X)
    views = GaussianNoise().fit_transform(TimeCrop().fit_transform(X))
    assert [type(step) for step in views.chain] == [TimeCrop, GaussianNoise]
