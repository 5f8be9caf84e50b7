"""How samples are brought to one scale, here or in the network."""

import numpy as np
import pytest
import torch

from skcontrast.kinds._images import ImageScaler
from skcontrast.kinds._scaling import Standardize, channel_statistics
from skcontrast.kinds._vectors import VectorScaler


def rng():
    return np.random.default_rng(0)


CPU = torch.device("cpu")


def standardised(X, fitted_on):
    scaler = VectorScaler().fit(fitted_on)
    statistics = (torch.as_tensor(v, dtype=torch.float32) for v in (scaler.mean_, scaler.std_))
    return Standardize(*statistics)(scaler.to_tensor(X, CPU))


@pytest.mark.parametrize("offset", [[1.0, 0.0, -1e12], [1.0, 0.0, -2e9]])
def test_vectors_get_zero_mean_and_unit_variance_here_or_in_the_network(offset):
    X = rng().normal(size=(200, 3)) * [1e-9, 1.0, 1e9] + offset
    tensor = standardised(X, X)
    assert tensor.dtype == torch.float32
    np.testing.assert_allclose(tensor.mean(0), 0, atol=1e-4)
    np.testing.assert_allclose(tensor.std(0, correction=0), 1, atol=1e-4)


def test_ordinary_vectors_are_only_cast():
    X = rng().normal(5, 2, size=(50, 3)).astype(np.float32)
    tensor = VectorScaler().fit(X).to_tensor(X, CPU)
    assert np.shares_memory(tensor.numpy(), X)


def test_constant_features_become_zero_and_stay_comparable():
    X = np.full((10, 2), 7.0)
    assert torch.equal(standardised(X, X), torch.zeros(10, 2))
    assert standardised(X + 1, X).max() == 1


@pytest.mark.parametrize("offset", [0.0, 1e9])
def test_far_outliers_stay_finite(offset):
    far = standardised(np.array([[1e300, -1e300]]), rng().normal(size=(50, 2)) + offset)
    assert far.abs().max() == 1e6


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_casting_finds_what_is_not_finite(value):
    X = rng().normal(size=(50, 2))
    scaler = VectorScaler().fit(X)
    X[3, 1] = value
    with pytest.raises(ValueError, match="Input X contains"):
        scaler.to_tensor(X, CPU)


def test_uint8_images_stay_uint8_without_a_copy():
    X = rng().integers(0, 256, size=(4, 3, 5, 5), dtype=np.uint8)
    tensor = ImageScaler().fit(X).to_tensor(X, CPU)
    assert tensor.dtype == torch.uint8
    assert np.shares_memory(tensor.numpy(), X)


def test_float_images_are_mapped_to_the_unit_interval():
    X = rng().uniform(-3, 5, size=(4, 3, 5, 5))
    scaler = ImageScaler().fit(X)
    tensor = scaler.to_tensor(X, CPU)
    assert tensor.min() == 0 and tensor.max() == 1
    with pytest.warns(UserWarning, match="bring X to the unit"):
        beyond = scaler.to_tensor(X * 100, CPU)
    assert beyond.min() == 0 and beyond.max() == 1


def test_grey_images_get_their_channel():
    X = np.zeros((4, 5, 6))
    assert ImageScaler().fit(X).to_tensor(X, CPU).shape == (4, 1, 5, 6)


def test_without_standardising_values_are_only_cast():
    X = rng().normal(size=(5, 3))
    tensor = VectorScaler(standardize=False).fit(X).to_tensor(X, CPU)
    np.testing.assert_array_equal(tensor, X.astype(np.float32))
    with pytest.raises(ValueError, match="too large for float32"):
        VectorScaler(standardize=False).fit(X).to_tensor(X * 1e300, CPU)


def test_read_only_arrays_are_taken_without_a_warning():
    X = rng().integers(0, 256, size=(4, 1, 5, 5), dtype=np.uint8)
    X.flags.writeable = False
    assert ImageScaler().fit(X).to_tensor(X, CPU).shape == X.shape


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_channels_get_zero_mean_and_unit_variance(dtype):
    generator = torch.Generator().manual_seed(0)
    images = torch.randint(0, 256, (50, 3, 6, 5), generator=generator).to(torch.uint8)
    if dtype == torch.float32:
        images = images / 255
    out = Standardize(*channel_statistics(images))(images)
    torch.testing.assert_close(out.mean((0, 2, 3)), torch.zeros(3), atol=1e-5, rtol=0)
    torch.testing.assert_close(out.std((0, 2, 3)), torch.ones(3), atol=1e-3, rtol=0)


def test_constant_channels_become_zero():
    images = torch.full((4, 1, 3, 3), 0.5)
    assert Standardize(*channel_statistics(images))(images).abs().max() == 0


def test_input_is_not_changed():
    x = torch.ones(3, 2)
    Standardize(torch.ones(2), torch.ones(2))(x)
    assert x.equal(torch.ones(3, 2))
