"""Custom kinds that move, mix or change samples are refused."""

import networkx as nx
import numpy as np
import pytest
import torch

from skcontrast.kinds import Graphs, Images, Series, Vectors, check_kind
from tests.common import Numbers, images, small, vectors

X = vectors()


class Rows(Numbers):
    """Rows of numbers, some of which may be read one by one."""

    def to_tensor(self, X, device):
        return torch.tensor(np.stack(list(X)), dtype=torch.float32, device=device)


def sorted_behind_the_second(X):
    X = np.asarray(X)
    return np.concatenate([X[:2], X[2:][np.argsort(X[2:, 0])]])


def halved_in_place(X):
    X /= 2
    return X


def halved_in_place_one_by_one(X):
    for x in X:
        x /= 2
    return np.array([*X, None], dtype=object)[:-1]


@pytest.mark.parametrize(
    "check, given",
    [
        (sorted_behind_the_second, X.copy()),
        (lambda X: 2 * np.asarray(X), X.copy()),
        (lambda X: np.asarray(X) - np.mean(X, 0), X.copy()),
        (halved_in_place, X.copy()),
        (halved_in_place_one_by_one, list(X.copy())),
    ],
)
def test_a_check_that_changes_samples_or_their_order_is_refused(check, given):
    kind = type("Own", (Rows,), {"check": lambda self, X: check(X)})()
    with pytest.raises(ValueError, match=r"Own\.check must keep the order, treat samples indep"):
        check_kind(kind, given)


def test_a_kind_that_reads_samples_one_by_one_passes():
    check_kind(Rows(), X)
    check_kind(Rows(), list(X))


@pytest.mark.parametrize(
    "kind, given",
    [
        (Vectors(), X),
        (Images(), images()),
        (Series(), list(np.random.default_rng(0).normal(size=(5, 2, 20)))),
        (Graphs(), [nx.cycle_graph(4 + k) for k in range(4)]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_kinds_of_the_package_pass(kind, given):
    check_kind(kind, given)


def test_one_sample_shows_nothing():
    with pytest.raises(ValueError, match="a minimum of 2 is required"):
        check_kind(Rows(), X[:1])


LOSE = [
    ({"check": lambda self, X: np.asarray(X)[1:]}, r"Own\.check must return one sample for each"),
    (
        {"to_tensor": lambda self, X, device: None},
        "to_tensor must return a batch of .* got a None",
    ),
    ({"to_tensor": lambda self, X, device: {"x": X}}, "TensorBatch of several, got a dict"),
    (
        {"to_tensor": lambda self, X, device: torch.tensor(X[: len(X) // 2])},
        r"batch of \d+ samples.*got \d+ samples",
    ),
]


@pytest.mark.parametrize("members, message", LOSE)
def test_a_kind_that_loses_samples_is_refused_also_by_fit(members, message):
    kind = type("Own", (Rows,), members)()
    embedder = small(encoder=torch.nn.Linear(5, 4), kind=kind, augmentation=[])
    for use in (lambda: check_kind(kind, X), lambda: embedder.fit(X)):
        with pytest.raises((TypeError, ValueError), match=message):
            use()


def test_samples_that_check_pads_to_the_longest_pass():
    class Padded(Rows):
        def check(self, X):
            width = max(map(len, X))
            return np.stack([np.pad(np.float32(x), (0, width - len(x))) for x in X])

        def sample_shape(self, X):
            return (None,)

    check_kind(Padded(), [[1, 2, 3], [4], [5, 6]])
