"""Samples of several modalities: what they equal, how they are kept apart, and what is refused."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.sparse import csr_matrix
from torch.utils.data import TensorDataset

from skcontrast import export
from skcontrast.augmentation import GaussianNoise, PerModality, RandomAffine
from skcontrast.datasets import Modalities
from skcontrast.encoders import GIN, MLP, ConvNet
from skcontrast.frameworks import CMC, SimCLR
from skcontrast.kinds import Images, MultimodalKind, Vectors
from tests.common import reloaded, small
from tests.encoders.common import Recordings
from tests.frameworks.common import IMAGES, X

PIXELS = IMAGES.astype(np.uint8) * 15
MIXED = Modalities(PIXELS, X[:, :20], X[:, 20:50])


def mixed(**kwargs):
    """Return an embedder of images with vectors that trains in a moment."""
    encoders = [ConvNet(widths=(4,)), MLP((8,)), MLP((8,))]
    return small(
        **{"framework": CMC(), "encoder": encoders, "n_components": 8, "batch_size": 32, **kwargs}
    )


@pytest.fixture(scope="module")
def embedder():
    return mixed().fit(MIXED)


def test_one_array_is_split_by_the_framework_and_is_read_as_in_fit():
    pair = X[:, :20], X[:, 20:]
    for split in (20, "random", [5, 3]):
        embedder = small(framework=CMC(split=split)).fit(X)
        with pytest.raises(ValueError, match="X is a tuple of several arrays"):
            embedder.transform(pair)
    embedder = small(framework=CMC()).fit(pair)
    with pytest.raises(ValueError, match=r"X must have 2 modalities, got a ndarray"):
        embedder.transform(X)


@pytest.mark.parametrize(
    "pair, message",
    [
        ((X, X[:50]), r"same number of samples, got \[101, 50\]"),
        ((X[:, :20], IMAGES), "Modality 1 of X: X .*shape"),
        ((X[:, :20], X[:, 20:], X), "X has 3 modalities, in fit it had 2"),
        ((None, X), "Modality 0 of X must hold samples, got None"),
        ((X,), "at least two modalities, got 1"),
        ((X[:, :20], "a.png"), "Modality 1 of X must hold samples, got 'a.png'"),
        ((X[:, :3], X[:, 3:]), "Modality 0 of X: X has 3 features, but .* is expecting 20"),
        ((X[:, :20], np.full_like(X[:, 20:], np.nan)), "Modality 1 of X: .*NaN"),
        ((X[:, :20] + 1j, X[:, 20:]), "Modality 0 of X: .*[Cc]omplex"),
    ],
)
def test_bad_parts_are_refused_by_their_place(pair, message):
    embedder = small(framework=CMC(), warm_start=True).fit((X[:, :20], X[:, 20:]))
    for method in (embedder.fit, embedder.transform):
        with pytest.raises((ValueError, TypeError), match=message):
            method(pair)


@pytest.mark.parametrize(
    "modalities, message",
    [
        ((PIXELS, X[:, :20]), "X has 2 modalities, in fit it had 3"),
        ((PIXELS[..., 1:], X[:, :20], X[:, 20:50]), r"Modality 0 of X: X has samples of sha"),
        ((PIXELS, X[:, :21], X[:, 20:50]), "Modality 1 of X: X has 21 features"),
        ((PIXELS, X[:, :20], X[:, 20:50] + np.inf), "Modality 2 of X: .*(infinity|NaN)"),
        ((PIXELS, PIXELS, X[:, 20:50]), "Modality 1 of X: X .*shape"),
    ],
)
def test_parts_that_are_kept_apart_are_checked_by_themselves(embedder, modalities, message):
    with np.errstate(invalid="ignore"), pytest.raises(ValueError, match=message):
        embedder.transform(Modalities(*modalities))
    with pytest.raises(ValueError, match="X must have 3 modalities, got a ndarray"):
        embedder.transform(X)


def test_images_with_vectors_have_an_encoder_and_a_scale_each(embedder):
    H = embedder.transform(MIXED)
    assert H.shape == (101, 3 * 8) and embedder.n_features_in_ == 64 + 20 + 30
    assert embedder.get_feature_names_out().shape == (24,)
    changed = embedder.transform(Modalities(PIXELS, X[:, :20], X[::-1, 20:50]))
    same = (changed == H).all(0)
    assert same[:-8].all() and not same[-8:].any()
    np.testing.assert_allclose(embedder.transform(MIXED[5:9]), H[5:9], atol=1e-5)
    np.testing.assert_array_equal(embedder.transform(MIXED.modalities), H)


def test_permuted_parts_permute_the_shapes_and_the_scales(embedder):
    first, second, third = MIXED.modalities
    encoders = [MLP((8,)), MLP((8,)), ConvNet(widths=(4,))]
    permuted = mixed(encoder=encoders).fit(Modalities(second, third, first))
    networks = [*embedder.encoder_.networks[1:], embedder.encoder_.networks[0]]
    for ours, theirs in zip(networks, permuted.encoder_.networks, strict=True):
        assert [p.shape for p in ours.parameters()] == [p.shape for p in theirs.parameters()]
        torch.testing.assert_close(ours[0].mean, theirs[0].mean)
    h = permuted.transform(Modalities(second, third, first))
    assert h.shape == embedder.transform(MIXED).shape


def test_a_fit_that_is_kept_apart_is_repeatable_and_kept_in_files(embedder, tmp_path):
    H = embedder.transform(MIXED)
    np.testing.assert_array_equal(mixed().fit_transform(MIXED), H)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(embedder)).transform(MIXED), H)
    loaded = reloaded(embedder, tmp_path)
    np.testing.assert_array_equal(loaded.transform(MIXED), H)
    assert loaded.score(MIXED) == embedder.score(MIXED)
    assert loaded.augmentation_[0].lacks_samples
    loaded.set_params(warm_start=True).fit(MIXED)
    assert loaded.n_epochs_ == 4
    with pytest.raises(ValueError, match="several modalities cannot be exported"):
        export(embedder, tmp_path / "a.onnx", X)


def test_a_checkpoint_and_memory_by_batches_change_no_bit(embedder, tmp_path):
    class Stop(Exception):
        """The end of a process."""

    def stops(net, **kwargs):
        raise Stop

    H = embedder.transform(MIXED)
    np.testing.assert_array_equal(mixed(memory_budget=0).fit_transform(MIXED), H)
    torn = mixed(checkpoint=tmp_path)
    fitted = torn.fit(MIXED)
    np.testing.assert_array_equal(fitted.transform(MIXED), H)
    np.testing.assert_array_equal(mixed(checkpoint=tmp_path).fit_transform(MIXED), H)
    with pytest.raises(ValueError, match="'X' was"):
        mixed(checkpoint=tmp_path).fit(Modalities(PIXELS, X[:, 1:21], X[:, 20:50]))


def test_memory_maps_sparse_matrices_and_datasets_are_parts_too(tmp_path):
    np.save(tmp_path / "a.npy", PIXELS)
    mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
    dense = mixed(encoder=[ConvNet(widths=(4,)), MLP((8,))])
    H = dense.fit_transform(Modalities(PIXELS, X[:, :20]))
    sparse = copy.deepcopy(dense).fit(Modalities(mapped, csr_matrix(X[:, :20])))
    np.testing.assert_allclose(sparse.transform(Modalities(PIXELS, X[:, :20])), H, atol=1e-4)
    lazy = Modalities(TensorDataset(torch.tensor(PIXELS)), X[:, :20])
    np.testing.assert_array_equal(copy.deepcopy(dense).fit_transform(lazy), H)


def test_dataframes_and_graphs_are_parts_too():
    import networkx as nx

    table = pd.DataFrame({"age": X[:40, 0], "port": [True, False, False, True] * 10})
    graphs = [nx.path_graph(3 + k % 3) for k in range(40)]
    modalities = Modalities(table, graphs, X[:40])
    embedder = small(framework=CMC(), encoder=[MLP((8,)), GIN(1, 8), None]).fit(modalities)
    H = embedder.transform(modalities)
    assert len(H) == 40 and not hasattr(embedder, "feature_names_in_")
    for other in (table[["port", "age"]], table[["age"]]):
        with pytest.raises(ValueError, match="Modality 0 of X: The feature names should match"):
            embedder.transform(Modalities(other, graphs, X[:40]))


def test_declared_kinds_decide():
    kinds = [Vectors(standardize=False), Vectors()]
    embedder = small(framework=CMC(), kind=MultimodalKind(kinds)).fit(Modalities(X, X))
    parts = embedder._model.schema.modalities
    assert [modality.kind.standardize for modality in parts] == [False, True]
    by_name = small(framework=CMC(), kind=MultimodalKind(["vectors", "vectors"])).fit((X, X))
    assert len(by_name._model.schema.modalities) == 2
    apart = small(framework=CMC(), kind=MultimodalKind()).fit((X, X))
    np.testing.assert_array_equal(apart.transform((X, X)), by_name.transform((X, X)))
    with pytest.raises(ValueError, match="has 2 kinds, but X has 3 modalities"):
        small(framework=CMC(), kind=MultimodalKind(kinds)).fit(MIXED)
    with pytest.raises(ValueError, match="X must have 2 modalities, got a ndarray"):
        small(framework=CMC(), kind=MultimodalKind(kinds)).fit(X)
    with pytest.raises(ValueError, match=r"Modality 0 of X: .*may hold grey images"):
        small(framework=CMC()).fit(Modalities(np.zeros((101, 6, 8)), X))
    modalities = small(framework=CMC()).fit((IMAGES, IMAGES))._model.schema.modalities
    assert [type(modality.kind) for modality in modalities] == [Images, Images]


def test_parts_need_a_framework_and_encoders_for_each():
    with pytest.raises(ValueError, match=r"need a framework .*CMC\(\), got SimCLR\(\)"):
        small(framework=SimCLR()).fit(MIXED)
    message = r"has 2 encoders, but CMC\(\) needs one for each modality, that is 3"
    with pytest.raises(ValueError, match=message):
        mixed(encoder=[MLP(), MLP()]).fit(MIXED)
    message = r"has 2 encoders, but .* needs one for each modality, that is 1"
    with pytest.raises(ValueError, match=message):
        small(encoder=[MLP(), MLP()]).fit(X)
    with pytest.raises(ValueError, match=r"RandomAffine expects images.*several modalities"):
        mixed(augmentation=RandomAffine()).fit(MIXED)
    with pytest.raises(ValueError, match="X already consists of several arrays"):
        mixed(framework=CMC(split=3)).fit(MIXED)
    with pytest.raises(ValueError, match=r"'encoder' parameter .* has changed from ConvNet"):
        mixed(warm_start=True).fit(MIXED).set_params(encoder=None).fit(MIXED)


class Mean(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Linear(1, 8)

    def forward(self, x):
        return self.scale(x.mean(1, keepdim=True))


def test_a_kind_of_ones_own_is_a_part():
    rows = [np.arange(1 + k % 4) for k in range(101)]
    embedder = small(
        framework=CMC(),
        kind=MultimodalKind([Recordings(), Vectors()]),
        encoder=[Mean(), MLP((8,))],
        augmentation=PerModality([None, GaussianNoise()]),
    ).fit(Modalities(rows, X))
    assert embedder.transform(Modalities(rows, X)).shape == (101, 8 + 128)
    assert embedder.score(Modalities(rows, X)) >= 0


def test_named_features_of_each_part_are_those_of_fit():
    rng = np.random.default_rng(0)
    first, second = (
        pd.DataFrame(rng.normal(size=(40, 3)), columns=list(names)) for names in ("abc", "xyz")
    )
    embedder = small(framework=CMC()).fit(Modalities(first, second))
    with pytest.raises(ValueError, match=r"Modality 1 of X: .*feature names"):
        embedder.transform(Modalities(first, second[list("zyx")]))
    with pytest.raises(ValueError, match=r"Modality 0 of X: .*feature names"):
        embedder.transform(Modalities(second, first))
