"""torchrun, and many fits on a dask cluster."""

import os
import subprocess
import sys
import textwrap

import joblib
import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from torch import nn

from skcontrast.augmentation import RandomAffine, Unflatten
from skcontrast.encoders import ConvNet
from skcontrast.losses import BCL, HCL
from skcontrast.schedules import Linear
from tests._distributed.common import SECONDS, X, Y
from tests.common import small

pytestmark = pytest.mark.skipif(
    not torch.distributed.is_available(), reason="needs torch.distributed"
)
# torchrun
SCRIPT = """
    import os, pathlib, sys
    from sklearn.datasets import load_digits
    from skcontrast import ContrastiveEmbedder
    from skcontrast.encoders import MLP

    rank, X = os.environ["RANK"], load_digits().data[:101]
    embedder = ContrastiveEmbedder(MLP((16,)), max_epochs=2, device="cpu").fit(X)
    pathlib.Path(sys.argv[1], rank).write_bytes(embedder.transform(X).tobytes())
    if rank == sys.argv[2]:
        raise RuntimeError("disk full")
    embedder.fit(X)
"""


LATE = """
    import os, pathlib, sys, time
    from sklearn.datasets import load_digits
    from skcontrast import ContrastiveEmbedder
    from skcontrast.encoders import MLP

    rank, X = os.environ["RANK"], load_digits().data[:101]
    folder = pathlib.Path(sys.argv[1])
    os.environ["SKCONTRAST_RANK_TIMEOUT"] = "2"
    while rank == "1" and not (folder / "0").exists():
        time.sleep(0.1)
    said = []
    for _ in range(2):
        began = time.monotonic()
        try:
            ContrastiveEmbedder(MLP((16,)), max_epochs=1, device="cpu").fit(X)
        except RuntimeError as error:
            said.append(f"{time.monotonic() - began < 30} {error}")
    (folder / "written").write_text("\\n".join(said))
    (folder / "written").rename(folder / rank)
"""


def torchrun(folder, failing="", source=SCRIPT):
    """Run the script on two ranks, of which one may fail between two fits."""
    script = folder / "script.py"
    script.write_text(textwrap.dedent(source))
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    return subprocess.run(
        [*command, str(script), str(folder), failing],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
    )


@pytest.mark.slow
def test_torchrun_is_enough(tmp_path):
    run = torchrun(tmp_path)
    assert run.returncode == 0, run.stderr
    embeddings = [(tmp_path / rank).read_bytes() for rank in ("0", "1")]
    assert embeddings[0] == embeddings[1] != b""


@pytest.mark.slow
def test_an_error_on_one_rank_ends_all(tmp_path):
    run = torchrun(tmp_path, failing="1")
    assert run.returncode != 0 and "disk full" in run.stderr


@pytest.mark.slow
def test_the_time_limit_holds_for_the_first_fit_of_all(tmp_path):
    run = torchrun(tmp_path, source=LATE)
    assert run.returncode == 0, run.stderr
    for rank in ("0", "1"):
        for said in (tmp_path / rank).read_text().splitlines():
            assert said.startswith("True fit failed: the processes that torchrun started did not")


@pytest.mark.slow
def test_grid_search_on_a_dask_cluster():
    dask = pytest.importorskip("dask.distributed")
    pipe = Pipeline(
        [
            ("images", Unflatten((1, 8, 8))),
            ("affine", RandomAffine()),
            ("embed", small(encoder=None)),
            ("clf", LogisticRegression()),
        ]
    )
    grid = {
        "embed__encoder": [ConvNet(widths=(4,)), nn.Sequential(nn.Flatten(), nn.Linear(64, 8))],
        "embed__loss": [BCL(), HCL(beta=Linear(1.0, 0.0))],
    }
    search = GridSearchCV(pipe, grid, cv=2, error_score="raise")
    here = clone(search).fit(X, Y % 2)
    cluster = dask.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
    )
    with cluster, dask.Client(cluster), joblib.parallel_config("dask"):
        there = search.set_params(n_jobs=-1).fit(X, Y % 2)
    for name in ("mean_test_score", "rank_test_score"):
        np.testing.assert_allclose(there.cv_results_[name], here.cv_results_[name])
    np.testing.assert_allclose(there.predict_proba(X), here.predict_proba(X), atol=1e-4)
