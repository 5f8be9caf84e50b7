"""Axes that are given, and axes that are made."""

import sys

import numpy as np
import pytest

from skcontrast.plotting import TrainingCurveDisplay
from skcontrast.plotting._axes import axes, class_colors, is_number


def test_a_missing_matplotlib_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"needs matplotlib: pip install 'skcontrast\[plot\]'"):
        TrainingCurveDisplay({"a": [{"train_loss": 1.0}]}).plot()


def test_axes_are_those_that_are_given_or_of_a_new_figure(figures):
    _, ax = figures.subplots()
    assert axes(ax) is ax
    assert axes(None).figure is not ax.figure


@pytest.mark.parametrize("n", [1, 2, 7, 8, 10, 15, 20, 30])
def test_each_class_has_a_colour_of_its_own(n):
    assert len(class_colors(n)) == len(set(class_colors(n))) == n


def test_finite_numbers_are_numbers_and_bools_are_not():
    assert all(map(is_number, [1, 0.5, np.float32(2), np.int64(3)]))
    assert not any(map(is_number, [True, np.bool_(False), np.inf, np.nan, "1", None]))
