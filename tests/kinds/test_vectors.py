"""Vectors: forms, scales, extremes."""

import numpy as np
import pytest
import torch

from skcontrast.encoders import MLP
from skcontrast.kinds import Vectors
from skcontrast.kinds._recognise import recognised
from tests.common import small, vectors


@pytest.mark.parametrize(
    "X",
    [
        vectors(),
        vectors().astype(np.float32),
        vectors().tolist(),
        (vectors() * 10).astype(int),
        torch.from_numpy(vectors()),
        np.asfortranarray(vectors()),
        vectors()[::2, ::-1],
    ],
    ids=["float64", "float32", "list", "int", "tensor", "fortran", "strided"],
)
def test_vectors_of_every_form(X):
    h = small(n_components=7).fit_transform(X)
    assert h.shape == (len(X), 7) and h.dtype == np.float32 and np.isfinite(h).all()


def test_units_of_the_features_do_not_matter():
    X = vectors(d=4)
    scaled = X * [1e-6, 1.0, 1e6, 1e12] + [0, 5.0, 1e6, -1e13]
    plain, other = small().fit(X).transform(X), small().fit(scaled).transform(scaled)
    np.testing.assert_allclose(plain, other, atol=2e-2)


def test_half_precision_tensors_are_taken():
    X = torch.from_numpy(vectors())
    for dtype in (torch.bfloat16, torch.float16):
        assert np.isfinite(small().fit_transform(X.to(dtype).requires_grad_())).all()


def test_standardize_false_takes_vectors_as_they_are():
    X = 5 + 3 * vectors()
    embedder = small(
        kind=Vectors(standardize=False), encoder=MLP(widths=(), batch_norm=False)
    ).fit(X)
    expected = embedder.encoder_(torch.from_numpy(X).float()).detach().numpy()
    np.testing.assert_allclose(embedder.transform(X), expected, rtol=1e-5)


@pytest.mark.filterwarnings("ignore:All samples in X are alike")
@pytest.mark.parametrize(
    "X",
    [
        np.ones((10, 4)),
        np.zeros((10, 4)),
        np.repeat(vectors(1, 4), 12, axis=0),
        vectors(2, 3),
        vectors(3, 1),
        vectors(257, 3),
        vectors(513, 3),
        vectors(20, 3) * 1e30,
        vectors(20, 3) * 1e300,
        vectors(20, 3) * 1e-30,
        vectors(20, 3) * 1e-310,
        np.where(np.arange(60).reshape(20, 3) == 0, 1e300, vectors(20, 3)),
        vectors(20, 3).astype(np.float32) * 1e37,
    ],
    ids=[
        "ones", "zeros", "equal rows", "2 samples", "3 samples", "n = B + 1", "n = 2 B + 1",
        "1e30", "1e300", "1e-30", "denormal", "one outlier", "float32 1e37",
    ],
)  # fmt: skip
def test_extreme_vectors_give_finite_embeddings(X):
    embedder = small().fit(X)
    assert np.isfinite(embedder.transform(X)).all()
    assert np.isfinite(embedder.history_[:, "train_loss"]).all()
    assert np.isfinite(embedder.transform(X * 0 + 1e300 if X.dtype == float else X)).all()


@pytest.mark.parametrize("kind", ["vectors", "tables", "series"])
def test_denormal_numbers_are_scaled_as_others(kind):
    X = vectors(20, 3)[:, None] if kind == "series" else vectors(20, 3)
    found = small(kind=kind, encoder=None).fit_transform(X * 2.0**-1040)
    normal = small(kind=kind, encoder=None).fit_transform(X * 2.0**-600)
    np.testing.assert_allclose(found, normal, atol=1e-2)


def test_batches_of_the_kind_itself_are_not_scaled():
    X = vectors() * 1e3
    batch = Vectors().to_tensor(X, "cpu")
    assert batch.dtype == torch.float32
    np.testing.assert_array_equal(batch, X.astype(np.float32))


def test_what_has_at_most_two_dimensions_is_guessed_to_be_vectors():
    for X in (vectors(), [[1.0]], np.ones(3)):
        assert isinstance(recognised(X)[0], Vectors)
    assert not isinstance(recognised(np.ones((2, 4, 4)))[0], Vectors)
