"""PatchNet: a dictionary that is learned once, blocks that are trained, and both side by side."""

import pickle

import numpy as np
import pytest
import torch
from sklearn.base import clone

import skcontrast
from skcontrast import ContrastiveEmbedder
from skcontrast._layers._images import PatchLayer
from skcontrast._layers._wide import SideFeatures
from skcontrast.augmentation import Augmentation
from skcontrast.encoders import PatchNet, Wide
from skcontrast.features import OrientedGradients, PatchDictionary
from skcontrast.frameworks import CMC, MoCo
from tests.common import images
from tests.encoders.common import random_batch, same_state, seeded


def wide(n_patches=6, patch_size=3, widths=(4,), **kwargs):
    """Return a network with its codes and gradients beside it."""
    features = [PatchDictionary(n_patches, patch_size, grid=3), OrientedGradients()]
    return Wide(PatchNet(n_patches, patch_size, widths, **kwargs), features, [0.5, 0.5])


def dictionaries(module):
    """Return the dictionaries of a network."""
    return [part for part in module.modules() if isinstance(part, PatchLayer)]


SMALL = wide()
X = images(24, side=16)
# Learned; of the wide block, six codes in 9 cells and nine directions in 16.
DEEP, WIDE = 4 * 3**2, 6 * 3**2 + 9 * 4**2


def small(**kwargs):
    """Return an embedder that trains in a moment."""
    defaults = {"max_epochs": 2, "batch_size": 12, "projection_dim": 5, "random_state": 0}
    return ContrastiveEmbedder(**{"encoder": SMALL, "device": "cpu", **defaults, **kwargs})


def learned(encoder, shape, n_components=None):
    """Return a network of an encoder that has learned its dictionary, and images of that shape."""
    module, x = seeded(encoder, shape, n_components), random_batch(9, shape)
    with torch.random.fork_rng(devices=[]):
        encoder.learn(module, x, np.random.RandomState(0))
    return module, x


