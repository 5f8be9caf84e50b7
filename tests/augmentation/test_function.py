"""FunctionAugmentation: what a function receives, what it may return, and seeding that holds."""

import functools
import pickle
import random

import networkx as nx
import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from torch import nn

from skcontrast.augmentation import FunctionAugmentation, GaussianNoise
from skcontrast.graphs import pack_graphs
from tests.augmentation.common import random_images, seeded
from tests.common import (
    IMAGES,
    Numbers,
    check_sklearn_contract,
    global_states,
    small,
    small_images,
    vectors,
)

# Functions in the styles of several libraries


def torch_noise(x):
    return x + 0.1 * torch.randn_like(x)


def numpy_noise(x):
    return x + 0.1 * np.random.normal(size=x.shape)  # noqa: NPY002


def python_noise(x):
    return x + 0.1 * random.random()


def all_noises(x):
    return torch_noise(x) + np.random.normal() + random.random()  # noqa: NPY002


def with_generator(x, generator):
    return x + 0.1 * torch.randn(x.shape, generator=generator)


def with_rng(x, rng):
    return x + 0.1 * torch.as_tensor(rng.normal(size=tuple(x.shape)))


def with_seed(x, seed):
    return with_rng(x, np.random.default_rng(seed))


class Jitter(nn.Module):
    """Like torchvision v2: one draw for whatever it receives, from torch's generator."""

    def __init__(self, brightness):
        super().__init__()
        self.brightness = brightness

    def forward(self, image):
        return (image * (1 + self.brightness * (torch.rand(1) - 0.5))).clamp(0, 1)


class AsKornia(nn.Module):
    """Like kornia: a draw for each sample of the batch, and a buffer on a device."""

    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.tensor(0.5))

    def forward(self, x):
        flipped = torch.rand(len(x)) < self.scale.cpu()
        return torch.where(flipped.to(x.device)[:, None, None, None], x.flip(-1), x)


class Compose:
    """Like albumentations: called with ``image=``, channels last, with generators of its own."""

    def __init__(self):
        self.rng = np.random.default_rng()

    def set_random_seed(self, seed):
        self.rng = np.random.default_rng(seed)

    def __call__(self, *, image):
        assert isinstance(image, np.ndarray) and image.shape[-1] in (1, 3)
        return {"image": np.roll(image, self.rng.integers(-2, 3), axis=1)}


ALBUMENTATIONS = Compose()


def roll(image, seed):
    ALBUMENTATIONS.set_random_seed(seed)
    return ALBUMENTATIONS(image=image)["image"]


SEEDED = [
    FunctionAugmentation(torch_noise),
    FunctionAugmentation(torch_noise, per_sample=True),
    FunctionAugmentation(numpy_noise, backend="numpy"),
    FunctionAugmentation(numpy_noise, backend="numpy", per_sample=True),
    FunctionAugmentation(python_noise, per_sample=True),
    FunctionAugmentation(all_noises),
    FunctionAugmentation(with_generator),
    FunctionAugmentation(with_generator, per_sample=True),
    FunctionAugmentation(with_rng),
    FunctionAugmentation(with_rng, per_sample=True),
    FunctionAugmentation(with_seed, per_sample=True),
    FunctionAugmentation(Jitter(0.5), per_sample=True, kind="images"),
    FunctionAugmentation(AsKornia(), kind="images"),
    FunctionAugmentation(roll, per_sample=True, backend="numpy", kind="images"),
    FunctionAugmentation(functools.partial(torch.mul, other=torch.tensor(0.5))),
]


def name(augmentation):
    how = "-per-sample" if augmentation.per_sample else ""
    return f"{augmentation._name}-{augmentation.backend}{how}"


def samples(augmentation):
    return random_images(n=8) if augmentation.kind == "images" else torch.randn(8, 5)


# Seeding


@pytest.mark.parametrize("augmentation", SEEDED, ids=name)
def test_one_seed_gives_one_view_and_each_call_a_fresh_one(augmentation):
    batch, before = samples(augmentation), global_states()
    generator = seeded(1)
    first, second = (augmentation.augment(batch, generator) for _ in range(2))
    augmentation.augment(batch)
    assert global_states() == before
    torch.manual_seed(123)
    np.random.seed(123)  # noqa: NPY002
    assert augmentation.augment(batch, seeded(1)).equal(first)
    if not isinstance(augmentation.func, functools.partial):
        assert not first.equal(second)


def test_the_global_generators_are_as_before_after_an_error():
    def fails(x):
        torch.rand(1), np.random.rand(), random.random()  # noqa: NPY002
        raise RuntimeError("out of film")

    before = global_states()
    with pytest.raises(RuntimeError, match="out of film"):
        FunctionAugmentation(fails).augment(torch.zeros(4, 3), seeded())
    assert global_states() == before


