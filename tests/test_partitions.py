"""Rows that several processes embed are those that one embeds."""

import numpy as np
import pandas as pd
import pytest

from tests.common import small


@pytest.mark.slow
def test_workers_of_dask_embed_a_million_rows_as_one_process_does():
    dask = pytest.importorskip("dask.dataframe")
    distributed = pytest.importorskip("dask.distributed")

    def part(seed):
        rows = np.random.default_rng(seed).normal(size=(125_000, 8)).astype(np.float32)
        return pd.DataFrame(rows, columns=list("abcdefgh"))

    embedder = small(max_epochs=1).set_output(transform="pandas").fit(part(0)[:500])
    meta = embedder.transform(part(0)[:2])
    local = distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with local as cluster, distributed.Client(cluster):
        table = dask.from_map(part, range(8), meta=part(0)[:0])
        H = table.map_partitions(embedder.transform, meta=meta).compute()
    X = pd.concat([part(seed) for seed in range(8)])
    assert len(H) == 1_000_000 and H.columns.equals(meta.columns)
    np.testing.assert_allclose(H, embedder.transform(X), rtol=1e-4, atol=1e-5)
