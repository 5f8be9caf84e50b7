"""Warnings point at the caller's line, however deep in the package they are issued."""

import sys
import warnings

import numpy as np
import pytest
from PIL import Image
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import skcontrast
from skcontrast._warnings import say, warn  # private: where a warning points
from skcontrast.augmentation import AugmentationDropped, MarginalCorruption
from skcontrast.datasets import ImageFolder
from tests.common import Items, small


def in_the_package(source):
    """Run source as if it were a module of the package."""
    scope = {"warn": warn}
    exec(compile(source, skcontrast.__file__, "exec"), scope)
    return scope


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_the_first_line_outside_the_package_is_named(depth):
    source = "def f(n):\n    return f(n - 1) if n else warn('careful')"
    f = in_the_package(source)["f"]
    with pytest.warns(UserWarning, match="careful") as record:
        f(depth)
    assert record[0].filename == __file__


def test_without_a_caller_outside_the_outermost_line_is_named():
    with pytest.warns(UserWarning) as record:
        warn("from here")
    assert record[0].filename == __file__


def test_filters_apply_to_the_caller_s_module():
    f = in_the_package("def f():\n    warn('careful', FutureWarning)")["f"]
    with warnings.catch_warnings(record=True) as record:
        warnings.filterwarnings("ignore", category=FutureWarning, module=__name__)
        f()
    assert not record
    with pytest.raises(FutureWarning, match="careful"):
        f()


def test_a_repeated_warning_is_shown_once_for_each_line():
    f = in_the_package("def f():\n    warn('careful')")["f"]
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("default")
        for _ in range(3):
            f()
        f()
    assert len(record) == 2


def test_dropped_views_are_reported_where_they_are_dropped():
    views = MarginalCorruption().fit_transform(np.eye(3))
    with pytest.warns(AugmentationDropped) as record:
        np.asarray(views)
    assert record[0].filename == __file__


def test_a_warning_in_a_pipeline_points_at_the_line_that_called_the_pipeline():
    pipe = make_pipeline(MarginalCorruption(), FunctionTransformer(np.asarray))
    with pytest.warns(AugmentationDropped) as record:
        pipe.fit_transform(np.eye(3))
    assert record[0].filename == __file__


ROWS = Items(np.zeros((40, 4), np.float32) + np.arange(40, dtype=np.float32)[:, None])


def load_folder(folder):
    for level in range(3):
        Image.fromarray(np.full((9, 9), level, np.uint8)).save(folder / f"{level}.png")
    ImageFolder(folder, size=8).load()


WITH_A_BAR = {
    "verbose": lambda folder: small(verbose=1).fit(np.zeros((40, 4)) + np.arange(40)[:, None]),
    "a folder": load_folder,
    "a Dataset": lambda folder: small(max_epochs=1).fit(ROWS).transform(ROWS),
}


@pytest.mark.parametrize("use", WITH_A_BAR)
def test_a_program_without_a_console_has_no_bars(use, tmp_path, monkeypatch):
    monkeypatch.setattr("skcontrast._warnings._SILENT", 0.0)
    for name in ("stderr", "__stderr__", "stdout", "__stdout__"):
        monkeypatch.setattr(sys, name, None)
    say("something")
    WITH_A_BAR[use](tmp_path)
