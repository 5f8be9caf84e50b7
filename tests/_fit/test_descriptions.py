"""A description differs where a fit may, and is the same in every process."""

import functools

import numpy as np
import pytest
import torch
from torch import nn

from skcontrast._fit._checkpoint import description_of  # private: what becomes a description
from skcontrast.losses import DCL
from skcontrast.optimizers import Optimizer
from tests.common import in_a_process


def scales(factor):
    return lambda x: x * factor


def power(x, k):
    return x**k


def linear(k):
    torch.manual_seed(k)
    return nn.Linear(2, 2)


MADE = {
    "a number": lambda k: k,
    "a parameter": lambda k: DCL(tau_plus=k / 10),
    "options": lambda k: Optimizer("adamw", betas=(0.9, k / 10)),
    "weights": linear,
    "lazy weights": lambda k: nn.Sequential(linear(k), nn.LazyLinear(3)),
    "half weights": lambda k: linear(k).bfloat16(),
    "a layer without weights": lambda k: nn.Dropout(k / 10),
    "a function": lambda k: scales if k == 1 else power,
    "a function of NumPy": lambda k: np.mean if k == 1 else np.max,
    "partial": lambda k: functools.partial(power, k=k),
    "an array": lambda k: np.full(2000, k),
    "a tensor": lambda k: torch.full((3,), k, dtype=torch.bfloat16),
    "a class": lambda k: DCL if k == 1 else nn.ReLU,
    "nested": lambda k: {"a": [DCL(), (nn.Dropout(k / 10),)]},
}


@pytest.mark.parametrize("name", MADE)
def test_what_is_made_alike_has_one_description_and_other_things_another(name):
    first, again, other = (MADE[name](k) for k in (1, 1, 2))
    assert description_of(first) == description_of(again) != description_of(other)


def test_what_a_function_does_is_not_compared():
    assert description_of(scales(1)) == description_of(scales(2))


def test_a_description_names_the_parameters():
    assert description_of(DCL(tau_plus=0.2)) == "DCL(tau_plus=0.2)"
    assert description_of(["a", 0.5, None]) == "['a', 0.5, None]"


def descriptions():
    return [description_of(make(1)) for make in MADE.values()]


@pytest.mark.slow
def test_a_description_is_the_same_in_every_process():
    assert in_a_process(descriptions) == descriptions()
