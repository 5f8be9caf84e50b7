"""Every part of a fitted embedder has one name in files."""

import pytest
from sklearn.preprocessing import StandardScaler

from skcontrast import (
    augmentation,
    encoders,
    frameworks,
    kinds,
    losses,
    optimizers,
    schedules,
    similarity,
)
from skcontrast._files._classes import LINEAR, classes, names

PUBLIC = [augmentation, encoders, frameworks, kinds, losses, optimizers, schedules, similarity]


@pytest.mark.parametrize("module", PUBLIC, ids=lambda module: module.__name__)
def test_every_public_class_has_a_name(module):
    short = module.__name__.rpartition(".")[2]
    for name in module.__all__:
        if isinstance(getattr(module, name), type):
            assert classes()[f"{short}.{name}"] is getattr(module, name)


def test_a_name_leads_back_to_its_class():
    for some, name in names().items():
        assert classes()[name] is some


def test_only_classes_of_skcontrast_and_torch_and_linear_ones_have_names():
    others = set(names()) - {StandardScaler, *LINEAR}
    assert {some.__module__.partition(".")[0] for some in others} == {"skcontrast", "torch"}
