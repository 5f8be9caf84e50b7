"""Memory grows with the rows, their columns, and their classes or groups, not with a product."""

import sys
import tracemalloc
from itertools import product

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from skcontrast import ContrastiveClassifier
from skcontrast.encoders import MLP
from skcontrast.losses import SemiSupCon, SupCon
from skcontrast.metrics import knn_accuracy, map_at_r, neighbor_agreement, recall_at_k, uniformity
from tests.common import in_a_process, small

resource = pytest.importorskip("resource")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of the process"),
]


def embedder(**kwargs):
    return small(encoder=MLP(8), projection_dim=4, max_epochs=1, batch_size=512, **kwargs)


def rows(n, d=6):
    return np.random.default_rng(0).standard_normal((n, d), np.float32)


def half(y):
    return np.where(np.arange(len(y)) % 2, y, -1)


def of_classes(n, k):
    return np.random.default_rng(1).integers(k, size=n)


def classify(n, k, d):
    fitted = embedder().fit(rows(600, d))
    # With raw columns as a block, the means of GaussianNB grow with columns × classes.
    model = ContrastiveClassifier(fitted, GaussianNB(), blocks=[])
    model.fit(rows(n, d), half(of_classes(n, k)))


def spread(n, k, d):
    """Spread classes before the second epoch."""
    semi = embedder(loss=SemiSupCon(every=1)).set_params(max_epochs=2)
    semi.fit(rows(n, d), half(of_classes(n, k)))


USES = {
    "SupCon": lambda n, k, d: embedder(loss=SupCon()).fit(rows(n, d), of_classes(n, k)),
    "SemiSupCon": spread,
    "groups": lambda n, k, d: embedder().fit(rows(n, d), groups=of_classes(n, k)),
    "domains": lambda n, k, d: embedder().fit(rows(n, d), domains=of_classes(n, k)),
    "classifier": classify,
    "neighbours": lambda n, k, d: knn_accuracy(rows(n, d), of_classes(n, k)),
}


def peak(name, *sizes):
    """Return the bytes by which a process grows while it does this for n rows of k classes."""
    use = USES[name]
    use(600, 4, *sizes[2:])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    use(*sizes)
    return 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)


def grown_together(name, *sizes):
    """Return the bytes that two pairs of sizes take together, beyond what each takes alone."""
    chosen = product(*([size] if isinstance(size, int) else size for size in sizes))
    alone = [in_a_process(peak, name, *together) for together in chosen]
    return alone[3] - alone[2] - alone[1] + alone[0]


@pytest.mark.parametrize("name", USES)
def test_memory_does_not_grow_with_the_product(name):
    rows_, classes = (12_000, 36_000), (10, 1_000)  # the graph of the classifier holds 10,000 rows
    # A byte for each row and class.
    assert grown_together(name, rows_, classes, 6) < rows_[1] * classes[1]


@pytest.mark.parametrize("name", sorted(USES.keys() - {"SemiSupCon"}))  # sees no columns
def test_memory_does_not_grow_with_columns_times_classes_or_groups(name):
    classes, columns = (10, 5_000), (40, 4_000)
    # A float32 for each column and class; the peaks of equal fits differ by a quarter of it.
    assert grown_together(name, 6_000, classes, columns) < 4 * classes[1] * columns[1]


# Measures


N = 6000
RNG = np.random.default_rng(0)
H, OTHER = RNG.normal(size=(2, N, 16))
Y = np.arange(N) % 60


@pytest.mark.parametrize(
    "measure",
    [
        lambda: knn_accuracy(H, Y),
        lambda: recall_at_k(H, Y, k=8),
        lambda: map_at_r(H, Y),
        lambda: neighbor_agreement(H, OTHER),
        lambda: uniformity(H),
    ],
    ids=["knn", "recall", "map", "agreement", "uniformity"],
)
def test_no_measure_holds_a_matrix_of_all_pairs(measure):
    tracemalloc.start()
    try:
        measure()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < N * N * 8 / 2
