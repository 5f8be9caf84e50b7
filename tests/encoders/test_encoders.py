"""Encoders: what is built, what is accepted for ``encoder=``, and what building leaves alone."""

import copy
import pickle

import numpy as np
import pytest
import torch
from sklearn.base import clone
from torch import nn

from skcontrast._data._guess import kind_of_shape
from skcontrast._fit._defaults import default_encoder
from skcontrast._parameters import InvalidParameterError, validate_parameters
from skcontrast.encoders import MLP, ConvNet, Encoder, ResNet
from skcontrast.encoders._build import build_encoder
from skcontrast.encoders._projection import projection_head

VECTORS = [(1,), (7,), (64,)]
IMAGES = [(1, 1, 1), (2, 2, 3), (3, 1, 9), (1, 8, 8), (1, 28, 28), (3, 32, 32), (1, 5, 40)]
SMALL_RESNETS = [
    ResNet(depth=depth, stem=stem, width=4)
    for depth in (18, 34, 50)
    for stem in ("cifar", "imagenet")
]
VECTOR_ENCODERS = [
    MLP(),
    MLP(hidden=()),
    MLP(hidden=5),
    MLP(hidden=[4, 3], dropout=0.3),
    MLP(hidden=(8,), batch_norm=False, activation="tanh"),
    MLP(hidden=(8,), activation="gelu"),
    MLP(hidden=(8,), activation="silu"),
]
IMAGE_ENCODERS = [ConvNet(), ConvNet(widths=(4,)), ConvNet(widths=[4, 5], batch_norm=False)]
IMAGE_ENCODERS += SMALL_RESNETS
CASES = [(encoder, (6,)) for encoder in VECTOR_ENCODERS]
CASES += [(encoder, (3, 9, 8)) for encoder in [MLP(hidden=(8,)), *IMAGE_ENCODERS]]


def case_id(value):
    return repr(value).replace("\n", "").replace(" ", "")


every_case = pytest.mark.parametrize("encoder, shape", CASES, ids=case_id)


def n_parameters(module):
    return sum(parameter.numel() for parameter in module.parameters())


def seeded(encoder, shape, n_components=None, seed=0):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return encoder.build(shape, n_components)


def random_batch(n, shape, seed=0):
    return torch.randn(n, *shape, generator=torch.Generator().manual_seed(seed))


def same_state(first, second):
    first, second = first.state_dict(), second.state_dict()
    return first.keys() == second.keys() and all(torch.equal(first[k], second[k]) for k in first)


class Returns(nn.Module):
    """A module whose output is given: the shape of its input is ignored."""

    def __init__(self, output):
        super().__init__()
        self.output = output

    def forward(self, x):
        return self.output


class Noisy(nn.Module):
    """A module that draws random numbers at every call."""

    def forward(self, x):
        return x + torch.randn_like(x)


class PartlyFrozen(nn.Sequential):
    """A module that keeps its first part in inference mode, whatever is asked for."""

    def train(self, mode=True):
        super().train(mode)
        self[0].train(False)
        return self


# What is built


@pytest.mark.parametrize("n_components", [None, 1, 10])
@pytest.mark.parametrize("shape", VECTORS + IMAGES, ids=case_id)
@pytest.mark.parametrize("encoder", VECTOR_ENCODERS, ids=case_id)
def test_mlp_maps_samples_of_any_shape_to_n_components(encoder, shape, n_components):
    output = seeded(encoder, shape, n_components)(random_batch(3, shape))
    assert output.shape == (3, n_components or 128) and output.dtype == torch.float32


@pytest.mark.parametrize("n_components", [None, 10])
@pytest.mark.parametrize("shape", IMAGES, ids=case_id)
@pytest.mark.parametrize("encoder", IMAGE_ENCODERS, ids=case_id)
def test_image_encoders_map_images_of_any_size_to_n_components(encoder, shape, n_components):
    module = seeded(encoder, shape, n_components)
    default = 128
    if isinstance(encoder, ResNet):
        default = 8 * encoder.width * (4 if encoder.depth == 50 else 1)
    for memory_format in (torch.contiguous_format, torch.channels_last):
        output = module(random_batch(3, shape).contiguous(memory_format=memory_format))
        assert output.shape == (3, n_components or default)


