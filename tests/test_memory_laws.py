"""Memory grows with the rows and with their classes, groups or columns, not with their product."""

import sys

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from skcontrast import ContrastiveClassifier
from skcontrast.encoders import MLP
from skcontrast.losses import SupCon
from skcontrast.metrics import knn_accuracy
from tests.common import in_a_process, small

resource = pytest.importorskip("resource")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of the process"),
]


def embedder(**kwargs):
    return small(encoder=MLP(8), projection_dim=4, max_epochs=1, batch_size=512, **kwargs)


def rows(n):
    return np.random.default_rng(0).normal(size=(n, 6)).astype(np.float32)


def half(y):
    return np.where(np.arange(len(y)) % 2, y, -1)


def of_classes(n, k):
    return np.random.default_rng(1).integers(k, size=n)


USES = {
    "SupCon": lambda n, k: embedder(loss=SupCon()).fit(rows(n), of_classes(n, k)),
    "groups": lambda n, k: embedder().fit(rows(n), groups=of_classes(n, k)),
    "domains": lambda n, k: embedder().fit(rows(n), domains=of_classes(n, k)),
    "classifier": lambda n, k: ContrastiveClassifier(embedder().fit(rows(600)), GaussianNB()).fit(
        rows(n), half(of_classes(n, k))
    ),
    "neighbours": lambda n, k: knn_accuracy(rows(n), of_classes(n, k)),
}


def peak(name, n, k):
    """Return the bytes by which a process grows while it does this for n rows of k classes."""
    USES[name](600, 4)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    USES[name](n, k)
    return 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)


@pytest.mark.parametrize("name", USES)
def test_memory_does_not_grow_with_the_product(name):
    few, many = (12_000, 10), (36_000, 1_000)  # the graph of the classifier holds 10,000 rows
    peaks = [
        [in_a_process(peak, name, n, k) for k in (few[1], many[1])] for n in (few[0], many[0])
    ]
    together = peaks[1][1] - peaks[1][0] - peaks[0][1] + peaks[0][0]
    assert together < many[0] * many[1], peaks  # a byte for each row and class
