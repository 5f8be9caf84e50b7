"""Pretrained: right pixels or a clear error; a network that stays what it was, at its own rate."""

import gc
import pickle
import sys
import warnings
import weakref

import numpy as np
import pytest
import torch
from sklearn.base import clone
from skorch.callbacks import Callback
from torch import nn

import skcontrast
from skcontrast import ContrastiveEmbedder
from skcontrast._checks import InvalidParameterError
from skcontrast._fit import _defaults
from skcontrast._fit._settings import resolve_settings
from skcontrast._layers import _pretrained
from skcontrast.datasets import Parts
from skcontrast.encoders import Pretrained, Wide
from skcontrast.features import Frozen, PatchDictionary
from skcontrast.frameworks import CMC, MoCo
from skcontrast.kinds import Images
from skcontrast.kinds._base import Schema
from skcontrast.optimizers import Optimizer
from tests.common import images, small

X = images(24, side=32)


class Net(nn.Module):
    """A small convolutional classifier, with all that may go wrong: moving statistics, dropout."""

    def __init__(self, channels=3, n_classes=5):
        super().__init__()
        self.stem = nn.Conv2d(channels, 8, 3, stride=2, bias=False)
        self.norm = nn.BatchNorm2d(8)
        self.body = nn.Conv2d(8, 16, 3, stride=2)
        self.dropout = nn.Dropout(0.5)
        self.fc = nn.Linear(16, n_classes)

    def features(self, x):
        return self.body(self.norm(self.stem(x)).relu()).relu().mean((2, 3))

    def forward(self, x):
        return self.fc(self.dropout(self.features(x)))


@pytest.fixture(autouse=True)
def with_few_patches(monkeypatch):
    def few(n_patches, **kwargs):
        return PatchDictionary(8, 3, **kwargs)

    monkeypatch.setattr(_defaults, "PatchDictionary", few)


@pytest.fixture
def net():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module = Net()
        module.norm.running_mean += 0.1
        return module


def pretrained(net, **kwargs):
    return Pretrained(net, **{"mean": 0.5, "std": 0.25, "size": 32, **kwargs})


def alone(net, **kwargs):
    """Return an embedder that learns with nothing beside."""
    return small(encoder=Wide(pretrained(net)), batch_size=12, device="cpu", **kwargs)


def frozen(net, X, **kwargs):
    return Frozen(pretrained(net, **kwargs)).fit_transform(X)


@torch.no_grad()
def expected(net, X, mean=0.5, std=0.25):
    x = (torch.from_numpy(X).float() / 255 - mean) / std
    return net.eval().features(x).numpy()


def test_pixels_are_those_that_the_network_knows(net):
    np.testing.assert_allclose(frozen(net, X), expected(net, X), atol=1e-5)
    np.testing.assert_allclose(frozen(net, X / 255), expected(net, X), atol=1e-5)
    mean, std = (0.1, 0.2, 0.3), (0.5, 0.6, 0.7)
    by_channel = [torch.tensor(one)[:, None, None] for one in (mean, std)]
    found = frozen(net, X, mean=mean, std=std)
    np.testing.assert_allclose(found, expected(net, X, *by_channel), atol=1e-5)


@pytest.mark.parametrize("grey", [X[:, 0], X[:, :1]], ids=["no channel axis", "one channel"])
def test_grey_images_are_repeated(net, grey):
    repeated = np.repeat(X[:, :1], 3, axis=1)
    np.testing.assert_allclose(frozen(net, grey), expected(net, repeated), atol=1e-5)


@pytest.mark.parametrize("kind", ["auto", "images", Images()], ids=repr)
def test_pixels_are_right_whatever_the_kind_says(net, kind):
    embedder = small(encoder=pretrained(net), kind=kind, max_epochs=1).fit(X)
    k = embedder.encoder_[1].beside.learned_width
    block = embedder.transform(X)[:, k : 2 * k]
    plain = expected(net, X)
    for column in np.flatnonzero(plain.std(0) > 1e-4):
        assert np.corrcoef(block[:, column], plain[:, column])[0, 1] > 0.9999