@pytest.mark.parametrize(
    "shape, learned_cells, wide_cells",
    [
        ((1, 16, 16), 9, 9),
        ((3, 28, 28), 9, 9),
        ((3, 32, 32), 9, 9),
        ((3, 20, 27), 9, 9),
        ((1, 16, 33), 9, 9),
        ((2, 7, 7), 1, 4),
        ((1, 6, 6), 1, 1),
        ((1, 40, 1), 3, 3),
        ((3, 1, 1), 1, 1),
    ],
)
@pytest.mark.parametrize("n_components", [None, 10])
def test_the_representation_is_a_grid_of_what_is_learned_and_one_of_codes(
    shape, learned_cells, wide_cells, n_components
):
    encoder = wide(5, 6, (4, 8))
    module, x = learned(encoder, shape, n_components)
    gradient_cells = max(1, shape[1] // 4) * max(1, shape[2] // 4)
    expected = n_components or 8 * learned_cells + 5 * wide_cells + 9 * gradient_cells
    for mode in (True, False):
        assert module.train(mode)(x).shape == (9, expected)
        channels_last = x.contiguous(memory_format=torch.channels_last)
        assert module(channels_last).shape == (9, expected)


@pytest.mark.parametrize("pool_size", [1, 2, 5])
def test_pool_size_is_the_grid_of_what_is_learned(pool_size):
    module = seeded(wide(8, pool_size=pool_size), (3, 28, 28))
    assert module.beside.learned_width == 4 * pool_size**2


def test_a_small_integer_of_numpy_is_an_int():
    assert (
        seeded(PatchNet(4, patch_size=np.int8(3)), (3, 28, 28))(torch.ones(2, 3, 28, 28)).ndim == 2
    )


def test_the_dictionary_is_no_parameter_and_is_empty_until_it_is_learned():
    module = seeded(SMALL, (3, 16, 16))
    trained = {name.partition(".")[0] for name, _ in module.named_parameters()}
    assert trained == {"deep"}
    assert not dictionaries(module.deep)[0].filters.any()
    assert dictionaries(learned(SMALL, (3, 16, 16))[0].deep)[0].filters.any()


@pytest.mark.parametrize(
    "shape, strides",
    [
        ((3, 47, 60), [2]),
        ((1, 48, 48), [2, 2]),
        ((3, 96, 100), [4, 2, 2]),
        ((1, 192, 192), [8, 4, 2, 2]),
    ],
)
def test_larger_images_have_a_dictionary_for_each_octave(shape, strides):
    module, x = learned(PatchNet(20, widths=(4,)), shape)
    found = dictionaries(module)
    assert [layer.stride for layer in found] == strides
    assert {len(layer.filters) for layer in found} == {20 // len(strides)}
    filters = [layer.filters for layer in found]
    assert all(one.any() for one in filters) and not any(map(torch.equal, filters, filters[1:]))
    assert module.eval()(x).shape == (9, 4 * 3**2)


def test_what_is_trained_on_elongated_images_sees_no_more_places_than_of_a_square():
    places = []
    for shape in [(1, 47, 47), (1, 32, 288), (1, 230, 40)]:
        module = PatchNet(2, widths=(2,)).build(shape)
        places.append(module[:2](torch.zeros(2, *shape)).shape[2:].numel())
    assert places == [100, 98, 99]


class Seen(Augmentation):
    """Inverts images, and remembers their size."""

    kind = "images"
    sides = []

    def augment(self, batch, generator=None):
        Seen.sides.append(tuple(batch.shape[-2:]))
        return 1 - batch


def test_large_images_are_reduced_before_their_views_and_before_the_network():
    large = images(24, side=50)[:, :, :, :40]
    encoder = wide(largest_side=20)
    embedder = small(encoder=encoder, max_epochs=1).fit(large)
    draw = embedder._fitted.composed(embedder.augmentation_, torch.device("cpu"))
    assert draw(torch.from_numpy(large)).shape == (24, 3, 22, 18)
    assert embedder.views(large, rows=[0])[0].shape == (1, 3, 50, 40)
    h = embedder.transform(large)
    assert h.shape == (24, DEEP + 6 * 3**2 + 9 * 5 * 4)
    np.testing.assert_array_equal(embedder.transform(large[3:5]), h[3:5])


def test_a_users_own_augmentation_sees_images_in_their_own_size():
    Seen.sides.clear()
    small(encoder=wide(largest_side=20), augmentation=[Seen()]).fit(images(24, side=40))
    assert set(Seen.sides) == {(40, 40)}


def test_the_seed_decides_the_dictionary():
    first, second = learned(SMALL, (3, 16, 16))[0], learned(SMALL, (3, 16, 16))[0]
    assert same_state(first, second)


def test_training_leaves_the_wide_block_as_it_was():
    short, long = (small(max_epochs=n).fit(X) for n in (1, 3))
    first, last = short.transform(X), long.transform(X)
    assert first.shape == (24, DEEP + WIDE)
    np.testing.assert_array_equal(last[:, DEEP:], first[:, DEEP:])
    assert not np.isclose(last[:, :DEEP], first[:, :DEEP]).all()
    assert first[:, DEEP:].any()


def test_the_wide_block_is_zero_in_training_mode():
    module, x = learned(SMALL, (3, 16, 16))
    h = module.train()(x)
    assert not h[:, module.beside.learned_width :].any()
    assert module.eval()(x)[:, module.beside.learned_width :].any()


def test_in_inference_a_row_does_not_depend_on_the_others():
    embedder = small().fit(X)
    h = embedder.transform(X)
    for rows in ([3], [5, 3], list(range(20))):
        np.testing.assert_array_equal(embedder.transform(X[rows]), h[rows])


@pytest.mark.parametrize("projection_dim", [5, 0])
def test_the_projection_is_the_head_on_what_is_learned(projection_dim):
    embedder = small(projection_dim=projection_dim).fit(X)
    h = embedder.transform(X)
    z = embedder.set_params(output="projection").transform(X)
    head, h = embedder.projector_, torch.from_numpy(h)
    np.testing.assert_allclose(z, head(h).detach(), atol=1e-5)
    np.testing.assert_allclose(z, head[1](h[:, :DEEP]).detach(), atol=1e-5)
    assert len(embedder.get_feature_names_out()) == z.shape[1] == (projection_dim or DEEP)


@pytest.mark.parametrize("params", [{"n_components": 7}, {"encoder": clone(SMALL)}], ids=str)
def test_without_the_wide_block_all_is_learned(params):
    if "encoder" in params:
        params["encoder"] = clone(SMALL.deep)
    embedder = small(**params).fit(X)
    assert not any(isinstance(part, SideFeatures) for part in embedder.encoder_.modules())
    assert embedder.transform(X).shape == (24, params.get("n_components", DEEP))
    first = next(part for part in embedder.encoder_.modules() if hasattr(part, "filters"))
    assert first.filters.any(), "the dictionary is learned there too"


@pytest.mark.parametrize("framework", [CMC(), CMC(split=1), MoCo(queue_size=16)], ids=repr)
def test_each_part_has_a_dictionary_of_its_own(framework):
    embedder = small(framework=framework).fit(X)
    h = embedder.transform(X)
    n_parts = 2 if isinstance(framework, CMC) else 1
    assert h.shape == (24, n_parts * (DEEP + WIDE)) and np.isfinite(h).all()
    found = [part for part in embedder.encoder_.modules() if hasattr(part, "filters")]
    # Each is there a second time, for the wide block, which has all patches.
    assert len(found) == 2 * n_parts and all(part.filters.any() for part in found)


def test_several_arrays_have_a_dictionary_each_for_the_images():
    h = small(framework=CMC()).fit((X, X[:, :1])).transform((X, X[:, :1]))
    assert h.shape == (24, 2 * (DEEP + WIDE))


@pytest.mark.filterwarnings("ignore:All samples in X are alike")
@pytest.mark.parametrize(
    "data, params",
    [
        (X, {}),
        (X / 255, {}),
        (X.astype(np.float32), {}),
        (X[:, 0], {}),
        (X, {"precision": "bf16"}),
        (images(24, side=33)[:, :, :16], {}),
        (X[:, :, :, :1], {}),
        (np.full((24, 3, 16, 16), 7, np.uint8), {}),
    ],
    ids=["uint8", "0 to 1", "0 to 255", "grey", "bf16", "16x33", "one wide", "constant"],
)
def test_images_of_any_sort_have_finite_embeddings(data, params):
    assert np.isfinite(small(**params).fit(data).transform(data)).all()


def test_intensities_of_each_dtype_have_the_same_codes():
    """White, black and the range of floats are those of uint8."""
    data = X.copy()
    data[0, 0, 0, :2] = 0, 255
    first, second = (small().fit(x).transform(x)[:, DEEP:] for x in (data, data / 255))
    np.testing.assert_allclose(second, first, atol=1e-3)


@pytest.mark.parametrize("way", ["pickle", "save", "clone", "deterministic"])
def test_copies_have_the_same_bits(way, tmp_path):
    embedder = small().fit(X)
    if way == "pickle":
        copied = pickle.loads(pickle.dumps(embedder))
    elif way == "save":
        skcontrast.save(embedder, tmp_path / "a.skc")
        copied = skcontrast.load(tmp_path / "a.skc")
    else:
        copied = (clone(embedder) if way == "clone" else small()).fit(X)
    np.testing.assert_array_equal(copied.transform(X), embedder.transform(X))


def test_a_second_fit_keeps_the_dictionary_of_the_first():
    embedder = small().partial_fit(X)
    before = embedder.transform(X)
    h = embedder.partial_fit(images(24, side=16, seed=1)).transform(X)
    np.testing.assert_array_equal(h[:, DEEP:], before[:, DEEP:])
    assert not np.isclose(h[:, :DEEP], before[:, :DEEP]).all()


def test_the_network_and_the_features_have_the_same_dictionary():
    embedder = small().fit(X)
    first, second = (part for part in embedder.encoder_.modules() if isinstance(part, PatchLayer))
    assert first.filters.equal(second.filters)
    assert (first.stride, second.stride) == (2, 1)