@pytest.mark.parametrize(
    "depth, published", [(18, 11_689_512), (34, 21_797_672), (50, 25_557_032)]
)
def test_resnets_have_the_published_number_of_parameters(depth, published):
    encoder = ResNet(depth=depth, stem="imagenet")
    with torch.device("meta"):
        classifier = encoder.build((3, 224, 224), 1000)
        headless = encoder.build((3, 224, 224))
    features = 2048 if depth == 50 else 512
    assert n_parameters(classifier) == published
    assert n_parameters(headless) == published - 1000 * (features + 1)


def test_cifar_stem_only_replaces_the_first_convolution():
    with torch.device("meta"):
        counts = [
            n_parameters(ResNet(stem=stem).build((3, 32, 32))) for stem in ("imagenet", "cifar")
        ]
    assert counts[0] - counts[1] == 3 * 64 * (7 * 7 - 3 * 3)


@pytest.mark.parametrize("stem, side", [("cifar", 4), ("imagenet", 1)])
def test_resnet_reduces_32_pixels_by_8_after_the_cifar_stem_and_by_32_after_imagenets(stem, side):
    module = seeded(ResNet(stem=stem, width=4), (3, 32, 32)).eval()
    maps = []
    module.layer4.register_forward_hook(lambda layer, args, output: maps.append(output))
    module(torch.zeros(1, 3, 32, 32))
    assert maps[0].shape == (1, 32, side, side)


def test_resnet_parameters_have_the_names_of_torchvision():
    names = set(seeded(ResNet(depth=50, width=4), (3, 8, 8), 2).state_dict())
    assert {
        "conv1.weight",
        "bn1.running_mean",
        "layer1.0.downsample.0.weight",
        "layer3.5.conv3.weight",
        "layer4.2.bn3.bias",
        "fc.weight",
    } <= names


@pytest.mark.parametrize("depth", [18, 34, 50])
def test_zero_init_residual_makes_each_block_the_rectified_shortcut(depth):
    module = seeded(ResNet(depth=depth, width=4), (3, 8, 8))
    block, x = module.layer2[1], random_batch(4, (4 * 2 * (4 if depth == 50 else 1), 4, 4))
    assert torch.equal(block(x), x.relu())
    plain = seeded(ResNet(depth=depth, width=4, zero_init_residual=False), (3, 8, 8))
    assert not torch.allclose(plain.layer2[1](x), x.relu())


def test_mlp_without_hidden_layers_is_affine():
    module = seeded(MLP(hidden=()), (5,), 3)
    a, b = random_batch(2, (4, 5))
    torch.testing.assert_close(module((a + b) / 2), (module(a) + module(b)) / 2)


def test_hidden_may_be_one_int():
    assert same_state(seeded(MLP(hidden=9), (4,)), seeded(MLP(hidden=(9,)), (4,)))


@pytest.mark.parametrize("side, cells", [(1, 1), (3, 2), (4, 2), (7, 2), (8, 2), (28, 2), (33, 2)])
def test_convnet_keeps_at_most_two_by_two_cells_and_pools_no_side_below_four(side, cells):
    module = seeded(ConvNet(widths=(2, 3, 4, 5, 6)), (1, side, side))
    smallest = min(
        module[:index](torch.zeros(2, 1, side, side)).shape[-1]
        for index, layer in enumerate(module)
        if isinstance(layer, nn.Conv2d)
    )
    assert smallest >= min(side, 4)
    assert module[-1].in_features == 6 * cells**2


@pytest.mark.parametrize("shape, widths", [((1, 8, 8), (32, 64)), ((3, 16, 28), (32, 64, 128))])
def test_convnet_has_a_third_block_by_default_from_16_pixels(shape, widths):
    assert same_state(seeded(ConvNet(), shape), seeded(ConvNet(widths=widths), shape))


def test_hidden_activations_neither_fade_nor_explode_with_depth():
    """He initialisation keeps the mean square of the activations through many layers."""
    module = seeded(MLP(hidden=(512,) * 12, batch_norm=False), (512,), 512)
    with torch.no_grad():
        output = module(random_batch(64, (512,)))
    assert 1 / 3 < output.square().mean() < 3


@pytest.mark.parametrize("projection_dim", [1, 16])
def test_projection_head_has_one_square_hidden_layer(projection_dim):
    head = projection_head(24, projection_dim)
    assert head(random_batch(3, (24,))).shape == (3, projection_dim)
    assert n_parameters(head) == 24 * 24 + 2 * 24 + 25 * projection_dim


def test_projection_dim_zero_is_no_head():
    h = random_batch(3, (24,))
    assert projection_head(24, 0)(h) is h


