"""Modalities as one X: what scikit-learn does with it keeps the modalities aligned."""

import pickle

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    cross_val_predict,
    cross_val_score,
    train_test_split,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skcontrast._data._arrays import is_lazy  # private: that they are not lazy

# private: batches and labels of modalities
from skcontrast._data._modalities import MultimodalBatch
from skcontrast.augmentation import GaussianNoise, PerModality, RandomAffine
from skcontrast.datasets import Modalities
from skcontrast.encoders import MLP, ConvNet
from skcontrast.frameworks import CMC
from tests.common import small
from tests.frameworks.common import IMAGES, X, Y

NUMBERS = np.arange(12)
MIXED = Modalities(IMAGES, X[:, :20])


def mixed(**kwargs):
    encoders = [ConvNet(widths=(4,)), MLP((8,))]
    return small(**{"framework": CMC(), "encoder": encoders, "n_components": 8, **kwargs})


def forms():
    """Return the same numbers in every form of a modality."""
    column = NUMBERS[:, None]
    return [
        column,
        column.tolist(),
        pd.DataFrame(column, index=list("abcdefghijkl")),
        csr_matrix(column),
        torch.from_numpy(column),
    ]


def numbers_of(modality):
    modality = modality.toarray() if hasattr(modality, "toarray") else modality
    return np.asarray(modality).ravel().tolist()


@pytest.mark.parametrize(
    "rows",
    [slice(2, 9, 3), [3, 1, 1], np.array([-1, 0]), NUMBERS > 7, [True, False] * 6, slice(0)],
    ids=str,
)
def test_rows_are_selected_in_every_part(rows):
    chosen = Modalities(*forms())[rows]
    expected = NUMBERS[rows].tolist()
    assert chosen.shape == (len(expected), 5) == (len(chosen), 5)
    assert [numbers_of(modality) for modality in chosen.modalities] == [expected] * 5
    same = Modalities(*forms())[rows, ...]
    assert [numbers_of(modality) for modality in same.modalities] == [expected] * 5


def test_one_sample_is_a_tuple_and_samples_can_be_iterated_over():
    modalities = Modalities(NUMBERS[:, None], X[:12])
    assert isinstance(modalities[3], tuple) and modalities[3][0].tolist() == [3]
    assert [sample[0][0] for sample in modalities] == NUMBERS.tolist()
    with pytest.raises(IndexError):
        modalities[12]
    with pytest.raises(IndexError, match=r"indexed by samples"):
        modalities[:, 0]


def test_labels_of_rows_are_those_of_the_first_part_that_has_any():
    assert Modalities(NUMBERS, X[:12]).index is None
    assert Modalities(*forms())[2:4].index.tolist() == ["c", "d"]
    labeled = Modalities(X, pd.DataFrame(X, index=np.arange(101) + 7))
    embedder = small(framework=CMC()).set_output(transform="pandas")
    assert embedder.fit_transform(labeled).index.tolist() == list(range(7, 108))


def test_no_step_turns_parts_into_one_array_by_mistake():
    with pytest.raises(TypeError, match=r"Transform each array first: "):
        make_pipeline(StandardScaler(), mixed()).fit(MIXED)
    with pytest.raises(TypeError, match="X is a Modalities"):
        np.asarray(MIXED)


def test_slices_are_views_and_pickles_are_whole(tmp_path):
    assert np.shares_memory(MIXED[10:20].modalities[1], X)
    path = tmp_path / "a.npy"
    np.save(path, X)
    mapped = Modalities(np.load(path, mmap_mode="r"), X)
    assert isinstance(mapped[::2].modalities[0], np.memmap)
    again = pickle.loads(pickle.dumps(MIXED))
    assert all(map(np.array_equal, again.modalities, MIXED.modalities))
    assert again.shape == MIXED.shape


def test_splits_keep_parts_and_classes_aligned():
    train, test, y_train, y_test = train_test_split(MIXED, Y, test_size=30, random_state=0)
    assert train.shape == (71, 2) and test.shape == (30, 2)
    for chosen, y in ((train, y_train), (test, y_test)):
        np.testing.assert_array_equal(
            chosen.modalities[0].reshape(-1, 64)[:, :20], chosen.modalities[1]
        )
        rows = [np.flatnonzero((X[:, :20] == row).all(1)) for row in chosen.modalities[1]]
        assert all(label in Y[row] for row, label in zip(rows, y, strict=True))


def test_a_pipeline_in_cross_validation_is_the_loop_by_hand():
    pipe = make_pipeline(mixed(), LogisticRegression(max_iter=200))
    folds = KFold(2)
    by_hand = []
    for train, test in folds.split(X):
        embedder = mixed().fit(Modalities(IMAGES[train], X[train, :20]), Y[train])
        H = embedder.transform(MIXED[train])
        classifier = LogisticRegression(max_iter=200).fit(H, Y[train])
        by_hand.append(classifier.score(embedder.transform(MIXED[test]), Y[test]))
    scores = cross_val_score(pipe, MIXED, Y, cv=folds, error_score="raise")
    np.testing.assert_allclose(scores, by_hand)
    predicted = cross_val_predict(pipe, MIXED, Y, cv=folds)
    assert np.mean(predicted[:51] == Y[:51]) == pytest.approx(by_hand[0])


@pytest.mark.slow
def test_workers_of_joblib_get_the_same_parts():
    search = GridSearchCV(mixed(max_epochs=1), {"projection_dim": [4, 8]}, cv=2, refit=False)
    alone = clone(search).fit(MIXED).cv_results_["mean_test_score"]
    shared = search.set_params(n_jobs=2).fit(MIXED).cv_results_["mean_test_score"]
    np.testing.assert_allclose(shared, alone)


def test_augmentation_steps_of_a_pipeline_draw_views_of_parts():
    chain = PerModality([RandomAffine(), GaussianNoise()])
    H = make_pipeline(chain, mixed()).fit_transform(MIXED)
    np.testing.assert_array_equal(H, mixed(augmentation=chain).fit_transform(MIXED))
    with pytest.raises(ValueError, match=r"RandomAffine expects images .*several modalities"):
        make_pipeline(RandomAffine(), mixed()).fit(MIXED)


def test_a_batch_of_parts_is_indexed_concatenated_and_moved_as_one():
    batch = MultimodalBatch.of([torch.arange(6).view(3, 2), torch.arange(3.0)])
    assert batch.shape == (3, 2) and batch.device == torch.device("cpu")
    both = torch.cat([batch, batch[torch.tensor([2, 0])]])
    assert both.modalities[0].tolist() == [[0, 1], [2, 3], [4, 5], [4, 5], [0, 1]]
    assert both.modalities[1].tolist() == [0, 1, 2, 2, 0]
    assert batch.to("cpu", non_blocking=True).modalities[1].equal(batch.modalities[1])
    with pytest.raises(TypeError):
        torch.stack([batch, batch])
    assert not is_lazy(MIXED)
