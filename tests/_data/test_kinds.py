"""Which kind of data X is, and which data are refused."""

import pytest
from scipy import sparse

from skcontrast import ContrastiveEmbedder
from skcontrast._data._validation import kind_of, validate_inputs


def test_kind_follows_from_the_shape_of_a_sample():
    assert kind_of((5,)) == "vectors"
    assert kind_of((8, 8)) == kind_of((3, 8, 8)) == "images"


@pytest.mark.parametrize(
    "X", [iter([[1.0, 2.0]]), {"a": [1.0, 2.0]}, {1.0, 2.0}], ids=["iterator", "dict", "set"]
)
def test_data_without_order_or_length_are_refused(X):
    with pytest.raises(TypeError, match=f"a sequence of samples, got a {type(X).__name__}"):
        validate_inputs(ContrastiveEmbedder(), X, reset=True)


def test_a_sparse_matrix_of_keys_is_refused_as_sparse():
    with pytest.raises(TypeError, match="Sparse data was passed"):
        validate_inputs(ContrastiveEmbedder(), sparse.dok_array((3, 2)), reset=True)
