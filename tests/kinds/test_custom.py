"""Custom kinds: mistakes in them are noticed, and batches may hold several tensors."""

import numpy as np
import pytest
import torch
from torch import nn

from skcontrast import ContrastiveEmbedder
from skcontrast.augmentation import FunctionAugmentation
from skcontrast.kinds import TensorBatch
from tests.encoders.common import Recordings, Sum


def jitter(batch, generator=None):
    return batch + 0.1 * torch.randn(batch.shape, generator=generator)


def recordings(n=24, width=3, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(4 + k % 5, width)) for k in range(n)]


def embedder(encoder, **kwargs):
    params = {"kind": Recordings(), "augmentation": [], "max_epochs": 1, "random_state": 0}
    return ContrastiveEmbedder(encoder, **{**params, **kwargs})


def test_nan_in_a_custom_kind_is_nan_in_X():
    X = recordings()
    X[7][2, 1] = np.nan
    with pytest.raises(ValueError, match=r"X contains NaN or infinity, first in sample 7 of 24"):
        embedder(Sum(3, 4)).fit(X)
    fitted = embedder(Sum(3, 4)).fit(recordings())
    with pytest.raises(ValueError, match="X contains NaN or infinity"):
        fitted.transform(X)


def test_a_kind_may_mark_gaps_by_nan():
    class Gaps(Recordings):
        has_gaps = True

    class Known(Sum):
        def forward(self, x):
            return super().forward(x.nan_to_num())

    X = recordings()
    X[7][2] = np.nan
    assert np.isfinite(embedder(Known(3, 4), kind=Gaps()).fit_transform(X)).all()


def test_a_width_that_the_network_cannot_take_is_a_fault_of_X():
    fitted = embedder(Sum(3, 4)).fit(recordings())
    with pytest.raises(ValueError, match=r"network cannot process the recordings in X: mat1"):
        fitted.transform(recordings(width=5))

    class Sized(Recordings):
        def sample_shape(self, X):
            return (None, X[0].shape[1])

    fitted = embedder(Sum(3, 4), kind=Sized()).fit(recordings())
    with pytest.raises(ValueError, match=r"samples of shape \(None, 5\).*fitted on.*\(None, 3\)"):
        fitted.transform(recordings(width=5))


class Masked(Recordings):
    """Recordings with a mask of the steps that are not padding."""

    def to_tensor(self, X, device):
        mask = nn.utils.rnn.pad_sequence([torch.ones(len(x)) for x in X], True)
        return TensorBatch(x=super().to_tensor(X, "cpu"), mask=mask).to(device)


class MaskedMean(nn.Linear):
    def forward(self, batch):
        h, mask = super().forward(batch["x"]), batch["mask"][:, :, None]
        return (h * mask).sum(1) / mask.sum(1)


def jittered(batch, generator=None):
    return TensorBatch(**{**batch.tensors, "x": jitter(batch["x"], generator)})


def test_batches_of_several_tensors_train_and_transform():
    augmentation = FunctionAugmentation(jittered, kind=Masked())
    fitted = embedder(MaskedMean(3, 4), kind=Masked(), augmentation=augmentation).fit(recordings())
    X = recordings()
    alone = np.concatenate([fitted.transform(X[k : k + 1]) for k in range(5)])
    np.testing.assert_allclose(alone, fitted.transform(X)[:5], atol=1e-6)
    assert 0 <= fitted.score(X) <= 1


def test_a_batch_of_tensors_is_indexed_by_rows_or_by_name():
    batch = TensorBatch(a=torch.arange(6).view(3, 2), b=torch.arange(3))
    assert len(batch) == 3 and batch.shape == (3, 2) and batch.device.type == "cpu"
    both = torch.cat([batch, batch[torch.tensor([2])]])
    assert both["b"].tolist() == [0, 1, 2, 2]


def test_a_function_augments_the_custom_kind_that_the_embedder_knows():
    for augmentation in (
        FunctionAugmentation(jitter),
        FunctionAugmentation(jitter, kind=Recordings()),
    ):
        fitted = embedder(Sum(3, 4), augmentation=augmentation).fit(recordings())
        views = fitted.views(recordings(), random_state=0)
        assert not np.array_equal(*views)


def test_nan_in_a_tensor_of_a_batch_is_nan_in_X_and_its_arrays_tell_samples_apart():
    X = recordings()
    X[3][0, 0] = np.nan
    with pytest.raises(ValueError, match=r"X contains NaN or infinity, first in sample 3 of 24"):
        embedder(MaskedMean(3, 4), kind=Masked()).fit(X)
    kind = Masked()
    first, other = (kind.arrays(kind.check(recordings(seed=seed))) for seed in (0, 1))
    first, other = list(first), list(other)
    assert len(first) == 2 and not np.array_equal(first[0], other[0])


class Narrower(Recordings):
    """Recordings whose later batches lack a feature, read batch by batch."""

    n_batches = 0

    def to_tensor(self, X, device):
        Narrower.n_batches += 1
        return super().to_tensor(X, device)[..., : 3 if self.n_batches < 9 else 2]


def test_a_width_that_changes_from_batch_to_batch_is_a_fault_of_to_tensor():
    message = r"network cannot process the recordings in X: mat1 .* samples of any length"
    with pytest.raises(ValueError, match=message):
        embedder(Sum(3, 4), kind=Narrower(), batch_size=4, memory_budget=0).fit(recordings())
    fitted = embedder(Sum(3, 4), kind=Recordings()).fit(recordings())
    for use in (fitted.transform, fitted.score):
        with pytest.raises(ValueError, match="network cannot process the recordings"):
            use(recordings(width=5))


class Halves:
    """A scaler as short as it may be."""

    def fit(self, X):
        pass

    def to_tensor(self, X, device):
        return 0.5 * Recordings().to_tensor(X, device)


def test_a_scaler_needs_two_methods():
    def own(scaler):
        return type("Own", (Recordings,), {"scaler": lambda self: scaler})()

    for batch in (None, np.zeros((24, 8, 3)), torch.zeros(3, 8, 3)):
        scaler = Halves()
        scaler.to_tensor = lambda X, device, batch=batch: batch
        message = r"Halves\.to_tensor must return a batch of 24 samples"
        with pytest.raises(TypeError, match=message):
            embedder(Sum(3, 4), kind=own(scaler)).fit(recordings())
    X, encoder = recordings(), Sum(3, 4)
    halved = embedder(encoder, kind=own(Halves())).fit(X).transform(X)
    whole = embedder(encoder).fit([0.5 * x for x in X]).transform([0.5 * x for x in X])
    np.testing.assert_array_equal(halved, whole)
