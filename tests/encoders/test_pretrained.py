"""Pretrained: right pixels or a clear error; a network that stays what it was, at its own rate."""

import colorsys
import pickle
import sys
import warnings
from functools import partial
from typing import ClassVar

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from sklearn.base import clone
from skorch.callbacks import Callback
from torch import nn
from torch.distributions import Normal, kl_divergence

import skcontrast
from skcontrast import ContrastiveClassifier, ContrastiveEmbedder
from skcontrast._model import _adapt, _defaults  # private: a smaller default; one step of a fit
from skcontrast._model._settings import resolve_settings  # private: settings without a fit
from skcontrast.datasets import ImageFolder, Modalities
from skcontrast.encoders import Pretrained, _pretrained_network  # private: sizes of the pieces
from skcontrast.estimation import project_views
from skcontrast.features import Frozen, PatchDictionary
from skcontrast.frameworks import CMC, MoCo
from skcontrast.kinds import Images
from skcontrast.kinds._base import Schema  # private: a schema without samples
from skcontrast.losses import SupCon
from skcontrast.optimizers import Optimizer
from skcontrast.similarity import VonMisesFisher
from tests.common import images, reloaded, run_onnx, small

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


class Object:
    def __init__(self, **kwargs):
        self.__dict__.update(kwargs)


def alone(net, **kwargs):
    """Return an embedder that adapts a network."""
    return small(encoder=pretrained(net), batch_size=12, device="cpu", **kwargs)


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
    embedder = small(encoder=pretrained(net, adapt=False), kind=kind, max_epochs=1).fit(X)
    np.testing.assert_allclose(embedder.transform(X), expected(net, X), atol=1e-5)


