"""The annotations, as a user's type checker sees them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import skcontrast

pytest.importorskip("mypy")

# scikit-learn, skorch and parts of torch have no annotations, which is not what is tested here.
CONFIG = """
[mypy]
strict = true
ignore_missing_imports = true
disallow_subclassing_any = false
disallow_untyped_calls = false
[mypy-torch.*,skorch.*,sklearn.*,scipy.*,matplotlib.*]
follow_imports = skip
[mypy-skcontrast.*]
ignore_errors = true
"""

OWN_CLASSES = '''
"""A component of each sort, of the user's own."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from skcontrast import ContrastiveEmbedder
from skcontrast.augmentation import Augmentation
from skcontrast.encoders import Encoder
from skcontrast.frameworks import Batch, Contrast, FitContext, Framework, Session
from skcontrast.losses import Loss
from skcontrast.schedules import Schedule, interval
from skcontrast.similarity import Similarity


class OwnLoss(Loss):
    sum_of_weights = "free"
    _parameter_constraints = {"share": interval(0, 1, "left")}

    def __init__(self, share: float = 0.1):
        self.share = share

    def rank_weights(self, ranks_from_farthest: Tensor, n_candidates: int) -> Tensor:
        return (ranks_from_farthest <= (1 - self.share) * n_candidates).double()

    def coefficients(self) -> tuple[float, float]:
        return 1.1, 0.1


class OwnSimilarity(Similarity):
    def bounds(self, width: int) -> tuple[float, float]:
        return -4.0, 0.0

    def embed(self, z: Tensor) -> Tensor:
        return z / z.norm(dim=-1, keepdim=True)

    def scores(self, u: Tensor, v: Tensor) -> Tensor:
        return -(u[:, None] - v).square().sum(-1)

    def pairs(self, u: Tensor, v: Tensor) -> Tensor:
        return -(u - v).square().sum(-1)


class OwnSession(Session):
    objective = "jensen-shannon"

    def contrast(
        self, views: Sequence[Any], similarity: Similarity, batch: Batch
    ) -> Contrast | list[Contrast]:
        raise NotImplementedError


class OwnFramework(Framework):
    n_views = 2

    def start(self, context: FitContext) -> Session:
        return OwnSession(context)


class FrameworkWithoutMemory(Framework):
    def contrast(
        self,
        network: Callable[[Any], Tensor],
        views: Sequence[Any],
        similarity: Similarity,
        batch: Batch,
    ) -> Contrast:
        anchors, candidates = (similarity.embed(network(view)) for view in views)
        return Contrast(
            anchors=anchors,
            candidates=candidates,
            positives=similarity.pairs(anchors, candidates),
            excluded=torch.arange(len(anchors)),
            anchor_labels=batch.labels,
            candidate_labels=batch.labels,
        )


class OwnEncoder(Encoder):
    kind = ("vectors", "images")

    def build(self, sample_shape: tuple[int, ...], n_components: int | None = None) -> nn.Module:
        return nn.Linear(sample_shape[0], n_components or 8)


class OwnAugmentation(Augmentation):
    kind = "vectors"

    def __init__(self, rate: float = 0.1):
        self.rate = rate

    def augment(self, batch: Tensor, generator: torch.Generator | None = None) -> Tensor:
        return torch.where(torch.rand(batch.shape, generator=generator) < self.rate, -batch, batch)


class OwnSchedule(Schedule):
    def __call__(self, progress: float) -> float:
        return progress