@pytest.mark.parametrize(
    "wrong, message",
    [
        (X.astype(float), r"takes intensities in \[0, 1\], but X holds images from 0"),
        (X.astype(float) * 257, "X / 65535"),
        ((X / 255 - 0.5) / 0.25, r"floats whose standardisation is undone; from \[-1, 1\]"),
        ((X / 255 - 0.5) / 0.25 / 255, r"takes intensities in \[0, 1\]"),
        (np.repeat(X[:, :1], 4, axis=1), "X has 4 channels, the network Net takes 3, or 1"),
        (X[:, :2], "X has 2 channels"),
    ],
    ids=["0 to 255", "16 bits", "standardised", "and divided", "four channels", "two channels"],
)
def test_wrong_pixels_are_refused(net, wrong, message):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of images that leave [0, 1] by far
        with pytest.raises(ValueError, match=message):
            small(encoder=pretrained(net)).fit(wrong)
        with pytest.raises(ValueError, match=message):
            Frozen(pretrained(net)).fit(wrong)


@pytest.mark.parametrize(
    "channels, advice",
    [(1, r"pass X\.mean\(axis=1, keepdims=True\), or a network"), (4, "pass a network with")],
)
def test_what_to_pass_follows_the_channels_of_the_network(channels, advice):
    with pytest.raises(ValueError, match=advice):
        frozen(Net(channels=channels), X)


@pytest.mark.parametrize("given", [{"mean": 0.5}, {"std": 0.25}])
def test_a_mean_alone_is_not_enough(given):
    (name,) = given
    with pytest.raises(ValueError, match=rf"pass the mean= and std=.* It has .*{name}=0\.\d+"):
        small(encoder=Pretrained(Net(), **given)).fit(X)


@pytest.mark.parametrize("name", ["mean", "std"])
def test_no_number_is_no_mean(name):
    with pytest.raises(ValueError, match=f"'{name}' parameter of Pretrained .* length 1 or more"):
        frozen(Net(), X, **{name: ()})


def test_a_network_has_as_many_channels_as_its_first_layer():
    grey = Frozen(Pretrained(Net(channels=1), mean=0.5, std=0.25, size=32)).fit_transform(X[:, :1])
    assert grey.shape == (24, 16)
    four = np.concatenate([X, X[:, :1]], axis=1)
    assert frozen(Net(channels=4), four).shape == (24, 16)
    with pytest.raises(ValueError, match="one number or 3, one for each channel"):
        frozen(Net(), X, mean=(0.1, 0.2, 0.3), std=(0.1, 0.2))


class EndFirst(nn.Module):
    """Holds its layers in another order than that in which it calls them."""

    def __init__(self):
        super().__init__()
        self.end, self.stem = nn.Conv2d(16, 32, 1), nn.Conv2d(3, 16, 3, 2)

    def forward(self, x):
        return self.end(self.stem(x).relu())


def test_the_first_layer_may_be_held_behind_others():
    grey = np.repeat(X[:, :1], 3, axis=1)
    net = EndFirst()
    np.testing.assert_allclose(frozen(net, grey[:, :1]), frozen(net, grey), atol=1e-6)
    with pytest.raises(ValueError, match="X has 4 channels, the network EndFirst takes 3, or 1"):
        frozen(net, np.concatenate([X, X[:, :1]], axis=1))


def test_standardised_parts_are_refused_and_not_read_at_a_wrong_scale(net):
    parts = Parts(X, X)
    with pytest.raises(ValueError, match=r"takes intensities in \[0, 1\]"):
        small(encoder=pretrained(net), framework=CMC()).fit(parts)


def test_pixels_that_were_divided_twice_are_warned_of(net):
    with pytest.warns(UserWarning, match="divided by 255 twice"):
        Frozen(pretrained(net)).fit(X / 255 / 255)


@pytest.mark.parametrize(
    "end",
    [nn.Softmax(1), nn.LogSoftmax(1), nn.Sequential(nn.Linear(5, 64), nn.Softmax(1))],
    ids=["softmax", "log-softmax", "64 classes"],
)
def test_probabilities_of_classes_are_warned_of(net, end):
    with pytest.warns(UserWarning, match="ends in a softmax: if these are scores of classes"):
        frozen(nn.Sequential(net, end), X)