@pytest.mark.parametrize(
    "wrong, message",
    [
        (X.astype(float), r"expects intensities in \[0, 1\], got 0 to"),
        (X.astype(float) * 257, "X / 65535"),
        ((X / 255 - 0.5) / 0.25, r"images before their standardisation; for \[-1, 1\]"),
        ((X / 255 - 0.5) / 0.25 / 255, r"expects intensities in \[0, 1\]"),
        (
            np.repeat(X[:, :1], 4, axis=1),
            "X has 4 channels, but the network Net takes 3: pass images with 1 channel or 3",
        ),
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


@pytest.mark.parametrize("given", [{}, {"mean": 0.5}, {"std": 0.25}], ids=str)
def test_the_mean_and_the_std_are_needed(given):
    got = "".join(rf".* got .*{name}=0\.\d+" for name in given)
    with pytest.raises(ValueError, match=rf"network Net of Pretrained needs mean= and std={got}"):
        small(encoder=Pretrained(Net(), **given)).fit(X)


def test_a_network_has_as_many_channels_as_its_first_layer():
    grey = Frozen(Pretrained(Net(channels=1), mean=0.5, std=0.25, size=32)).fit_transform(X[:, :1])
    assert grey.shape == (24, 16)
    assert frozen(Net(channels=4), np.concatenate([X, X[:, :1]], axis=1)).shape == (24, 16)
    with pytest.raises(ValueError, match="one number or 3, one for each channel"):
        frozen(Net(), X, mean=(0.1, 0.2, 0.3), std=(0.1, 0.2))


def test_standardised_parts_are_refused_and_not_read_at_a_wrong_scale(net):
    parts = Modalities(X, X)
    with pytest.raises(ValueError, match=r"expects intensities in \[0, 1\]"):
        small(encoder=pretrained(net), framework=CMC()).fit(parts)


def test_pixels_that_were_divided_twice_are_warned_of(net):
    with pytest.warns(UserWarning, match="divided by 255 twice"):
        Frozen(pretrained(net)).fit(X / 255 / 255)


class Processor:
    """Holds the statistics as an image processor of transformers does."""

    image_mean, image_std = [0.1, 0.2, 0.3], [0.5, 0.6, 0.7]


class Transforms:
    """Holds the statistics as the transforms of weights of torchvision do."""

    mean, std, crop_size = [0.1, 0.2, 0.3], [0.5, 0.6, 0.7], [224]


class Compose:
    """Holds several transforms, one of which normalises."""

    transforms = [object(), Transforms()]


@pytest.mark.parametrize("processor", [Processor(), Transforms(), Compose()])
def test_the_mean_and_the_std_are_read_from_what_has_them(net, processor):
    found = Frozen(Pretrained(net, size=32, processor=processor)).fit_transform(X)
    given = frozen(net, X, mean=(0.1, 0.2, 0.3), std=(0.5, 0.6, 0.7))
    np.testing.assert_array_equal(found, given)


class LikeTimm(Net):
    """Has what networks of timm have."""

    pretrained_cfg = {"mean": (0.5,) * 3, "std": (0.25,) * 3, "input_size": (3, 40, 40)}

    def reset_classifier(self, num_classes):
        self.fc = nn.Identity()


def test_networks_of_timm_are_read():
    net = LikeTimm()
    module = Pretrained(net).build((3, 32, 32))
    assert module.pixels.size == (96, 96) and isinstance(net.fc, nn.Linear)


def adapted(encoder, module, images):
    """Return the module of an encoder after the decision to train it."""
    _adapt.adapt(encoder, module, images, np.random.RandomState(0), None)
    return module


def sizes(encoder, shape):
    """Return the size of images for a frozen network, and for one that is adapted."""
    module = encoder.build(shape)
    size = module.pixels.size
    adapted(encoder.set_params(adapt=True), module, torch.rand(3, *shape))
    return size, module.pixels.size


@pytest.mark.parametrize(
    "shape, size, adapted",
    [
        ((3, 8, 8), (96, 96), (96, 96)),
        ((3, 96, 96), (96, 96), (96, 96)),
        ((3, 128, 128), (128, 128), (96, 96)),
        ((1, 448, 896), (224, 448), (68, 136)),
        ((3, 16, 400), (16, 400), (16, 400)),
    ],
)
def test_images_have_224_pixels_at_most_and_96_where_the_network_is_adapted(shape, size, adapted):
    assert sizes(Pretrained(Net(), mean=0.5, std=0.5), shape) == (size, adapted)


def test_a_size_that_is_passed_is_kept():
    encoder = Pretrained(Net(), mean=0.5, std=0.5, size=(50, 70))
    assert sizes(encoder, (3, 128, 128)) == ((50, 70), (50, 70))


class FixedSize(Net):
    def forward(self, x):
        assert x.shape[-2:] == (224, 224), "224 pixels are expected"
        return super().forward(x[..., ::8, ::8])


def test_a_network_of_one_size_declares_it_or_raises():
    for size in (None, 64):
        message = rf"(?s){size or 96} × {size or 96} pixels: 224 pixels are .* size="
        with pytest.raises(ValueError, match=message):
            pretrained(FixedSize(), size=size).build((3, 32, 32))


@pytest.mark.parametrize(
    "declared",
    [
        {"config": Object(image_size=224)},
        {"image_size": (224, 224)},
        {"pretrained_cfg": {"input_size": (3, 224, 224)}},
        {"patch_embed": Object(img_size=(224, 224)), "pretrained_cfg": {"input_size": (3, 9, 9)}},
    ],
    ids=["transformers", "torchvision", "timm", "timm, changed"],
)
@pytest.mark.parametrize("side", [32, 224])
def test_a_network_of_one_size_gets_it_whether_adapted_or_not(declared, side):
    net = FixedSize()
    for name, value in declared.items():
        setattr(net, name, value)
    assert sizes(pretrained(net, size=None), (3, side, side)) == ((224, 224), (224, 224))


def test_a_network_of_one_size_is_adapted_by_default():
    net = FixedSize()
    net.image_size = 224
    embedder = small(encoder=pretrained(net, size=None), max_epochs=1).fit(images(20, side=32))
    assert embedder.adapted_ and embedder.adaptation_["reason"] == "distance"


class Transformer(nn.Module):
    """Returns what transformers return: a class token, registers, and tokens of patches."""

    num_prefix_tokens = 3
    pretrained_cfg: ClassVar = {"mean": 0.5, "std": 0.25}

    def __init__(self, patch=16, global_pool="token"):
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            self.patches = nn.Conv2d(3, 8, patch, patch)
        self.cls_token = nn.Parameter(torch.ones(1, 3, 8))
        self.global_pool, self.fc_norm = global_pool, nn.Identity()

    def forward_features(self, x):
        patches = self.patches(x).flatten(2).mT
        return torch.cat([self.cls_token + patches.mean(1, keepdim=True), patches], 1)

    def forward(self, x):
        tokens = self.forward_features(x)
        return tokens[:, 0] if self.global_pool == "token" else tokens[:, 3:].mean(1)


@pytest.mark.parametrize(
    "patch, shape, size, adapted",
    [
        (14, (96, 96), (98, 98), (98, 98)),
        (14, (200, 200), (196, 196), (98, 98)),
        (14, (500, 500), (224, 224), (98, 98)),
        (16, (300, 500), (192, 320), (80, 128)),
        (8, (224, 224), (128, 128), (96, 96)),
        (32, (96, 96), (192, 192), (192, 192)),
    ],
)
def test_transformers_get_multiples_of_their_patches_and_at_most_256_tokens(
    patch, shape, size, adapted
):
    assert sizes(Pretrained(Transformer(patch)), (3, *shape)) == (size, adapted)
    asked = (14 * patch, 37 * patch)
    assert sizes(Pretrained(Transformer(patch), size=asked), (3, *shape)) == (asked, asked)


def test_the_row_of_a_transformer_is_chosen():
    token, mean, both = (
        Frozen(Pretrained(Transformer(), pool=pool)).fit_transform(X)
        for pool in ("token", "mean", "both")
    )
    np.testing.assert_allclose(token, mean + 1, atol=1e-5)
    np.testing.assert_array_equal(both, np.hstack([token, mean]))
    for global_pool in ("token", "avg"):  # the second as DINOv3 in timm
        usual = Frozen(Pretrained(Transformer(global_pool=global_pool))).fit_transform(X)
        np.testing.assert_array_equal(usual, token)
    net = Transformer(global_pool="avg")
    net.fc_norm = nn.LayerNorm(8)
    usual = Frozen(Pretrained(net)).fit_transform(X)
    np.testing.assert_array_equal(usual, mean)


def test_a_pool_that_a_network_lacks_is_refused(net):
    message = r"pool='mean' needs a network that returns tokens.*but Net does not: omit pool"
    with pytest.raises(ValueError, match=message):
        frozen(net, X, pool="mean")
    without = Transformer()
    del without.cls_token
    without.register_buffer("cls_token", torch.ones(1, 3, 8))
    with pytest.raises(ValueError, match="Transformer has no class token for pool='both'"):
        frozen(without, X, pool="both")


def test_tokens_are_printed(capsys):
    large = images(24, side=128)
    for adapt, printed in ((False, "126×126 (81 tokens)"), (True, "98×98 (49 tokens)")):
        encoder = Pretrained(Transformer(14), adapt=adapt)
        small(encoder=encoder, max_epochs=1, verbose=1).fit(large)
        assert f"Transformer: input {printed}, mean (0.5" in capsys.readouterr().err


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
        pooled = torch.full((len(h), 3), 9.0)
        return Object(last_hidden_state=h.flatten(2).mT, pooler_output=pooled)

    net = Returns(output)
    net.pooler = nn.ModuleDict({"dense": nn.Linear(16, 3)})
    assert frozen(net, X).shape == (24, 16)


@pytest.mark.parametrize("function", [lambda h: {"x": h}, lambda h: (h, h), lambda h: h[0]])
def test_what_is_no_row_is_refused(function):
    message = "Returns of Pretrained failed on images of 32 × 32 pixels: it must .*got a .* Pass"
    with pytest.raises(ValueError, match=message):
        frozen(Returns(function), X)


def test_a_network_of_torch_jit_is_refused():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that torch.jit is deprecated
        traced = torch.jit.trace(Net().eval(), torch.zeros(1, 3, 32, 32))
    with pytest.raises(TypeError, match="pass the original module"):
        frozen(traced, X)


def test_the_network_is_not_changed_and_its_copy_keeps_what_it_must(net):
    before = {name: value.clone() for name, value in net.train().state_dict().items()}
    embedder = alone(net, max_epochs=2, lr=0.01).fit(X)
    assert net.training and all(before[k].equal(v) for k, v in net.state_dict().items())
    trained = embedder.encoder_[1].network
    assert isinstance(trained.fc, nn.Identity) and not trained.training
    changed = {k for k, v in trained.state_dict().items() if not before[k].equal(v)}
    # The first of five tensors stays, and so do the statistics.
    assert changed == {"norm.weight", "norm.bias", "body.weight", "body.bias"}


@pytest.mark.parametrize("share, n_trained", [(0.0, 5), (0.5, 3), (0.99, 1)])
def test_a_share_of_the_network_is_not_trained(net, share, n_trained):
    encoder = pretrained(net, frozen=share, adapt=True)
    module = adapted(encoder, encoder.build((3, 32, 32)), torch.rand(3, 3, 32, 32))
    assert sum(parameter.requires_grad for parameter in module.parameters()) == n_trained


def test_the_network_has_a_rate_of_its_own_unless_the_optimizer_has_groups(net):
    def groups(encoder, **kwargs):
        settings = resolve_settings(ContrastiveEmbedder(encoder, lr=0.01, **kwargs))
        return settings.grouped_optimizer.param_groups

    encoder = pretrained(net, rate=0.1)
    assert groups(encoder) == [("encoder.*", {"lr": pytest.approx(1e-3)})]
    assert groups(pretrained(net, rate=1.0)) is None
    assert groups(pretrained(net)) == [("encoder.*", {"lr": pytest.approx(2e-3)})]
    no_norm = nn.Sequential(nn.Conv2d(3, 4, 3), nn.GroupNorm(1, 4))
    assert groups(pretrained(no_norm)) == [("encoder.*", {"lr": pytest.approx(5e-4)})]
    own = [("encoder.*", {"lr": 0.5})]
    assert groups(encoder, optimizer=Optimizer(param_groups=own)) == own


# Whether the network is trained


class Varied(Net):
    """Returns features that vary in many directions, the pixels of a few rows."""

    def features(self, x):
        return x[:, :, :2].flatten(1) + 0 * super().features(x).mean()

    def forward(self, x):
        return self.features(x)


class WithoutNorm(Varied):
    """The same, whose batch normalisation is not used, as that of a second head."""

    def __init__(self):
        super().__init__()
        self.norm, self.second = nn.Identity(), nn.BatchNorm2d(8)


class Buffers(nn.Module):
    """Batch normalisation whose weights are buffers, as of torchvision and transformers."""

    def __init__(self, norm):
        super().__init__()
        for name, values in norm.state_dict().items():
            self.register_buffer(name, values)

    def forward(self, x):
        return F.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias)


@pytest.mark.parametrize(
    "made, is_adapted, reason",
    [
        (Varied, True, "distance"),
        (Transformer, True, "view retrieval"),
        (WithoutNorm, False, "participation ratio"),
    ],
)
def test_distances_decide_with_batch_normalisation_and_views_and_directions_without(
    made, is_adapted, reason, capsys
):
    torch.manual_seed(0)  # for the weights
    noise = images(100, side=32)
    embedder = small(encoder=pretrained(made()), max_epochs=1).fit(noise)
    assert embedder.adapted_ == is_adapted and embedder.n_epochs_ == is_adapted
    found = embedder.adaptation_
    assert found["adapted"] == is_adapted and found["reason"] == reason
    if reason == "distance":
        assert found["distance"] >= found["distance_limit"] == 0.113
    else:
        assert found["view_retrieval"] <= found["view_retrieval_limit"] == 0.75
        limit = found["participation_ratio_limit"]
        assert limit == 9 and (found["participation_ratio"] <= limit) == is_adapted
    assert ("distance" in found) == (made is Varied)
    assert not any(capsys.readouterr())


def test_frozen_batch_normalisation_decides_as_batch_normalisation(net):
    found = []
    for norm in (net.norm, Buffers(net.norm)):
        net.norm = norm
        embedder = small(encoder=pretrained(net), max_epochs=1).fit(X)
        found.append((embedder.encoder.relative_rate, embedder.adaptation_))
    assert found[0] == found[1]


def test_the_distance_of_few_images_is_not_too_large_on_average():
    def drawn(n):
        colours = torch.rand(n, 3, 1, 1, generator=generator)
        return colours + 0.01 * torch.rand(n, 3, 8, 8, generator=generator)

    generator, network = torch.Generator().manual_seed(0), Net().eval()
    network.norm.train().momentum = None
    network((drawn(10_000) - 0.5) / 0.25)
    encoder, found = pretrained(network.eval()), []
    for _ in range(40):
        module = encoder.build((3, 8, 8))
        decision = _adapt.adapt(encoder, module, drawn(20), np.random.RandomState(0), None)
        found.append(decision["distance"])
        assert decision["adapted"] == (decision["distance"] >= decision["distance_limit"])
    # without the correction .05 for normal numbers, log(10) / 2 - digamma(9.5) / 2
    assert abs(np.mean(found)) < 0.02 and min(found) < 0 < max(found)


def test_the_distance_is_the_divergence_of_the_last_third_of_the_layers():
    layers = [nn.BatchNorm2d(3, affine=False) for _ in range(4)]
    for layer in layers:
        layer.running_mean.normal_()
        layer.running_var.uniform_(0.5, 2)
    module = pretrained(nn.Sequential(*layers), size=8).build((3, 8, 8))
    x = torch.rand(20, 3, 8, 8).repeat_interleave(2, 0)  # equal halves: nothing is subtracted
    found = _adapt._distance(module, x)[1]
    h, divergences = (x - 0.5) / 0.25, []
    for layer in layers:
        mean, variance = h.mean((0, 2, 3)), h.var((0, 2, 3), correction=0) + layer.eps
        known = Normal(layer.running_mean, (layer.running_var + layer.eps).sqrt())
        divergences.append(float(kl_divergence(Normal(mean, variance.sqrt()), known).mean()))
        h = layer.eval()(h)
    assert found == pytest.approx(np.mean(divergences[-2:]), rel=1e-3)


@pytest.mark.parametrize("norm, side", [(nn.BatchNorm2d(8), 160), (nn.Identity(), 96)])
def test_distances_need_images_of_their_own_size_and_views_that_of_the_training(norm, side):
    sides = []

    class Noted(Net):
        def forward(self, x):
            sides.append(x.shape[-1])
            return super().forward(x)

    network = Noted()
    network.norm = norm
    encoder = pretrained(network, size=None)
    module = encoder.build((3, 160, 160))
    assert set(sides) == {160}
    sides.clear()
    adapted(encoder, module, torch.rand(12, 3, 160, 160))
    assert set(sides[2:]) == {side}  # the first calls compare the number of features
    assert module.original is None or module.original.pixels.size == (160, 160)


def test_a_network_that_retrieves_views_stays_frozen(capsys):
    class Hue(WithoutNorm):
        def forward(self, x):
            colours = x.mean((2, 3))
            hue = F.normalize(colours - colours.mean(1, keepdim=True))
            return hue + 0 * super().forward(x).mean()

    hues = np.array([colorsys.hsv_to_rgb(k / 12, 0.8, 0.7) for k in range(12)])
    # Whose default views change colours little.
    plain = np.broadcast_to(hues[:, :, None, None], (12, 3, 96, 96))
    embedder = small(encoder=pretrained(Hue()), max_epochs=1).fit(plain)
    assert not embedder.adapted_
    found = embedder.adaptation_
    assert found["reason"] == "view retrieval" and found["view_retrieval"] > 0.75
    assert not any(capsys.readouterr())


def test_a_file_holds_the_weights_that_were_not_changed_once(tmp_path):
    network, path = nn.Sequential(nn.Conv2d(3, 16, 3, 2), nn.ReLU()), tmp_path / "a"
    embedder = small(encoder=pretrained(network, adapt=False)).fit(X)
    skcontrast.save(embedder, path)
    weights = [w for w in load_file(path).values() if w.shape == network[0].weight.shape]
    assert len(weights) == 1
    found = skcontrast.load(path).transform(X)
    np.testing.assert_array_equal(found, embedder.transform(X))


@pytest.mark.parametrize("adapt", [True, False])
def test_verbose_says_whether_it_is_trained_and_counts_its_parameters_once(net, adapt, capsys):
    small(encoder=pretrained(net, adapt=adapt), max_epochs=1, verbose=1).fit(X)
    printed = capsys.readouterr().err
    assert ("adapted: adapt=True, added to a frozen copy" in printed) == adapt
    assert ("features, frozen: adapt=False," in printed) != adapt
    layers = net.stem, net.norm, net.body
    n_parameters = sum(p.numel() for layer in layers for p in layer.parameters())
    assert f"{n_parameters:,} parameters" in printed


def test_the_head_of_a_frozen_network_is_trained_where_it_is_used_and_refused_elsewhere(net):
    encoder = pretrained(net, adapt=False)
    embedder = small(encoder=encoder).fit(X)
    for use in (
        lambda: embedder.set_params(output="projection").transform(X),
        lambda: project_views(embedder, X),
    ):
        with pytest.raises(ValueError, match=r"head is not trained.*output='projection'"):
            use()
    kwargs = {"encoder": encoder, "similarity": VonMisesFisher()}
    fitted = [small(**kwargs, max_epochs=n).fit(X) for n in (1, 3)]
    assert [embedder.n_epochs_ for embedder in fitted] == [1, 3]
    assert not np.allclose(*[embedder.concentration(X) for embedder in fitted])
    np.testing.assert_array_equal(*(embedder.transform(X) for embedder in fitted))


def test_one_image_is_encoded_alone(net):
    seen = []
    embedder = small(encoder=pretrained(net, adapt=False)).fit(X)
    embedder.encoder_.register_forward_pre_hook(lambda module, args: seen.append(len(args[0])))
    embedder.transform(X[:1])
    assert seen == [1]


def test_callbacks_of_a_fit_that_leaves_the_network_frozen_do_not_run_with_a_warning(net):
    embedder = small(encoder=pretrained(net, adapt=False), callbacks=[Callback()])
    with pytest.warns(UserWarning, match="callbacks of .* do not run.*adapt=True"):
        embedder.fit(X)


@pytest.mark.parametrize("n", [12, 30])
def test_of_few_images_the_network_is_not_adapted_because_they_are_few(n):
    embedder = small(encoder=pretrained(WithoutNorm()), max_epochs=1)
    assert not embedder.fit(images(n, side=32)).adapted_


def test_a_frozen_network_is_what_transform_returns_and_fits_in_all_ways(net, tmp_path):
    embedder = small(encoder=pretrained(net, adapt=False), projection_dim=0)
    h = embedder.fit_transform(X)
    assert not embedder.adapted_ and len(embedder.history_) == 0
    np.testing.assert_array_equal(embedder.partial_fit(X).transform(X), h)
    np.testing.assert_array_equal(embedder.set_params(warm_start=True).fit(X).transform(X), h)
    name = f"{Net.__module__}.Net"
    loaded = reloaded(embedder, tmp_path, custom_objects={name: net})
    np.testing.assert_array_equal(loaded.transform(X), h)
    assert not loaded.adapted_ and loaded.score(X) == embedder.score(X)


@pytest.mark.parametrize(
    "given, y", [({"loss": SupCon()}, np.arange(24) % 2), ({"same_group": "positive"}, None)]
)
def test_labels_and_pairs_are_learned_whatever_the_features(given, y, capsys):
    groups = {} if y is not None else {"groups": np.arange(24) // 2}
    embedder = small(encoder=pretrained(Transformer()), max_epochs=1, **given)
    assert embedder.fit(X, y, **groups).adapted_
    reason = "groups" if y is None else "labels"
    assert embedder.adaptation_ == {"adapted": True, "reason": reason}
    assert not any(capsys.readouterr())


def test_a_projection_of_a_frozen_network_is_trained_alone(net):
    encoder = pretrained(net, adapt=False)
    embedder = small(encoder=encoder, max_epochs=1, output="projection").fit(X)
    trained = embedder.encoder_[1].network.state_dict()
    assert all(net.state_dict()[name].equal(value) for name, value in trained.items())
    assert embedder.n_epochs_ == 1 and not embedder.adapted_


@pytest.mark.parametrize("n_samples, n_epochs", [(100, 40), (800, 6), (100_000, 1)])
def test_fits_are_short(net, n_samples, n_epochs):
    schema = Schema(Images(), (3, 96, 96), 3 * 96**2)
    settings = resolve_settings(ContrastiveEmbedder(pretrained(net)))
    assert settings.for_samples(n_samples, schema).max_epochs == n_epochs


def test_the_embedding_is_the_sum_of_the_frozen_and_the_adapted_network(net):
    larger = images(24, side=128)
    encoder = Pretrained(net, mean=0.5, std=0.25)
    embedder = small(encoder=encoder, max_epochs=1).fit(larger)
    before = torch.from_numpy(Frozen(encoder).fit_transform(larger))
    adapted = torch.from_numpy(embedder.transform(larger)) - F.rms_norm(before, (16,))
    assert adapted.shape == (24, 16)
    torch.testing.assert_close(adapted.square().mean(1), torch.ones(24), rtol=0, atol=1e-4)
    module = embedder.encoder_[1]
    assert (module.original.pixels.size, module.pixels.size) == ((128, 128), (96, 96))
    assert small(encoder=encoder, n_components=3).fit_transform(larger).shape == (24, 3)


def test_a_classifier_has_no_other_block(net):
    embedder = small(encoder=pretrained(net), max_epochs=1)
    model = ContrastiveClassifier(embedder, random_state=0).fit(X, np.arange(24) % 3 - 1)
    assert model.blocks_ == {"embedding": 1}


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
    pairs = zip(loaded.encoder_.parameters(), embedder.encoder_.parameters(), strict=True)
    assert all(one.requires_grad == other.requires_grad for one, other in pairs)
    np.testing.assert_array_equal(loaded.fit(X).transform(X), h)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64], ids=str)
