"""Axes that are given, and axes that are made."""

import sys

import pytest

from skcontrast.plotting import EstimatorCurveDisplay, ScoreDensityDisplay
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
