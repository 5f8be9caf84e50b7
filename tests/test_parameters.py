"""What holds for the parameters of every public class: names, ranges, copies.

`golden/ranges.json` has the ranges of numbers: a new parameter adds a line there.
"""

import inspect
import json
import math
import pickle
import re
from contextlib import nullcontext
from fractions import Fraction
from pathlib import Path

import pytest
from sklearn.base import clone
from torch import nn

import skcontrast
from skcontrast import (
    augmentation,
    encoders,
    features,
    frameworks,
    kinds,
    losses,
    optimizers,
    schedules,
    similarity,
)

# private: every class, fit or none
from skcontrast._checks import Interval, validate_parameters

MODULES = (
    augmentation, encoders, features, frameworks, kinds, losses, optimizers, schedules, similarity,
)  # fmt: skip
PUBLIC = {name: getattr(module, name) for module in MODULES for name in module.__all__}
CLASSES = [c for c in PUBLIC.values() if inspect.isclass(c) and hasattr(c, "get_params")]
ESTIMATORS = [getattr(skcontrast, name) for name in skcontrast.__all__]
ESTIMATORS = [c for c in ESTIMATORS if hasattr(c, "_parameter_constraints")]
RANGES = json.loads((Path(__file__).parent / "golden" / "ranges.json").read_text())
# What these need besides the parameter that is tried, and parameters that are checked in use only.
NEEDED = {
    "FunctionAugmentation": {"func": nn.Identity()},
    "Frozen": {"encoder": nn.Identity()},
    "Linear": {"start": 1, "stop": 0},
    "NonparametricBCL": {"beta": 0.5},
    "PerModality": {"augmentations": []},
    "Pretrained": {"network": nn.Identity()},
    "Steps": {"milestones": [0.5], "values": [1, 0]},
    "Unflatten": {"shape": (1, 2)},
    "ViewWhitening": {"transformer": features.Raw()},
}
OF_ANY_TYPE = {
    ("Frozen", "encoder"), ("Optimizer", "options"), ("MultimodalKind", "of"),
    ("Pretrained", "processor"), *((name, "kind") for name in features.__all__),
}  # fmt: skip


def make(cls, **params):
    return cls(**{**NEEDED.get(cls.__name__, {}), **params})


def refusal(cls, name):
    return pytest.raises(ValueError, match=f"'{name}' parameter of {cls.__name__}")


def test_what_is_none_of_the_declared_values_is_refused_by_the_name_of_the_parameter():
    tried = 0
    for cls in CLASSES:
        for name in inspect.signature(cls).parameters:
            if (cls.__name__, name) not in OF_ANY_TYPE:
                with refusal(cls, name):
                    validate_parameters(make(cls, **{name: Fraction(-1, 2)}))
                tried += 1
    assert tried > 80


def probes(text):
    """Yield values, and whether a range takes them."""
    if text.startswith("a pair"):
        yield from (((0.5, 0.5), True), ((0.5, 1.0), True), ((0.5, 1.5), "<= 1" not in text))
        wrong = (1.2, 0.8), (0.0, 1.0), (1.0,), ("a", "b"), (1.0, math.nan), (1, math.inf), 1.1
        yield from ((value, False) for value in wrong)
        return
    kind, opens, low, high, closes = re.search(
        r"an? (int|float) in the range ([\[(])(.+), (.+)([\])])", text
    ).groups()
    step = 1 if kind == "int" else 1e-9
    found = [(value, False) for value in (math.nan, math.inf, -math.inf, True, "1", None)]
    found += [(1.5, False)] * (kind == "int")
    for end, is_closed, sign in ((low, opens == "[", -1), (high, closes == "]", 1)):
        if math.isfinite(float(end)):
            end = int(end) if kind == "int" else float(end)
            beyond = end + sign * step * max(abs(end), 1e-30 if 0 < end < 1e-9 else 1)
            found += [(end, is_closed), (beyond, False)]
    if not text.startswith("a sequence"):
        yield from found
        return
    yield from (([value], is_taken) for value, is_taken in found)
    inside = next((value for value, is_taken in found if is_taken), 1)
    yield from (([inside, math.nan], False), ("ab", False))
    if length := re.search(r"length (\d+)", text):
        yield from (([inside] * (int(length[1]) - k), k == 0) for k in (0, 1))


@pytest.mark.parametrize("cls", [*CLASSES, *ESTIMATORS])
def test_a_number_is_taken_within_its_range_and_refused_by_name_outside_of_it(cls):
    for name, rules in cls._parameter_constraints.items():
        ranges = [str(rule) for rule in rules if isinstance(rule, Interval)]
        assert ranges == RANGES.get(f"{cls.__name__}.{name}", []), "see golden/ranges.json"
        for value, is_taken in (probe for text in ranges for probe in probes(text)):
            if type(value) in rules or (value is None and None in rules):
                continue
            with nullcontext() if is_taken else refusal(cls, name):
                validate_parameters(make(cls, **{name: value}))


def test_an_unknown_name_is_refused_with_the_name_that_is_meant():
    for cls in [*CLASSES, *ESTIMATORS]:
        for name in inspect.signature(cls).parameters:
            message = rf"^{cls.__name__}\(\) got an unexpected .* '{name}_x'.*\b{name}\b"
            if cls is not optimizers.Optimizer:
                with pytest.raises(TypeError, match=message):
                    make(cls, **{f"{name}_x": 1})


def test_objects_are_copied_with_their_parameters_and_print_the_line_that_makes_them():
    for cls in CLASSES:
        one = make(cls)
        assert clone(one) is not one and repr(eval(repr(one), {**vars(nn), **PUBLIC})) == repr(one)
        assert repr(clone(one)) == repr(pickle.loads(pickle.dumps(one))) == repr(one)
        for name, value in one.get_params(deep=False).items():
            assert getattr(make(cls).set_params(**{name: value}), name) is value
