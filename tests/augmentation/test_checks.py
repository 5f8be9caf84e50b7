"""What every pass over a batch needs: floats, and a generator."""

import pytest
import torch

from skcontrast.augmentation._checks import as_float, generator_for
from tests.augmentation.common import seeded


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_floats_are_passed_on(dtype):
    batch = torch.rand(2, 3).to(dtype)
    assert as_float(batch) is batch


def test_only_images_of_bytes_are_scaled():
    assert as_float(torch.full((1, 1, 2, 2), 255, dtype=torch.uint8)).unique().tolist() == [1.0]
    assert as_float(torch.full((1, 2), 255, dtype=torch.uint8)).unique().tolist() == [255.0]
    assert as_float(torch.full((1, 1, 2, 2), 255)).unique().tolist() == [255.0]


def test_a_generator_is_passed_on_and_a_new_one_is_unpredictable():
    generator, batch = seeded(), torch.zeros(3)
    assert generator_for(batch, generator) is generator
    draws = [torch.rand(4, generator=generator_for(batch, None)) for _ in range(2)]
    assert not draws[0].equal(draws[1])