embedder = ContrastiveEmbedder(
    encoder=OwnEncoder(),
    loss=OwnLoss(),
    framework=OwnFramework(),
    similarity=OwnSimilarity(),
    augmentation=[OwnAugmentation()],
    lr_schedule=OwnSchedule(),
)
X = np.zeros((10, 3))
width: int = embedder.fit(X).transform(X).shape[1]
'''

DECLARED = """
from typing import Literal, assert_type

import numpy as np
from numpy.typing import NDArray

from skcontrast import ContrastiveEmbedder
from skcontrast.augmentation import Augmentation, NodeDrop, Unflatten, Views
from skcontrast.frameworks import InfoGraph
from skcontrast.losses import BCL, Loss, Ring
from skcontrast.schedules import Linear
from skcontrast.similarity import Cosine, VonMisesFisher

X = np.zeros((10, 4))
embedder = ContrastiveEmbedder()
assert_type(embedder.fit(X), ContrastiveEmbedder)
assert_type(embedder.transform(X), NDArray[np.float32])
assert_type(embedder.fit_transform(X), NDArray[np.float32])
assert_type(embedder.loss_, Loss)
assert_type(embedder.augmentation_, list[Augmentation])
assert_type(embedder.estimates_, dict[str, float])
assert_type(embedder.n_epochs_, int)
assert_type(embedder.output, Literal["representation", "projection"])
assert_type(Ring().outer, float)
assert_type(BCL().alpha, float)
BCL(alpha=Linear(0.5, 0.7), tau_plus="auto")
Ring(outer=Linear(0.5, 1))
assert_type(BCL().form, Literal["inverted", "printed"])
assert_type(Cosine().temperature, float)
assert_type(Cosine().bounds(2), tuple[float, float])
assert_type(VonMisesFisher().kappa_max, float)
assert_type(InfoGraph().objective, Literal["contrastive", "jensen-shannon"])
assert_type(NodeDrop().fit_transform([]), Views)
assert_type(Unflatten((2, 2)).fit(X).n_features_in_, int)
"""

REFUSED = [
    'ContrastiveEmbedder(kind="foo")',
    'ContrastiveEmbedder(output="bar")',
    'ContrastiveEmbedder(optimizer="lion")',
    'ContrastiveEmbedder(precision="half")',
    'ContrastiveEmbedder(lr_schedule="linear")',
    'kinds.Graphs(node_features="labels")',
    'ContrastiveEmbedder(loss="infonce")',
    'losses.BCL(form="empirical")',
    'losses.Ring(outer="auto")',
    'frameworks.InfoGraph(objective="infonce")',
    'frameworks.CMC(split="rgb")',
    'frameworks.MoCo(queue_size="large")',
    'encoders.GIN(pooling="max")',
    'encoders.MLP(activation="sine")',
    'encoders.ResNet(stem="patches")',
    'augmentation.RandomAffine(padding="wrap")',
    'augmentation.SimCLRAugmentation(blur="never")',
]


@pytest.fixture(scope="module")
def lines_of(tmp_path_factory):
    """Return a function that runs mypy on a script and returns the lines that it prints."""
    folder = tmp_path_factory.mktemp("types")
    (folder / "mypy.ini").write_text(CONFIG, encoding="utf-8")
    root = str(Path(skcontrast.__file__).parents[1])

    def run(script):
        path = folder / "script.py"
        path.write_text(script.lstrip(), encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-m", "mypy", "--no-error-summary", path.name],
            cwd=folder,
            env={**os.environ, "MYPYPATH": root},
            capture_output=True,
            text=True,
            check=False,
        )
        assert not done.stderr
        return done.stdout.splitlines()

    return run


def test_components_of_ones_own_and_the_types_that_are_documented_pass_a_strict_check(lines_of):
    assert lines_of(OWN_CLASSES + DECLARED) == []


def test_a_choice_that_does_not_exist_is_an_error(lines_of):
    imports = (
        "from skcontrast import ContrastiveEmbedder, augmentation, encoders, frameworks, losses\n"
        "from skcontrast import kinds\n"
    )
    lines = [line for line in lines_of(imports + "\n".join(REFUSED)) if "error:" in line]
    refused = {int(line.split(":")[1]) for line in lines if "[arg-type]" in line}
    assert [REFUSED[number - 3] for number in sorted(refused)] == REFUSED