def test_a_network_of_another_precision_is_adapted_in_float32_and_loaded(net, dtype, tmp_path):
    embedder = small(encoder=pretrained(net.to(dtype)), max_epochs=1).fit(X)
    assert all(p.dtype == torch.float32 for p in embedder.encoder_.parameters())
    custom_objects = {f"{Net.__module__}.Net": Net().to(dtype)}
    loaded = reloaded(embedder, tmp_path, custom_objects=custom_objects)
    np.testing.assert_array_equal(loaded.transform(X), embedder.transform(X))
    assert loaded.adaptation_ == embedder.adaptation_


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
def test_large_batches_are_computed_twice_with_the_same_gradient(net, monkeypatch, n_allowed):
    module = pretrained(net, frozen=0).build((3, 32, 32)).double().train()
    batch, gradients = torch.rand(12, 3, 32, 32).double(), []
    computed = []
    module.network.stem.register_forward_hook(lambda *_: computed.append(1))
    for n in (12, n_allowed):
        monkeypatch.setattr(_pretrained_network, "_PIXELS", n * 32 * 32)
        module.zero_grad()
        computed.clear()
        module(batch).square().sum().backward()
        gradients.append(module.network.stem.weight.grad.clone())
    assert len(computed) == 2 * -(-12 // n_allowed) - 1
    torch.testing.assert_close(*gradients, rtol=1e-12, atol=1e-14)


def test_a_network_is_adapted_in_bf16(net, monkeypatch):
    monkeypatch.setattr(_pretrained_network, "_PIXELS", 5 * 32 * 32)
    losses = {}
    for precision in ("float32", "bf16"):
        embedder = small(encoder=pretrained(net), max_epochs=2, lr=0.01, precision=precision)
        losses[precision] = embedder.fit(X).history_[:, "train_loss"]
    assert losses["bf16"] != losses["float32"]
    assert losses["bf16"] == pytest.approx(losses["float32"], rel=0.01)


# What is a classification head


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


def test_sequential_keeps_a_layer_that_is_named_like_a_head():
    assert frozen(Net(n_classes=64), X).shape == (24, 16)
    assert frozen(nn.Sequential(Net(n_classes=64)), X).shape == (24, 64)


def test_the_last_layer_of_several_is_the_head():
    net = Net()
    net.fc = nn.Sequential(nn.Linear(16, 12), nn.ReLU(), nn.Linear(12, 5))
    assert frozen(net, X).shape == (24, 12)


def test_a_pooling_module_that_is_named_head_stays():
    class Pooling(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(16, 16)

        def forward(self, h):
            return h + self.linear(h)

    net = Net()
    del net.fc
    net.fc = Pooling()
    expected = net.eval()((torch.from_numpy(X) / 255 - 0.5) / 0.25).detach()
    np.testing.assert_allclose(frozen(net, X), expected, atol=1e-5)


@pytest.mark.parametrize(
    "made, printed",
    [
        (Net, "Net: input 32×32, mean (0.1, 0.2, 0.3), std (0.25, 0.25, 0.25), head fc removed, "
         "16 features"),
        (lambda: nn.Sequential(Net()), "no head removed, 5 features"),
    ],
    ids=["head", "no head"],
)  # fmt: skip
def test_what_is_done_with_a_network_is_printed_in_one_line(made, printed, capsys):
    encoder = pretrained(made(), mean=(0.1, 0.2, 0.3))
    small(encoder=encoder, max_epochs=1, verbose=1).fit(X)
    assert capsys.readouterr().err.count(printed) == 1


# What is known of pixels and rows


def test_the_first_token_counts_only_where_there_is_a_class_token():
    gives = Returns(lambda h: Object(last_hidden_state=h.flatten(2).mT)).eval()
    x = (torch.from_numpy(X) / 255 - 0.5) / 0.25
    tokens = gives.body(gives.norm(gives.stem(x)).relu()).flatten(2).mT.detach()
    np.testing.assert_allclose(frozen(gives, X), tokens.mean(1), atol=1e-5)
    gives.cls_token = nn.Parameter(torch.zeros(1))
    np.testing.assert_allclose(frozen(gives, X), tokens[:, 0], atol=1e-5)


SCALED = "which is not supported. .* pass mean= and std="


def from_processor(**options):
    return {"mean": None, "std": None, "processor": Object(mean=0.5, std=0.5, **options)}


@pytest.mark.parametrize(
    "given, message",
    [
        ({"mean": (123.7, 116.3, 103.5), "std": 58.0}, "divide them by 255"),
        ({"size": [64, 64, 3]}, r"takes size=int or \(height, width\), got \[64, 64, 3\]"),
        ({"rate": 0}, "'rate' parameter of Pretrained"),
        (from_processor(do_rescale=False), "do_rescale=False, which is not supported"),
        (from_processor(include_top=True), SCALED),
        (from_processor(rescale_factor=1 / 127.5), SCALED),
        (from_processor(offset=True), SCALED),
    ],
)
def test_wrong_choices_are_refused(net, given, message):
    for use in (frozen, lambda *_, **given: small(encoder=pretrained(net, **given)).fit(X)):
        with pytest.raises(ValueError, match=message):
            use(net, X, **given)


@pytest.mark.parametrize("is_called", [True, False])
def test_weights_are_told_to_pass_their_transforms(net, is_called):
    make = partial(Object, mean=0.5, std=0.5)
    processor = Object(transforms=make) if is_called else make
    with pytest.raises(ValueError, match=r"must be weights.transforms\(\), got"):
        Frozen(Pretrained(net, size=32, processor=processor)).fit(X)


def test_equal_images_do_not_train_the_network(net):
    class Rounded(Net):
        def forward(self, x):  # in batches of other sizes, sums are rounded otherwise
            return super().forward(x) * (1 + 1e-6 * torch.rand(len(x), 1))

    same = np.repeat(X[:1], 40, axis=0)
    for network in (net, Rounded()):
        embedder = small(encoder=pretrained(network), max_epochs=1).fit(same)
        assert embedder.adaptation_ == {"adapted": False, "reason": "equal features"}


def test_floats_in_another_unit_are_reported_by_transform(net):
    embedder = alone(net, max_epochs=1).fit(X / 255)
    for other in (X.astype(np.float32), X / 127.5 - 1):
        with pytest.warns(UserWarning, match="white 1: rescale X"):
            embedder.transform(other)


def test_a_trainable_network_is_exported(net, tmp_path):
    pytest.importorskip("onnx")
    embedder = alone(net, max_epochs=1).fit(X)
    skcontrast.export(embedder, tmp_path / "net.onnx", X)
    found = run_onnx(tmp_path / "net.onnx", X[:7])
    np.testing.assert_allclose(found, embedder.transform(X[:7]), atol=1e-4)


def test_files_have_at_most_224_pixels(net, tmp_path):
    pixels = pytest.importorskip("PIL.Image")
    for i in range(3):
        pixels.new("RGB", (240, 300), (40 * i, 90, 10)).save(tmp_path / f"{i}.png")
    paths = sorted(map(str, tmp_path.iterdir()))
    folder = ImageFolder(tmp_path)
    for files in (paths, folder, folder[:2]):
        assert Frozen(pretrained(net)).fit(files)._schema.sample_shape == (3, 224, 224)
    assert folder.shape == (3, 3, 64, 64)
    embedder = small(encoder=pretrained(net, adapt=False)).fit(folder)
    np.testing.assert_array_equal(embedder.transform(folder), embedder.transform(paths))
    chosen = ImageFolder(tmp_path, size=64)
    assert Frozen(pretrained(net)).fit(chosen)._schema.sample_shape == (3, 64, 64)


def test_a_network_without_gradients_is_trained(net):
    embedder = small(encoder=pretrained(net.requires_grad_(False), adapt=True), max_epochs=1)
    assert embedder.fit(X).adapted_


def test_a_flattened_map_is_trained_at_the_size_of_the_images():
    flat = nn.Sequential(nn.Conv2d(3, 2, 3, stride=8), nn.Flatten())
    encoder = Pretrained(flat, mean=0.5, std=0.5, adapt=True)
    embedder = small(encoder=encoder, max_epochs=1).fit(images(6, side=120))
    assert embedder.adapted_ and embedder.transform(images(2, side=120)).shape == (2, 2 * 15**2)
