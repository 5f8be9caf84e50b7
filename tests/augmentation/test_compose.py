"""Chains of augmentations."""

import pytest
import torch

from skcontrast.augmentation import GaussianNoise, MarginalCorruption, compose


def test_an_empty_chain_only_converts_to_floats():
    images = torch.tensor([0, 51, 255], dtype=torch.uint8).reshape(1, 1, 1, 3)
    torch.testing.assert_close(
        compose([], (1, 1, 3))(images), torch.tensor([[[[0.0, 0.2, 1.0]]]]), rtol=0, atol=0
    )
    vectors = torch.rand(3, 2)
    assert compose([], (2,))(vectors).equal(vectors)


def test_a_chain_of_vector_augmentations_is_their_succession(X):
    chain = [GaussianNoise().fit(X), MarginalCorruption().fit(X)]
    batch = torch.from_numpy(X)
    together = compose(chain, (4,))(batch, torch.Generator().manual_seed(3))
    generator = torch.Generator().manual_seed(3)
    one_by_one = chain[1].augment(chain[0].augment(batch, generator), generator)
    assert together.equal(one_by_one)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int64, torch.float16, torch.bfloat16])
def test_vectors_of_other_types_become_float32_unscaled(dtype):
    vectors = torch.tensor([[0, 51, 255]]).to(dtype)
    out = compose([], (3,))(vectors)
    assert out.dtype == torch.float32 and out.equal(vectors.float())
