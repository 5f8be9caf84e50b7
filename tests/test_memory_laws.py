"""Memory grows with the rows and with their classes, groups or columns, not with their product."""

import sys
import tempfile

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from skcontrast import ContrastiveClassifier
from skcontrast.encoders import MLP
from skcontrast.losses import SupCon
from skcontrast.metrics import knn_accuracy, linear_cka
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


USES = {
    "SupCon": lambda n, k: embedder(loss=SupCon()).fit(rows(n), of_classes(n, k)),
    "groups": lambda n, k: embedder().fit(rows(n), groups=of_classes(n, k)),
    "domains": lambda n, k: embedder().fit(rows(n), domains=of_classes(n, k)),
    "classifier": lambda n, k: ContrastiveClassifier(embedder().fit(rows(600)), GaussianNB()).fit(
        rows(n), half(of_classes(n, k))
    ),
    "neighbours": lambda n, k: knn_accuracy(rows(n), of_classes(n, k)),
}


def mapped(n, d):
    """Fit on a memory map, and transform what is in it."""
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/X", "wb") as file:
            for start in range(0, n, 250):
                file.write(rows(min(250, n - start), d))
        X = np.memmap(f"{folder}/X", np.float32, "r", shape=(n, d))
        embedder(memory_budget=0).fit(X).transform(X)


WIDE = {
    "a memory map": (mapped, (2_000, 8_000), (500, 8_000)),
    "CKA of two widths": (lambda n, d: linear_cka(rows(40, n), rows(40, d)), *2 * ((500, 6_000),)),
}


def peak(uses, name, n, k):
    """Return the bytes by which a process grows while it does this for n rows of k classes."""
    use = USES[name] if uses == "classes" else WIDE[name][0]
    use(600, 4)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    use(n, k)
    return 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)


def grown_together(uses, name, ns, ks):
    """Return the bytes that two sizes take together, beyond what each takes alone."""
    low, high = ([in_a_process(peak, uses, name, n, k) for k in ks] for n in ns)
    return high[1] - high[0] - low[1] + low[0]


@pytest.mark.parametrize("name", USES)
def test_memory_does_not_grow_with_the_product(name):
    rows_, classes = (12_000, 36_000), (10, 1_000)  # the graph of the classifier holds 10,000 rows
    # A byte for each row and class.
    assert grown_together("classes", name, rows_, classes) < rows_[1] * classes[1]


@pytest.mark.parametrize("name", WIDE)
def test_memory_does_not_grow_with_the_product_of_widths(name):
    _, ns, ds = WIDE[name]
    assert grown_together("columns", name, ns, ds) < ns[1] * ds[1]