@every_case
def test_same_seed_builds_the_same_weights(encoder, shape):
    assert same_state(seeded(encoder, shape, seed=3), seeded(encoder, shape, seed=3))
    assert not same_state(seeded(encoder, shape, seed=3), seeded(encoder, shape, seed=4))


@every_case
def test_modules_survive_pickle_and_deepcopy(encoder, shape):
    module, x = seeded(encoder, shape).eval(), random_batch(3, shape)
    expected = module(x)
    assert torch.equal(pickle.loads(pickle.dumps(module))(x), expected)
    assert torch.equal(copy.deepcopy(module)(x), expected)


@every_case
def test_inference_of_a_sample_does_not_depend_on_its_batch(encoder, shape):
    module, x = seeded(encoder, shape), random_batch(9, shape)
    with torch.no_grad():
        module(x)
        together, alone = module.eval()(x), torch.cat([module(row[None]) for row in x])
    torch.testing.assert_close(alone, together, rtol=1e-6, atol=1e-6 * together.abs().max().item())


@every_case
@pytest.mark.parametrize("value", [0.0, 1.0, -1e6])
def test_constant_rows_give_finite_outputs_and_gradients(encoder, shape, value):
    module = seeded(encoder, shape)
    output = module(torch.full((4, *shape), value))
    output.square().sum().backward()
    assert output.isfinite().all()
    assert all(parameter.grad.isfinite().all() for parameter in module.parameters())


# Hyperparameters


@pytest.mark.parametrize("encoder", VECTOR_ENCODERS + IMAGE_ENCODERS, ids=case_id)
def test_encoders_are_parameter_objects(encoder):
    copied = clone(encoder)
    assert copied is not encoder and copied.get_params() == encoder.get_params()
    assert eval(repr(encoder)).get_params() == encoder.get_params()
    for name, value in encoder.get_params().items():
        assert getattr(type(encoder)().set_params(**{name: value}), name) == value
    validate_parameters(encoder)


@pytest.mark.parametrize(
    "encoder, expected",
    [
        (MLP(hidden=(0,)), r"'hidden' parameter of .*tuple of ints in the range \[1, inf\)"),
        (MLP(hidden=0), r"'hidden' parameter of .*an int in the range \[1, inf\)"),
        (MLP(hidden=(3, 2.5)), r"'hidden' parameter of"),
        (MLP(hidden="16"), r"'hidden' parameter of"),
        (MLP(hidden=None), r"'hidden' parameter of"),
        (MLP(dropout=1.0), r"'dropout' parameter of .*\[0.0, 1.0\)"),
        (MLP(batch_norm="yes"), r"'batch_norm' parameter of"),
        (MLP(activation="step"), r"'activation' parameter of .*'relu'"),
        (ConvNet(widths=()), r"'widths' parameter of .*length 1 or more.*Got \(\) instead"),
        (ConvNet(widths=8), r"'widths' parameter of"),
        (ConvNet(widths=(8, -1)), r"'widths' parameter of"),
        (ResNet(depth=17), r"'depth' parameter of .*18.*34.*50.*Got 17 instead"),
        (ResNet(depth="18"), r"'depth' parameter of"),
        (ResNet(stem="mnist"), r"'stem' parameter of .*'cifar'"),
        (ResNet(width=0), r"'width' parameter of"),
        (ResNet(zero_init_residual=2), r"'zero_init_residual' parameter of"),
    ],
    ids=case_id,
)
def test_hyperparameters_out_of_range_are_named_with_their_range(encoder, expected):
    for check in (validate_parameters, lambda bad: bad.build((1, 8, 8), 4)):
        with pytest.raises(InvalidParameterError, match=rf"The {expected}"):
            check(encoder)


def test_numpy_ints_are_ints():
    sizes = tuple(np.array([4, 5]))
    validate_parameters(MLP(hidden=sizes))
    validate_parameters(ConvNet(widths=sizes))
    validate_parameters(ResNet(depth=np.int64(34)))


@pytest.mark.parametrize("encoder", [ConvNet(), ResNet()], ids=case_id)
def test_image_encoders_refuse_vectors(encoder):
    with pytest.raises(ValueError, match=r"expects images.*\(channels, height, width\).*\(64,\)"):
        encoder.build((64,))


def test_a_subclass_without_build_says_so():
    class Nothing(Encoder):
        pass

    with pytest.raises(NotImplementedError, match="Nothing does not implement build"):
        Nothing().build((3,))


# What may be passed as encoder


