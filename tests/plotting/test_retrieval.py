"""Queries and their nearest neighbours."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skcontrast.plotting import RetrievalDisplay
from skcontrast.similarity import VonMisesFisher
from tests.common import IMAGES, X_DIGITS, images, small

Y = np.arange(200) % 3
Y[7] = -1


def nearest(h, row, n):
    """Return the n rows with the highest cosines to one, by sorting them all."""
    h = h / np.linalg.norm(h, axis=1, keepdims=True)
    cosines = h @ h[row]
    cosines[row] = -np.inf
    return np.argsort(-cosines)[:n]


def test_rows_are_queries_and_the_samples_with_the_highest_cosines():
    embedder = small().fit(X_DIGITS)
    display = RetrievalDisplay.from_estimator(
        embedder, X_DIGITS, pictures=IMAGES, queries=[5, 0, 9], n_neighbors=4
    )
    h = embedder.transform(X_DIGITS)
    for row, query in enumerate([5, 0, 9]):
        found = nearest(h, query, 4)
        np.testing.assert_array_equal(display.neighbors[row], found)
        for cell, k in zip(display.cells_[row], [query, *found], strict=True):
            np.testing.assert_array_equal(cell.get_array(), IMAGES[k, 0])
    assert display.frames_ == {} and display.notes_ == []
    assert display.figure_ is display.ax_.figure and display.figure_.get_figwidth() <= 7
    labels = [text.get_text() for text in display.ax_.get_xticklabels()]
    assert labels == ["query", "1", "2", "3", "4"]


def test_frames_say_whether_the_class_is_right_and_unknown_ones_have_none():
    display = RetrievalDisplay(IMAGES, [0, 7], [[3, 4, 7], [1, 2, 3]], y=Y).plot()
    assert set(display.frames_) == {(0, 0), (0, 1)}
    right, wrong = display.frames_[0, 0], display.frames_[0, 1]
    assert (right.get_linestyle(), wrong.get_linestyle()) == ("-", "--")
    assert right.get_edgecolor() != wrong.get_edgecolor()
    assert right.get_x() + right.get_width() / 2 == pytest.approx(1)


def test_concentrations_are_written_under_the_samples():
    pipe = make_pipeline(StandardScaler(), small(similarity=VonMisesFisher())).fit(X_DIGITS)
    display = RetrievalDisplay.from_estimator(
        pipe, X_DIGITS, pictures=IMAGES, queries=2, n_neighbors=3
    )
    kappa = pipe[-1].concentration(pipe[0].transform(X_DIGITS))
    for row, query in enumerate(display.queries):
        samples = [query, *display.neighbors[row]]
        texts = [note.get_text() for note in display.notes_[row]]
        assert texts == [f"κ {kappa[k]:.3g}" for k in samples]


def test_duplicates_of_a_query_are_its_neighbours_but_not_itself():
    h = np.repeat(np.eye(3), [6, 1, 1], axis=0)
    display = RetrievalDisplay.from_embeddings(h, ["x"] * 8, queries=range(6), n_neighbors=3)
    for query, found in zip(display.queries, display.neighbors, strict=True):
        assert query not in found and len(set(found)) == 3 and max(found) < 6


def test_queries_are_drawn_by_the_seed():
    first, same, other = (
        RetrievalDisplay.from_embeddings(X_DIGITS, IMAGES, queries=4, random_state=seed).queries
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, same)
    assert len(set(first)) == 4 and not np.array_equal(first, other)


def test_texts_are_drawn_for_what_is_no_image():
    texts = [f"row {k}" for k in range(200)]
    display = RetrievalDisplay.from_embeddings(X_DIGITS, texts, queries=[3], n_neighbors=2)
    shown = [cell.get_text() for cell in display.cells_[0]]
    assert shown == [f"row {k}" for k in [3, *display.neighbors[0]]]


def test_given_axes_are_used_and_images_are_their_own_pictures(figures):
    X = images()
    embedder = small().fit(X)
    _, ax = figures.subplots()
    display = RetrievalDisplay.from_estimator(embedder, X, queries=2, n_neighbors=2, ax=ax)
    assert display.ax_ is ax and len(figures.get_fignums()) == 1
    assert display.cells_[0][0].get_array().shape == (6, 6, 3)


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(ValueError, match=r"got shape \(200, 64\): pass pictures="):
        RetrievalDisplay.from_embeddings(X_DIGITS, X_DIGITS)
    message = r"'n_neighbors' parameter of .* range \[1, 199\]. Got 200"
    with pytest.raises(ValueError, match=message):
        RetrievalDisplay.from_embeddings(X_DIGITS, IMAGES, n_neighbors=200)
    with pytest.raises(ValueError, match=r"queries must be in \[1, 200\], got 201"):
        RetrievalDisplay.from_embeddings(X_DIGITS, IMAGES, queries=201)
    with pytest.raises(ValueError, match="must have one entry per sample"):
        RetrievalDisplay.from_embeddings(X_DIGITS, IMAGES[:50])


def test_series_are_drawn_as_lines_also_of_unequal_lengths():
    rng = np.random.default_rng(0)
    series = [rng.normal(size=(2, length)) for length in (20, 12, 33, 9, 20, 20)]
    embedder = small().fit(rng.normal(size=(6, 4)))
    h = embedder.transform(rng.normal(size=(6, 4)))
    display = RetrievalDisplay.from_embeddings(h, series, queries=[1], n_neighbors=3)
    for lines, k in zip(display.cells_[0], [1, *display.neighbors[0]], strict=True):
        assert [np.isfinite(line.get_ydata()).sum() for line in lines] == [series[k].shape[1]] * 2
