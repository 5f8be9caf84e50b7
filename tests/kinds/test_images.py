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
    with pytest.raises(ValueError, match=r"one shape, got 2"):
        small_images().fit([X[0], X[1][:, :3]])


def test_images_in_a_different_unit_than_in_fit_are_pointed_out():
    X = images()
    with pytest.warns(
        UserWarning, match="up to 1.0, but white was 255 in fit: bring X to the unit"
    ):
        small_images().fit(X).transform(X / X.max())
    with pytest.warns(UserWarning, match="white was 1 in fit: bring X to the unit"):
        small_images().fit(X / X.max()).transform(X)


@pytest.mark.parametrize(("fitted", "given"), [(16, 1), (1, 16), (1, 4), (255, 16)])
def test_float_images_in_a_different_unit_are_pointed_out(fitted, given):
    X = images() / images().max()
    embedder = small_images().fit(X * fitted)
    with pytest.warns(UserWarning, match=f"white was {fitted} in fit: bring X to the unit"):
        embedder.transform(X * given)


def test_uint8_images_of_a_different_range_than_floats_in_fit_are_pointed_out():
    X = images() / images().max()
    with pytest.warns(UserWarning, match="white was 16 in fit: bring X to the unit"):
        small_images().fit(X * 16).transform((X * 240).astype(np.uint8))


def test_a_few_dark_images_and_images_somewhat_brighter_are_no_different_unit():
    X = images() / images().max()
    embedder = small_images().fit(X)
    embedder.transform(X[:5] / 20)
    embedder.transform(X * 1.1)


def test_an_outlying_pixel_does_not_take_the_range_of_all():
    spoiled = IMAGES.copy()
    spoiled[0, 0, 0, 0] = 1e6
    with pytest.warns(UserWarning, match=r"intensities from 0 to 1e\+06"):
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
def test_extreme_images_give_finite_embeddings(X):
    embedder = small_images().fit(X)
    assert np.isfinite(embedder.transform(X)).all()
    assert np.isfinite(embedder.history_[:, "train_loss"]).all()


@pytest.mark.parametrize("channels", [2, 5, 12])
def test_other_numbers_of_channels_come_first_too(channels):
    X = images(channels=channels, side=24).transpose(0, 2, 3, 1)
    with pytest.raises(ValueError, match=rf"channels-last images of shape \(24, 24, {channels}\)"):
        small_images().fit(X)


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


def test_batches_of_the_kind_itself_are_not_scaled_and_have_a_channel():
    X = images(2, channels=1)
    batch = Images().to_tensor(X[:, 0], "cpu")
    assert batch.dtype == torch.uint8 and batch.shape == X.shape
    np.testing.assert_array_equal(batch, X)


def test_standardize_false_takes_images_as_they_are():
    X = images() / np.float32(255)
    embedder = small_images(kind=Images(standardize=False)).fit(X)
    batch = torch.from_numpy(X)
    assert embedder.encoder_[0](batch).equal(batch)
