"""The parameters of an embedder, checked and resolved."""

import math
from fractions import Fraction

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from skorch.callbacks import Callback, EarlyStopping, EpochScoring, LRScheduler
from torch import nn

from skcontrast import ContrastiveEmbedder
from skcontrast._model._samples import kind_hint  # private: the hint of a message

# private: settings without a fit
from skcontrast._model._settings import epoch_progress, resolve_settings
from skcontrast.augmentation import GaussianNoise, MarginalCorruption, RandomAffine, Views
from skcontrast.encoders import MLP, ConvNet, PatchNet, Pretrained
from skcontrast.frameworks import InfoGraph, SimCLR
from skcontrast.kinds import Images, MultimodalKind, Vectors
from skcontrast.kinds._base import Schema  # private: a schema without samples
from skcontrast.losses import DCL
from skcontrast.schedules import Linear, Steps
from skcontrast.similarity import Cosine
from tests.common import X_DIGITS, small

BAD_PARAMETERS = {
    "optimizer class": ({"optimizer": dict}, TypeError, "'optimizer'.*Optimizer"),
    "loss value": ({"loss": DCL(tau_plus=7)}, ValueError, r"'tau_plus' parameter of DCL.*\[0"),
    "schedule": (
        {"loss": DCL(tau_plus=Linear(0, 2))}, ValueError, "'tau_plus' parameter of DCL"
    ),
    "schedule value": (
        {"loss": DCL(tau_plus=Linear("a", 1))}, ValueError, "'start' parameter of Linear"
    ),
    "encoder value": ({"encoder": MLP(widths=(-3,))}, ValueError, "widths"),
    "similarity value": (
        {"similarity": Cosine(-1)}, ValueError, "'temperature' parameter of Cosine"
    ),
    "augmentation value": (
        {"augmentation": GaussianNoise(scale=-1)}, ValueError, "'scale' parameter of GaussianNoise"
    ),
    "framework class": ({"framework": SimCLR}, TypeError, r"framework=SimCLR\(\)"),
    "similarity class": ({"similarity": Cosine}, TypeError, r"similarity=Cosine\(\)"),
    "encoder class": ({"encoder": MLP}, TypeError, r"encoder=MLP\(\)"),
    "encoder type": ({"encoder": 3}, TypeError, "'encoder'.* torch.nn.Module or a callable"),
    "module class": ({"encoder": nn.Identity}, TypeError, "encoder"),
    "augmentation class": (
        {"augmentation": GaussianNoise}, TypeError, r"augmentation=GaussianNoise\(\)"
    ),
    "callback type": ({"callbacks": ["stop"]}, TypeError, "'callbacks'.*instances of callbacks"),
    "callback monitor": ({"callbacks": [EarlyStopping()]}, ValueError, "monitor 'train_loss'"),
    "callback that scores predictions": (
        {"callbacks": [EpochScoring("accuracy")]}, ValueError, r"callbacks\.Evaluation\(scoring, X"
    ),
    "two schedulers": ({"callbacks": [LRScheduler()]}, ValueError, "lr_schedule='constant'"),
    "lr factor": ({"lr_schedule": Linear(1, -1)}, ValueError, "'lr_schedule'.*at least"),
    "lr steps": ({"lr_schedule": Steps([1, np.nan], [0.5])}, ValueError, "'values'.* nan"),
    "nothing to train": (
        {"encoder": nn.Identity(), "projection_dim": 0}, ValueError, "nothing to train.*'encoder'"
    ),
    "callback class": ({"callbacks": [EarlyStopping]}, TypeError, r"EarlyStopping\(\)"),
    "module that does not fit": ({"encoder": nn.Linear(3, 2)}, ValueError, "Linear failed on"),
    "module of other width": (
        {"encoder": nn.Linear(64, 2), "n_components": 3},
        ValueError, "n_components=3, but the encoder Linear returns 2",
    ),
}  # fmt: skip


@pytest.mark.parametrize("params, error, message", BAD_PARAMETERS.values(), ids=BAD_PARAMETERS)
def test_bad_parameter_is_refused_by_name(params, error, message):
    embedder = ContrastiveEmbedder(**{"max_epochs": 2, **params})
    with pytest.raises(error, match=message):
        embedder.fit(X_DIGITS)
    assert not hasattr(embedder, "encoder_") and not hasattr(embedder, "n_features_in_")


