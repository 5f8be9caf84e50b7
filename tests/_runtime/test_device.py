"""The device that a parameter names."""

import pytest
import torch

from skcontrast._runtime._device import resolve_device


def test_auto_is_the_first_device_that_is_available(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert resolve_device("auto", "Embedder") == torch.device("cpu")
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert resolve_device("auto", "Embedder") == torch.device("mps")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert resolve_device("auto", "Embedder") == torch.device("cuda")


@pytest.mark.parametrize(
    "device, message",
    [("gpu", "'cpu'.*got gpu"), ("meta", "hold data"), ("cuda:99", "available.*cuda:99")],
)
def test_other_devices_are_refused_by_name(device, message):
    with pytest.raises(ValueError, match=f"'device' parameter of Embedder must.*{message}"):
        resolve_device(device, "Embedder")