def test_what_is_not_known_is_asked_for(net):
    with pytest.raises(ValueError, match=r"network Net of Pretrained .* pass the mean= and std="):
        small(encoder=Pretrained(net)).fit(X)


class Object:
    def __init__(self, **kwargs):
        self.__dict__.update(kwargs)


class Processor:
    """Holds the statistics as an image processor of transformers does."""

    image_mean, image_std = [0.1, 0.2, 0.3], [0.5, 0.6, 0.7]


class Transforms:
    """Holds the statistics as the transforms of weights of torchvision do."""

    mean, std, crop_size = [0.1, 0.2, 0.3], [0.5, 0.6, 0.7], [224]


class Compose:
    """Holds several transforms, one of which normalises."""

    transforms = [object(), Transforms()]


@pytest.mark.parametrize(
    "processor",
    [
        Processor(),
        Transforms(),
        Compose(),
        {"mean": (0.1, 0.2, 0.3), "std": (0.5, 0.6, 0.7), "size": 224},
    ],
    ids=["transformers", "torchvision", "Compose", "open_clip"],
)
def test_the_mean_and_the_std_are_read_from_what_has_them(net, processor):
    found = Frozen(Pretrained(net, size=32, processor=processor)).fit_transform(X)
    given = frozen(net, X, mean=(0.1, 0.2, 0.3), std=(0.5, 0.6, 0.7))
    np.testing.assert_array_equal(found, given)


@pytest.mark.parametrize("processor", [Processor(), {"include_top": True}, None], ids=type)
def test_the_processor_of_a_network_of_transformers_is_read_where_it_is(
    net, processor, monkeypatch
):
    def from_pretrained(name, *, local_files_only, trust_remote_code):
        assert name == "somebody/net" and local_files_only and not trust_remote_code
        if processor is None:
            raise OSError("there are no such files")
        return processor

    auto = Object(from_pretrained=from_pretrained)
    monkeypatch.setitem(sys.modules, "transformers", Object(AutoImageProcessor=auto))
    net.name_or_path = "somebody/net"
    given = {"mean": (0.1, 0.2, 0.3), "std": (0.5, 0.6, 0.7)}
    expected = frozen(net, X, **given)  # whatever the processor says
    if isinstance(processor, Processor):
        found = Frozen(Pretrained(net, size=32)).fit_transform(X)
        np.testing.assert_array_equal(found, expected)
    else:
        said = "pass the mean= and std=" if processor is None else "with mean= and std="
        with pytest.raises(ValueError, match=said):
            Frozen(Pretrained(net)).fit(X)


class LikeTimm(Net):
    """Has what networks of timm have."""

    pretrained_cfg = {"mean": (0.5,) * 3, "std": (0.25,) * 3, "input_size": (3, 40, 40)}

    def reset_classifier(self, num_classes):
        self.fc = nn.Identity()


def test_networks_of_timm_are_read():
    net = LikeTimm()
    module = Pretrained(net).build((3, 32, 32))
    assert module.pixels.size == (96, 96) and isinstance(net.fc, nn.Linear)
    net.pretrained_cfg = {**net.pretrained_cfg, "fixed_input_size": True}
    module = Pretrained(net).build((3, 32, 32))
    assert module.pixels.size == (40, 40)
    assert module(torch.zeros(2, 3, 32, 32)).shape == (2, 16)


@pytest.mark.parametrize(
    "shape, size",
    [((3, 8, 8), (96, 96)), ((3, 128, 160), (128, 160)), ((1, 448, 896), (224, 448))],
)
def test_images_are_brought_to_sides_from_96_to_224_pixels(net, shape, size):
    assert pretrained(net, size=None).build(shape).pixels.size == size
    assert pretrained(net, size=(50, 70)).build(shape).pixels.size == (50, 70)


class FixedSize(Net):
    def forward(self, x):
        assert x.shape[-2:] == (224, 224), "224 pixels are expected"
        return super().forward(x[..., ::8, ::8])