@pytest.mark.parametrize(
    "shape, expected",
    [
        ((64,), MLP()),
        ((1, 8, 8), ConvNet()),
        ((3, 32, 32), ConvNet()),
        ((3, 20, 33), ResNet(stem="cifar")),
        ((3, 64, 64), ResNet(stem="cifar")),
        ((3, 65, 64), ResNet(stem="imagenet")),
    ],
    ids=case_id,
)
@pytest.mark.parametrize("n_components", [None, 6])
def test_default_encoder_follows_the_shape_of_the_samples(shape, expected, n_components):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module, width = build_encoder(
            default_encoder(kind_of_shape(shape), shape), shape, n_components
        )
    assert same_state(module, seeded(expected, shape, n_components))
    assert width == (n_components or {MLP: 128, ConvNet: 128, ResNet: 512}[type(expected)])


def test_a_module_is_copied_and_never_touched():
    own = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU()).train()
    before = copy.deepcopy(own.state_dict())
    module, width = build_encoder(own, (4,))
    assert width == 8 and same_state(own, module)
    assert not {id(p) for p in own.parameters()} & {id(p) for p in module.parameters()}
    module(random_batch(5, (4,))).sum().backward()
    assert all(torch.equal(own.state_dict()[name], value) for name, value in before.items())
    assert all(parameter.grad is None for parameter in own.parameters())


def test_a_callable_is_called_with_the_sample_shape():
    def linear(sample_shape):
        return nn.Sequential(nn.Flatten(), nn.Linear(int(np.prod(sample_shape)), 3))

    module, width = build_encoder(linear, (2, 3, 4))
    assert width == 3 and module[1].in_features == 24


def test_lazy_layers_learn_their_width_in_a_copy():
    own = nn.Sequential(nn.LazyLinear(6), nn.BatchNorm1d(6))
    module, width = build_encoder(own, (4,))
    assert width == 6 and module[0].weight.shape == (6, 4)
    assert torch.nn.parameter.is_lazy(own[0].weight)


@pytest.mark.parametrize("given, name", [(MLP, "MLP"), (nn.ReLU, "ReLU")])
def test_a_class_where_an_instance_is_due(given, name):
    message = (
        "The 'encoder' parameter of ContrastiveEmbedder must be an instance, got the class "
        f"{name}. Write encoder={name}\\(\\) instead."
    )
    with pytest.raises(TypeError, match=message):
        build_encoder(given, (4,))


@pytest.mark.parametrize("given", [3, "mlp", (256, 256)])
def test_what_cannot_be_an_encoder_is_refused(given):
    with pytest.raises(
        TypeError, match=r"The 'encoder' parameter .* torch.nn.Module or a callable"
    ):
        build_encoder(given, (4,))


def test_a_callable_must_return_a_module():
    with pytest.raises(TypeError, match=r"callable encoder len must return .*Module, got 1 of"):
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


def test_a_width_other_than_n_components_is_refused_with_both():
    with pytest.raises(ValueError, match="n_components=5, but the encoder Linear returns 3"):
        build_encoder(nn.Linear(4, 3), (4,), 5)


def test_a_failing_forward_names_encoder_and_sample_shape():
    with pytest.raises(
        ValueError, match=r"encoder Linear failed on samples of shape \(7,\)"
    ) as info:
        build_encoder(nn.Linear(4, 3), (7,))
    assert isinstance(info.value.__cause__, RuntimeError)


def test_hyperparameters_are_checked_before_building():
    with pytest.raises(InvalidParameterError, match="'hidden' parameter of MLP"):
        build_encoder(MLP(hidden=(0,)), (4,))


def test_the_trial_leaves_statistics_modes_and_gradients_alone():
    own = PartlyFrozen(nn.BatchNorm1d(4), nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Dropout()).train()
    own[3].eval()
    module, _ = build_encoder(own, (4,))
    assert same_state(own, module)
    assert [part.training for part in module.modules()] == [True, False, True, True, False]
    assert all(parameter.grad is None for parameter in module.parameters())


@pytest.mark.parametrize("given", [Noisy(), nn.Dropout(), nn.Linear(4, 2)], ids=case_id)
def test_the_trial_leaves_the_global_random_state_alone(given):
    before = torch.random.get_rng_state()
    build_encoder(given, (4,))
    assert torch.equal(torch.random.get_rng_state(), before)


def test_building_draws_as_much_as_the_encoder_alone():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        build_encoder(MLP(), (4,))
        after_trial = torch.random.get_rng_state()
        torch.manual_seed(0)
        MLP().build((4,))
        assert torch.equal(torch.random.get_rng_state(), after_trial)