@pytest.mark.parametrize("augmentation", SEEDED[:-1], ids=name)
def test_each_sample_gets_its_own_draw_where_the_function_makes_one(augmentation):
    if augmentation.func is all_noises:
        pytest.skip("draws for the batch on purpose")
    batch = samples(augmentation)[:1].repeat_interleave(8, 0)
    views = augmentation.augment(batch, seeded(2))
    assert len(views.flatten(1).unique(dim=0)) > 1


@pytest.mark.parametrize("augmentation", [SEEDED[5], SEEDED[4], SEEDED[2]], ids=name)
def test_random_state_decides_the_embedding(augmentation):
    def embed(seed):
        torch.manual_seed(seed + 50)
        return small(augmentation=augmentation, random_state=seed % 2).fit_transform(vectors())

    np.testing.assert_array_equal(embed(0), embed(2))
    assert not np.array_equal(embed(0), embed(1))


def test_samples_read_in_batches_by_workers_give_the_same_embedding():
    def embed(**params):
        return small(augmentation=SEEDED[5], batch_size=16, **params).fit_transform(vectors())

    in_memory = embed()
    np.testing.assert_array_equal(in_memory, embed(memory_budget=0))
    np.testing.assert_array_equal(in_memory, embed(memory_budget=0, n_workers=1))


# What the function receives


@pytest.mark.parametrize(
    ("options", "shape"),
    [
        ({}, (6, 3, 12, 12)),
        ({"per_sample": True}, (3, 12, 12)),
        ({"backend": "numpy"}, (6, 12, 12, 3)),
        ({"backend": "numpy", "per_sample": True}, (12, 12, 3)),
    ],
    ids=str,
)
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_images_come_as_float32_in_0_1(options, shape, dtype):
    seen = []

    def look(x):
        seen.append(x)
        return x

    images = random_images() if dtype == torch.float32 else (random_images() * 255).byte()
    views = FunctionAugmentation(look, **options).augment(images, seeded())
    of_batch = [x for x in seen if options.get("per_sample") or len(x) == 6]
    assert {tuple(x.shape) for x in of_batch} == {shape}
    assert all(isinstance(x, np.ndarray if "backend" in options else torch.Tensor) for x in seen)
    assert all(str(x.dtype).endswith("float32") and 0 <= x.min() <= x.max() <= 1 for x in seen)
    assert views.equal(images if dtype == torch.float32 else images / 255)


def test_float_images_of_any_range_come_in_0_1_during_a_fit():
    ranges = []

    def look(x):
        ranges.append((float(x.min()), float(x.max())))
        return x

    embedder = small_images(augmentation=FunctionAugmentation(look), projection_dim=4)
    embedder.fit(IMAGES * 10.0 - 3)
    lows, highs = zip(*ranges, strict=True)
    assert min(lows) == 0 and max(highs) == 1


def test_vectors_come_in_the_units_of_x():
    seen = []
    X = vectors() * 1000 + 500
    look = FunctionAugmentation(lambda x: seen.append(x) or x)
    small(augmentation=look, batch_size=60, max_epochs=1).fit(X)
    np.testing.assert_allclose(np.sort(seen[-1], axis=0), np.sort(X, axis=0), rtol=1e-5)


def test_a_function_may_work_in_place():
    batch = torch.randn(5, 4)
    before = batch.clone()
    for backend in ("torch", "numpy"):
        for per_sample in (False, True):

            def clear(x):
                x[:] = 0
                return x

            views = FunctionAugmentation(clear, per_sample, backend=backend).augment(batch)
            assert views.equal(torch.zeros(5, 4)) and batch.equal(before)


def test_kw_args_are_passed_and_can_be_searched():
    def scale(x, factor, rng=None):
        return x * factor

    augmentation = FunctionAugmentation(scale, kw_args={"factor": 3.0})
    assert augmentation.augment(torch.ones(2, 2)).equal(torch.full((2, 2), 3.0))
    pipe = make_pipeline(augmentation, small(max_epochs=1))
    grid = {"functionaugmentation__kw_args": [{"factor": 1.0}, {"factor": 2.0}]}
    found = GridSearchCV(pipe, grid, cv=2).fit(vectors()).best_params_
    assert found["functionaugmentation__kw_args"]


# What it may return


@pytest.mark.parametrize("per_sample", [False, True])
@pytest.mark.parametrize(
    "convert",
    [
        lambda x: x.numpy(),
        lambda x: x.double(),
        lambda x: x.numpy().astype(np.float64)[..., ::-1][..., ::-1],
        lambda x: (x * 255).round().byte(),
        lambda x: (x * 255).round().byte().numpy(),
    ],
    ids=["ndarray", "float64", "negative strides", "uint8", "uint8 ndarray"],
)
def test_tensors_and_arrays_of_any_dtype_become_floats(convert, per_sample):
    images = (random_images() * 255).round() / 255
    views = FunctionAugmentation(convert, per_sample).augment(images, seeded())
    assert views.dtype == torch.float32
    torch.testing.assert_close(views, images)