def test_a_network_of_one_size_gets_it_or_says_so():
    assert pretrained(FixedSize(), size=None).build((3, 32, 32)).pixels.size == (224, 224)
    with pytest.raises(ValueError, match=r"failed on images of 64 × 64 pixels: 224 pixels are"):
        pretrained(FixedSize(), size=64).build((3, 32, 32))
    flat = nn.Sequential(nn.Conv2d(3, 8, 8, 8), nn.Flatten(), nn.Linear(128, 32))
    assert pretrained(flat, size=None).build((3, 32, 32)).pixels.size == (32, 32)


class Returns(Net):
    """Returns what other networks return."""

    def __init__(self, function):
        super().__init__()
        self.function = function
        self.fc = nn.Identity()

    def forward(self, x):
        return self.function(self.body(self.norm(self.stem(x)).relu()))


@pytest.mark.parametrize(
    "function",
    [
        lambda h: h,
        lambda h: h.flatten(2).mT,
        lambda h: h.mean((2, 3)),
        lambda h: Object(last_hidden_state=h, pooler_output=h.mean((2, 3))[..., None, None]),
        lambda h: Object(last_hidden_state=h),
        lambda h: Object(logits=h.mean((2, 3))),
    ],
    ids=["map", "tokens", "row", "pooled object", "object", "classifier"],
)
def test_there_is_a_row_for_each_image(function):
    assert frozen(Returns(function), X).shape == (24, 16)


def test_a_pooler_with_weights_that_may_be_random_is_not_read():
    def output(h):
        return Object(
            last_hidden_state=h.flatten(2).mT, pooler_output=torch.full((len(h), 3), 9.0)
        )

    net = Returns(output)
    net.pooler = nn.Linear(16, 3)
    assert frozen(net, X).shape == (24, 16)


@pytest.mark.parametrize("function", [lambda h: {"x": h}, lambda h: (h, h), lambda h: h[0]])
def test_what_is_no_row_is_refused(function):
    said = "network Returns of Pretrained failed on images of 32 × 32 pixels: it returns a .* Pass"
    with pytest.raises(ValueError, match=said):
        frozen(Returns(function), X)


def test_what_fails_at_every_size_is_said_once():
    half = Returns(lambda h: h.mean((2, 3)).half() @ torch.ones(16, 2))
    with pytest.raises(ValueError, match=r"96 × 96, 224 × 224, 32 × 32 pixels: [^;]*float32"):
        frozen(half, X, size=None)


def test_a_network_of_torch_jit_is_refused():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that torch.jit is deprecated
        traced = torch.jit.trace(Net().eval(), torch.zeros(1, 3, 32, 32))
    with pytest.raises(TypeError, match="pass what it compiled"):
        frozen(traced, X)


def test_the_network_is_not_changed_and_its_copy_keeps_what_it_must(net):
    before = {name: value.clone() for name, value in net.train().state_dict().items()}
    embedder = alone(net, max_epochs=2, lr=0.01).fit(X)
    assert net.training and all(before[k].equal(v) for k, v in net.state_dict().items())
    trained = embedder.encoder_[1].deep.network
    assert isinstance(trained.fc, nn.Identity) and not trained.training
    changed = {k for k, v in trained.state_dict().items() if not before[k].equal(v)}
    # The first of five tensors stays, and so do the statistics.
    assert changed == {"norm.weight", "norm.bias", "body.weight", "body.bias"}


@pytest.mark.parametrize("share, n_trained", [(0.0, 5), (0.5, 3), (0.99, 1)])
def test_a_share_of_the_network_is_not_trained(net, share, n_trained):
    module = pretrained(net, frozen=share).build((3, 32, 32))
    assert sum(parameter.requires_grad for parameter in module.parameters()) == n_trained


def test_the_network_has_a_rate_of_its_own_unless_the_optimizer_has_groups(net):
    def groups(encoder, **kwargs):
        settings = resolve_settings(ContrastiveEmbedder(encoder, lr=0.01, **kwargs))
        return settings.grouped_optimizer.param_groups

    encoder = pretrained(net, rate=0.1)
    assert groups(encoder) == groups(Wide(encoder)) == [("encoder.*", {"lr": pytest.approx(1e-3)})]
    assert groups(pretrained(net, rate=1.0)) is None
    assert groups(pretrained(net)) == [("encoder.*", {"lr": pytest.approx(5e-3)})]
    no_norm = nn.Sequential(nn.Conv2d(3, 4, 3), nn.GroupNorm(1, 4))
    assert groups(pretrained(no_norm)) == [("encoder.*", {"lr": pytest.approx(5e-4)})]
    own = [("encoder.*", {"lr": 0.5})]
    assert groups(encoder, optimizer=Optimizer(param_groups=own)) == own


