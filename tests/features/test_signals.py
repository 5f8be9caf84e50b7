"""OrientedGradients, PatchDictionary and MiniRocket: edges, codes of patches, shares."""

import numpy as np
import pytest
import torch

from skcontrast.features import MiniRocket, OrientedGradients, PatchDictionary
from skcontrast.features._signals import GradientLayer  # private: the layer against naive code
from tests.common import images

SCALED = torch.from_numpy(images(20, side=16).astype(np.float32) / 255)


def layer(n_orientations=8):
    return GradientLayer((16, 16), 4, n_orientations)


def test_a_negative_has_the_same_edges():
    assert torch.allclose(layer()(-SCALED), layer()(SCALED), atol=1e-5)


def test_a_turned_image_has_turned_cells_and_directions():
    turned = layer()(SCALED.rot90(1, (2, 3)))
    assert torch.allclose(turned, layer()(SCALED).rot90(1, (2, 3)).roll(4, 1), atol=1e-5)


def test_twice_the_contrast_hardly_matters():
    strong = 10 * SCALED
    assert torch.allclose(layer()(2 * strong), layer()(strong), atol=0.02)


def test_an_upright_edge_has_the_first_direction_alone():
    edge = torch.zeros(1, 3, 16, 16)
    edge[:, 1, :, 6:] = 1  # in one of three channels
    found = layer()(edge)[0]
    assert (found[0, :, 1] > 0.5).all() and not found[1:].any()
    assert not found[:, :, [0, 2, 3]].any()


def test_an_even_image_has_no_edges():
    assert not layer()(torch.full((2, 3, 16, 16), 0.7)).any()


@pytest.mark.parametrize(
    "shape, width", [((8, 8), 36), ((3, 8, 8), 36), ((1, 9, 14), 54), ((3, 2, 3), 9)]
)
def test_each_cell_has_nine_directions(shape, width):
    pixels = np.random.default_rng(0).uniform(size=(12, *shape))
    assert OrientedGradients().fit_transform(pixels).shape == (12, width)


@pytest.mark.parametrize(
    "shape, n_cells", [((63, 63), 81), ((32, 288), 64), ((230, 40), 64), ((4, 900), 64)]
)
def test_elongated_images_have_no_more_cells_than_square_ones(shape, n_cells):
    pixels = np.random.default_rng(0).uniform(size=(2, 1, *shape))
    assert OrientedGradients().fit_transform(pixels).shape == (2, 9 * n_cells)
    squares = (shape[0] // 4) * (shape[1] // 4)
    assert OrientedGradients(cell_size=4).fit_transform(pixels).shape == (2, 9 * squares)


X = images(20, side=8)


def small(**kwargs):
    defaults = {"n_patches": 6, "patch_size": 3, "random_state": 0}
    return PatchDictionary(**{**defaults, **kwargs})


def test_a_feature_is_the_mean_of_a_code_over_a_cell():
    features = small(grid=2).fit(X)
    first, (layer, *_) = features.module_
    codes = layer(first(torch.from_numpy(X)))
    assert codes.shape == (20, 6, 6, 6)
    halves = slice(3), slice(3, 6)
    cells = [codes[..., rows, columns] for rows in halves for columns in halves]
    expected = torch.stack([cell.mean((2, 3)) for cell in cells], 2).flatten(1)
    np.testing.assert_allclose(features.transform(X), expected, atol=1e-5)


@pytest.mark.parametrize(
    "shape, kwargs, width",
    [
        ((3, 8, 8), {}, 6 * 4),
        ((8, 8), {"grid": 1}, 6),
        ((1, 8, 8), {"grid": 3}, 6 * 9),
        ((2, 9, 1), {}, 6 * 2),
        ((3, 2, 2), {"grid": 5}, 6),
        ((1, 1, 1), {}, 6),
        ((1, 4, 4), {"patch_size": 1, "grid": 9}, 6 * 16),
        ((3, 8, 8), {"patch_size": 100}, 6),
    ],
)
def test_images_of_any_size_have_n_patches_features_per_cell(shape, kwargs, width):
    data = np.random.default_rng(0).uniform(size=(10, *shape))
    found = small(**kwargs).fit_transform(data)
    assert found.shape == (10, width) and np.isfinite(found).all()


def test_the_seed_alone_decides():
    first, second, other = (small(random_state=seed).fit_transform(X) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, other)
    rng = np.random.RandomState(0)
    np.testing.assert_array_equal(small(random_state=rng).fit_transform(X), first)


def test_floats_and_uint8_have_the_same_features():
    data = X.copy()
    data[0, 0, 0, :2] = 0, 255
    np.testing.assert_allclose(
        small().fit_transform(data / 255), small().fit_transform(data), atol=1e-4
    )


def test_constant_images_have_finite_features():
    data = np.full((5, 3, 8, 8), 0.5)
    features = small().fit(X / 255)
    assert np.isfinite(features.transform(data)).all()
    assert np.isfinite(small().fit_transform(data)).all()


def test_one_image_is_enough():
    assert np.isfinite(small().fit_transform(X[:1])).all()


# MiniRocket


RNG = np.random.default_rng(0)
LINES = RNG.normal(size=(20, 2, 50))


def small_kernels(**kwargs):
    return MiniRocket(**{"n_features": 168, "random_state": 0, **kwargs})


@pytest.mark.parametrize("asked, found", [(84, 84), (100, 84), (168, 168), (2016, 2016)])
def test_the_number_of_features_is_a_multiple_of_84(asked, found):
    features = small_kernels(n_features=asked)
    assert features.fit_transform(LINES).shape == (20, found)
    assert features.get_feature_names_out()[-1] == f"minirocket{found - 1}"


def test_features_are_shares():
    found = small_kernels().fit_transform(LINES)
    assert (found >= 0).all() and (found <= 1).all()
    counts = found * 50  # every second kernel is counted at all times
    assert np.isclose(counts, counts.round(), atol=1e-4).all(axis=0).sum() >= 84


def test_lists_of_series_of_unequal_lengths_are_padded():
    series = [LINES[row, :, : 9 + 2 * row] for row in range(20)]
    padded = np.full_like(LINES, np.nan)
    for row, one in enumerate(series):
        padded[row, :, : one.shape[1]] = one
    expected = small_kernels().fit_transform(padded)
    np.testing.assert_array_equal(small_kernels().fit_transform(series), expected)


def test_later_series_may_have_other_lengths():
    features = small_kernels().fit(LINES)
    for n_times in (1, 30, 200):
        found = features.transform(RNG.normal(size=(3, 2, n_times)))
        assert found.shape == (3, 168) and np.isfinite(found).all()


def test_features_do_not_depend_on_the_units():
    np.testing.assert_allclose(
        small_kernels().fit_transform(1000 * LINES + 7),
        small_kernels().fit_transform(LINES),
        atol=0.03,
    )