def test_a_grey_image_may_lose_its_channel_axis_in_numpy():
    grey = random_images(channels=1)
    for per_sample in (False, True):
        squeezed = FunctionAugmentation(lambda x: x[..., 0], per_sample, backend="numpy")
        assert squeezed.augment(grey).equal(grey)


def wrong(returns, **options):
    return FunctionAugmentation(returns, **options).augment(random_images(), seeded())


@pytest.mark.parametrize(
    ("returns", "options", "message"),
    [
        (lambda x: x[..., 1:], {}, r"\(<lambda>\) must return views of .* \(6, 3, 12, 12\), got"),
        (lambda x: x[0], {}, r"got \(3, 12, 12\)\. Pass per_sample=True"),
        (lambda x: x[:, 1:], {"per_sample": True}, r"a view .* \(3, 12, 12\), got \(3, 11, 12\)"),
        (lambda x: x[1:], {"per_sample": True, "backend": "numpy"}, r"\(12, 12, 3\), got \(11, "),
        (lambda x: x / 0, {}, "NaN or infinity"),
    ],
)
def test_views_of_a_wrong_shape_and_nan_are_refused_by_name(returns, options, message):
    with pytest.raises(ValueError, match=f"FunctionAugmentation.*{message}"):
        wrong(returns, **options)


@pytest.mark.parametrize(
    ("returns", "got"),
    [(lambda x: None, "NoneType"), (lambda x: {"image": x}, "dict"), (lambda x: [x], "list")],
)
def test_only_tensors_and_arrays_are_taken(returns, got):
    with pytest.raises(TypeError, match=rf"\(<lambda>\) must return a tensor .* got {got}"):
        wrong(returns)


# As a part of the package


@pytest.mark.filterwarnings("ignore::skcontrast.augmentation.AugmentationDropped")
def test_scikit_learn_contract():
    check_sklearn_contract(FunctionAugmentation(nn.Dropout()))


def test_a_fitted_embedder_with_a_module_can_be_pickled_and_cloned():
    embedder = small_images(augmentation=SEEDED[12]).fit(IMAGES)
    again = pickle.loads(pickle.dumps(embedder))
    np.testing.assert_array_equal(again.transform(IMAGES), embedder.transform(IMAGES))
    np.testing.assert_array_equal(
        clone(embedder).fit_transform(IMAGES), embedder.transform(IMAGES)
    )


def test_no_gradient_is_computed():
    scale = nn.Linear(4, 4)
    assert not FunctionAugmentation(scale).augment(torch.randn(3, 4)).requires_grad


def test_graphs_are_passed_as_they_are():
    def first_nodes_only(batch, generator):
        kept = torch.rand(batch.n_nodes, generator=generator) > 0.2
        kept[batch.node_ptr[:-1]] = True
        return batch.keep(kept)

    graphs = pack_graphs([nx.cycle_graph(4 + k % 4) for k in range(20)])
    augmentation = FunctionAugmentation(first_nodes_only, kind="graphs")
    embed = [
        small(encoder=None, augmentation=augmentation).fit_transform(graphs) for _ in range(2)
    ]
    np.testing.assert_array_equal(*embed)
    with pytest.raises(ValueError, match="needs per_sample=False"):
        FunctionAugmentation(first_nodes_only, True, kind="graphs").fit(graphs)


def test_batches_of_a_kind_of_your_own_keep_their_dtype():
    def drop(x):
        assert x.dtype == torch.int64
        return x.masked_fill(torch.rand(x.shape) < 0.2, 0)

    augmentation = FunctionAugmentation(drop, kind=Numbers())
    embedder = small(encoder=nn.EmbeddingBag(9, 4), augmentation=augmentation)
    assert embedder.fit_transform(np.arange(60).reshape(20, 3) % 9).shape == (20, 4)


@pytest.mark.parametrize(
    "given, message",
    [
        (FunctionAugmentation(torch_noise, kind="image"), "'kind' parameter of F.*'image'"),
        (FunctionAugmentation(3), "'func' parameter of FunctionAugmentation"),
        (FunctionAugmentation(torch_noise, backend="jax"), "'backend'"),
        (FunctionAugmentation(torch_noise, kind="images"), "FunctionAugmentation expects images"),
        (FunctionAugmentation(nn.Dropout), r"func must be .*: write Dropout\(\)"),
    ],
)
def test_the_wrong_kind_and_wrong_parameters_are_refused(given, message):
    with pytest.raises((TypeError, ValueError), match=message):
        small(augmentation=given).fit(vectors())


@pytest.mark.parametrize("given", [torch_noise, nn.Dropout(), Compose()], ids=type)
def test_a_bare_function_as_augmentation_is_told_how_to_be_wrapped(given):
    for augmentation in (given, [GaussianNoise(), given]):
        with pytest.raises(TypeError, match=r"pass FunctionAugmentation\("):
            small(augmentation=augmentation).fit(vectors())
