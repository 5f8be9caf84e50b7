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
from skcontrast._files._classes import LINEAR, classes

PUBLIC = [augmentation, encoders, frameworks, kinds, losses, optimizers, schedules, similarity]


@pytest.mark.parametrize("module", PUBLIC, ids=lambda module: module.__name__)
def test_every_public_class_has_a_name(module):
    short = module.__name__.rpartition(".")[2]
    for name in module.__all__:
        if isinstance(getattr(module, name), type):
            assert classes()[f"{short}.{name}"] is getattr(module, name)


def test_each_class_has_one_name():
    assert len(set(classes().values())) == len(classes())


def test_only_classes_of_skcontrast_and_torch_and_linear_ones_have_names():
    others = set(classes().values()) - {StandardScaler, *LINEAR}
    assert {some.__module__.partition(".")[0] for some in others} == {"skcontrast", "torch"}
