"""Maps of embeddings."""

import numpy as np
import pytest
from sklearn.decomposition import PCA, TruncatedSVD

from skcontrast.plotting import EmbeddingDisplay
from tests.common import IMAGES, X_DIGITS, small, vectors

POINTS = np.random.default_rng(0).normal(size=(30, 2))


def drawn(display, one=None):
    """Return the places at which the points of a class are drawn."""
    return np.asarray(display.scatters_[one].get_offsets())


def entries(display):
    return [text.get_text() for text in display.legend_.get_texts()]


def test_each_class_is_drawn_at_its_points_in_its_colour():
    y = np.array(["b", "a", "c"] * 10)
    display = EmbeddingDisplay(POINTS, y).plot()
    for one in "abc":
        np.testing.assert_array_equal(drawn(display, one), POINTS[y == one])
    assert entries(display) == ["a", "b", "c"] and display.colorbar_ is None
    colors = {tuple(points.get_facecolor()[0]) for points in display.scatters_.values()}
    assert len(colors) == 3


def test_the_map_keeps_its_size_beside_the_names_of_many_classes():
    y = np.array([f"class {k}" for k in range(57)] * 2)
    points = np.random.default_rng(0).normal(size=(len(y), 2))
    display = EmbeddingDisplay(points, y).plot()
    display.figure_.canvas.draw()
    figure, box = display.figure_.bbox, display.ax_.get_window_extent()
    legend = display.legend_.get_window_extent()
    assert len(entries(display)) == 57
    assert box.width > 0.45 * figure.width and box.height > 0.8 * figure.height
    assert legend.y0 >= 0 and legend.x0 > box.x1


def test_unknown_classes_are_grey_and_last_in_the_legend():
    display = EmbeddingDisplay(POINTS, np.array([-1, 0, 1] * 10)).plot()
    assert entries(display) == ["0", "1", "unknown"]
    red, green, blue = display.scatters_[-1].get_facecolor()[0][:3]
    assert red == green == blue


@pytest.mark.parametrize("unknown", [-1, None, float("nan")], ids=str)
def test_unknown_among_names_is_grey(unknown):
    y = np.array(["b", "a", unknown] * 10, dtype=object)
    display = EmbeddingDisplay.from_embeddings(POINTS, y)
    assert entries(display) == ["a", "b", "unknown"]
    np.testing.assert_array_equal(drawn(display, -1), POINTS[2::3])


@pytest.mark.parametrize("y", [np.linspace(0, 1, 30), np.arange(30)], ids=["floats", "many ints"])
def test_numbers_have_a_colour_bar(y):
    display = EmbeddingDisplay(POINTS, y).plot()
    assert display.legend_ is None and display.colorbar_.vmax == y.max()
    np.testing.assert_array_equal(display.scatters_[None].get_array(), y)
    np.testing.assert_array_equal(drawn(display), POINTS)


def test_without_labels_there_is_neither_legend_nor_colour_bar():
    display = EmbeddingDisplay(POINTS).plot()
    assert display.legend_ is display.colorbar_ is None and display.thumbnails_ == {}
    np.testing.assert_array_equal(drawn(display), POINTS)


def test_principal_components_of_the_embedding_of_a_fitted_estimator_are_drawn(figures):
    embedder = small().fit(X_DIGITS)
    _, ax = figures.subplots()
    display = EmbeddingDisplay.from_estimator(embedder, X_DIGITS, method="pca", ax=ax, s=3)
    expected = PCA(2, random_state=0).fit_transform(embedder.transform(X_DIGITS))
    np.testing.assert_allclose(np.abs(drawn(display)), np.abs(expected), atol=1e-3)
    assert display.ax_ is ax and ax.get_xlabel() == "principal component 1"
    assert display.scatters_[None].get_sizes() == [3]


def test_a_subsample_keeps_labels_and_images_with_their_points():
    y = np.arange(200)
    display = EmbeddingDisplay.from_embeddings(
        X_DIGITS, y, method="pca", subsample=40, thumbnails=IMAGES
    )
    assert len(set(display.rows_)) == 40
    np.testing.assert_array_equal(display.y, y[display.rows_])
    np.testing.assert_array_equal(display.thumbnails, IMAGES[display.rows_])


def test_thumbnails_stand_at_their_points_and_do_not_overlap():
    display = EmbeddingDisplay(POINTS, thumbnails=IMAGES[:30]).plot()
    assert 1 < len(display.thumbnails_) <= 30 and 0 in display.thumbnails_
    for k, box in display.thumbnails_.items():
        np.testing.assert_array_equal(box.xy, POINTS[k])
        np.testing.assert_array_equal(box.offsetbox.get_data(), IMAGES[k, 0])
    same = EmbeddingDisplay(np.repeat(POINTS[:1], 30, axis=0), thumbnails=IMAGES[:30]).plot()
    assert list(same.thumbnails_) == [0]


def test_tsne_is_seeded_and_takes_few_samples():
    first, second = (EmbeddingDisplay.from_embeddings(vectors(12)) for _ in range(2))
    np.testing.assert_array_equal(first.points, second.points)
    assert first.points.shape == (12, 2) and first.ax_.get_ylabel() == "t-SNE 2"


def test_an_object_brings_embeddings_into_the_plane():
    reducer = TruncatedSVD(2, random_state=0)
    display = EmbeddingDisplay.from_embeddings(vectors(), method=reducer)
    expected = TruncatedSVD(2, random_state=0).fit_transform(vectors())
    np.testing.assert_allclose(display.points, expected)
    assert not hasattr(reducer, "components_")
    assert display.ax_.get_xlabel() == "TruncatedSVD 1"


def test_unknown_methods_shapes_and_lengths_are_refused():
    with pytest.raises(ValueError, match=r"'pca', 'tsne' or .* umap.UMAP\(\)"):
        EmbeddingDisplay.from_embeddings(vectors(), method="mds")
    with pytest.raises(ValueError, match="y must have one entry per sample"):
        EmbeddingDisplay(POINTS, np.zeros(3))
    with pytest.raises(ValueError, match=r"y must have shape \(n_samples,\)"):
        EmbeddingDisplay(POINTS, np.zeros((30, 2))).plot()


@pytest.mark.parametrize("method", ["tsne", "pca"])
def test_embeddings_in_the_plane_are_a_map_already(method):
    display = EmbeddingDisplay.from_embeddings(POINTS, method=method)
    np.testing.assert_array_equal(display.points, POINTS)
    assert display.xlabel == "dimension 1"
    reduced = EmbeddingDisplay.from_embeddings(POINTS, method=PCA(2))
    assert not np.allclose(reduced.points, POINTS)
