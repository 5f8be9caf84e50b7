"""How an epoch is cut into batches."""

import numpy as np
import pytest
import torch

from skcontrast._data._batches import BatchSampler, TrainingSet
from skcontrast._data._sources import InMemory
from tests.common import X_DIGITS, small


@pytest.mark.parametrize("n, batch_size", [(51, 2), (200, 3), (200, 199), (200, 200), (9, 8)])
def test_every_batch_size_gives_finite_embeddings(n, batch_size):
    h = small(batch_size=batch_size, max_epochs=1).fit_transform(X_DIGITS[:n])
    assert np.isfinite(h).all()


def test_batches_cover_all_rows_and_none_holds_one_sample():
    for n in range(2, 60):
        for batch_size in range(2, 62):
            samples = TrainingSet(InMemory(torch.arange(n)))
            batches = [batch.x for batch in BatchSampler(samples, batch_size)]
            sizes = [len(x) for x in batches]
            assert sorted(torch.cat(batches).tolist()) == list(range(n))
            assert min(sizes) >= 2 and max(sizes) - min(sizes) <= 1
            assert max(sizes) <= batch_size + (batch_size == 2)
