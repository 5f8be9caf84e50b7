"""How the features of a sample are cut in two."""

import numpy as np
import pytest
import torch

from skcontrast.frameworks import CMC
from tests.common import small
from tests.frameworks.common import X


@pytest.mark.parametrize("split", [1, 63, [0], [5, 3, 60], np.array([1, 2]), "random", "auto"])
def test_splits_cut_all_features_in_two(split):
    one = small(framework=CMC(split=split)).fit(X)
    first, second = one.encoder_[-1].split.columns
    assert sorted([*first.tolist(), *second.tolist()]) == list(range(64))
    if isinstance(split, int):
        assert first.tolist() == list(range(split))
    elif isinstance(split, str):
        again = small(framework=CMC(split=split)).fit(X).encoder_[-1].split.columns[0]
        reseeded = small(framework=CMC(split=split), random_state=1).fit(X)
        other = reseeded.encoder_[-1].split.columns[0]
        assert len(first) == 32 and torch.equal(first, again) and not torch.equal(first, other)
    else:
        assert first.tolist() == list(split)
