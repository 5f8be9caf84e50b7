"""What every pass over a batch needs: floats, and a generator."""

import pytest
import torch

from skcontrast.augmentation import GaussianNoise
from skcontrast.augmentation._stage import Stage, as_float, generator_for
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


def test_a_stage_is_one_augmentation_and_shares_its_pass_with_no_other():
    batch = torch.zeros(5, 3)
    noise = GaussianNoise().fit(torch.rand(9, 3, generator=seeded()).numpy())
    stage = Stage(noise)
    assert stage(batch, seeded(2)).equal(noise.augment(batch, seeded(2)))
    assert not stage.absorb(noise)
