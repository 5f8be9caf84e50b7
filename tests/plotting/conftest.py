"""Figures that are drawn without a screen and closed after each test, and what they show."""

import pytest


@pytest.fixture(autouse=True)
def figures():
    pytest.importorskip("matplotlib").use("Agg")
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")


@pytest.fixture
def legend():
    """The function that reads the legend of a display."""
    return lambda display: [text.get_text() for text in display.ax_.get_legend().get_texts()]