def test_nothing_of_a_network_with_the_rate_0_is_trained(net):
    embedder = small(encoder=pretrained(net, rate=0), max_epochs=1, output="projection").fit(X)
    trained = embedder.encoder_[1].deep.network.state_dict()
    assert all(net.state_dict()[name].equal(value) for name, value in trained.items())


@pytest.mark.parametrize("n_samples, n_epochs", [(100, 100), (800, 20), (100_000, 1)])
def test_fits_are_short(net, n_samples, n_epochs):
    settings = resolve_settings(ContrastiveEmbedder(pretrained(net)))
    assert (
        settings.for_samples(n_samples, Schema(Images(), (3, 96, 96), 3 * 96**2)).max_epochs
        == n_epochs
    )


def test_the_frozen_output_codes_and_gradients_are_beside_it(net):
    embedder = small(encoder=pretrained(net), max_epochs=1).fit(X)
    beside = embedder.encoder_[1].beside
    assert [len(scale.mean) for scale in beside.scales] == [16, 8 * 9, 64 * 9]
    assert small(encoder=pretrained(net), n_components=3).fit_transform(X).shape == (24, 3)


def test_names_reach_its_parameters_and_clones_are_equal(net):
    embedder = ContrastiveEmbedder(pretrained(net)).set_params(encoder__rate=0.2, encoder__size=64)
    assert clone(embedder).encoder.get_params()["size"] == 64
    assert "rate=0.2" in repr(embedder.encoder).replace("\n", "")


@pytest.mark.parametrize("framework", [None, MoCo(queue_size=24)], ids=repr)
def test_copies_have_the_same_bits(net, framework, tmp_path):
    embedder = small(encoder=pretrained(net), framework=framework, max_epochs=1).fit(X)
    h = embedder.transform(X)
    again = pickle.loads(pickle.dumps(embedder))
    np.testing.assert_array_equal(again.transform(X), h)
    skcontrast.save(embedder, tmp_path / "a")
    name = f"{Net.__module__}.Net"
    with pytest.raises(ValueError, match=r"load\(path, custom_objects="):
        skcontrast.load(tmp_path / "a")
    loaded = skcontrast.load(tmp_path / "a", custom_objects={name: Net()})
    np.testing.assert_array_equal(loaded.transform(X), h)
    trains = [
        [parameter.requires_grad for parameter in one.encoder_.parameters()]
        for one in (loaded, embedder)
    ]
    assert trains[0] == trains[1]
    np.testing.assert_array_equal(loaded.fit(X).transform(X), h)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64], ids=str)
def test_a_network_of_another_precision_is_adapted_in_float32_and_loaded(net, dtype, tmp_path):
    embedder = small(encoder=pretrained(net.to(dtype)), max_epochs=1).fit(X)
    assert all(p.dtype == torch.float32 for p in embedder.encoder_.parameters())
    skcontrast.save(embedder, tmp_path / "a")
    loaded = skcontrast.load(
        tmp_path / "a", custom_objects={f"{Net.__module__}.Net": Net().to(dtype)}
    )
    np.testing.assert_array_equal(loaded.transform(X), embedder.transform(X))


class Fails(Callback):
    """Ends a fit in an epoch."""

    epoch = None

    def on_epoch_end(self, net, **kwargs):
        if len(net.history) == self.epoch:
            raise MemoryError("out of memory")


def test_an_interrupted_fit_is_resumed_with_the_same_bits(net, tmp_path, monkeypatch):
    def fit(checkpoint):
        embedder = alone(net, max_epochs=4, checkpoint=checkpoint, callbacks=[Fails()])
        return embedder.fit(X).transform(X)

    whole = fit(tmp_path / "whole")
    monkeypatch.setattr(Fails, "epoch", 2)
    with pytest.raises(MemoryError):
        fit(tmp_path / "cut")
    monkeypatch.setattr(Fails, "epoch", None)
    np.testing.assert_array_equal(fit(tmp_path / "cut"), whole)


