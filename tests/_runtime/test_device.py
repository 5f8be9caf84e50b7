"""The device that a parameter names, and its free memory."""

import psutil
import torch

# private: the device by itself
from skcontrast._runtime import free_bytes, resolve_device


def test_auto_is_the_first_device_that_is_available(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert resolve_device("auto", "Embedder") == torch.device("cpu")
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert resolve_device("auto", "Embedder") == torch.device("mps")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert resolve_device("auto", "Embedder") == torch.device("cuda")


def test_free_memory_is_a_part_of_all_memory():
    assert 0 < free_bytes(torch.device("cpu")) <= psutil.virtual_memory().total
