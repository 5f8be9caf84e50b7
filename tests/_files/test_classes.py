"""Every part of a fitted embedder has one name in files, and nothing else has one."""

import pytest
import torch
from sklearn.frozen import FrozenEstimator
from sklearn.preprocessing import StandardScaler

import skcontrast

# private: the table of classes
from skcontrast._files._save import LINEAR, _defined_in, _modules, classes

PUBLIC = (
    "augmentation", "encoders", "features", "frameworks", "kinds", "losses", "optimizers",
    "schedules", "similarity",
)  # fmt: skip


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_class_has_its_name(name):
    module = getattr(skcontrast, name)
    for cls in (getattr(module, name) for name in module.__all__):
        if isinstance(cls, type) and cls.__module__.startswith(module.__name__):
            assert classes()[cls.__name__] is cls


def test_no_class_of_skcontrast_takes_the_name_of_another():
    ours = [cls.__name__ for module in _modules() for cls in _defined_in(module)]
    assert len(set(ours)) == len(ours)


def test_only_classes_of_skcontrast_and_torch_and_linear_ones_have_names():
    others = set(classes().values()) - {FrozenEstimator, StandardScaler, *LINEAR}
    assert {some.__module__.partition(".")[0] for some in others} == {"skcontrast", "torch"}
    assert all(
        issubclass(cls, (torch.nn.Module, torch.optim.Optimizer))
        for cls in others
        if cls.__module__.startswith("torch.")
    )
