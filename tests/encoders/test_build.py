"""An encoder from a module, a callable or nothing; the memory format of convolutions."""

import warnings

import numpy as np
import pytest
import torch
from torch import nn

from skcontrast import ContrastiveEmbedder
from skcontrast.encoders import MLP, PatchNet, ResNet

# private: one's own encoder, without a fit
from skcontrast.encoders._base import build_encoder, to_channels_last
from skcontrast.kinds import Images, Vectors
from tests.common import small
from tests.encoders.common import same_state


class Views(nn.Module):
    """A convolution whose output is flattened in a way that channels-last tensors refuse."""

    def __init__(self):
        super().__init__()
        self.convolution = nn.Conv2d(3, 4, 3)

    def forward(self, x):
        return self.convolution(x).view(len(x), -1)


def test_convolutions_run_channels_last_and_give_the_same():
    module = ResNet(width=8).build((3, 16, 16)).eval()
    x = torch.randn(5, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    expected = module(x)
    assert to_channels_last(ResNet(width=8), module, Images(), (3, 16, 16))
    assert module.conv1.weight.is_contiguous(memory_format=torch.channels_last)
    actual = module(x.contiguous(memory_format=torch.channels_last))
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)


def test_a_dictionary_reads_contiguous_images_before_channels_last_convolutions():
    module = PatchNet(widths=(8,)).build((3, 16, 16))
    assert not to_channels_last(PatchNet(), module, Images(), (3, 16, 16))
    (convolution,) = (layer for layer in module if isinstance(layer, nn.Conv2d))
    assert convolution.weight.is_contiguous(memory_format=torch.channels_last)


def test_a_strided_convolution_of_few_channels_is_not_converted():
    """Its backward pass in channels-last format ends the process on some processors."""
    encoder = ResNet(width=4)
    module = encoder.build((3, 16, 16))
    assert not to_channels_last(encoder, module, Images(), (3, 16, 16))
    assert module.conv1.weight.is_contiguous()


def test_vectors_have_no_channels():
    assert not to_channels_last(MLP(), MLP().build((5,)), Vectors(), (5,))


def test_the_module_of_a_user_keeps_its_memory_format():
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, size=(20, 3, 6, 6), dtype=np.uint8)
    embedder = small(encoder=Views()).fit(images)
    assert embedder.transform(images).shape == (20, 64)
    assert embedder.encoder_[1].convolution.weight.is_contiguous()


class Returns(nn.Module):
    """A module whose output is given: the shape of its input is ignored."""

    def __init__(self, output):
        super().__init__()
        self.output = output

    def forward(self, x):
        return self.output


class PartlyFrozen(nn.Sequential):
    """A module that keeps its first part in inference mode, whatever is asked for."""

    def train(self, mode=True):
        super().train(mode)
        self[0].train(False)
        return self


@pytest.mark.parametrize("norm", [nn.BatchNorm1d(6), nn.LazyBatchNorm1d()], ids=["", "lazy"])
def test_lazy_layers_learn_their_width_in_a_copy(norm):
    own = nn.Sequential(nn.LazyLinear(6), norm)
    module, width = build_encoder(own, (4,))
    assert width == 6 and module[0].weight.shape == (6, 4)
    assert torch.nn.parameter.is_lazy(own[0].weight)


class MyEmbedder(ContrastiveEmbedder):
    pass


@pytest.mark.filterwarnings("ignore:All samples in X are alike")
@pytest.mark.parametrize("given", [MLP, "mlp"])
def test_messages_name_the_class_of_the_estimator(given):
    with pytest.raises(TypeError, match="The 'encoder' parameter of MyEmbedder must"):
        MyEmbedder(given).fit(np.zeros((4, 3)))


def test_a_callable_must_return_a_module():
    with pytest.raises(TypeError, match=r"callable encoder len must return .*Module, got 1"):
        build_encoder(len, (4,))


@pytest.mark.parametrize(
    "output, found",
    [
        (torch.zeros(2, 3, 1), r"shape \(2, 3, 1\)"),
        (torch.zeros(2), r"shape \(2,\)"),
        (torch.zeros(1, 3), r"shape \(1, 3\)"),
        (torch.zeros(2, 0), r"shape \(2, 0\)"),
        (torch.zeros(2, 3, dtype=torch.int64), r"dtype torch.int64"),
        (torch.zeros(2, 3, dtype=torch.complex64), r"dtype torch.complex64"),
        ((torch.zeros(2, 3), torch.zeros(2, 3)), "a tuple"),
        (None, "a NoneType"),
    ],
    ids=str,
)
def test_the_output_must_be_a_floating_matrix(output, found):
    with pytest.raises(ValueError, match=rf"encoder Returns .*\(2, width\), got .*{found}"):
        build_encoder(Returns(output), (4,))


def test_building_leaves_statistics_modes_and_gradients_alone():
    own = PartlyFrozen(nn.BatchNorm1d(4), nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Dropout()).train()
    own[3].eval()
    module, _ = build_encoder(own, (4,))
    assert same_state(own, module)
    assert [part.training for part in module.modules()] == [True, False, True, True, False]
    assert all(parameter.grad is None for parameter in module.parameters())


def test_building_draws_as_much_as_the_encoder_alone():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        build_encoder(MLP(), (4,))
        after_trial = torch.random.get_rng_state()
        torch.manual_seed(0)
        MLP().build((4,))
        assert torch.equal(torch.random.get_rng_state(), after_trial)


def compiled():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that torch.jit is deprecated
        return torch.jit.script(nn.Linear(4, 8))


@pytest.mark.parametrize(
    ("encoder", "advice"),
    [
        (compiled, "compiled by torch.jit: pass the original module"),
        (lambda: nn.Sequential(compiled(), nn.ReLU()), "compiled by torch.jit"),
        (lambda: nn.Linear(4, 8).half(), r"weights in float16: pass it after \.float\(\)"),
        (lambda: nn.Linear(4, 8).bfloat16(), r"in bfloat16: .* precision='bf16' for mixed"),
    ],
)
def test_what_cannot_be_trained_is_refused_with_what_to_pass(encoder, advice):
    with pytest.raises(TypeError, match=advice):
        ContrastiveEmbedder(encoder(), max_epochs=1).fit(np.eye(8, 4))


def test_a_callable_is_called_with_the_shape_of_a_sample():
    def convolution(shape):
        return nn.Sequential(nn.Conv2d(shape[0], 3, shape[1:]), nn.Flatten())

    assert build_encoder(convolution, (2, 3, 4))[1] == 3
