"""Wrong samples and parameters are refused by name, with what to write instead."""

import networkx as nx
import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.svm import SVC
from torch import nn

from skcontrast import ContrastiveClassifier, ContrastiveEmbedder, frameworks
from skcontrast.encoders import MLP
from skcontrast.kinds import Images
from tests.common import Items

N = 12
VECTORS = np.random.default_rng(0).normal(size=(N, 4))
PICTURES = np.random.default_rng(1).random((N, 3, 8, 8)).astype(np.float32)
GRAPHS = [nx.gnp_random_graph(6, 0.6, seed=k) for k in range(N)]


def tiny(**kwargs):
    """Return an embedder that trains in a moment."""
    defaults = {"encoder": MLP((4,)), "max_epochs": 1, "device": "cpu", "random_state": 0}
    return ContrastiveEmbedder(**{**defaults, "projection_dim": 4, **kwargs})


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[1, 2], [3, "a"]], r"X must be .*item 1 is \[3, 'a'\]"),
        ([PICTURES[0], None], r"X must have one shape, got .* 'NoneType'\]"),
        ([PICTURES[0], "a"], r"X must have one shape, got .* 'str'\]"),
        ([GRAPHS[0], "a"], "X must hold graphs only: item 1 is a str"),
        ([*GRAPHS[:3], VECTORS], "X must hold graphs only: item 3 is a ndarray"),
    ],
)
@pytest.mark.parametrize("method", ["fit", "views"])
def test_a_mixed_list_names_the_first_item_that_does_not_fit(X, message, method):
    with pytest.raises((ValueError, TypeError), match=message):
        getattr(tiny(encoder=None), method)(X)


def test_floats_up_to_255_that_are_not_scaled_warn():
    images = 255 * PICTURES
    with pytest.warns(UserWarning, match="standardize=False does not scale"):
        tiny(encoder=None, kind=Images(standardize=False)).views(images)
    tiny(encoder=None, kind=Images(standardize=False)).views(PICTURES)  # a warning is an error
    tiny(encoder=None).views(images)


PILLOW = Image.fromarray(np.zeros((8, 8, 3), dtype=np.uint8))


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (PILLOW, r"got a single PIL image: pass a list, \[image\]"),
        ((VECTORS, np.arange(len(VECTORS))), r"samples and their classes: pass both, fit\(X, y\)"),
        ((PICTURES, list(range(len(PICTURES)))), r"fit\(X, y\)"),
    ],
)
def test_an_image_of_pillow_and_pairs_with_labels_say_what_to_pass(X, message):
    with pytest.raises(TypeError, match=message):
        tiny(encoder=None).fit(X)


@pytest.mark.skipif(torch.backends.cuda.is_built(), reason="torch is built for a GPU")
def test_a_missing_gpu_is_reported():
    with pytest.raises(ValueError, match=r"got 'cuda'\. device='auto' uses"):
        tiny(device="cuda").fit(VECTORS)


def test_the_advice_on_intensities_follows_their_range():
    for white, advice in ((255, "divide X by 255, or pass uint8"), (16, "by their maximum, 16")):
        images = white * PICTURES / PICTURES.max()
        with pytest.warns(UserWarning, match=advice):
            tiny(encoder=None, kind=Images(standardize=False)).views(images)


def test_a_score_of_a_few_samples_is_refused_and_of_some_warned_about():
    X = np.random.default_rng(0).normal(size=(100, VECTORS.shape[1]))
    embedder = tiny().fit(X)
    with pytest.raises(ValueError, match="X must hold 12 samples or more for score, got 11"):
        embedder.score(X[:11])
    with pytest.warns(UserWarning, match="X has 99 samples, and their score is mostly noise"):
        assert 0 <= embedder.score(X[:99]) <= 1
    embedder.score(X)


def test_arguments_in_the_wrong_place_are_refused_with_the_right_one():
    z, images = torch.eye(4), PICTURES.reshape(-1, *PICTURES.shape[-2:])
    few = np.where(np.arange(len(VECTORS)) < 40, np.arange(len(VECTORS)) % 2, -1)
    fitted, pair = tiny().fit(VECTORS), [VECTORS, VECTORS]

    class Drops(nn.Linear):
        def forward(self, x):
            return super().forward(x)[: len(x) - (len(x) > 2)]

    drops = Drops(VECTORS.shape[1], 3)
    adam = torch.optim.Adam([torch.zeros(2, requires_grad=True)])
    cases = {
        "a Dataset of arrays of numbers": lambda: tiny().fit(Items(torch.zeros(N, 4) + 1j)),
        r"Write optimizer=torch.optim.SGD": lambda: tiny(optimizer=adam).fit(VECTORS),
        r"Write embedder=ContrastiveEmbedder\(\.\.\.\)": lambda: ContrastiveClassifier(
            nn.Linear(5, 2)
        ).fit(VECTORS, np.arange(N) % 2),
        r"no concentration: pass similarity=VonMisesFisher\(\)": lambda: fitted.concentration(z),
        r"got an embedder.*Classifier\(embedder, classifier\)": lambda: ContrastiveClassifier(
            None, tiny()
        ).fit(VECTORS, few),
        r"got a classifier, SVC\(\).*Classifier\(embedder, cl": lambda: ContrastiveClassifier(
            SVC()
        ).fit(VECTORS, few),
        r"no predict_proba: its classifier SVC\(\) has none": lambda: (
            ContrastiveClassifier(tiny(), SVC()).predict_proba
        ),
        "must be 'auto'.*got 'meta'": lambda: tiny(device="meta").fit(VECTORS),
        r"a list of 2 arrays of .* tuple\(X\)": lambda: tiny(framework=frameworks.CMC()).fit(pair),
        r"returned \d+ rows for \d+ samples": lambda: tiny(encoder=drops).fit(VECTORS),
        r"\(1, 8, 8\): pass X\[:, None\]": lambda: (
            tiny(encoder=None).fit(images[:, None]).transform(images)
        ),
        r"\(8, 8\): pass X\[:, 0\]": lambda: (
            tiny(encoder=None).fit(images).transform(images[:, None])
        ),
    }
    for message, use in cases.items():
        with pytest.raises((TypeError, ValueError, AttributeError), match=message):
            use()
