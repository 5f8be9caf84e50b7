"""Axes that are given, and axes that are made."""

import sys

import numpy as np
import pytest

from skcontrast.plotting import EstimatorCurveDisplay, ScoreDensityDisplay
from skcontrast.plotting._axes import STYLES, axes, class_colors, is_number
from skcontrast.simulation import ScoreModel


def test_given_axes_and_line_settings_are_used(figures, curve):
    _, (left, right) = figures.subplots(1, 2)
    display = EstimatorCurveDisplay(curve).plot(left, names=["DCL"], linewidth=5)
    assert display.ax_ is left and display.lines_["DCL"].get_linewidth() == 5
    assert ScoreDensityDisplay.from_model(ScoreModel(), ax=right).ax_ is right
    assert len(figures.get_fignums()) == 1


def test_a_missing_matplotlib_is_named(monkeypatch, curve):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"needs matplotlib: pip install 'skcontrast\[plot\]'"):
        EstimatorCurveDisplay(curve).plot()


def test_axes_are_those_that_are_given_or_of_a_new_figure(figures):
    _, ax = figures.subplots()
    assert axes(ax) is ax
    assert axes(None).figure is not ax.figure


def test_no_two_names_look_alike():
    looks = [(s["color"], s.get("linestyle"), s.get("marker")) for s in STYLES.values()]
    assert len(set(looks)) == len(looks)


@pytest.mark.parametrize("n", [1, 2, 7, 8, 10, 15, 20, 30])
def test_each_class_has_a_colour_of_its_own(n):
    assert len(class_colors(n)) == len(set(class_colors(n))) == n


def test_finite_numbers_are_numbers_and_bools_are_not():
    assert all(map(is_number, [1, 0.5, np.float32(2), np.int64(3)]))
    assert not any(map(is_number, [True, np.bool_(False), np.inf, np.nan, "1", None]))
