"""A description differs where a fit may, and is the same in every process."""

import functools
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from skcontrast._fit._identity import described
from skcontrast.augmentation import FunctionAugmentation
from skcontrast.losses import DCL
from tests.common import in_a_process


class Scales:
    def __init__(self, factor):
        self.factor = factor

    def __call__(self, x):
        return x * self.factor

    def scale(self, x):
        return self(x)


def scales(factor):
    return lambda x: x * factor


def power(x, k):
    return x**k


def linear(k):
    torch.manual_seed(k)
    return nn.Linear(2, 2)


MADE = {
    "weights": linear,
    "half weights": lambda k: linear(k).bfloat16(),
    "weights in an augmentation": lambda k: FunctionAugmentation(nn.Sequential(linear(k))),
    "a function": lambda k: scales if k == 1 else power,
    "a function of NumPy": lambda k: np.mean if k == 1 else np.max,
    "a cached function": lambda k: functools.cache(scales if k == 1 else power),
    "partial": lambda k: functools.partial(power, k=k),
    "a partial of other functions": lambda k: functools.partial(scales if k == 1 else power, 1),
    "a callable object": Scales,
    "an object with an array": lambda k: Scales(np.full(50, k)),
    "an object with a tensor": lambda k: Scales(torch.full((3,), k)),
    "an object with a module": lambda k: Scales(linear(k)),
    "an object with a set": lambda k: Scales({"a", k}),
    "a method": lambda k: Scales(1).scale if k == 1 else Scales(1).__call__,
    "a path": lambda k: Path(f"a/{k}"),
    "a type of numbers": lambda k: {1: torch.float16, 2: torch.float32}[k],
    "objects in a list": lambda k: {"a": [{Scales(1), k}, (Scales(k),)]},
}


@pytest.mark.parametrize("name", MADE)
def test_what_is_made_alike_has_one_description_and_other_things_another(name):
    first, again, other = (MADE[name](k) for k in (1, 1, 2))
    assert described("a", first) == described("a", again) != described("a", other)


def test_what_a_function_does_is_not_compared():
    assert described("a", scales(1)) == described("a", scales(2))
    assert described("a", scales(1)) == {"a": f"{__name__}.scales.<locals>.<lambda>"}


def test_functions_count_by_name():
    for function, name in [
        (np.mean, "numpy.mean"),
        (print, "builtins.print"),
        (nn.functional.normalize, "torch.nn.functional.normalize"),
    ]:
        assert described("a", function) == {"a": name}


def test_a_lazy_module_and_an_object_that_holds_itself_have_descriptions():
    assert described("a", nn.LazyLinear(3)) == described("a", nn.LazyLinear(3))
    one = Scales(1)
    one.itself = one
    own = f"{__name__}.Scales"
    assert described("a", one) == {"a": own, "a.factor": "1", "a.itself": own}


def descriptions():
    return [described("a", make(1)) for make in MADE.values()]


def test_a_description_is_the_same_in_every_process():
    assert in_a_process(descriptions) == descriptions()


class PrintsItsAddress(nn.Module):
    def extra_repr(self):
        return f"<function f at {id(self):#x}>"


OWN = f"{__name__}.PrintsItsAddress"
NAME = "skcontrast.losses._debiased.DCL"
LAYER = "torch.nn.modules.activation.ReLU"


@pytest.mark.parametrize(
    "value, expected",
    [
        (DCL, {"a": NAME}),
        ([None, 0.5, "b"], {"a": "[None, 0.5, 'b']"}),
        ({1: DCL, "b": [1]}, {"a": "a dictionary of 2", "a['1']": NAME, "a['b']": "[1]"}),
        (
            [{}, "x" * 17],
            {"a": "a list of 2", "a[0]": "a dictionary of 0", "a[1]": repr("x" * 17)},
        ),
        (DCL(0.2), {"a": NAME, "a__tau_plus": "0.2"}),
        (nn.ReLU(), {"a": LAYER, "a__layers[0]": f"{LAYER}()"}),
        (PrintsItsAddress(), {"a": OWN, "a__layers[0]": f"{OWN}(<function f>)"}),
    ],
    ids=["class", "list", "dictionary", "long list", "parameters", "module", "address"],
)
def test_each_parameter_has_a_name_and_a_text(value, expected):
    found = described("a", value)
    assert {name: text for name, text in found.items() if name != "a__weights"} == expected


def test_long_texts_end_in_a_checksum_of_the_whole():
    texts = [described("a", "x" * n)["a"] for n in (200, 201)]
    assert all(text.startswith("'" + "x" * 99 + "... (checksum ") for text in texts)
    assert texts[0] != texts[1]


def test_shapes_and_weights_have_texts_of_their_own():
    one, other = (described("a", linear(k)) for k in (1, 2))
    assert [name for name in one if one[name] != other[name]] == ["a__weights"]
    shapes = one["a__weight"], described("a", nn.Linear(2, 3))["a__weight"]
    assert shapes == ("(2, 2)", "(3, 2)")
