"""The embedder: kinds of input, reproducibility, going on, extremes, refusals."""

import subprocess
import sys
import textwrap

import joblib
import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from skorch.callbacks import (
    Callback,
    Checkpoint,
    EarlyStopping,
    LRScheduler,
    TrainEndCheckpoint,
)
from torch import nn

from skcontrast import ContrastiveEmbedder
from skcontrast._data._batches import BatchSampler, TrainingSet
from skcontrast._data._sources import InMemory
from skcontrast.augmentation import (
    GaussianNoise,
    MarginalCorruption,
    RandomAffine,
    SimCLRAugmentation,
    Views,
)
from skcontrast.encoders import MLP, ConvNet
from skcontrast.frameworks import SimCLR
from skcontrast.losses import DCL, HCL, SupCon, Supervised
from skcontrast.schedules import CosineDecay, Linear, Steps
from skcontrast.similarity import Cosine
from tests.common import small

X_DIGITS = load_digits().data[:200]
IMAGES = X_DIGITS.reshape(-1, 1, 8, 8)


def vectors(n=60, d=5, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def images(n=20, channels=3, side=6, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, size=(n, channels, side, side), dtype=np.uint8)


def small_images(**kwargs):
    return small(encoder=ConvNet(widths=(8,)), **kwargs)


# Kinds of input


@pytest.mark.parametrize(
    "X",
    [
        vectors(),
        vectors().astype(np.float32),
        vectors().tolist(),
        (vectors() * 10).astype(int),
        torch.from_numpy(vectors()),
        np.asfortranarray(vectors()),
        vectors()[::2, ::-1],
    ],
    ids=["float64", "float32", "list", "int", "tensor", "fortran", "strided"],
)
def test_vectors_of_every_form(X):
    h = small(n_components=7).fit_transform(X)
    assert h.shape == (len(X), 7) and h.dtype == np.float32 and np.isfinite(h).all()


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


def test_default_augmentation_suits_the_kind_of_input():
    def default(X):
        return type(small(encoder=None).fit(X).augmentation_[0])

    assert default(vectors()) is MarginalCorruption
    assert default(images(channels=1)) is RandomAffine
    assert default(images(channels=3)) is SimCLRAugmentation


def test_units_of_the_features_do_not_matter():
    X = vectors(d=4)
    scaled = X * [1e-6, 1.0, 1e6, 1e12] + [0, 5.0, 1e6, -1e13]
    plain, other = small().fit(X).transform(X), small().fit(scaled).transform(scaled)
    np.testing.assert_allclose(plain, other, atol=2e-2)


def test_a_list_of_images_is_an_array_of_images():
    X = images()
    expected = small_images().fit(X).transform(X)
    np.testing.assert_array_equal(small_images().fit(list(X)).transform(list(X)), expected)
    tensors = [torch.from_numpy(image) for image in X]
    np.testing.assert_array_equal(small_images().fit(tensors).transform(tensors), expected)
    with pytest.raises(ValueError, match=r"one shape, got 2"):
        small_images().fit([X[0], X[1][:, :3]])


def test_half_precision_tensors_are_taken():
    X = torch.from_numpy(vectors())
    for dtype in (torch.bfloat16, torch.float16):
        assert np.isfinite(small().fit_transform(X.to(dtype).requires_grad_())).all()


def test_images_in_another_unit_than_in_fit_are_pointed_out():
    X = images()
    with pytest.warns(UserWarning, match="up to 1.0, but white was 255 in fit: multiply X by 255"):
        small_images().fit(X).transform(X / X.max())
    with pytest.warns(UserWarning, match="white was 1 in fit: divide X by 255"):
        small_images().fit(X / X.max()).transform(X)


def test_an_outlying_pixel_does_not_take_the_range_of_all():
    spoiled = IMAGES.copy()
    spoiled[0, 0, 0, 0] = 1e6
    with pytest.warns(UserWarning, match=r"intensities from 0 to 1e\+06"):
        embedder = small_images().fit(spoiled)
    assert embedder.transform(IMAGES).std() > 0.1 * small_images().fit_transform(IMAGES).std()


def test_changing_X_after_fit_changes_nothing():
    X = vectors()
    embedder = small(augmentation=MarginalCorruption()).fit(X)
    before, kept = embedder.score(vectors()), embedder.transform(vectors())
    X[:] = 0
    assert embedder.score(vectors()) == before
    np.testing.assert_array_equal(embedder.transform(vectors()), kept)


def test_fit_inside_inference_mode_and_under_another_default_dtype():
    expected = small().fit_transform(X_DIGITS)
    with torch.inference_mode():
        np.testing.assert_array_equal(small().fit_transform(X_DIGITS), expected)
    torch.set_default_dtype(torch.float64)
    try:
        assert small().fit_transform(X_DIGITS).dtype == np.float32
    finally:
        torch.set_default_dtype(torch.float32)


def test_standardize_false_takes_vectors_as_they_are():
    X = 5 + 3 * vectors()
    embedder = small(standardize=False, encoder=MLP(hidden=(), batch_norm=False)).fit(X)
    expected = embedder.encoder_(torch.from_numpy(X).float()).detach().numpy()
    np.testing.assert_allclose(embedder.transform(X), expected, rtol=1e-5)


# What is learned


def test_training_lowers_the_loss_and_is_recorded():
    embedder = small(max_epochs=15, loss=DCL()).fit(X_DIGITS)
    losses = embedder.history_[:, "train_loss"]
    assert len(losses) == embedder.n_epochs_ == 15
    assert losses[-1] < losses[0]
    assert all(set(row) >= {"train_loss", "lr", "dur", "epoch"} for row in embedder.history_)


def test_score_rises_with_training_and_repeats():
    short, long = small(max_epochs=1).fit(X_DIGITS), small(max_epochs=30).fit(X_DIGITS)
    assert short.score(X_DIGITS) < long.score(X_DIGITS) < 0
    assert long.score(X_DIGITS) == long.score(X_DIGITS)


def test_score_compares_temperatures_on_one_scale():
    scores = [small(similarity=Cosine(t)).fit(X_DIGITS).score(X_DIGITS) for t in (0.05, 5.0)]
    assert abs(scores[0] - scores[1]) < 2


def test_schedules_reach_their_ends_and_stand_in_the_history():
    embedder = small(
        loss=HCL(tau_plus=Linear(0.0, 0.2), beta=Steps([2, 1], [0.5])),
        similarity=Cosine(CosineDecay(1.0, 0.5)),
        max_epochs=5,
    ).fit(X_DIGITS)
    history = embedder.history_
    np.testing.assert_allclose(history[:, "loss__tau_plus"], [0, 0.05, 0.1, 0.15, 0.2])
    assert history[:, "loss__beta"] == [2, 2, 1, 1, 1]
    assert history[0, "similarity__temperature"] == 1.0
    assert history[-1, "similarity__temperature"] == 0.5


@pytest.mark.parametrize("loss", [Supervised(), SupCon()], ids=repr)
def test_labels_are_read_where_the_loss_needs_them(loss):
    y = load_digits().target[:200]
    X = X_DIGITS
    all_known = small(loss=loss, max_epochs=10).fit(X, y).transform(X)
    named = small(loss=loss, max_epochs=10).fit(X, y.astype(str)).transform(X)
    np.testing.assert_array_equal(named, all_known)


@pytest.mark.parametrize("loss", [Supervised(), SupCon()], ids=repr)
def test_unlabeled_samples_are_marked_by_minus_one(loss):
    y = load_digits().target[:200]
    targets = {"half": np.where(np.arange(200) % 2, y, -1), "none": np.full(200, -1), "all": y}
    first = {
        name: small(loss=loss, max_epochs=1).fit(X_DIGITS, y).history_[0, "train_loss"]
        for name, y in targets.items()
    }
    plain = small(max_epochs=1).fit(X_DIGITS).history_[0, "train_loss"]
    assert first["none"] == pytest.approx(plain, rel=1e-5)
    assert len({round(value, 4) for value in first.values()}) == 3


@pytest.mark.parametrize(
    "y, message",
    [
        (None, "SupCon requires y to be passed"),
        (np.zeros(3), "one entry per sample, 200, got 3"),
        (np.zeros((200, 2)), "1d array"),
        (np.full(200, np.nan), "y contains NaN"),
    ],
    ids=["missing", "length", "2-D", "NaN"],
)
def test_bad_labels_are_refused(y, message):
    with pytest.raises(ValueError, match=message):
        small(loss=SupCon()).fit(X_DIGITS, y)


def test_learning_rate_decays_to_nothing_or_stays():
    cosine = small(max_epochs=20, lr=0.01).fit(X_DIGITS).history_[:, "lr"]
    assert cosine == sorted(cosine, reverse=True) and cosine[-1] < 0.001
    constant = small(max_epochs=3, lr=0.01, lr_schedule="constant").fit(X_DIGITS).history_[:, "lr"]
    assert constant == [0.01] * 3
    warm = small(max_epochs=4, lr=0.01, lr_schedule=CosineDecay(warmup=0.5)).fit(X_DIGITS)
    assert warm.history_[0, "lr"] < warm.history_[1, "lr"]


def test_transform_of_a_sample_does_not_depend_on_the_others():
    embedder = small_images().fit(IMAGES)
    whole = embedder.transform(IMAGES)
    order = np.random.default_rng(0).permutation(len(IMAGES))
    np.testing.assert_allclose(embedder.transform(IMAGES[order]), whole[order], atol=1e-6)
    np.testing.assert_allclose(embedder.transform(IMAGES[:1]), whole[:1], atol=1e-6)


def test_projection_is_the_head_on_the_representation():
    embedder = small(projection_dim=3).fit(X_DIGITS)
    h = embedder.transform(X_DIGITS)
    z = embedder.set_params(output="projection").transform(X_DIGITS)
    expected = embedder.projector_(torch.from_numpy(h)).detach().numpy()
    np.testing.assert_allclose(z, expected, atol=1e-6)
    assert len(embedder.get_feature_names_out()) == 3


def test_parameters_changed_after_fit_do_not_change_the_widths():
    embedder = small(projection_dim=5).fit(X_DIGITS)
    embedder.set_params(output="projection", projection_dim=7, n_components=9)
    assert embedder.transform(X_DIGITS).shape[1] == len(embedder.get_feature_names_out()) == 5
    with pytest.raises(ValueError, match="'output' parameter"):
        embedder.set_params(output="both").transform(X_DIGITS)


def test_without_a_head_projection_is_representation():
    embedder = small(projection_dim=0).fit(X_DIGITS)
    h = embedder.transform(X_DIGITS)
    np.testing.assert_array_equal(embedder.set_params(output="projection").transform(X_DIGITS), h)
    assert len(embedder.get_feature_names_out()) == h.shape[1]


def test_a_users_module_is_copied_and_trained():
    module = nn.Sequential(nn.Linear(64, 10), nn.ReLU(), nn.Linear(10, 6))
    before = {k: v.clone() for k, v in module.state_dict().items()}
    embedder = small(encoder=module).fit(X_DIGITS)
    assert all(torch.equal(v, before[k]) for k, v in module.state_dict().items())
    assert not torch.equal(embedder.encoder_[1][0].weight, module[0].weight)
    assert embedder.transform(X_DIGITS).shape == (200, 6)


def test_a_callable_builds_the_encoder_for_the_shape():
    embedder = small(encoder=lambda shape: nn.Linear(shape[0], 4)).fit(X_DIGITS)
    assert embedder.transform(X_DIGITS).shape == (200, 4)


# Reproducibility


@pytest.mark.parametrize("X", [X_DIGITS, IMAGES], ids=["vectors", "images"])
def test_same_random_state_same_embedding(X):
    def embed(seed):
        return small(encoder=None, random_state=seed).fit_transform(X)

    np.testing.assert_array_equal(embed(0), embed(0))
    assert not np.array_equal(embed(0), embed(1))


def test_random_state_instance_is_advanced():
    rng = np.random.RandomState(0)
    first, second = (small(random_state=rng).fit_transform(X_DIGITS) for _ in range(2))
    assert not np.array_equal(first, second)


def test_without_random_state_two_fits_differ():
    first, second = (small(random_state=None).fit_transform(X_DIGITS) for _ in range(2))
    assert not np.array_equal(first, second)


def test_same_embedding_in_another_process():
    script = """
        import hashlib
        from sklearn.datasets import load_digits
        from skcontrast import ContrastiveEmbedder
        from skcontrast.augmentation import RandomAffine
        X = load_digits().data[:200].reshape(-1, 1, 8, 8)
        embedder = ContrastiveEmbedder(
            augmentation=RandomAffine(), max_epochs=2, random_state=0, device="cpu"
        )
        print(hashlib.sha256(embedder.fit_transform(X).tobytes()).hexdigest())
    """
    run = [sys.executable, "-c", textwrap.dedent(script)]
    prints = [subprocess.run(run, capture_output=True, text=True, check=True) for _ in range(2)]
    assert prints[0].stdout == prints[1].stdout != ""


@pytest.mark.parametrize("random_state", [0, None])
def test_global_generators_are_untouched(random_state):
    torch.manual_seed(5)
    before_torch = torch.get_rng_state()
    before_numpy = np.random.get_state()[1].copy()  # noqa: NPY002
    embedder = small(encoder=MLP(dropout=0.5), random_state=random_state).fit(X_DIGITS)
    embedder.transform(X_DIGITS)
    embedder.score(X_DIGITS)
    assert torch.equal(torch.get_rng_state(), before_torch)
    assert np.array_equal(np.random.get_state()[1], before_numpy)  # noqa: NPY002


@pytest.mark.parametrize("encoder", [None, MLP(hidden=(8,), dropout=0.3)], ids=repr)
def test_fits_in_threads_do_not_disturb_each_other(encoder):
    def embed():
        return small(encoder=encoder).fit(X_DIGITS).transform(X_DIGITS)

    before = torch.get_rng_state()
    alone = embed()
    together = joblib.Parallel(n_jobs=4, backend="threading")(
        joblib.delayed(embed)() for _ in range(8)
    )
    for h in together:
        np.testing.assert_allclose(h, alone, atol=1e-5)
    assert torch.equal(torch.get_rng_state(), before)


# Going on


def test_partial_fit_trains_one_epoch_at_a_time():
    embedder = small()
    for k in range(3):
        embedder.partial_fit(X_DIGITS)
        assert embedder.n_epochs_ == len(embedder.history_) == k + 1
    assert embedder.history_[:, "lr"] == [1e-3] * 3
    assert embedder.history_[:, "epoch"] == [1, 2, 3]


def test_partial_fit_advances_schedules():
    embedder = small(max_epochs=3, loss=DCL(tau_plus=Linear(0.0, 0.2)))
    for _ in range(5):
        embedder.partial_fit(X_DIGITS)
    assert embedder.history_[:, "loss__tau_plus"] == [0.0, 0.1, 0.2, 0.2, 0.2]


def test_partial_fit_in_pieces_equals_fit_at_constant_learning_rate():
    whole = small(max_epochs=3, lr_schedule="constant").fit(X_DIGITS)
    pieces = small(max_epochs=3, lr_schedule="constant")
    for _ in range(3):
        pieces.partial_fit(X_DIGITS)
    np.testing.assert_array_equal(pieces.transform(X_DIGITS), whole.transform(X_DIGITS))


def test_warm_start_goes_on_and_cold_start_begins_anew():
    warm = small(warm_start=True).fit(X_DIGITS)
    before = warm.transform(X_DIGITS)
    warm.fit(X_DIGITS)
    assert warm.n_epochs_ == 4
    assert not np.array_equal(warm.transform(X_DIGITS), before)
    cold = small().fit(X_DIGITS)
    before = cold.transform(X_DIGITS)
    np.testing.assert_array_equal(cold.fit(X_DIGITS).transform(X_DIGITS), before)


def test_going_on_with_another_optimizer_or_weight_decay():
    embedder = small(warm_start=True, weight_decay=0.5).fit(X_DIGITS)
    embedder.set_params(weight_decay=0.0).fit(X_DIGITS)
    assert embedder._fitted.optimizer_state["state"]["param_groups"][0]["weight_decay"] == 0
    embedder.set_params(optimizer="sgd").fit(X_DIGITS)
    assert embedder.n_epochs_ == 6


@pytest.mark.parametrize(
    "params", [{"n_components": 3}, {"projection_dim": 7}, {"encoder": MLP(hidden=(3,))}]
)
def test_going_on_with_another_network_is_refused(params):
    embedder = small(warm_start=True).fit(X_DIGITS)
    (name,) = params
    with pytest.raises(ValueError, match=f"The '{name}' parameter .* has changed"):
        embedder.set_params(**params).fit(X_DIGITS)
    embedder.set_params(warm_start=False).fit(X_DIGITS)


def test_a_failed_fit_leaves_the_fitted_embedder_as_it_was():
    class Fails(Callback):
        def on_epoch_end(self, net, **kwargs):
            raise RuntimeError("disk full")

    embedder = small(warm_start=True).fit(X_DIGITS)
    before = embedder.transform(X_DIGITS)
    with pytest.raises(RuntimeError, match="disk full"):
        embedder.set_params(callbacks=[Fails()]).fit(X_DIGITS)
    np.testing.assert_array_equal(embedder.transform(X_DIGITS), before)
    assert embedder.n_epochs_ == 2
    with pytest.raises(ValueError, match="NaN"):
        embedder.fit(np.full((4, 64), np.nan))
    np.testing.assert_array_equal(embedder.transform(X_DIGITS), before)


class InterruptsInEpoch(nn.Module):
    """A network during whose training the user loses patience."""

    def __init__(self, epoch):
        super().__init__()
        self.layer, self.calls, self.epoch = nn.Linear(64, 4), 0, epoch

    def forward(self, x):
        self.calls += self.training
        if self.training and self.calls >= self.epoch:
            raise KeyboardInterrupt
        return self.layer(x)


def test_an_interrupted_fit_keeps_what_it_learned():
    embedder = small(encoder=InterruptsInEpoch(3), max_epochs=10)
    with pytest.raises(KeyboardInterrupt, match="keeps what it learned in 2 epochs"):
        embedder.fit(X_DIGITS)
    assert embedder.n_epochs_ == len(embedder.history_) == 2
    assert np.isfinite(embedder.transform(X_DIGITS)).all()


def test_interrupted_before_anything_was_learned():
    embedder = small(encoder=InterruptsInEpoch(1))
    with pytest.raises(KeyboardInterrupt):
        embedder.fit(X_DIGITS)
    assert not hasattr(embedder, "encoder_")


def test_skorch_callbacks_work():
    stop = EarlyStopping(monitor="train_loss", patience=2, threshold=10.0, sink=lambda *a: None)
    embedder = small(max_epochs=50, callbacks=[stop]).fit(X_DIGITS)
    assert embedder.n_epochs_ < 50


def test_callbacks_that_save_work(tmp_path):
    callbacks = [
        Checkpoint(monitor="train_loss_best", dirname=tmp_path),
        TrainEndCheckpoint(dirname=tmp_path),
        ("rate", LRScheduler(policy="StepLR", step_size=1, gamma=0.5)),
    ]
    embedder = small(callbacks=callbacks, lr_schedule="constant", max_epochs=3).fit(X_DIGITS)
    assert (tmp_path / "params.pt").exists() and (tmp_path / "train_end_params.pt").exists()
    assert embedder.history_[:, "lr"] == [1e-3, 5e-4, 2.5e-4]
    assert all(not row["batches"] for row in embedder.history_)


def test_silent_unless_asked(capfd):
    small().fit(X_DIGITS)
    out, err = capfd.readouterr()
    assert out == err == ""
    small(verbose=1).fit(X_DIGITS)
    out, err = capfd.readouterr()
    assert "2/2" in err and "loss" in err


# Extremes


@pytest.mark.parametrize(
    "X",
    [
        np.ones((10, 4)),
        np.zeros((10, 4)),
        np.repeat(vectors(1, 4), 12, axis=0),
        vectors(2, 3),
        vectors(3, 1),
        vectors(257, 3),
        vectors(513, 3),
        vectors(20, 3) * 1e30,
        vectors(20, 3) * 1e300,
        vectors(20, 3) * 1e-30,
        vectors(20, 3) * 1e-310,
        np.where(np.arange(60).reshape(20, 3) == 0, 1e300, vectors(20, 3)),
        vectors(20, 3).astype(np.float32) * 1e37,
    ],
    ids=[
        "ones", "zeros", "equal rows", "2 samples", "3 samples", "n = B + 1", "n = 2 B + 1",
        "1e30", "1e300", "1e-30", "denormal", "one outlier", "float32 1e37",
    ],
)  # fmt: skip
def test_extreme_vectors_give_finite_embeddings(X):
    embedder = small().fit(X)
    assert np.isfinite(embedder.transform(X)).all()
    assert np.isfinite(embedder.history_[:, "train_loss"]).all()
    assert np.isfinite(embedder.transform(X * 0 + 1e300 if X.dtype == float else X)).all()


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


@pytest.mark.parametrize("n, batch_size", [(51, 2), (200, 3), (200, 199), (200, 200), (9, 8)])
def test_every_batch_size_gives_finite_embeddings(n, batch_size):
    h = small(batch_size=batch_size, max_epochs=1).fit_transform(X_DIGITS[:n])
    assert np.isfinite(h).all()


def test_batches_cover_all_rows_and_none_holds_one_sample():
    for n in range(2, 60):
        for batch_size in range(2, 62):
            samples = TrainingSet(InMemory(torch.arange(n)))
            batches = [batch.x for batch in BatchSampler(samples, batch_size)]
            sizes = [len(x) for x in batches]
            assert sorted(torch.cat(batches).tolist()) == list(range(n))
            assert min(sizes) >= 2 and max(sizes) - min(sizes) <= 1
            assert max(sizes) <= batch_size + (batch_size == 2)


class ReturnsNaN(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(64, 4)

    def forward(self, x):
        return self.layer(x) * torch.nan


DIVERGENT = {
    "temperature": {"similarity": Cosine(1e-30)},
    "weight_decay": {"weight_decay": 1e30, "optimizer": "sgd", "max_epochs": 5},
    "lr": {
        "lr": 1e30,
        "encoder": MLP((16,), batch_norm=False),
        "projection_dim": 0,
        "optimizer": "sgd",
        "max_epochs": 5,
    },
    "encoder": {"encoder": ReturnsNaN()},
}


@pytest.mark.parametrize("params", DIVERGENT.values(), ids=DIVERGENT)
def test_divergence_is_an_error_and_never_an_embedding(params):
    embedder = small(**params)
    with pytest.raises(ValueError, match=r"Training diverged in epoch \d+: .*'lr'.*'temperature'"):
        embedder.fit(X_DIGITS)
    assert not hasattr(embedder, "encoder_")


def test_low_temperature_with_hard_negatives_is_finite():
    embedder = small(similarity=Cosine(0.01), loss=HCL(beta=5), max_epochs=10).fit(X_DIGITS)
    assert np.isfinite(embedder.transform(X_DIGITS)).all()
    assert np.isfinite(embedder.history_[:, "train_loss"]).all()


# Refusals

BAD_X = {
    "NaN": (np.array([[1.0, np.nan], [0.0, 1.0]]), ValueError, "contains NaN"),
    "inf": (np.array([[1.0, np.inf], [0.0, 1.0]]), ValueError, "contains infinity"),
    "empty": (np.empty((0, 3)), ValueError, "0 sample"),
    "no features": (np.empty((3, 0)), ValueError, "0 feature"),
    "one sample": (np.ones((1, 3)), ValueError, r"1 sample.*minimum of 2"),
    "complex": (np.ones((4, 3)) * 1j, ValueError, "Complex data not supported"),
    "strings": (np.array([["a", "b"], ["c", "d"]]), ValueError, "could not convert string"),
    "1-D": (np.ones(5), ValueError, "Expected 2D array"),
    "5-D": (
        np.ones((2, 2, 2, 2, 2)),
        ValueError,
        r"2 dimensions .* 4 .*got an array of shape \(2, 2",
    ),
    "NaN image": (np.full((3, 1, 4, 4), np.nan), ValueError, "contains NaN"),
    "one image": (np.ones((1, 3, 4, 4)), ValueError, r"1 sample.*minimum of 2"),
    "empty image": (np.ones((4, 3, 0, 4)), ValueError, "at least 1"),
    "object images": (np.full((3, 4, 4), "a", dtype=object), ValueError, "could not convert"),
}


@pytest.mark.parametrize("X, error, message", BAD_X.values(), ids=BAD_X)
def test_bad_X_is_refused_by_name(X, error, message):
    with pytest.raises(error, match=message):
        small(encoder=None).fit(X)


@pytest.mark.parametrize(
    "fitted_on, X, message",
    [
        (X_DIGITS, X_DIGITS[:, :10], "X has 10 features.*expecting 64"),
        (X_DIGITS, IMAGES, r"samples of shape \(1, 8, 8\).*fitted on samples of shape \(64,\)"),
        (IMAGES, X_DIGITS, r"\(n_samples, 1, 8, 8\)"),
        (IMAGES, IMAGES[:, :, :4], r"samples of shape \(1, 4, 8\).*shape \(1, 8, 8\)"),
        (IMAGES, np.full_like(IMAGES, np.nan), "NaN"),
        (X_DIGITS, np.full_like(X_DIGITS, np.inf), "infinity"),
    ],
    ids=["width", "images for vectors", "vectors for images", "height", "NaN", "inf"],
)
def test_wrong_X_at_transform_is_refused(fitted_on, X, message):
    embedder = small(encoder=None, max_epochs=1).fit(fitted_on)
    for method in (embedder.transform, embedder.score):
        with pytest.raises(ValueError, match=message):
            method(X)


BAD_PARAMETERS = {
    "n_components=0": ({"n_components": 0}, ValueError, "'n_components'.*int in the range"),
    "projection_dim=-1": ({"projection_dim": -1}, ValueError, "'projection_dim'"),
    "output": ({"output": "both"}, ValueError, "'output'.*representation"),
    "n_views=1": ({"n_views": 1}, ValueError, "'n_views'"),
    "batch_size=1": ({"batch_size": 1}, ValueError, "'batch_size'"),
    "max_epochs=0": ({"max_epochs": 0}, ValueError, "'max_epochs'"),
    "lr": ({"lr": -1.0}, ValueError, "'lr'"),
    "optimizer name": ({"optimizer": "adagard"}, ValueError, "'optimizer'.*adam"),
    "optimizer class": ({"optimizer": dict}, TypeError, "'optimizer'.*Optimizer"),
    "lr_schedule": ({"lr_schedule": "linear"}, ValueError, "'lr_schedule'.*cosine"),
    "device": ({"device": "gpu"}, ValueError, "'device'.*'cpu'.*gpu"),
    "device 99": ({"device": "cuda:99"}, ValueError, "'device'.*available"),
    "loss value": ({"loss": DCL(tau_plus=7)}, ValueError, r"'tau_plus' parameter of DCL.*\[0"),
    "schedule": (
        {"loss": DCL(tau_plus=Linear(0, 2))}, ValueError, "'tau_plus' parameter of DCL"
    ),
    "schedule value": (
        {"loss": DCL(tau_plus=Linear("a", 1))}, ValueError, "'start' parameter of Linear"
    ),
    "encoder value": ({"encoder": MLP(hidden=(-3,))}, ValueError, "hidden"),
    "similarity value": (
        {"similarity": Cosine(-1)}, ValueError, "'temperature' parameter of Cosine"
    ),
    "augmentation value": (
        {"augmentation": GaussianNoise(scale=-1)}, ValueError, "'scale' parameter of GaussianNoise"
    ),
    "augmentation type": ({"augmentation": "flip"}, TypeError, "'augmentation'"),
    "loss class": ({"loss": DCL}, TypeError, r"'loss'.*Write loss=DCL\(\)"),
    "loss type": ({"loss": "dcl"}, TypeError, "'loss'.*instance of Loss"),
    "framework class": ({"framework": SimCLR}, TypeError, r"framework=SimCLR\(\)"),
    "similarity class": ({"similarity": Cosine}, TypeError, r"similarity=Cosine\(\)"),
    "encoder class": ({"encoder": MLP}, TypeError, r"encoder=MLP\(\)"),
    "module class": ({"encoder": nn.Identity}, TypeError, "encoder"),
    "augmentation class": (
        {"augmentation": GaussianNoise}, TypeError, r"augmentation=GaussianNoise\(\)"
    ),
    "callback type": ({"callbacks": ["stop"]}, TypeError, "'callbacks'.*callbacks of skorch"),
    "callback monitor": ({"callbacks": [EarlyStopping()]}, ValueError, "monitor='train_loss'"),
    "two schedulers": ({"callbacks": [LRScheduler()]}, ValueError, "lr_schedule='constant'"),
    "lr factor": ({"lr_schedule": Linear(1, -1)}, ValueError, "'lr_schedule'.*at least"),
    "lr steps": ({"lr_schedule": Steps([1, np.nan], [0.5])}, ValueError, "'values'.*finite"),
    "nothing to train": (
        {"encoder": nn.Identity(), "projection_dim": 0}, ValueError, "nothing to train.*'encoder'"
    ),
    "callback class": ({"callbacks": [EarlyStopping]}, TypeError, r"EarlyStopping\(\)"),
    "module that does not fit": ({"encoder": nn.Linear(3, 2)}, ValueError, "encoder.*shape"),
    "module of other width": (
        {"encoder": nn.Linear(64, 2), "n_components": 3}, ValueError, "n_components"
    ),
}  # fmt: skip


@pytest.mark.parametrize("params, error, message", BAD_PARAMETERS.values(), ids=BAD_PARAMETERS)
def test_bad_parameter_is_refused_by_name(params, error, message):
    embedder = ContrastiveEmbedder(**{"max_epochs": 2, **params})
    with pytest.raises(error, match=message):
        embedder.fit(X_DIGITS)
    assert not hasattr(embedder, "encoder_") and not hasattr(embedder, "n_features_in_")


def test_channels_last_images_are_pointed_out():
    with pytest.warns(UserWarning, match=r"channels-last.*transpose\(0, 3, 1, 2\)"):
        small_images().fit(images().transpose(0, 2, 3, 1))


def test_views_can_be_handed_over_directly():
    views = GaussianNoise().fit_transform(X_DIGITS)
    assert isinstance(views, Views)
    embedder = small().fit(views)
    np.testing.assert_array_equal(embedder.transform(views), embedder.transform(X_DIGITS))
