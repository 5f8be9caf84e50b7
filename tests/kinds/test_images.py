"""Images: forms, intensities, extremes."""

import numpy as np
import pytest
import torch
from sklearn.pipeline import make_pipeline

from skcontrast.augmentation import RandomFlip
from skcontrast.kinds import Images
from tests.common import IMAGES, images, small_images


@pytest.mark.parametrize(
    "X",
    [
        images(),
        images(channels=1),
        images()[:, 0],
        images().astype(np.float32) / 255,
        images().astype(np.float64),
        images().astype(np.int64),
        torch.from_numpy(images()),
        images().transpose(0, 1, 3, 2)[::2],
    ],
    ids=["uint8", "1 channel", "3-D", "float32", "float64", "int64", "tensor", "strided"],
)
def test_images_of_every_form(X):
    embedder = small_images(n_components=7).fit(X)
    h = embedder.transform(X)
    assert h.shape == (len(X), 7) and h.dtype == np.float32 and np.isfinite(h).all()
    assert embedder.n_features_in_ == np.prod(X.shape[1:])


def test_memory_map_gives_what_the_array_gives(tmp_path):
    X = images(40)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    np.testing.assert_array_equal(
        small_images().fit(mapped).transform(mapped), small_images().fit(X).transform(X)
    )


def test_grey_images_with_and_without_channel_axis_are_the_same():
    X = images(channels=1)
    np.testing.assert_array_equal(
        small_images().fit(X[:, 0]).transform(X[:, 0]), small_images().fit(X).transform(X)
    )


