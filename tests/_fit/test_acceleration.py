"""Precision and memory format: what they may change, and what not."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from torch import nn

from skcontrast import ContrastiveEmbedder
from skcontrast._fit._acceleration import trains_in_bf16
from skcontrast.augmentation import RandomAffine
from skcontrast.encoders import MLP, ConvNet, ResNet
from skcontrast.encoders._build import to_channels_last
from skcontrast.kinds import Images, Vectors
from tests.common import small

X = load_digits().data[:300].reshape(-1, 1, 8, 8)


class Views(nn.Module):
    """A convolution whose output is flattened in a way that channels-last tensors refuse."""

    def __init__(self):
        super().__init__()
        self.convolution = nn.Conv2d(3, 4, 3)

    def forward(self, x):
        return self.convolution(x).view(len(x), -1)


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


def test_convolutions_run_channels_last_and_give_the_same():
    module = ResNet(width=8).build((3, 16, 16)).eval()
    x = torch.randn(5, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    expected = module(x)
    assert to_channels_last(module, Images(), (3, 16, 16))
    assert module.conv1.weight.is_contiguous(memory_format=torch.channels_last)
    actual = module(x.contiguous(memory_format=torch.channels_last))
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)


def test_a_strided_convolution_of_few_channels_is_not_tried():
    """Its backward pass in channels-last format ends the process on some processors."""
    module = ResNet(width=4).build((3, 16, 16))
    assert not to_channels_last(module, Images(), (3, 16, 16))
    assert module.conv1.weight.is_contiguous()
    assert to_channels_last(ResNet(width=8).build((3, 16, 16)), Images(), (3, 16, 16))


def test_vectors_have_no_channels():
    assert not to_channels_last(MLP().build((5,)), Vectors(), (5,))


def test_a_module_that_needs_contiguous_tensors_keeps_them():
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, size=(20, 3, 6, 6), dtype=np.uint8)
    embedder = small(encoder=Views()).fit(images)
    assert embedder.transform(images).shape == (20, 64)
    assert embedder.encoder_[1].convolution.weight.is_contiguous()


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


def test_bf16_trains_as_well():
    def loss(precision):
        embedder = ContrastiveEmbedder(
            encoder=ConvNet(widths=(8, 16)),
            augmentation=RandomAffine(),
            precision=precision,
            max_epochs=10,
            random_state=0,
            device="cpu",
        )
        return embedder.fit(X).score(X)

    assert loss("bf16") == pytest.approx(loss("float32"), abs=0.02)


def test_auto_is_bf16_for_our_image_encoders_where_the_processor_has_it(monkeypatch):
    images, vectors, cpu = Images(), Vectors(), torch.device("cpu")
    for has_it in (True, False):
        monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda has_it=has_it: has_it)
        assert trains_in_bf16("auto", images, None, cpu) == has_it
        assert trains_in_bf16("auto", images, ConvNet(), cpu) == has_it
        assert not trains_in_bf16("auto", images, nn.Flatten(), cpu)
        assert not trains_in_bf16("auto", vectors, None, cpu)
        assert not trains_in_bf16("float32", images, None, cpu)
        assert trains_in_bf16("bf16", vectors, None, cpu)


def test_unknown_precision_is_refused():
    with pytest.raises(ValueError, match="'precision' parameter of ContrastiveEmbedder"):
        small(precision="fp8").fit(X)


class ViewsInTraining(Views):
    def forward(self, x):
        h = self.convolution(x)
        return h.view(len(x), -1) if self.training else h.flatten(1)


class FiveDimensional(nn.Module):
    def __init__(self):
        super().__init__()
        self.convolution = nn.Conv3d(1, 4, 3)

    def forward(self, x):
        return self.convolution(x[:, None]).flatten(1)


@pytest.mark.parametrize("module", [ViewsInTraining, FiveDimensional])
def test_modules_that_cannot_be_brought_to_another_format_train(module):
    images = np.random.default_rng(0).integers(0, 256, size=(20, 3, 6, 6), dtype=np.uint8)
    assert np.isfinite(small(encoder=module()).fit_transform(images)).all()