@pytest.mark.parametrize(
    "params, message",
    [
        ({"std": 0}, "'std' parameter of Pretrained"),
        ({"mean": "imagenet"}, "'mean' parameter of Pretrained"),
        ({"size": 0}, "'size' parameter of Pretrained"),
        ({"rate": -1}, "'rate' parameter of Pretrained"),
        ({"frozen": 2}, "'frozen' parameter of Pretrained"),
    ],
)
def test_parameters_outside_their_range_are_named(net, params, message):
    with pytest.raises(InvalidParameterError, match=message):
        small(encoder=pretrained(net, **params)).fit(X)


@pytest.mark.parametrize(
    ("build", "index"),
    [
        ("2.13.0+cpu", " --extra-index-url https://download.pytorch.org/whl/cpu, or"),
        ("2.14.0", ","),
    ],
)
def test_a_name_without_timm_says_what_to_install(build, index, monkeypatch):
    monkeypatch.setitem(sys.modules, "timm", None)
    monkeypatch.setattr(torch, "__version__", build)
    embedder = small(encoder=Pretrained("resnet18"))
    assert "resnet18" in repr(clone(embedder)), "nothing is loaded before fit"
    with pytest.raises(ImportError) as error:
        embedder.fit(X)
    assert f"pip install -U timm torchvision torch=={build}{index}" in str(error.value)


@pytest.mark.parametrize("n_allowed", [1, 5, 6, 12])
def test_what_fits_in_no_memory_is_computed_twice_with_the_same_gradient(
    net, monkeypatch, n_allowed
):
    module = pretrained(net, frozen=0).build((3, 32, 32)).double().train()
    batch, gradients = torch.rand(12, 3, 32, 32).double(), []
    computed = []
    module.network.stem.register_forward_hook(lambda *_: computed.append(1))
    for n in (12, n_allowed):
        kept = _pretrained._bytes_per_row(module._rows, module, batch)
        monkeypatch.setattr(_pretrained, "_CPU_BYTES", kept * n)
        module.zero_grad()
        computed.clear()
        module(batch).square().sum().backward()
        gradients.append(module.network.stem.weight.grad.clone())
    assert len(computed) == 2 * -(-12 // n_allowed) - 1
    torch.testing.assert_close(*gradients, rtol=1e-12, atol=1e-14)


def test_what_a_network_keeps_for_an_image_is_counted_without_its_weights(net):
    module = pretrained(net, frozen=0).build((3, 32, 32)).train()
    batch = torch.rand(3, 3, 32, 32)
    kept = _pretrained._bytes_per_row(module._rows, module, batch)
    assert kept == _pretrained._bytes_per_row(module._rows, module, batch[:1])
    # pixels, stem, norm with relu, body with relu, means
    least = 4 * (3 * 32 * 32 + 2 * 8 * 15 * 15 + 16 * 7 * 7)
    assert least <= kept <= 1.2 * least


def test_the_network_whose_memory_was_measured_is_freed(net):
    module = pretrained(net, frozen=0).build((3, 32, 32)).train()
    _pretrained._bytes_per_row(module._rows, module, torch.rand(3, 3, 32, 32))
    weight = weakref.ref(module.network.stem.weight)
    del module
    gc.collect()
    assert weight() is None


# What is a classifier


class Body(nn.Module):
    """A network whose linear layers are called as heads are, and make no classes."""

    def __init__(self, end=None):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, 2)
        self.fc = nn.Linear(8, 8)
        self.end = nn.Identity() if end is None else end

    def forward(self, x):
        h = self.stem(x).mean((2, 3))
        return self.end(h * self.fc(h).sigmoid())


def test_only_what_makes_the_output_is_left_out():
    body = Body().eval()
    with torch.no_grad():
        expected = body((torch.from_numpy(X) / 255 - 0.5) / 0.25)
    np.testing.assert_allclose(frozen(body, X), expected, atol=1e-5)


