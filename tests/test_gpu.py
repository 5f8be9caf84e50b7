"""What only a CUDA device can show; skipped without one."""

import pickle

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from skcontrast import ContrastiveEmbedder, contrastive_loss
from skcontrast._runtime import seeded_rng  # private: a CUDA generator by itself
from skcontrast.augmentation import MarginalCorruption, SimCLRAugmentation
from skcontrast.encoders import Pretrained
from skcontrast.frameworks import CMC, MoCo, SimCLR
from skcontrast.losses import HCL
from skcontrast.similarity import VonMisesFisher

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]

X = load_digits().data[:300]
IMAGES = (X.reshape(-1, 1, 8, 8) * 15).astype(np.uint8)
LARGER = IMAGES.repeat(2, axis=2).repeat(2, axis=3)  # embedded by PatchNet


def embedder(device, **kwargs):
    return ContrastiveEmbedder(max_epochs=3, random_state=0, device=device, **kwargs)


@pytest.mark.parametrize("data", [X, IMAGES, IMAGES.repeat(3, axis=1), LARGER])
def test_fit_and_transform(data):
    fitted = embedder("cuda").fit(data)
    assert next(fitted.encoder_.parameters()).is_cuda
    assert np.isfinite(fitted.transform(data)).all()
    assert np.isfinite(fitted.score(data))


def test_a_pretrained_network_may_lie_on_the_gpu():
    network = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, 2), torch.nn.ReLU()).cuda()
    fitted = embedder("cuda", encoder=Pretrained(network, mean=0.5, std=0.5)).fit(LARGER)
    assert np.isfinite(fitted.transform(LARGER)).all()
    assert all(weights.is_cuda for weights in network.parameters())


def test_trained_on_the_gpu_used_on_the_cpu():
    fitted = embedder("cuda", warm_start=True).fit(X)
    loaded = pickle.loads(pickle.dumps(fitted))
    assert all(not p.is_cuda for p in loaded.encoder_.parameters())
    moments = loaded._states["optimizer"]["state"][0].values()
    assert all(not value.is_cuda for value in moments)
    np.testing.assert_allclose(
        loaded.set_params(device="cpu").transform(X), fitted.transform(X), atol=1e-4
    )


@pytest.mark.parametrize("framework", [MoCo(symmetric=True), CMC()], ids=repr)
def test_the_memory_of_a_framework_moves_from_the_gpu_to_the_cpu_and_back(framework):
    fitted = embedder("cuda", framework=framework, warm_start=True).fit(X)
    held = {k: v for k, v in fitted._states["framework"]["state"].items() if hasattr(v, "device")}
    assert all(tensor.is_cuda for tensor in held.values())
    loaded = pickle.loads(pickle.dumps(fitted))
    for name, tensor in held.items():
        torch.testing.assert_close(loaded._states["framework"]["state"][name], tensor.cpu())
    for device in ("cpu", "cuda"):
        assert np.isfinite(loaded.set_params(device=device).fit(X).transform(X)).all()


@pytest.mark.parametrize("framework", [SimCLR(), MoCo(), CMC()], ids=repr)
def test_concentrations(framework):
    fitted = embedder("cuda", framework=framework, similarity=VonMisesFisher()).fit(X)
    kappa = fitted.concentration(X)
    assert (kappa > 0).all() and np.isfinite(fitted.log_score(X[:9])).all()
    on_cpu = pickle.loads(pickle.dumps(fitted)).set_params(device="cpu")
    np.testing.assert_allclose(on_cpu.concentration(X), kappa, rtol=1e-3)


def test_mutual_likelihood_scores_are_those_of_the_cpu():
    z = torch.randn(2, 300, 33, generator=torch.Generator().manual_seed(0))
    results = []
    for device in ("cpu", "cuda"):
        leaf = z.to(device).requires_grad_()
        value = contrastive_loss(*leaf, similarity=VonMisesFisher())
        results.append((value.cpu(), torch.autograd.grad(value, leaf)[0].cpu()))
    torch.testing.assert_close(*results, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("device", ["cuda", "cpu"])
def test_a_fit_leaves_the_generator_of_the_gpu(device):
    torch.cuda.manual_seed(5)
    before = torch.cuda.get_rng_state()
    embedder(device).fit(X)
    assert torch.equal(torch.cuda.get_rng_state(), before)


def test_a_seed_gives_the_numbers_that_torch_gives():
    torch.cuda.manual_seed(5)
    expected = torch.rand(3, device="cuda")
    with seeded_rng(5, torch.device("cuda")):
        assert torch.equal(torch.rand(3, device="cuda"), expected)


def test_same_views_in_every_fit():
    first, second = (embedder("cuda").fit(X).history_[:, "train_loss"] for _ in range(2))
    np.testing.assert_allclose(first, second, rtol=1e-3)


def test_loss_agrees_with_the_cpu():
    views = torch.randn(2, 300, 32, generator=torch.Generator().manual_seed(0))
    on_cpu = contrastive_loss(*views, loss=HCL())
    torch.testing.assert_close(contrastive_loss(*views.cuda(), loss=HCL()).cpu(), on_cpu)


@pytest.mark.parametrize("augmentation", [SimCLRAugmentation(blur=True), MarginalCorruption()])
def test_augmentation_draws_on_the_device(augmentation):
    data = X if isinstance(augmentation, MarginalCorruption) else IMAGES.repeat(3, axis=1)
    batch = torch.from_numpy(data).cuda()
    view = augmentation.fit(data).augment(batch, torch.Generator("cuda").manual_seed(0))
    assert view.is_cuda and view.shape == batch.shape and view.isfinite().all()