def test_fit_refuses_what_a_parameter_does_not_declare_by_its_name():
    for name in ContrastiveEmbedder().get_params(deep=False):
        with pytest.raises((TypeError, ValueError), match=f"'{name}' parameter of Contrast"):
            small(**{name: Fraction(-1, 2)}).fit(X_DIGITS)


def test_views_can_be_passed_directly():
    views = GaussianNoise().fit_transform(X_DIGITS)
    assert isinstance(views, Views)
    embedder = small().fit(views)
    np.testing.assert_array_equal(embedder.transform(views), embedder.transform(X_DIGITS))


def test_choices_are_clones_and_the_rest_is_as_it_was_given():
    loss, encoder = DCL(tau_plus=0.2), MLP(widths=(4,))
    settings = resolve_settings(small(loss=loss, encoder=encoder, batch_size=17))
    assert settings.loss is not loss and repr(settings.loss) == repr(loss)
    assert settings.encoder is encoder and settings.batch_size == 17
    assert settings.parameters["loss"] is loss


def test_a_framework_brings_its_similarity_unless_one_is_named():
    brought = resolve_settings(small(framework=InfoGraph())).similarity
    assert isinstance(brought, InfoGraph().default_similarity)
    assert repr(resolve_settings(small()).similarity) == repr(Cosine())
    named = resolve_settings(small(framework=InfoGraph(), similarity=Cosine(0.2))).similarity
    assert repr(named) == repr(Cosine(0.2))


def test_augmentations_in_every_form_become_one_list():
    noise, corruption = GaussianNoise(), MarginalCorruption()
    for given in (
        [noise, corruption],
        (noise, [corruption]),
        make_pipeline(noise, "passthrough", corruption),
        [make_pipeline(noise), corruption],
    ):
        assert resolve_settings(small(augmentation=given)).augmentation == [noise, corruption]
    assert resolve_settings(small(augmentation=[])).augmentation == []
    assert resolve_settings(small()).augmentation is None


def test_a_random_state_gives_one_seed_and_an_instance_the_next():
    same, again = (resolve_settings(small(random_state=3)).seed for _ in range(2))
    assert same == again
    rng = np.random.RandomState(3)
    first, second = (resolve_settings(small(random_state=rng)).seed for _ in range(2))
    assert first != second


def test_what_reads_X_is_declared_by_the_user_first_and_by_the_pieces_next():
    X = np.zeros((4, 5, 6))
    assert isinstance(kind_hint(resolve_settings(small(kind="vectors")), X, None), Vectors)
    pieces = resolve_settings(small(encoder=ConvNet()))
    assert isinstance(kind_hint(pieces, X, [RandomAffine()]), Images)
    with pytest.raises(ValueError, match="need a framework with an encoder for each"):
        kind_hint(resolve_settings(small(kind=MultimodalKind())), X, None)


def default_epochs_and_lr(encoder, n_samples, shape, kind=None):
    """Return the epochs and the rate of a fit by default."""
    schema = Schema(kind or Images(), shape, math.prod(shape))
    settings = resolve_settings(ContrastiveEmbedder(encoder)).for_samples(n_samples, schema)
    return settings.max_epochs, settings.lr


@pytest.mark.parametrize(
    "n_samples, n_epochs",
    [
        (2, 400),
        (256, 400),
        (384, 267),
        (897, 100),
        (5_120, 100),
        (5_121, 98),
        (60_000, 9),
        (102_400, 5),
        (10**6, 5),
    ],
)
def test_automatic_epochs_give_800_to_4000_steps_within_bounds(n_samples, n_epochs):
    for kind, shape in ((Vectors(), (5,)), (Images(), (28, 28))):
        assert default_epochs_and_lr(None, n_samples, shape, kind) == (n_epochs, 0.001)


