"""The default encoder and augmentations of each kind of data."""

import numpy as np
import pytest
import torch

# private: the table of defaults
from skcontrast._model._defaults import DEFAULTS, default_chain, default_encoder, defaults_of

# private: sizes of the test of symmetries
from skcontrast.augmentation import (
    ColorJitter,
    GaussianBlur,
    MarginalCorruption,
    NodeDrop,
    RandomAffine,
    RandomFlip,
    RandomResizedCrop,
    SimCLRAugmentation,
    _symmetries,
    compose,
)
from skcontrast.augmentation._symmetries import SYMMETRIES  # private: the table of symmetries
from skcontrast.encoders import GIN, MLP, ConvNet, PatchNet, SeriesNet
from skcontrast.frameworks import CMC, InfoGraph
from skcontrast.graphs import pack_graphs
from skcontrast.kinds import Graphs, Images, Kind, Series, Vectors
from skcontrast.kinds._recognise import KINDS  # private: the table of kinds
from tests._fit.common import GRAPHS
from tests.common import Items, Numbers, images, reloaded, small, vectors

TURN = RandomAffine(180, translate=0.0, scale=(1.0, 1.0), shear=0.0, padding="reflection")
GREY = [
    RandomResizedCrop(scale=(0.5, 1.0)),
    ColorJitter(brightness=0.6, contrast=0.6),
    GaussianBlur(p=0.3),
]


@pytest.fixture
def stripes(monkeypatch):
    """Grey images of vertical stripes, which allow all but quarter turns, as is soon found out."""
    cheap = {"_FEWEST_IMAGES": 200, "_N_PATCHES": 16, "_N_COMPONENTS": 40, "_FOLDS": 2}
    for name, number in cheap.items():
        monkeypatch.setattr(_symmetries, name, number)
    rng = np.random.default_rng(0)
    return rng.normal(size=(200, 1, 16)) + rng.normal(size=(200, 16, 16))


def test_default_views_suit_the_kind_of_input():
    def default(X):
        return [type(step) for step in small(encoder=None).fit(X).augmentation_]

    assert default(vectors()) == [MarginalCorruption]
    assert default(images(channels=1)) == [RandomAffine, ColorJitter]
    assert default(images(channels=3)) == [SimCLRAugmentation]


def chain(*shape):
    return default_chain(Images(), shape)


@pytest.mark.parametrize("shape", [(1, 8, 8), (1, 28, 28), (1, 15, 40), (1, 64, 64), (3, 32, 32)])
def test_views_of_images_differ_in_brightness(shape):
    ramp = torch.linspace(0.2, 0.8, shape[-1]).expand(64, *shape).contiguous()
    views = compose(chain(*shape), shape)(ramp, torch.Generator().manual_seed(0))
    factors = views.flatten(1).mean(1) / ramp.flatten(1).mean(1)
    assert factors.std() > 0.1


