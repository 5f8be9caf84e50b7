"""What holds for every encoder: seeds, copies, rows, hyperparameters."""

import copy
import pickle

import numpy as np
import pytest
import torch
from torch import nn

from skcontrast._checks import validate_parameters  # private: checks without a build
from skcontrast.encoders import GIN, MLP, ConvNet, Encoder, PatchNet, ResNet, SeriesNet
from skcontrast.kinds import Images
from tests.common import small, vectors
from tests.encoders.common import (
    IMAGES,
    VECTOR_ENCODERS,
    Applied,
    case_id,
    own,
    random_batch,
    same_state,
    seeded,
)

SMALL_RESNETS = [
    ResNet(depth=depth, stem=stem, width=4)
    for depth in (18, 34, 50)
    for stem in ("cifar", "imagenet")
]
IMAGE_ENCODERS = [ConvNet(), ConvNet(widths=(4,)), ConvNet(widths=[4, 5], batch_norm=False)]
IMAGE_ENCODERS += SMALL_RESNETS
CASES = [(encoder, (6,)) for encoder in VECTOR_ENCODERS]
CASES += [(encoder, (3, 9, 8)) for encoder in [MLP(widths=(8,)), *IMAGE_ENCODERS]]
PATCH_NETS = [PatchNet(4, 3, (4,)), PatchNet(4, 3, (4, 5), pool_size=2)]
CASES += [(encoder, (3, 9, 8)) for encoder in PATCH_NETS]
every_case = pytest.mark.parametrize("encoder, shape", CASES, ids=case_id)


@pytest.mark.parametrize("encoder", IMAGE_ENCODERS, ids=case_id)
def test_image_encoders_map_images_of_any_size_to_n_components(encoder):
    for n_components in [None, 10]:
        for shape in IMAGES:
            module = seeded(encoder, shape, n_components)
            default = 128
            if isinstance(encoder, ResNet):
                default = 8 * encoder.width * (4 if encoder.depth == 50 else 1)
            elif min(shape[-2:]) >= 16:  # the grid of the last map
                default = module[:-1](torch.zeros(1, *shape)).numel()
            for memory_format in (torch.contiguous_format, torch.channels_last):
                output = module(random_batch(3, shape).contiguous(memory_format=memory_format))
                assert output.shape == (3, n_components or default)


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
def test_constant_rows_give_finite_outputs_and_gradients(encoder, shape):
    for value in [0.0, 1.0, -1e6]:
        module = seeded(encoder, shape)
        output = module(torch.full((4, *shape), value))
        output.square().sum().backward()
        assert output.isfinite().all()
        assert all(parameter.grad.isfinite().all() for parameter in module.parameters())


@pytest.mark.parametrize(
    "encoder, expected",
    [
        (MLP(widths=(0,)), r"'widths' parameter of .*item an int in the range \[1, inf\)"),
        (ConvNet(widths=()), r"'widths' parameter of .*length 1 or more.*Got \(\) instead"),
        (ResNet(depth=17), r"'depth' parameter of .*18.*34.*50.*Got 17 instead"),
    ],
    ids=case_id,
)
def test_hyperparameters_out_of_range_are_named_with_their_range(encoder, expected):
    for check in (validate_parameters, lambda bad: bad.build((1, 8, 8), 4)):
        with pytest.raises(ValueError, match=rf"The {expected}"):
            check(encoder)


def test_numpy_ints_are_ints():
    sizes = tuple(np.array([4, 5]))
    validate_parameters(MLP(widths=sizes))
    validate_parameters(ConvNet(widths=sizes))
    validate_parameters(ResNet(depth=np.int64(34)))


@pytest.mark.parametrize(
    "encoder, kind, shapes",
    [
        (ConvNet(), r"images.*channels, height, width\)", [(64,), (None, 3)]),
        (PatchNet(), r"images.*channels, height, width\)", [(64,)]),
        (ResNet(), r"images.*channels, height, width\)", [(64,)]),
        (MLP(), "", [(None, 3)]),
        (GIN(), "graphs", [(4,), (1, 8, 8)]),
        (SeriesNet(), "series", [(6,), (3, 8, 8), (None, 3)]),
    ],
    ids=case_id,
)
def test_encoders_refuse_samples_of_another_kind(encoder, kind, shapes):
    for shape in shapes:
        with pytest.raises(ValueError, match=f"{type(encoder).__name__} expects {kind}.* got"):
            encoder.build(shape)


def test_a_subclass_without_build_says_so():
    class Nothing(Encoder):
        pass

    with pytest.raises(NotImplementedError, match="Nothing does not implement build"):
        Nothing().build((3,))


def test_an_encoder_without_a_gradient_is_refused():
    for encoder in (own(Applied(torch.Tensor.detach)), Applied(torch.Tensor.detach)):
        with pytest.raises(ValueError, match="has no gradient: leave out detach"):
            small(encoder=encoder).fit(vectors())


def test_layers_in_a_list_would_not_be_trained():
    class Listed(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = [nn.Linear(5, 8)]

        def forward(self, x):
            return self.layers[0](x)

    with pytest.raises(ValueError, match=r"Listed does not hold .* in nn\.ModuleList"):
        small(encoder=Listed()).fit(vectors())


def test_a_frozen_encoder_needs_no_gradient():
    frozen = Applied(torch.Tensor.detach).requires_grad_(False)
    assert small(encoder=frozen, output="projection").fit_transform(vectors()).shape == (60, 64)


def test_an_encoder_that_builds_one_module_each_time_is_not_shared():
    encoder = own(nn.Linear(5, 8))
    first = small(encoder=encoder).fit(vectors())
    before = first.transform(vectors())
    second = small(encoder=encoder, random_state=1).fit(vectors())
    np.testing.assert_array_equal(first.transform(vectors()), before)
    assert first.encoder_ is not second.encoder_


def test_an_encoder_of_ones_own_says_at_which_rate_and_how_long_it_is_trained():
    encoder = own(nn.Linear(5, 8), defaults=lambda self, n_batches, sides: (0.5, n_batches))
    embedder = small(encoder=encoder, max_epochs="auto", batch_size=20, lr_schedule="constant")
    history = embedder.fit(vectors()).history_
    assert len(history) == 3 and history[-1]["lr"] == 0.5


@pytest.mark.parametrize("kind", ["images", "graphs", Images()])
def test_an_encoder_for_another_kind_is_refused(kind):
    with pytest.raises(ValueError, match=r"Own expects .*, got samples of shape \(5,\)"):
        small(encoder=own(nn.Linear(5, 8), kind=kind)).fit(vectors())
    kinds = (kind, "vectors")
    embedder = small(encoder=own(nn.Linear(5, 8), kind=kinds))
    assert embedder.fit_transform(vectors()).shape == (60, 8)


def test_an_error_in_forward_says_what_it_got():
    class TwoArguments(nn.Linear):
        def forward(self, x, mask):
            return super().forward(x)

    message = r"TwoArguments failed on vectors of shape \(5,\).*'mask'"
    with pytest.raises(ValueError, match=message) as info:
        small(encoder=TwoArguments(5, 8)).fit(vectors())
    assert isinstance(info.value.__cause__, TypeError)


def test_weights_from_numpy_follow_the_seed_of_the_embedder():
    class Drawn(Encoder):
        def build(self, sample_shape, n_components=None):
            layer = nn.Linear(sample_shape[0], 8)
            layer.weight.data = torch.from_numpy(np.random.normal(size=(8, 5))).float()  # noqa: NPY002
            return layer

    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    first, second = (small(encoder=Drawn()).fit_transform(vectors()) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002