@pytest.mark.parametrize(
    "shape, n_samples, n_epochs",
    [
        ((3, 47, 90), 500, 200),
        ((48, 90), 500, 160),
        ((3, 48, 90), 640, 160),
        ((3, 96, 96), 900, 100),
        ((3, 96, 96), 10**6, 5),
    ],
)
def test_few_images_of_several_octaves_have_800_steps_at_twice_the_rate(
    shape, n_samples, n_epochs
):
    expected = n_epochs, 0.001 if 47 in shape else 0.002
    for encoder in (None, PatchNet()):
        assert default_epochs_and_lr(encoder, n_samples, shape) == expected
    usual = max(min(n_epochs, 100), math.ceil(800 / math.ceil(n_samples / 128))), 0.001
    for encoder in (ConvNet(), PatchNet(largest_side=40), nn.Identity()):
        assert default_epochs_and_lr(encoder, n_samples, shape) == usual
    schema = Schema(Images(), shape, math.prod(shape))
    given = resolve_settings(ContrastiveEmbedder(lr=0.01, max_epochs=3))
    given = given.for_samples(n_samples, schema)
    assert (given.max_epochs, given.lr) == (3, 0.01)


def test_of_several_encoders_the_most_careful_sets_the_pace():
    pretrained = Pretrained(nn.Identity(), mean=0.0, std=1.0)
    assert default_epochs_and_lr([MLP(), pretrained], 800, (3, 96, 96)) == (6, 0.001)
    assert default_epochs_and_lr([PatchNet(), PatchNet()], 800, (3, 96, 96)) == (115, 0.002)


def test_the_default_given_by_hand_is_trained_alike_to_the_bit():
    X = np.random.default_rng(0).integers(0, 256, size=(12, 48, 48)).astype(np.uint8)
    lr, found = [], []
    for encoder in (None, PatchNet()):
        embedder = ContrastiveEmbedder(encoder, lr_schedule="constant", random_state=0)
        embedder.partial_fit(X)
        lr.append(embedder.history_[-1]["lr"])
        found.append(embedder.transform(X))
    assert lr == [0.002, 0.002]
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("side, lr", [(16, 0.001), (48, 0.002)])
def test_the_automatic_rate_is_in_the_history_of_any_kind_of_fit(side, lr):
    X = np.random.default_rng(0).uniform(size=(8, side, side)).astype(np.float32)
    embedder = ContrastiveEmbedder(max_epochs=1, lr_schedule="constant", random_state=0)
    assert embedder.fit(X).history_[-1]["lr"] == lr
    assert embedder.partial_fit(X).history_[-1]["lr"] == lr
    assert embedder.get_params()["lr"] == "auto"


class StopAtOnce(Callback):
    """Ends a fit after its first epoch."""

    def on_epoch_end(self, net, **kwargs):
        self.max_epochs_ = net.max_epochs
        net.stop()


@pytest.mark.parametrize(("batch_size", "n_epochs"), [(60, 267), (2, 45)])
def test_epochs_are_automatic_by_the_steps_of_an_epoch(batch_size, n_epochs):
    stop = StopAtOnce()
    embedder = ContrastiveEmbedder(
        MLP((4,)), max_epochs="auto", batch_size=batch_size, callbacks=[stop], random_state=0
    )
    embedder.fit(np.random.default_rng(0).normal(size=(179, 2)))
    assert stop.max_epochs_ == n_epochs and embedder.n_epochs_ == 1


def test_the_parts_of_a_stream_do_not_shorten_its_schedules():
    stop = StopAtOnce()
    embedder = small(max_epochs="auto", batch_size=2, loss=DCL(tau_plus=Linear(0.0, 0.99)))
    X = np.random.default_rng(0).normal(size=(179, 2))
    embedder.set_params(callbacks=[stop]).partial_fit(X).partial_fit(X)
    assert stop.max_epochs_ == 1
    assert embedder.history_[-1, "loss__tau_plus"] == pytest.approx(0.01)


def test_a_parameter_of_the_default_similarity_keeps_the_similarity_of_the_framework():
    embedder = ContrastiveEmbedder(framework=InfoGraph())
    message = r"is None, that is DotProduct\(\), which has no parameter"
    with pytest.raises(ValueError, match=message):
        embedder.set_params(similarity__temperature=0.2)
    embedder.set_params(framework=SimCLR(), similarity__temperature=0.2)
    assert embedder.similarity.temperature == 0.2


def test_progress_runs_from_zero_to_one_and_stays_there():
    assert [epoch_progress(epoch, 5) for epoch in (0, 1, 4, 5, 99)] == [0, 0.25, 1, 1, 1]
    assert epoch_progress(0, 1) == 0 and epoch_progress(1, 1) == 1
