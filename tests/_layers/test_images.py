"""Patches: the formula, and what it does not depend on; means over grids; images made smaller."""

import tracemalloc

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_limits
from torch import nn

# private: layers against naive code
from skcontrast._layers._images import (
    GridMeans,
    PatchLayer,
    Reduced,
    _random_patches,
    _spherical_kmeans,
    _whitening,
    bounded_grid,
    reduced,
    reduced_sides,
)
from tests.encoders.common import random_batch

SHAPES = [(1, 9, 8), (3, 8, 8), (2, 12, 1), (3, 1, 7), (1, 1, 1)]
SIZES = ["grey", "colour", "one pixel wide", "one pixel high", "one pixel"]


def learned(images, n_patches=7, size=3, threshold=0.5, seed=0):
    """Return a layer that has learned from images."""
    channels, *sides = images.shape[1:]
    height, width = (min(size, side) for side in sides)
    layer = PatchLayer(n_patches, (channels, height, width), threshold)
    layer.learn(images, np.random.RandomState(seed))
    return layer


def patches_of(images, height, width):
    """Return the patches of images, shape (n, rows, columns, d), in float64."""
    windows = images.double().unfold(2, height, 1).unfold(3, width, 1)
    return windows.permute(0, 2, 3, 1, 4, 5).flatten(3).numpy()


def contrast_normalised(patch, epsilon):
    return (patch - patch.mean()) / np.sqrt(patch.var() + epsilon)


@pytest.mark.parametrize("shape", SHAPES, ids=SIZES)
def test_a_code_is_the_formula_of_each_patch(shape, monkeypatch):
    learned_by = {}

    def kept(function, name):
        def call(*args):
            learned_by[name] = function(*args)
            return learned_by[name]

        return call

    module = "skcontrast._layers._images"
    monkeypatch.setattr(f"{module}._whitening", kept(_whitening, "whitening"))
    monkeypatch.setattr(f"{module}._spherical_kmeans", kept(_spherical_kmeans, "directions"))
    images = random_batch(12, shape) * 2 + 1
    layer = learned(images)
    (mean, whitening), directions = learned_by["whitening"], learned_by["directions"]
    np.testing.assert_allclose(np.linalg.norm(directions, axis=1).clip(1), 1, atol=1e-6)
    patches = patches_of(images, *layer.filters.shape[-2:])
    expected = np.empty((len(images), len(directions), *patches.shape[1:3]))
    for place in np.ndindex(patches.shape[:3]):
        normal = contrast_normalised(patches[place], float(layer.epsilon))
        code = directions @ (whitening @ (normal - mean)) - layer.threshold
        expected[place[0], :, place[1], place[2]] = code.clip(0)
    np.testing.assert_allclose(layer(images).numpy(), expected, atol=1e-4)


@pytest.mark.parametrize("stride", [2, 3])
def test_a_stride_takes_each_of_so_many_patches(stride):
    images = random_batch(6, (3, 13, 10))
    layer = learned(images)
    expected = layer(images)[..., ::stride, ::stride]
    layer.stride = stride
    torch.testing.assert_close(layer(images), expected)


@pytest.mark.parametrize("value", [0.0, 1.0, -1e4])
def test_a_constant_image_has_the_finite_code_of_a_patch_without_contrast(value):
    layer = learned(random_batch(6, (3, 8, 8)))
    found = layer(torch.full((2, 3, 8, 8), value))
    expected = (-layer.offsets).clamp_min(0)[:, None, None].expand(found.shape)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-2)


def test_fewer_distinct_patches_than_directions_are_enough():
    image = torch.zeros(1, 1, 4, 4)
    image[..., 1] = 1
    layer = learned(image.expand(3, 1, 4, 4), n_patches=40)
    assert layer.filters.isfinite().all()
    assert layer(image).amax() > 0, "patches that were learned are found again"


def test_the_seed_alone_decides_the_dictionary_on_any_number_of_threads():
    images = random_batch(30, (3, 9, 9))
    before, n_threads = np.random.get_state()[1].copy(), torch.get_num_threads()  # noqa: NPY002
    alone = learned(images, n_patches=20).filters
    try:
        torch.set_num_threads(2)
        with threadpool_limits(2):
            together = learned(images, n_patches=20).filters
    finally:
        torch.set_num_threads(n_threads)
    assert together.equal(alone)
    assert not learned(images, n_patches=20, seed=1).filters.equal(alone)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_codes_in_bfloat16_are_close_to_those_in_float32():
    images = random_batch(20, (3, 10, 10))
    layer = learned(images, n_patches=20)
    exact = layer(images)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = layer(images)
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.float(), exact, rtol=0.02, atol=0.05)


def test_nothing_is_trained_and_no_gradient_passes():
    images = random_batch(4, (3, 8, 8)).requires_grad_()
    layer = learned(images.detach())
    assert not list(layer.parameters()) and not layer(images).requires_grad
    assert set(layer.state_dict()) == {"filters", "offsets", "epsilon"}


