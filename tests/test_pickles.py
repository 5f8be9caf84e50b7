"""A pickle of a different version says so."""

import copy
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import InconsistentVersionWarning

import skcontrast.embedder
from skcontrast import ContrastiveEmbedder
from skcontrast.encoders import MLP

X = np.random.default_rng(0).normal(size=(20, 4))


def fitted():
    return ContrastiveEmbedder(MLP((4,)), max_epochs=1, random_state=0).fit(X)


def test_a_pickle_of_a_different_version_says_so(monkeypatch):
    embedder = fitted()
    written = pickle.dumps(embedder)
    monkeypatch.setattr(skcontrast.embedder, "__version__", "99.1")
    with pytest.warns(InconsistentVersionWarning, match=r"of skcontrast .* using version 99\.1"):
        loaded = pickle.loads(written)
    np.testing.assert_array_equal(loaded.transform(X), embedder.transform(X))


def test_copies_within_one_version_say_nothing_and_carry_no_stamp():
    embedder = fitted()
    for copied in (pickle.loads(pickle.dumps(embedder)), copy.copy(embedder), clone(embedder)):
        assert not [name for name in vars(copied) if "version" in name]
    assert vars(copy.deepcopy(embedder)).keys() == vars(embedder).keys()