def test_a_convolution_may_be_the_classifier():
    squeeze = nn.Sequential()
    squeeze.features = nn.Conv2d(3, 8, 3, 2)
    squeeze.classifier = nn.Sequential(
        nn.Dropout(), nn.Conv2d(8, 1000, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()
    )
    assert frozen(squeeze, X).shape == (24, 8)
    maps = nn.Sequential()
    maps.features, maps.classifier = nn.Conv2d(3, 8, 3, 2), nn.Conv2d(8, 5, 1)
    assert frozen(maps, X).shape == (24, 8)


@pytest.mark.parametrize("wrapped", [nn.DataParallel], ids=["DataParallel"])
def test_the_classifier_of_a_wrapped_network_is_left_out(net, wrapped):
    assert frozen(wrapped(net), X).shape == (24, 16)


@pytest.mark.parametrize(
    "end, n_columns",
    [
        (nn.Linear(8, 4), 4),
        (nn.Linear(8, 120), 120),
        (nn.Sequential(nn.Linear(8, 4), nn.Sigmoid()), 4),
        (nn.Sequential(nn.Unflatten(1, (8, 1, 1)), nn.Conv2d(8, 5, 1)), 5),
    ],
    ids=["fewer", "more", "sigmoid", "map"],
)
def test_an_end_that_looks_like_classes_is_reported(end, n_columns):
    with pytest.warns(UserWarning, match=rf"ends in \w+\(.*{n_columns}.*: if these are scores"):
        assert frozen(Body(end), X).shape == (24, n_columns)


class TwoHeads(Net):
    """Returns the mean of the logits of two layers, as distilled networks do."""

    def __init__(self):
        super().__init__()
        self.other = nn.Linear(16, 5)

    def forward(self, x):
        h = self.features(x)
        return Object(logits=(self.fc(h) + self.other(h)) / 2)


def test_logits_that_several_layers_make_are_reported():
    with pytest.warns(UserWarning, match="The TwoHeads of Pretrained returns logits of several"):
        pretrained(TwoHeads()).build((3, 32, 32))


@pytest.mark.parametrize("end", [nn.Linear(8, 64), nn.LayerNorm(8)], ids=repr)
def test_an_end_that_looks_like_an_embedding_is_not_reported(end):
    frozen(Body(end), X)


def test_an_embedding_that_is_called_like_a_classifier_is_reported_and_can_be_kept():
    net = Net(n_classes=64)
    with pytest.warns(UserWarning, match=r"loses Linear.*64.* called fc.* pass torch.nn.Sequent"):
        assert frozen(net, X).shape == (24, 16)
    assert frozen(nn.Sequential(net), X).shape == (24, 64)


@pytest.mark.parametrize(
    "made, printed",
    [
        (Net, "Net: input 32×32, mean (0.1, 0.2, 0.3), std (0.25, 0.25, 0.25), head fc removed, "
         "16 features"),
        (lambda: Body(nn.Linear(8, 32)), "last layer end kept, 32 features"),
        (Body, "no head removed, 8 features"),
    ],
    ids=["without", "with", "whole"],
)  # fmt: skip
def test_what_is_done_with_a_network_is_printed_in_one_line(made, printed, capsys):
    encoder = pretrained(made(), mean=(0.1, 0.2, 0.3))
    small(encoder=encoder, max_epochs=1, verbose=1).fit(X)
    assert capsys.readouterr().err.count(printed) == 1


# What is known of pixels and rows


class Gives(nn.Module):
    """Returns what a function makes of a map with eight channels."""

    def __init__(self, function):
        super().__init__()
        self.stem, self.function = nn.Conv2d(3, 8, 4, 4), function

    def forward(self, x):
        return self.function(self.stem(x))


@pytest.mark.parametrize("size", [32, (32, 48), (48, 28)])
def test_maps_with_channels_last_are_averaged_over_places(size):
    assert frozen(Gives(lambda h: h.permute(0, 2, 3, 1)), X, size=size).shape == (24, 8)
    assert frozen(Gives(lambda h: h), X, size=size).shape == (24, 8)


def test_the_first_token_counts_only_where_there_is_a_class_token():
    gives = Gives(lambda h: Object(last_hidden_state=h.flatten(2).mT))
    tokens = gives.stem((torch.from_numpy(X) / 255 - 0.5) / 0.25).flatten(2).mT.detach()
    np.testing.assert_allclose(frozen(gives, X), tokens.mean(1), atol=1e-5)
    gives.cls_token = nn.Parameter(torch.zeros(1))
    np.testing.assert_allclose(frozen(gives, X), tokens[:, 0], atol=1e-5)


@pytest.mark.parametrize(
    "given, message",
    [
        ({"mean": (123.7, 116.3, 103.5), "std": 58.0}, "divide them by 255"),
        ({"size": [64, 64, 3]}, "size must be an int, or height and width, in Pretrained"),
        ({"mean": float("nan")}, "'mean' parameter of Pretrained must be"),
        ({"frozen": 1.0}, "'frozen' parameter of Pretrained must be"),
        (
            {
                "mean": None,
                "std": None,
                "processor": {"mean": 0.5, "std": 0.5, "do_rescale": False},
            },
            "do_rescale=False, which is not followed",
        ),
    ],
    ids=["units", "size", "nan", "all frozen", "processor"],
)
def test_wrong_choices_are_refused(net, given, message):
    with pytest.raises(ValueError, match=message):
        frozen(net, X, **given)


@pytest.mark.parametrize(
    "processor",
    [{"include_top": True}, {"rescale_factor": 1 / 127.5}, {"offset": True}],
    ids=["include_top", "rescale_factor", "offset"],
)
def test_a_processor_that_scales_otherwise_is_refused(net, processor):
    processor = {"mean": 0.5, "std": 0.5, **processor}
    with pytest.raises(ValueError, match=r"which is not followed: .* with mean= and std="):
        Frozen(Pretrained(net, size=32, processor=processor)).fit(X)
    given = frozen(net, X, processor=processor)  # the way out
    np.testing.assert_array_equal(given, frozen(net, X))


class Normalize(nn.Module):
    """Normalises images itself, as torchvision's transform of this name does."""

    mean, std = 0.5, 0.25

    def forward(self, x):
        return (x - self.mean) / self.std


def test_pixels_that_would_be_normalised_twice_are_warned_of(net):
    net.fc = nn.Identity()
    whole = nn.Sequential(Normalize(), net)
    with pytest.warns(UserWarning, match="holds a mean and a std: .* pass mean=0, std=1"):
        frozen(whole, X)
    np.testing.assert_allclose(frozen(whole, X, mean=0, std=1), frozen(net, X), atol=1e-5)


@pytest.mark.parametrize("factor", [255, 1 / 255], ids=["from 0 to 255", "divided twice"])
def test_pixels_that_vary_unlike_those_of_the_training_are_warned_of(net, factor):
    with torch.no_grad():
        seen = net.stem((torch.from_numpy(X) / 255 - 0.5) / 0.25 * factor)
        net.norm.running_var = seen.transpose(0, 1).flatten(1).var(1)
    with pytest.warns(UserWarning, match=r"varies \S+ times as much as in its training: are"):
        frozen(net, X)
    if factor == 255:
        frozen(net, X, mean=0, std=0.25 / 255)


def test_long_images_are_not_enlarged():
    module = Pretrained(Net(), mean=0.5, std=0.5).build((3, 16, 400))
    assert module.pixels.size == (16, 400)


def test_floats_in_another_unit_are_reported_by_transform(net):
    embedder = alone(net, max_epochs=1).fit(X / 255)
    for other in (X.astype(np.float32), X / 127.5 - 1):
        with pytest.warns(UserWarning, match="white was 1 in fit: bring X to the unit"):
            embedder.transform(other)


def test_a_trainable_network_is_exported(net, tmp_path):
    pytest.importorskip("onnx")
    embedder = alone(net, max_epochs=1).fit(X)
    skcontrast.export(embedder, tmp_path / "net.pt2", X)
    program = torch.export.load(tmp_path / "net.pt2").module()
    found = program(torch.from_numpy(X[:7])).detach()
    np.testing.assert_allclose(found, embedder.transform(X[:7]), atol=1e-4)
