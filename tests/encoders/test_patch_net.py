"""PatchNet: a dictionary that is learned once, and blocks that are trained."""

import numpy as np
import pytest
import torch
from sklearn.base import clone

from skcontrast import ContrastiveEmbedder
from skcontrast._layers._images import PatchLayer, Reduced  # private: the layers that were built
from skcontrast.augmentation import Augmentation
from skcontrast.encoders import PatchNet
from skcontrast.frameworks import CMC, MoCo
from skcontrast.optimizers import Optimizer
from tests.common import images
from tests.encoders.common import random_batch, same_state, seeded


def dictionaries(module):
    """Return the dictionaries of a network."""
    return [part for part in module.modules() if isinstance(part, PatchLayer)]


SMALL = PatchNet(6, 3, (4,))
X = images(24, side=16)
WIDTH = 4 * 3**2


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
    "shape, n_cells",
    [
        ((1, 16, 16), 9),
        ((3, 28, 28), 9),
        ((3, 32, 32), 9),
        ((3, 20, 27), 9),
        ((1, 16, 33), 9),
        ((2, 7, 7), 1),
        ((1, 6, 6), 1),
        ((1, 40, 1), 3),
        ((3, 1, 1), 1),
    ],
)
@pytest.mark.parametrize("n_components", [None, 10])
def test_the_representation_is_a_grid_of_cells(shape, n_cells, n_components):
    module, x = learned(PatchNet(5, 6, (4, 8)), shape, n_components)
    expected = n_components or 8 * n_cells
    for mode in (True, False):
        assert module.train(mode)(x).shape == (9, expected)
        assert module(x.contiguous(memory_format=torch.channels_last)).shape == (9, expected)


@pytest.mark.parametrize("pool_size", [1, 2, 5])
def test_pool_size_is_the_grid(pool_size):
    module = seeded(PatchNet(8, 3, (4,), pool_size=pool_size), (3, 28, 28))
    assert module(torch.zeros(2, 3, 28, 28)).shape == (2, 4 * pool_size**2)


def test_a_small_integer_of_numpy_is_an_int():
    module = seeded(PatchNet(4, patch_size=np.int8(3)), (3, 28, 28))
    assert module(torch.ones(2, 3, 28, 28)).ndim == 2


def test_the_dictionary_is_no_parameter_and_is_empty_until_it_is_learned():
    module = seeded(SMALL, (3, 16, 16))
    assert not list(dictionaries(module)[0].parameters())
    assert not dictionaries(module)[0].filters.any()
    assert dictionaries(learned(SMALL, (3, 16, 16))[0])[0].filters.any()


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
    embedder = small(encoder=PatchNet(6, 3, (4,), largest_side=20), max_epochs=1).fit(large)
    draw = embedder._model.sampler(embedder.augmentation_, torch.device("cpu")).draw
    assert draw(torch.from_numpy(large)).shape == (24, 3, 22, 18)
    assert embedder.views(large, rows=[0])[0].shape == (1, 3, 50, 40)
    h = embedder.transform(large)
    assert h.shape == (24, WIDTH)
    np.testing.assert_array_equal(embedder.transform(large[3:5]), h[3:5])


@pytest.mark.parametrize("largest, sides", [(30, [(30, 30)]), (None, [])])
def test_channels_of_an_image_are_reduced_to_the_largest_side_of_their_encoders(largest, sides):
    encoder = [PatchNet(6, 3, (4,), largest_side=side) for side in (20, largest)]
    embedder = small(encoder=encoder, framework=CMC("lab"), augmentation=[])
    layers = embedder.fit(images(24, side=40)).encoder_.modules()
    assert [layer.sides for layer in layers if isinstance(layer, Reduced)] == sides


def test_a_pattern_matches_the_parameters_of_one_encoder_of_an_image():
    encoder = [PatchNet(6, 3, (4,), largest_side=20) for _ in range(2)]
    optimizer = Optimizer("sgd", param_groups=[("encoder.1.*", {"lr": 0.0})])
    embedder = small(encoder=encoder, framework=CMC("lab"), augmentation=[], optimizer=optimizer)
    # The same first weights: those of the second encoder stay, at any learning rate.
    fits = [clone(embedder).set_params(lr=lr).fit(images(24, side=40)) for lr in (0.1, 0.2)]
    states = [fit.encoder_[-1].networks for fit in fits]
    assert [same_state(*pair) for pair in zip(*states, strict=True)] == [False, True]


def test_a_users_own_augmentation_sees_images_in_their_own_size():
    Seen.sides.clear()
    encoder = PatchNet(6, 3, (4,), largest_side=20)
    small(encoder=encoder, augmentation=[Seen()]).fit(images(24, side=40))
    assert set(Seen.sides) == {(40, 40)}


@pytest.mark.parametrize("framework", [CMC(), CMC(split=1), MoCo(queue_size=16)], ids=repr)
def test_each_part_has_a_dictionary_of_its_own(framework):
    embedder = small(framework=framework).fit(X)
    h = embedder.transform(X)
    n_modalities = 2 if isinstance(framework, CMC) else 1
    assert h.shape == (24, n_modalities * WIDTH) and np.isfinite(h).all()
    found = dictionaries(embedder.encoder_)
    assert len(found) == n_modalities and all(part.filters.any() for part in found)


def test_several_arrays_have_a_dictionary_each_for_the_images():
    h = small(framework=CMC()).fit((X, X[:, :1])).transform((X, X[:, :1]))
    assert h.shape == (24, 2 * WIDTH)


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
@pytest.mark.filterwarnings("ignore:The representation is the same for all samples")
def test_images_of_any_sort_have_finite_embeddings(data, params):
    assert np.isfinite(small(**params).fit(data).transform(data)).all()


def test_intensities_of_each_dtype_have_the_same_dictionary():
    """White, black and the range of floats are those of uint8."""
    data = X.copy()
    data[0, 0, 0, :2] = 0, 255
    fitted = [small(max_epochs=1).fit(x).encoder_ for x in (data, data / 255)]
    first, second = (dictionaries(encoder)[0].filters for encoder in fitted)
    torch.testing.assert_close(second, first, rtol=0, atol=1e-3)


def test_a_second_fit_keeps_the_dictionary_of_the_first():
    embedder = small().partial_fit(X)
    before, filters = embedder.transform(X), dictionaries(embedder.encoder_)[0].filters
    h = embedder.partial_fit(images(24, side=16, seed=1)).transform(X)
    assert dictionaries(embedder.encoder_)[0].filters.equal(filters)
    assert not np.isclose(h, before).all()
