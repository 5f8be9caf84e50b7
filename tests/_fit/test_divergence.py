"""Training that diverges."""

import pytest
import torch
from torch import nn

from skcontrast.encoders import MLP
from skcontrast.similarity import DotProduct
from tests.common import X_DIGITS, small, vectors


class ReturnsNaN(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(64, 4)

    def forward(self, x):
        return self.layer(x) * torch.nan


DIVERGENT = {
    "weight_decay": {"weight_decay": 1e30, "optimizer": "sgd", "max_epochs": 5},
    "lr": {
        "lr": 1e30,
        "encoder": MLP((16,), batch_norm=False),
        "projection_dim": 0,
        "optimizer": "sgd",
        "max_epochs": 5,
    },
    "encoder": {"encoder": ReturnsNaN()},
}


@pytest.mark.parametrize("params", DIVERGENT.values(), ids=DIVERGENT)
def test_divergence_is_an_error_and_never_an_embedding(params):
    embedder = small(**params)
    message = r"diverged in epoch \d+: .*'lr'.*'temperature'.*'augmentation'"
    with pytest.raises(ValueError, match=message):
        embedder.fit(X_DIGITS)
    assert not hasattr(embedder, "encoder_")


@pytest.mark.parametrize("output", ["representation", "projection"])
def test_a_last_step_that_makes_embeddings_infinite_is_divergence(output):
    embedder = small(similarity=DotProduct(), lr=1e3, optimizer="sgd", output=output)
    with pytest.raises(ValueError, match=r"diverged in epoch 2: embeddings are not finite.*'lr'"):
        embedder.fit(vectors())
    assert not hasattr(embedder, "encoder_")