@pytest.mark.parametrize("side", [8, 28, 64])
def test_views_of_grey_images_are_not_flipped_or_turned_far(side):
    ramp = torch.linspace(0, 1, side).expand(64, 1, side, side).contiguous()
    views = compose(chain(1, side, side), (1, side, side))(ramp, torch.Generator().manual_seed(0))
    left, right = views[..., : side // 4].mean((1, 2, 3)), views[..., -side // 4 :].mean((1, 2, 3))
    assert (left <= right + 0.05).all()


def test_images_of_other_channels_keep_their_channels_apart():
    steps = [RandomResizedCrop, ColorJitter, GaussianBlur]
    assert [type(step) for step in chain(2, 28, 28)] == steps


@pytest.mark.parametrize(
    "framework, as_pair, is_mixed",
    [(CMC(), False, True), (CMC(), True, False), (CMC(split=1), False, False)],
)
def test_default_views_mix_no_channels_that_are_contrasted(framework, as_pair, is_mixed):
    images = np.random.default_rng(0).random((20, 3, 6, 6))
    data = (images[:, 0], images[:, 1:]) if as_pair else images
    embedder = small(encoder=ConvNet(widths=(4,)), framework=framework).fit(data)
    assert isinstance(embedder.augmentation_[0], SimCLRAugmentation) == is_mixed


@pytest.mark.parametrize(
    "channels, symmetries, expected",
    [
        (3, None, [SimCLRAugmentation()]),
        (3, (), [SimCLRAugmentation(flip=0.0)]),
        (3, SYMMETRIES[:1], [SimCLRAugmentation()]),
        (3, SYMMETRIES[1:2], [RandomFlip(0.0, 0.5), SimCLRAugmentation(flip=0.0)]),
        (3, SYMMETRIES[:3], [RandomFlip(0.0, 0.5), SimCLRAugmentation()]),
        (3, SYMMETRIES, [RandomFlip(0.0, 0.5), TURN, SimCLRAugmentation()]),
        (1, None, GREY),
        (1, (), GREY),
        (1, SYMMETRIES[:1], [RandomFlip(0.5, 0.0), *GREY]),
        (2, SYMMETRIES[:3], [RandomFlip(0.5, 0.5), *GREY]),
        (1, SYMMETRIES, [RandomFlip(0.5, 0.5), TURN, *GREY]),
    ],
)
def test_views_are_mirrored_and_turned_as_the_images_allow(channels, symmetries, expected):
    found = default_chain(Images(), (channels, 32, 32), symmetries=symmetries)
    assert repr(found) == repr(expected)


def test_views_of_contrasted_channels_are_mirrored_as_the_images_allow():
    def default(symmetries):
        shape = (3, 32, 32)
        return default_chain(Images(), shape, mixes_channels=False, symmetries=symmetries)

    assert repr(default(None)) == repr(default(())) == repr([RandomAffine()])
    assert repr(default(SYMMETRIES[:1])) == repr([RandomFlip(0.5, 0.0), RandomAffine()])


def test_symmetries_are_found_once_in_fit_whatever_the_seed_and_are_kept(stripes):
    fitted = [
        small(
            encoder=ConvNet(widths=(4,)), max_epochs=1, random_state=seed, augmentation=chain
        ).fit(stripes)
        for seed, chain in [(0, None), (1, None), (1, [])]
    ]
    chains = [embedder.augmentation_ for embedder in fitted[:2]]
    chains += [embedder._model.scored_chain(stripes[:20]) for embedder in fitted]
    flip = RandomFlip(0.5, 0.5)
    assert all(repr(chain) == repr([flip, *GREY]) for chain in chains)


def test_symmetries_are_kept_by_a_fit_that_continues_and_in_files(stripes, tmp_path):
    embedder = small(encoder=ConvNet(widths=(4,)), max_epochs=1).fit(stripes)
    embedder.partial_fit(stripes[:40])
    assert embedder._model.symmetries == SYMMETRIES[:3]
    assert isinstance(embedder.augmentation_[0], RandomFlip)
    assert reloaded(embedder, tmp_path)._model.symmetries == SYMMETRIES[:3]


def test_views_drawn_before_a_fit_follow_what_a_dataset_shows(stripes):
    X = (stripes * 20 + 128).clip(0, 255).astype(np.uint8)
    embedder = small(encoder=ConvNet(widths=(4,)), random_state=0)
    drawn = [embedder.views(Z, rows=[0, 1], random_state=0) for Z in (X, Items(X))]
    np.testing.assert_array_equal(*drawn)
    (fitted, _) = embedder.fit(X).views(X, rows=[0, 1], random_state=0)
    np.testing.assert_array_equal(fitted, drawn[0][0])


@pytest.mark.parametrize(
    "kind, shape, encoder",
    [
        (Vectors(), (5,), MLP()),
        (Images(), (1, 8, 8), ConvNet()),
        (Images(), (3, 15, 32), ConvNet()),
        (Images(), (1, 16, 23), ConvNet()),
        (Images(), (1, 24, 16), PatchNet()),
        (Images(), (3, 32, 20), PatchNet()),
        (Images(), (3, 48, 192), PatchNet()),
        (Series(), (2, None), SeriesNet()),
        (Graphs(), (None, 4), GIN()),
    ],
    ids=str,
)
def test_default_encoder_suits_the_kind_and_the_sides(kind, shape, encoder):
    assert repr(default_encoder(kind, shape)) == repr(encoder)


def test_a_kind_has_an_entry_which_those_derived_from_it_share():
    class Masks(Images):
        pass

    entries, none = [DEFAULTS[kind] for kind in KINDS.values()], DEFAULTS[Kind]
    assert all(entry.encoder and entry.views is not none.views for entry in entries)
    assert defaults_of(Masks()) is DEFAULTS[Images]
    assert defaults_of(Numbers()) is DEFAULTS[Kind]


def test_one_view_of_a_graph_is_not_augmented_in_training_and_is_in_score():
    assert isinstance(default_chain(Graphs(), (None, 4))[0], NodeDrop)
    assert default_chain(Graphs(), (None, 4), takes_one_view=True) == []
    embedder = small(framework=InfoGraph(), encoder=None).fit(GRAPHS)
    assert embedder.augmentation_ == []
    assert isinstance(embedder._model.scored_chain(pack_graphs(GRAPHS))[0], NodeDrop)


def test_score_draws_the_default_views_whatever_the_chain():
    for X, default in [(vectors(), MarginalCorruption), (images(channels=3), SimCLRAugmentation)]:
        embedder = small(encoder=None, augmentation=[]).fit(X)
        (scored,) = embedder._model.scored_chain(X)
        assert isinstance(scored, default)