@pytest.mark.parametrize(
    ("sides", "largest", "smaller"),
    [
        ((96, 96), 96, (96, 96)),
        ((224, 224), 96, (96, 96)),
        ((200, 100), 96, (136, 68)),
        ((30, 200), 96, (30, 200)),
        ((48, 192), 96, (48, 192)),
        ((100, 401), 96, (48, 192)),
        ((32, 1722), 96, (32, 288)),
        ((20, 600), 96, (20, 460)),
        ((300, 40), 96, (230, 40)),
        ((16, 5000), 96, (16, 576)),
        ((1, 90_000), 96, (1, 9216)),
        ((90_000, 1), 1, (1, 1)),
        ((500, 300), None, (500, 300)),
    ],
)
def test_the_area_is_bounded_and_the_proportions_stay_as_long_as_the_shorter_side_is_long(
    sides, largest, smaller
):
    assert reduced_sides(sides, largest) == smaller
    assert reduced_sides(sides[::-1], largest) == smaller[::-1]


@pytest.mark.parametrize(
    ("cells", "smaller"),
    [((9, 9), (9, 9)), ((8, 72), (8, 8)), ((144, 4), (16, 4)), ((7, 8), (7, 8))],
)
def test_a_grid_is_bounded_along_its_longer_side(cells, smaller):
    assert tuple(bounded_grid(cells, 64)) == smaller


def test_a_layer_reduces_floats_and_uint8_as_the_views_are():
    x = torch.from_numpy(np.random.RandomState(0).randint(0, 256, (4, 3, 50, 40), np.uint8))
    layer = Reduced(nn.Identity(), (50, 40), (21, 17))
    expected = reduced(x / 255, (21, 17))
    assert layer.sides == (21, 17) and expected.shape == (4, 3, 21, 17)
    for images in (x, x / 255):
        torch.testing.assert_close(layer(images), expected, atol=1e-5, rtol=0)
    assert reduced(x, (21, 17)).dtype == torch.uint8
    torch.testing.assert_close(reduced(x, (21, 17)) / 255, expected, atol=0.01, rtol=0)


def test_what_is_small_enough_is_passed_on():
    x = torch.zeros(2, 1, 21, 17, dtype=torch.uint8)
    assert Reduced(nn.Identity(), (50, 40), (21, 17))(x) is x
    assert reduced(x, None) is x and reduced(x, (21, 17)) is x


@pytest.mark.parametrize(
    ("sides", "cells"), [((23, 22), (5, 5)), ((9, 4), (4, 2)), ((3, 1), (3, 1))]
)
def test_means_over_a_grid_are_those_of_adaptive_pooling(sides, cells):
    x = torch.from_numpy(np.random.RandomState(0).normal(size=(4, 3, *sides))).float()
    found = GridMeans(cells, sides)(x)
    torch.testing.assert_close(found, nn.functional.adaptive_avg_pool2d(x, cells))


@pytest.mark.parametrize(("n", "d"), [(300, 5), (5, 40), (40, 40)])
def test_fewer_patches_than_numbers_are_whitened_by_the_same_formula(n, d):
    patches = np.random.default_rng(0).normal(size=(n, d)) * np.geomspace(3, 0.1, d) + 5
    mean, whitening = _whitening(patches)
    variances, axes = np.linalg.eigh(np.cov(patches, rowvar=False, bias=True))
    n_kept = 1 + (np.cumsum(variances[::-1]) < 0.99 * variances.sum()).sum()
    np.testing.assert_allclose(mean, patches.mean(axis=0))
    expected = (axes / np.sqrt(variances.clip(0) + 0.1))[:, -n_kept:]
    np.testing.assert_allclose(whitening.T @ whitening, expected @ expected.T, atol=1e-8)


@pytest.mark.parametrize(
    ("n", "channels", "side", "size", "expected"),
    [(4, 1, 5, 3, 36), (3, 2, 3, 3, 3), (200, 1, 12, 3, 10_000), (40, 64, 16, 6, 2**23 // 2304)],
)
def test_patches_are_drawn_once_each_and_no_more_than_memory_holds(
    n, channels, side, size, expected
):
    images = random_batch(n, (channels, side, side))
    drawn = _random_patches(images, [channels, size, size], np.random.RandomState(0))
    every = patches_of(images, size, size).reshape(-1, channels * size**2)
    assert drawn.shape == (expected, every.shape[1])
    keys = {row.tobytes() for row in drawn}
    assert len(keys) == expected and keys <= {row.tobytes() for row in every}


def test_images_of_many_channels_take_memory_by_numbers_not_by_patches():
    images = random_batch(30, (64, 16, 16))
    tracemalloc.start()
    try:
        learned(images, n_patches=4, size=4)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 6 * 8 * 2**23  # a few arrays of all drawn patches, in float64
