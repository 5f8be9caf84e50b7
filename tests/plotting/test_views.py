"""Samples beside their views."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from skcontrast.augmentation import RandomAffine, TimeCrop, Unflatten
from skcontrast.plotting import ViewsDisplay
from tests.common import IMAGES, X_DIGITS, Items, images, small, small_images, vectors


def ticks(axis):
    return [text.get_text() for text in axis.get_ticklabels()]


def test_images_are_drawn_as_originals_and_their_views():
    embedder = small(augmentation=RandomAffine())
    display = ViewsDisplay.from_estimator(embedder, IMAGES, rows=[4, 2], n_views=3)
    views = embedder.views(IMAGES, 3, rows=[4, 2], random_state=0)
    for drawn, expected in zip(display.images_, (IMAGES[[4, 2]], *views), strict=True):
        for cell, image in zip(drawn, expected, strict=True):
            np.testing.assert_array_equal(cell.get_array(), image[0])
            assert cell.get_clim() == (IMAGES[[4, 2]].min(), IMAGES[[4, 2]].max())
    assert ticks(display.ax_.yaxis) == ["original", "view 1", "view 2", "view 3"]
    centers = [np.mean(cell.get_extent()[:2]) for cell in display.images_[0]]
    np.testing.assert_allclose(centers, [0, 1])
    assert display.figure_ is display.ax_.figure and display.figure_.get_figwidth() <= 7


def test_colours_stand_last_and_uint8_is_black_at_0_and_white_at_255():
    X = images()
    display = ViewsDisplay(X, [X])
    shown = display.plot().images_[1][2].get_array()
    np.testing.assert_allclose(shown, X[2].transpose(1, 2, 0) / 255)


def test_pipelines_and_bare_augmentations_are_drawn_before_and_after_a_fit():
    expected = small(augmentation=RandomAffine()).views(IMAGES, rows=slice(8), random_state=0)
    pipe = make_pipeline(Unflatten((1, 8, 8)), RandomAffine(), small_images(max_epochs=1))
    unfitted = ViewsDisplay.from_estimator(pipe, X_DIGITS)
    assert not hasattr(pipe[0], "n_features_in_")
    fitted = ViewsDisplay.from_estimator(pipe.fit(X_DIGITS), X_DIGITS)
    bare = ViewsDisplay.from_estimator(RandomAffine(), IMAGES)
    listed = ViewsDisplay.from_estimator([RandomAffine()], IMAGES)
    for display in (unfitted, fitted, bare, listed):
        np.testing.assert_array_equal(display.views, expected)


def test_given_axes_and_settings_are_used(figures):
    _, ax = figures.subplots()
    display = ViewsDisplay.from_estimator(small(), IMAGES, ax=ax, cmap="viridis")
    assert display.ax_ is ax and display.images_[0][0].get_cmap().name == "viridis"
    series = np.random.default_rng(0).normal(size=(4, 2, 40))
    display = ViewsDisplay.from_estimator(small(encoder=None), series, linewidth=3)
    assert display.series_[0][0][0].get_linewidth() == 3


@pytest.mark.parametrize("kind", ["vectors", "graphs"])
def test_what_is_neither_images_nor_series_is_refused_with_the_way_out(kind):
    X = vectors()
    if kind == "graphs":
        nx = pytest.importorskip("networkx")
        X = [nx.cycle_graph(5) for _ in range(4)]
    with pytest.raises(ValueError, match=rf"images and series, not {kind}: embedder\.views\(X\)"):
        ViewsDisplay.from_estimator(small(encoder=None), X)


class CountedImages(Items):
    """Images that count how often they are read."""

    def __init__(self, dtype=np.uint8):
        super().__init__(images(n=200).astype(dtype))
        self.reads, self.X = [], self.items

    def __getitem__(self, row):
        self.reads.append(row)
        return self.X[row]


@pytest.mark.parametrize("augmentation", [None, RandomAffine()], ids=["default", "given"])
def test_of_a_dataset_of_uint8_images_hardly_more_than_the_drawn_ones_are_read(augmentation):
    X = CountedImages()
    display = ViewsDisplay.from_estimator(small(augmentation=augmentation), X, rows=[50, 60])
    assert {50, 60} <= set(X.reads) <= {0, 1, 50, 60}
    in_memory = ViewsDisplay.from_estimator(small(augmentation=augmentation), X.X, rows=[50, 60])
    np.testing.assert_array_equal(display.views, in_memory.views)
    assert display.images_[0][0].get_clim() == (0, 255)


def test_a_fitted_embedder_reads_only_the_drawn_images_of_a_dataset():
    X = CountedImages(np.float32)
    embedder = small_images(max_epochs=1).fit(X.X[:20])
    display = ViewsDisplay.from_estimator(embedder, X, rows=[50, 60])
    assert set(X.reads) <= {0, 50, 60}
    assert display.images_[0][0].get_clim() == (X.X[[50, 60]].min(), X.X[[50, 60]].max())


def test_series_are_drawn_as_a_line_for_each_channel_until_they_end():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6, 2, 40)) * np.array([1, 100])[:, None]
    X[1, :, 30:] = np.nan
    embedder = small(encoder=None, augmentation=TimeCrop())
    display = ViewsDisplay.from_estimator(embedder, X, rows=[1, 4], n_views=3)
    views = embedder.views(X, 3, rows=[1, 4], random_state=0)
    for column, (drawn, expected) in enumerate(
        zip(display.series_, (X[[1, 4]], *views), strict=True)
    ):
        for row, (lines, series) in enumerate(zip(drawn, expected, strict=True)):
            for line, values in zip(lines, series, strict=True):
                x, y = line.get_data()
                np.testing.assert_array_equal(np.isnan(y), np.isnan(values))
                assert column - 0.5 < x.min() and x.max() < column + 0.5
                assert row - 0.5 < np.nanmin(y) and np.nanmax(y) < row + 0.5
                assert np.corrcoef(y[:30], values[:30])[0, 1] < -0.999  # y grows downwards
    assert ticks(display.ax_.xaxis) == ["original", "view 1", "view 2", "view 3"]
    assert ticks(display.ax_.yaxis) == ["1", "4"]


def test_declared_series_are_drawn_as_series_whatever_their_shape():
    X = np.random.default_rng(0).normal(size=(6, 8, 8))
    embedder = small(encoder=None, augmentation=TimeCrop(), kind="series")
    assert len(ViewsDisplay.from_estimator(embedder, X).series_[0]) == 6
    assert not ViewsDisplay(X, [X]).as_series and ViewsDisplay(X, [X], as_series=True).as_series
