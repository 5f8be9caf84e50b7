"""Arrays in the forms in which users pass them."""

import pytest

from skcontrast.frameworks import CMC, MoCo
from tests.common import small
from tests.frameworks.common import X


@pytest.mark.parametrize("framework", [None, MoCo(), CMC()], ids=repr)
def test_arrays_that_might_be_a_pair_are_refused_with_a_hint(framework):
    pair = [X[:, :20], X[:, 20:]]
    pair = pair if isinstance(framework, CMC) else tuple(pair)
    with pytest.raises(
        ValueError, match=r"A pair of arrays must be a tuple, .* framework=CMC\(\)"
    ):
        small(framework=framework).fit(pair)
