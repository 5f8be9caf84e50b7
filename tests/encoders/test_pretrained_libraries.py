"""Pretrained with networks of timm and transformers, small and untrained; files without code."""

import warnings

import numpy as np
import pytest
import torch

from skcontrast.encoders import Pretrained

# private: the recipes of libraries
from skcontrast.encoders._pretrained_network import build, recipe_of
from skcontrast.features import Frozen
from tests.common import images, reloaded, small

X = images(20, side=48)


def imported(name):
    """Return a library, whose own warnings are not ours, or skip the test with a word."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip(name, reason=f"needs {name}", exc_type=ImportError)


def seeded(make):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return make().eval()


@pytest.fixture(params=["test_resnet", "test_vit", "test_efficientnet"])
def of_timm(request):
    timm = imported("timm")
    return seeded(lambda: timm.create_model(request.param, pretrained=False))


def of_transformers(name):
    transformers = imported("transformers")
    if name == "vit":
        config = transformers.ViTConfig(
            hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
            image_size=48, patch_size=16,
        )  # fmt: skip
        return seeded(lambda: transformers.ViTModel(config))
    config = transformers.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1])
    return seeded(lambda: transformers.ResNetModel(config))


def test_a_network_of_timm_is_read_with_its_own_pixels_and_saved_whole(of_timm, tmp_path):
    known = of_timm.pretrained_cfg
    x = torch.from_numpy(X).float() / 255
    size = Pretrained(of_timm).build((3, 48, 48)).pixels.size
    x = torch.nn.functional.interpolate(x, size, mode="bilinear")
    mean, std = (torch.tensor(known[key])[:, None, None] for key in ("mean", "std"))
    with torch.no_grad():
        features = of_timm.forward_head(
            of_timm.forward_features((x - mean) / std), pre_logits=True
        )
    found = Frozen(Pretrained(of_timm)).fit_transform(X)
    np.testing.assert_allclose(found, features.numpy(), atol=1e-4)
    embedder = small(encoder=Pretrained(of_timm), max_epochs=1).fit(X)
    loaded = reloaded(embedder, tmp_path)
    np.testing.assert_array_equal(loaded.transform(X), embedder.transform(X))


@pytest.mark.parametrize("name", ["vit_tiny_patch16_224", "vit_small_patch14_dinov2"])
def test_a_transformer_of_timm_takes_smaller_images_and_is_saved_whole(name, tmp_path):
    timm = imported("timm")
    net = seeded(lambda: timm.create_model(name, pretrained=False))
    encoder = Pretrained(net)
    pixels = encoder.build((3, 128, 128)).pixels
    side = 128 // pixels.patch[0] * pixels.patch[0]
    assert pixels.size == (side, side)
    size = encoder.build((3, 48, 48)).pixels.size
    # timm's own interpolation of the positions has the same numbers.
    x = torch.from_numpy(X).float() / 255
    x = torch.nn.functional.interpolate(x, size, mode="bilinear")
    mean, std = (torch.tensor(net.pretrained_cfg[key])[:, None, None] for key in ("mean", "std"))
    found = Frozen(encoder).fit_transform(X)
    embedder = small(encoder=encoder, max_epochs=1).fit(X)
    loaded = reloaded(embedder, tmp_path)
    np.testing.assert_array_equal(loaded.transform(X), embedder.transform(X))
    net.set_input_size(size)
    with torch.no_grad():
        expected = net.forward_head(net.forward_features((x - mean) / std), pre_logits=True)
    np.testing.assert_allclose(found, expected.numpy(), atol=1e-4)


@pytest.mark.parametrize(
    "name, options",
    [
        ("vit_tiny_patch16_224", {"drop_path_rate": 0.1}),
        ("vit_tiny_patch16_224", {"global_pool": "avg"}),
        ("eva02_tiny_patch14_224", {}),
    ],
)
def test_options_of_a_transformer_do_not_fix_the_size_of_images(name, options, tmp_path):
    timm = imported("timm")
    net = seeded(lambda: timm.create_model(name, pretrained=False, **options))
    embedder = small(encoder=Pretrained(net), max_epochs=1).fit(X)
    assert max(Pretrained(net).build((3, 48, 48)).pixels.size) <= 98
    custom_objects = {f"{type(net).__module__}.{type(net).__name__}": net}
    loaded = reloaded(embedder, tmp_path, custom_objects=custom_objects)
    np.testing.assert_array_equal(loaded.transform(X), embedder.transform(X))


@pytest.mark.parametrize("side", [48, 96])
def test_a_network_of_one_channel_has_the_mean_of_its_statistics(side):
    timm = imported("timm")
    net = seeded(lambda: timm.create_model("test_resnet", pretrained=False, in_chans=1))
    found = Pretrained(net).build((1, side, side)).pixels.mean.flatten()
    np.testing.assert_allclose(found, np.mean(net.pretrained_cfg["mean"]), rtol=1e-6)


def test_a_transformer_of_transformers_takes_images_of_any_size():
    module = Pretrained(of_transformers("vit"), mean=0.5, std=0.5).build((3, 130, 130))
    assert module.pixels.size == (128, 128) and module(torch.rand(2, 3, 130, 130)).shape == (2, 16)


@pytest.mark.parametrize("name", ["vit", "resnet"])
def test_a_network_of_transformers_is_read_and_saved_whole(name, tmp_path):
    net = of_transformers(name)
    encoder = Pretrained(net, mean=0.5, std=0.5, size=48)
    with torch.no_grad():
        states = net((torch.from_numpy(X).float() / 255 - 0.5) / 0.5).last_hidden_state
    expected = states[:, 0] if name == "vit" else states.mean((2, 3))
    found = Frozen(encoder).fit_transform(X)
    np.testing.assert_allclose(found, expected.numpy(), atol=1e-4)
    embedder = small(encoder=encoder, max_epochs=1).fit(X)
    loaded = reloaded(embedder, tmp_path)
    np.testing.assert_array_equal(loaded.transform(X), embedder.transform(X))


def test_a_changed_network_is_no_recipe():
    net = of_transformers("resnet")
    assert recipe_of(net)["name"] == "ResNetModel"
    net.embedder.pooler = torch.nn.Identity()
    assert recipe_of(net) is None


def test_a_file_names_no_attention_of_a_hub_for_which_transformers_would_load_code():
    net = of_transformers("vit")
    recipe = recipe_of(net)
    assert not {"attn_implementation", "_name_or_path"} & recipe["config"].keys()
    recipe["config"] |= {
        key: "kernels-community/any" for key in ("attn_implementation", "auto_map")
    }
    again = build(recipe)
    assert again.config._attn_implementation == net.config._attn_implementation


@pytest.mark.parametrize(
    "recipe",
    [
        None,
        {"library": "os", "name": "system"},
        {"library": "timm", "name": "hf-hub:somebody/something", "num_classes": 0},
        {"library": "timm", "name": "local-dir:/etc", "num_classes": 0},
        {"library": "transformers", "name": "AutoModel", "config": {"model_type": "vit"}},
        {"library": "transformers", "name": "pipeline", "config": {}},
        {"library": "transformers", "name": "ViTModel", "config": {"model_type": "evil"}},
    ],
)
def test_what_a_file_names_is_never_looked_up(recipe):
    for library in ("timm", "transformers"):
        if recipe is not None and recipe["library"] == library:
            imported(library)
    with pytest.raises((ValueError, AttributeError, TypeError)):
        build(recipe)