def test_uint8_and_float_images_of_the_same_values_are_embedded_alike():
    X = images()
    embedder = small_images().fit(X)
    expected = embedder.transform(X)
    np.testing.assert_allclose(embedder.transform(X.astype(float)), expected, atol=1e-5)
    on_float = small_images().fit(X / 16)
    np.testing.assert_allclose(
        on_float.transform((X // 16).astype(np.uint8)), on_float.transform((X // 16) * 1.0)
    )


def test_a_list_of_images_is_an_array_of_images():
    X = images()
    expected = small_images().fit(X).transform(X)
    np.testing.assert_array_equal(small_images().fit(list(X)).transform(list(X)), expected)
    tensors = [torch.from_numpy(image) for image in X]
    np.testing.assert_array_equal(small_images().fit(tensors).transform(tensors), expected)
    with pytest.raises(ValueError, match=r"one shape, got"):
        small_images().fit([X[0], X[1][:, :3]])


def test_images_in_a_different_unit_than_in_fit_are_pointed_out():
    X = images()
    with pytest.warns(UserWarning, match="to 1, but in fit black was 0 and white 255: rescale X"):
        small_images().fit(X).transform(X / X.max())


U16 = np.random.default_rng(0).integers(0, 65536, (30, 1, 8, 8)).astype(np.uint16)
U8, FLOATS = (U16 >> 8).astype(np.uint8), U16 / 65535
UNITS = {
    "uint8": U8,
    "uint16": U16,
    "12 bit": U16 >> 4,
    "[0, 255]": FLOATS * 255,
    "[0, 1]": FLOATS.astype(np.float32),
    "[-1, 1]": 2 * FLOATS - 1,
    "normalised": (FLOATS - 0.45) / 0.22,
}
# One unit lies within the other.
UNNOTICED = {("[-1, 1]", "[0, 1]"), ("normalised", "[0, 1]"), ("normalised", "[-1, 1]")}
UNNOTICED |= {("[0, 255]", "uint8"), ("uint8", "[0, 255]")}


@pytest.mark.parametrize("fitted", UNITS)
def test_any_other_unit_than_that_of_fit_is_reported(fitted):
    embedder = small_images(max_epochs=1).fit(UNITS[fitted])
    for given in UNITS.keys() - {fitted}:
        if (fitted, given) in UNNOTICED:
            embedder.transform(UNITS[given])
            continue
        with pytest.warns(UserWarning, match="rescale X as in fit"):
            embedder.transform(UNITS[given])


@pytest.mark.parametrize(
    ("fitted", "given"),
    [
        ("uint16", "uint8"),
        ("12 bit", "uint8"),
        ("[0, 1]", "uint8"),
        ("uint8", "uint16"),
        ("uint8", "12 bit"),
        ("uint8", "[0, 1]"),
        ("uint8", "normalised"),
        ("uint16", "normalised"),
        ("[0, 1]", "[-1, 1]"),
        ("[0, 1]", "normalised"),
    ],
)
def test_a_single_image_in_another_unit_is_reported(fitted, given):
    embedder = small_images(max_epochs=1).fit(UNITS[fitted])
    with pytest.warns(UserWarning, match="rescale X as in fit"):
        embedder.transform(UNITS[given][:1])


@pytest.mark.parametrize("fitted", UNITS)
def test_dark_images_few_images_and_black_ones_are_no_other_unit(fitted):
    X = UNITS[fitted]
    embedder, black = small_images(max_epochs=1).fit(X), X.min()
    for one in X:
        embedder.transform(one[None])
    embedder.transform(np.full_like(X, black))
    embedder.transform(np.full_like(X, X.max()))
    for factor in (0.01, 0.1, 0.5):
        embedder.transform((black + factor * (X[:5] - black)).astype(X.dtype))
    embedder.transform((black + 0.2 * (X - black)).astype(X.dtype))


def test_units_that_other_dtypes_hold_are_no_other_unit():
    on_bytes, on_floats = (small_images(max_epochs=1).fit(UNITS[k]) for k in ("uint8", "[0, 1]"))
    for dtype in (np.uint16, np.int64, np.float32, np.float64):
        on_bytes.transform(U8.astype(dtype))
        on_bytes.transform((U8[:3] // 20).astype(dtype))
    few_grey_levels = U8 // 16
    small_images(max_epochs=1).fit(few_grey_levels).transform(few_grey_levels / 1.0)
    on_floats.transform(U8 > 128)
    on_floats.transform((U8 > 128).astype(np.uint8))
    on_floats.transform(FLOATS * 1.1)


def test_an_outlying_pixel_does_not_take_the_range_of_all():
    spoiled = IMAGES.copy()
    spoiled[0, 0, 0, 0] = 1e6
    with pytest.warns(UserWarning, match=r"range from 0 to 1e\+06, but 99.8 %"):
        embedder = small_images().fit(spoiled)
    assert embedder.transform(IMAGES).std() > 0.1 * small_images().fit_transform(IMAGES).std()


@pytest.mark.filterwarnings("ignore:All samples in X are alike")
@pytest.mark.parametrize(
    "X",
    [
        np.zeros((5, 3, 4, 4), np.uint8),
        np.full((5, 3, 4, 4), 255, np.uint8),
        np.full((5, 4, 4), 0.5),
        images(2),
        images(3, side=1),
        images(5) * 1e30,
        images(5) * 1e-30,
        np.where(images(5) > 128, 1e308, -1e308),
    ],
    ids=["black", "white", "grey", "2 samples", "1x1", "1e30", "1e-30", "1e308"],
)
@pytest.mark.filterwarnings("ignore:The representation is the same for all samples")
def test_extreme_images_give_finite_embeddings(X):
    embedder = small_images().fit(X)
    assert np.isfinite(embedder.transform(X)).all()
    assert np.isfinite(embedder.history_[:, "train_loss"]).all()


@pytest.mark.parametrize("shape", [(24, 24, 2), (9, 9, 12), (30, 32, 5), (16, 16, 32), (64, 8, 4)])
def test_channels_last_images_of_any_size_are_refused(shape):
    X = np.random.default_rng(0).uniform(size=(8, *shape))
    with pytest.raises(ValueError, match=rf"channels-last images of shape \({shape[0]}, "):
        small_images().fit(X)
    small_images().fit(X.transpose(0, 3, 1, 2))


@pytest.mark.parametrize("shape", [(3, 32, 8), (13, 12, 12), (5, 20, 16), (1, 8, 40), (10, 9, 9)])
def test_images_with_their_channels_first_are_taken(shape):
    small_images().fit(np.random.default_rng(0).uniform(size=(8, *shape)))


def test_channels_last_images_are_refused_unless_they_are_declared():
    X = images().transpose(0, 2, 3, 1)
    with pytest.raises(ValueError, match=r"channels-last.*transpose\(0, 3, 1, 2\)"):
        small_images().fit(X)
    with pytest.raises(ValueError, match=r"channels-last.*kind='images'"):
        make_pipeline(RandomFlip(), small_images()).fit(X)
    assert small_images(kind="images").fit(X).n_features_in_ == 108


def test_a_single_image_is_recognised():
    embedder = small_images().fit(images())
    with pytest.raises(ValueError, match=r"a single one of shape \(3, 6, 6\): pass X\[None\]"):
        embedder.transform(images()[0])
    assert embedder.transform(images()[0][None]).shape[0] == 1


def test_standardize_false_takes_images_as_they_are():
    X = images() / np.float32(255)
    embedder = small_images(kind=Images(standardize=False)).fit(X)
    batch = torch.from_numpy(X)
    assert embedder.encoder_[0](batch).equal(batch)
