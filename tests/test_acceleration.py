"""bfloat16: what it reaches, when it is chosen."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from torch import nn

from skcontrast._inference import trains_in_bf16  # private: the rule, without a GPU
from skcontrast.encoders import ConvNet, Pretrained
from skcontrast.kinds import Images, Vectors
from tests.common import small

X = load_digits().data[:300].reshape(-1, 1, 8, 8)


class RecordsDtype(nn.Module):
    """A linear encoder that remembers in what it was asked to compute."""

    seen: list = []

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(64, 4)

    def forward(self, x):
        h = self.linear(x.flatten(1))
        if len(x) > 2:  # not where it is only tried out
            self.seen.append((self.training, h.dtype))
        return h


@pytest.mark.parametrize(
    "precision, expected", [("float32", torch.float32), ("bf16", torch.bfloat16)]
)
def test_only_training_is_in_the_precision_asked_for(precision, expected):
    RecordsDtype.seen.clear()
    small(encoder=RecordsDtype(), precision=precision).fit(X).transform(X)
    trained = {dtype for training, dtype in RecordsDtype.seen if training}
    applied = {dtype for training, dtype in RecordsDtype.seen if not training}
    assert trained == {expected}
    assert applied == {torch.float32}


def test_weights_losses_and_embeddings_are_float32():
    embedder = small(encoder=ConvNet(widths=(8,)), precision="bf16").fit(X)
    assert {p.dtype for p in embedder.encoder_.parameters()} == {torch.float32}
    assert embedder.transform(X).dtype == np.float32


@pytest.mark.parametrize("is_under_autocast", [False, True])
def test_the_weights_of_every_step_count_in_bf16(is_under_autocast):
    """A cache of weights in half precision would outlive the step if autocast was nested."""

    def losses(precision):
        embedder = small(encoder=ConvNet(widths=(8,)), precision=precision, max_epochs=4, lr=0.01)
        return embedder.fit(X).history_[:, "train_loss"]

    expected = losses("float32")
    with torch.autocast("cpu", torch.bfloat16, enabled=is_under_autocast):
        found = losses("bf16")
    assert expected[-1] < 0.95 * expected[0]
    assert found == pytest.approx(expected, rel=0.01)


def test_auto_is_bf16_for_our_image_encoders_where_the_processor_has_it(monkeypatch):
    images, vectors, cpu = Images(), Vectors(), torch.device("cpu")
    for has_it in (True, False):
        monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda has_it=has_it: has_it)
        assert trains_in_bf16("auto", images, None, cpu) == has_it
        assert trains_in_bf16("auto", images, ConvNet(), cpu) == has_it
        assert not trains_in_bf16("auto", images, nn.Flatten(), cpu)
        assert not trains_in_bf16("auto", images, Pretrained(nn.Flatten()), cpu)
        assert not trains_in_bf16("auto", vectors, None, cpu)
        assert not trains_in_bf16("float32", images, None, cpu)
        assert trains_in_bf16("bf16", vectors, None, cpu)


def test_auto_is_bf16_for_our_image_encoders_where_the_gpu_computes_it(monkeypatch):
    for has_it in (True, False):
        monkeypatch.setattr(
            torch.cuda, "is_bf16_supported", lambda has_it=has_it, **kwargs: has_it
        )
        for encoder in (None, Pretrained(nn.Flatten())):
            assert trains_in_bf16("auto", Images(), encoder, torch.device("cuda")) == has_it
    assert not trains_in_bf16("auto", Images(), None, torch.device("mps"))
