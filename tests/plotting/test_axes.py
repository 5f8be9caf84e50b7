"""Axes that are given, and axes that are made."""

import sys

import numpy as np
import pytest

# private: the parts of a figure
from skcontrast.plotting._axes import axes, draw_cell, grid_size, intensities, picture


def test_a_missing_matplotlib_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"needs matplotlib: pip install 'skcontrast\[plot\]'"):
        axes(None)


def test_grey_images_are_drawn_as_they_are_and_colour_in_unit_intensities():
    image = np.arange(12.0).reshape(3, 2, 2)
    np.testing.assert_array_equal(picture(image[0], (0, 9)), image[0])
    np.testing.assert_array_equal(picture(image[:1], (0, 9)), image[0])
    np.testing.assert_array_equal(picture(image[:2], (0, 9)), image[:2].mean(axis=0))
    colours = picture(image, (1, 9))
    assert colours.shape == (2, 2, 3)
    np.testing.assert_allclose(colours[0, 1], (np.array([1, 5, 9]) - 1) / 8)
    assert colours.min() == 0 and colours.max() == 1


def test_intensities_are_those_of_the_dtype_or_of_the_images():
    assert intensities(np.zeros((1, 2, 2), np.uint8)) == (0, 255)
    assert intensities(np.array([[[-1.0, 3.0]]])) == (-1, 3)
    assert intensities(np.ones((1, 2, 2))) == (1, 2)


def test_a_cell_keeps_the_shape_of_its_image(figures):
    _, ax = figures.subplots()
    left, right, bottom, top = draw_cell(ax, np.zeros((2, 4)), 3, 1, (0, 1)).get_extent()
    assert (left + right) / 2 == 1 and (bottom + top) / 2 == 3
    assert right - left == pytest.approx(2 * (bottom - top))


def test_a_grid_is_at_most_seven_inches_wide():
    assert max(grid_size(2, n)[0] for n in range(1, 60)) <= 7 + 1e-9
