"""Which mirrors and turns images show: laws of collections whose symmetry is known."""

import random
from functools import cache

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from skcontrast.augmentation import ImageSymmetries, image_symmetries
from skcontrast.augmentation._symmetries import SYMMETRIES  # private: the table of symmetries
from tests.common import Items

MIRRORS = SYMMETRIES[:3]


def letters(n=600, side=16, seed=0):
    """Return images of an F somewhere near the centre, uint8: no orientation is like another."""
    rng, images = np.random.default_rng(seed), np.zeros((n, side, side), np.uint8)
    letter = np.zeros((9, 6), bool)
    letter[:, :2] = letter[:2] = letter[4:6, :4] = True
    for image in images:
        top, left = rng.integers(1, side - 10), rng.integers(1, side - 7)
        image[top : top + 9, left : left + 6] = letter * rng.integers(100, 255)
    return images + rng.integers(0, 40, images.shape).astype(np.uint8)


def shown(X, seed=0):
    return image_symmetries(X, random_state=seed).shown


@cache
def of_letters():
    """Return what upright letters show, which several tests compare with."""
    return image_symmetries(letters(), random_state=0)


def aucs(found):
    return [getattr(found, name) for name in SYMMETRIES]


def half_of(X, move):
    """Return images of which half, drawn at random, are moved."""
    chosen = np.random.default_rng(1).random(len(X)) < 0.5
    return np.where(chosen[:, None, None], move(X), X)


def left_right(X):
    return X[:, :, ::-1]


def up_down(X):
    return X[:, ::-1]


def turn(X):
    return np.rot90(X, axes=(1, 2))


def test_letters_show_nothing():
    found = of_letters()
    assert found.shown == () and min(aucs(found)) > 0.95


@pytest.mark.parametrize(
    "moves, expected",
    [
        ([up_down], MIRRORS[1:2]),
        pytest.param([left_right, up_down], MIRRORS, marks=pytest.mark.slow),
        ([left_right, up_down, turn], SYMMETRIES),
    ],
    ids=["up-down", "both", "all"],
)
def test_letters_of_which_half_are_moved_show_these_moves_and_no_others(moves, expected):
    X = letters(700)
    for k, move in enumerate(moves):
        X = half_of(X, move) if k == 0 else np.concatenate([X[::2], move(X[1::2])])
    assert shown(X) == expected


def test_half_turns_alone_are_not_shown_since_flips_cannot_draw_them():
    X = half_of(letters(700), lambda X: up_down(left_right(X)))
    found = image_symmetries(X, random_state=0)
    assert found.half_turn < 0.7 and found.left_right > 0.9 and found.shown == ()


@pytest.mark.parametrize("n_channels", [pytest.param(2, marks=pytest.mark.slow), 3])
def test_images_of_any_number_of_channels_are_told(n_channels):
    X = np.repeat(letters()[:, None], n_channels, axis=1)
    assert shown(np.concatenate([X[::2], X[1::2, ..., ::-1]])) == MIRRORS[:1]


def test_colour_alone_tells_what_is_above():
    rng = np.random.default_rng(0)
    sky = np.linspace(1, 0, 16)[:, None] + rng.normal(0, 0.1, (600, 16, 16))
    assert shown(sky) == MIRRORS[:1]


def test_units_of_intensity_do_not_matter():
    floats = image_symmetries(letters() * 17.0 - 300, random_state=0)
    assert aucs(of_letters()) == pytest.approx(aucs(floats), abs=0.01)


def test_large_images_are_told_by_their_averages():
    X = letters()
    assert shown(X.repeat(4, axis=1).repeat(4, axis=2)) == ()


def test_quarter_turns_of_images_that_are_not_square_are_not_tried():
    stripes = np.random.default_rng(0).normal(size=(600, 1, 20)).repeat(16, axis=1)
    found = image_symmetries(stripes[:, None], random_state=0)
    assert np.isnan(found.quarter_turn) and found.shown == MIRRORS


@pytest.mark.parametrize(
    "X",
    [letters(599), np.zeros((2, 16, 16)), load_digits().images, np.zeros((600, 15, 40))[:, None]],
    ids=["few", "two", "8 pixels", "15 pixels"],
)
def test_images_that_are_too_few_or_too_small_show_nothing(X):
    found = image_symmetries(X, random_state=0)
    assert np.isnan(aucs(found)).all() and found.shown == ()


def test_equal_images_are_told_by_heart_and_constant_ones_by_nothing():
    assert shown(np.repeat(letters(2), 300, axis=0)) == ()
    assert shown(np.full((600, 16, 16), 7.0)) == SYMMETRIES


def test_the_seed_decides_and_global_generators_and_threads_are_left_alone():
    def state():
        return torch.get_rng_state().tolist(), random.getstate(), torch.get_num_threads()

    expected = of_letters()
    of_numpy = np.random.get_state()[1].tolist()  # noqa: NPY002
    before = state()
    assert image_symmetries(letters(), random_state=3) != expected
    assert state() == before
    assert np.random.get_state()[1].tolist() == of_numpy  # noqa: NPY002


def test_a_dataset_is_read_as_an_array_and_one_seed_tells_the_same():
    assert image_symmetries(Items(letters()), random_state=0) == of_letters()


@pytest.mark.parametrize(
    "aucs, expected",
    [
        ((0.5, 0.9, 0.9, 0.9), MIRRORS[:1]),
        ((0.9, 0.5, 0.9, 0.9), MIRRORS[1:2]),
        ((0.6, 0.5, 0.9, 0.9), MIRRORS[1:2]),
        ((0.6, 0.6, 0.6, 0.9), MIRRORS),
        ((0.6, 0.6, 0.6, np.nan), MIRRORS),
        ((0.74, 0.5, 0.74, 0.74), SYMMETRIES),
        ((0.9, 0.9, 0.5, 0.5), ()),
    ],
)
def test_what_is_shown_is_a_group(aucs, expected):
    assert ImageSymmetries(*aucs).shown == expected


def test_errors_name_the_argument():
    with pytest.raises(ValueError, match="X must hold images"):
        image_symmetries(np.zeros((600, 16)))
    with pytest.raises(ValueError, match="NaN"):
        image_symmetries(np.full((600, 1, 16, 16), np.nan))
    with pytest.raises(ValueError, match="channels-last"):
        image_symmetries(np.zeros((600, 16, 16, 3)))
