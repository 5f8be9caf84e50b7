"""Augmentations of each modality by itself."""

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

# private: batches and labels of modalities
from skcontrast._data._modalities import MultimodalBatch, OneModality
from skcontrast.augmentation import GaussianNoise, MarginalCorruption, PerModality, RandomAffine
from skcontrast.datasets import Modalities
from skcontrast.frameworks import CMC
from tests.common import small
from tests.frameworks.common import IMAGES, X

MIXED = Modalities(IMAGES, X[:, 20:40], X[:, 40:])


def test_the_view_of_each_part_is_drawn_by_its_own_augmentations():
    chain = PerModality([RandomAffine(), None, [GaussianNoise(0.0), GaussianNoise(0.5)]]).fit(
        MIXED
    )
    batch = MultimodalBatch.of(torch.as_tensor(modality).float() for modality in MIXED.modalities)
    views = chain.augment(batch, torch.Generator().manual_seed(0))
    assert not views.modalities[0].equal(batch.modalities[0])
    assert views.modalities[1].equal(batch.modalities[1])
    noise = (views.modalities[2] - batch.modalities[2]).std(0)[1:-1] / batch.modalities[2].std(0)[
        1:-1
    ]
    assert 0.4 < float(noise.nanmean()) < 0.6
    generator = torch.Generator().manual_seed(0)
    first = RandomAffine().fit(IMAGES).augment(batch.modalities[0], generator)
    torch.testing.assert_close(views.modalities[0], first)
    again = chain.augment(batch, torch.Generator().manual_seed(0))
    assert all(map(torch.equal, views.modalities, again.modalities))


def test_fitted_samples_are_brought_to_the_units_of_batches_part_by_part():
    far = Modalities(IMAGES, X[:, 20:40] + 1e9)
    chain = PerModality([None, MarginalCorruption(1.0)])
    embedder = small(framework=CMC(), encoder=None, augmentation=chain, max_epochs=1).fit(far)
    (view,) = embedder.views(far, 1, random_state=0)
    low, high = far.modalities[1].min(0), far.modalities[1].max(0)
    assert ((view.modalities[1] >= low - 1) & (view.modalities[1] <= high + 1)).all()
    np.testing.assert_allclose(view.modalities[0], IMAGES, atol=1e-4)
    scaler = embedder._model.scaler
    alone = scaler.to_tensor(OneModality(1, far.modalities[1]), "cpu")
    assert alone.equal(scaler.to_tensor(far, "cpu").modalities[1])


def test_parts_are_kept_apart_where_they_have_augmentations_of_their_own():
    pair = Modalities(X[:, :20], X[:, 20:])
    chain = PerModality([GaussianNoise(0.1), MarginalCorruption(0.3)])
    embedder = small(framework=CMC(), augmentation=chain).fit(pair)
    assert len(embedder._model.schema.modalities) == 2
    assert embedder.transform((X[:, :20], X[:, 20:])).shape == (101, 256)


@pytest.mark.parametrize(
    "augmentations, error, message",
    [
        ([RandomAffine(), None], ValueError, "has 2 items, but samples have 3 modalities"),
        ([None, RandomAffine(), None], ValueError, "Modality 1 of X: RandomAffine expects images"),
        ([None, GaussianNoise, None], TypeError, r"Write .*GaussianNoise\(\) instead"),
        ([None, GaussianNoise(-1.0), None], ValueError, "'std' parameter of GaussianNoise|scale"),
        (RandomAffine(), ValueError, "'augmentations' parameter of PerModality"),
    ],
)
def test_what_does_not_suit_the_parts_is_refused(augmentations, error, message):
    chain = PerModality(augmentations)
    embedder = small(framework=CMC(), encoder=None, augmentation=chain)
    for estimator in (chain, embedder):
        with pytest.raises(error, match=message):
            estimator.fit(MIXED)


def test_one_array_has_no_parts_to_augment():
    with pytest.raises(ValueError, match=r"PerModality expects several modalities|must have"):
        small(framework=CMC(), augmentation=PerModality([None, None])).fit(X)
    with pytest.raises(NotFittedError):
        PerModality([None, None]).transform(MIXED)
    assert clone(PerModality([GaussianNoise(), None])).augmentations[1] is None
