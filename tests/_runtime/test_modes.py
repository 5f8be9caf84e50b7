"""The guard against global settings; `test_global_settings.py` has what it does for names."""

from contextlib import ExitStack

import pytest
import sklearn
import torch

from skcontrast._runtime import guarded  # private: the guards around calls into torch


def settings():
    return {
        "autocast": torch.is_autocast_enabled("cpu"),
        "device": torch.get_default_device().type,
        "dtype": torch.get_default_dtype(),
        "gradients": torch.is_grad_enabled(),
        "inference": torch.is_inference_mode_enabled(),
        "output": sklearn.get_config()["transform_output"],
    }


@pytest.fixture
def changed():
    """Change all of them."""
    with ExitStack() as stack:
        stack.enter_context(torch.autocast("cpu", dtype=torch.bfloat16))
        stack.enter_context(torch.device("meta"))
        stack.enter_context(torch.inference_mode())
        stack.enter_context(sklearn.config_context(transform_output="pandas"))
        stack.callback(torch.set_default_dtype, torch.float32)
        torch.set_default_dtype(torch.float16)
        yield


ORIGINAL = settings()


def test_within_it_settings_are_those_of_a_new_process_and_afterwards_those_of_the_caller(changed):
    before = settings()
    assert not any(value == ORIGINAL[key] for key, value in before.items())
    with guarded():
        assert settings() == ORIGINAL
        with guarded():
            assert settings() == ORIGINAL
        assert settings() == ORIGINAL
    assert settings() == before


def test_it_keeps_the_modes_of_gradients_if_asked(changed):
    with guarded(gradients=False):
        assert settings() == {**ORIGINAL, "gradients": False, "inference": True}


def test_gradients_are_enabled_in_inference_mode_that_allows_them():
    with torch.inference_mode(), torch.enable_grad(), guarded():
        assert settings() == ORIGINAL
