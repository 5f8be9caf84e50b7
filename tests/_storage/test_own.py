"""What is handed over is told apart, brought to its state, and compared."""

import functools

import numpy as np
import pytest
import torch
from sklearn.base import BaseEstimator
from torch import nn

from skcontrast._files._classes import classes, names
from skcontrast._storage._own import own_name
from skcontrast._storage._values import Reader, Writer


def written(value):
    """Return a value as JSON, and its writer."""
    writer = Writer(names())
    return writer.write(value, "value"), writer


def again(value, **own):
    """Return a value after it was written and read; `own` has the last parts of names."""
    found, writer = written(value)
    given = {name: own[name.rpartition(".")[2].replace("#", "_")] for name in writer.own}
    return Reader(classes(), writer.tensors, given).read(found)


class Scale(nn.Module):
    """Numbers that are neither parameters nor buffers, and a text."""

    def __init__(self, factor=1.0, mode="times"):
        super().__init__()
        self.factor, self.mode, self._calls = factor, mode, 0
        self.offsets, self.last = np.zeros(3), None

    def forward(self, x):
        self._calls, self.last = self._calls + 1, x
        return x * self.factor + self.offsets.sum()


class Block(nn.Module):
    """A module whose weights have any shape."""

    def __init__(self, n_in=2, n_out=3):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(n_in, n_out), nn.LeakyReLU(0.5))

    def forward(self, x):
        return self.layers(x)


class Shift:
    """An object that is not a module."""

    def __init__(self, by=1.0, unit="m"):
        self.by, self.unit = by, unit

    def __call__(self, x):
        return x + self.by


class Rule(BaseEstimator):
    """An object with parameters, which has learned something."""

    def __init__(self, rate=0.1, kind="hard"):
        self.rate, self.kind = rate, kind


def by(factor):
    """Return a function that has captured a number."""

    def scaled(x):
        return factor * x

    return scaled


def test_ones_own_is_called_as_python_calls_it():
    assert own_name(Block()) == own_name(Block) == f"{__name__}.Block"
    assert own_name(own_name) == "skcontrast._storage._own.own_name"


def test_numbers_in_attributes_are_those_that_were_written():
    first, last = Scale(100.0), Scale(0.01)
    first.offsets = np.array([1.0, 2.0, 3.0])[::-1]
    x = torch.ones(4, 3)
    first(x)
    found = again(nn.Sequential(first, nn.Linear(3, 3), last), Scale=Scale(7.0))
    assert found[0].factor == 100 and found[0]._calls == 1 and torch.equal(found[0].last, x)
    assert found[0].offsets.tolist() == [3, 2, 1]
    assert torch.equal(found[0](x), first(x)) and torch.equal(found[2](x), last(x))


def test_what_is_handed_over_stays_as_it_is():
    given, shift = Scale(7.0), Shift(7.0)
    again([Scale(2.0), Shift(2.0)], Scale=given, Shift=shift)
    assert given.factor == shift.by == 7


def test_modules_of_a_class_with_other_shapes_have_names_of_their_own():
    both = nn.Sequential(Block(5, 16), Block(16, 4), Block(5, 16))
    _, writer = written(both)
    start = f"{__name__}.Block"
    assert writer.own == {start: "value.0", f"{start}#2": "value.1"}
    found, x = again(both, Block=Block(5, 16), Block_2=Block(16, 4)), torch.ones(2, 5)
    assert torch.equal(found[:2](x), both[:2](x)) and torch.equal(found[2](x), both[2](x))
    with pytest.raises(ValueError, match=r"own\['.*Block#2'\] has other weights"):
        again(both, Block=Block(5, 16), Block_2=Block(5, 16))


def test_texts_are_compared_and_name_the_attribute():
    both = nn.Sequential(Scale(mode="times"), Scale(mode="plus"))
    given = {"Scale": Scale(mode="times"), "Scale_2": Scale(mode="plus")}
    assert [module.mode for module in again(both, **given)] == ["times", "plus"]
    with pytest.raises(
        ValueError, match=r"Scale#2'\] differs: its mode was 'plus' and is 'times'"
    ):
        again(both, **{**given, "Scale_2": Scale()})
    with pytest.raises(ValueError, match="mode was 'times' and is a number or None now"):
        again(Scale(), Scale=Scale(mode=None))


def test_layers_inside_are_compared_and_get_their_numbers():
    block, other = Block(), Block()
    assert again(block, Block=_with_slope(Block(), 0.1)).layers[1].negative_slope == 0.5
    other.layers[1] = nn.ReLU()
    with pytest.raises(ValueError, match=r"its layers\.1 was a LeakyReLU and is a ReLU now"):
        again(block, Block=other)


def _with_slope(block, slope):
    block.layers[1].negative_slope = slope
    return block


def test_one_module_in_two_places_stays_one():
    block = Block(2, 2)
    found = again(nn.Sequential(block, nn.ReLU(), block, nn.Tanh()), Block=Block(2, 2))
    assert found[0] is found[2] is not found[3]


def test_a_lazy_module_stands_for_itself_before_and_after_it_has_seen_a_sample():
    class Lazy(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.LazyLinear(3)

        def forward(self, x):
            return self.linear(x)

    before, after, x = Lazy(), Lazy(), torch.ones(2, 4)
    after(x)
    _, writer = written([before, after])
    assert len(writer.own) == 1
    found = again([before, after], Lazy=Lazy())
    assert found[0](x).shape == (2, 3) and torch.equal(found[1](x), after(x))


def test_a_class_or_a_function_makes_what_is_handed_over():
    found = again(nn.Sequential(Scale(3.0), Block()), Scale=Scale, Block=lambda: Block(2, 3))
    assert found[0].factor == 3 and type(found[1]) is Block
    with pytest.raises(ValueError, match=r"Block'\] must be an object, or .* failed: .*argument"):
        again(Block(), Block=lambda x: x)
    assert again(Block, Block=Block) is Block


def test_objects_get_their_numbers_and_their_texts_are_compared():
    found = again([Shift(2.0), Shift(3.0), Rule(rate=0.3)], Shift=Shift(), Rule=Rule())
    assert found[0](1) == 3 and found[1](1) == 4 and found[2].rate == 0.3
    with pytest.raises(ValueError, match=r"Rule'\] differs: its kind was 'hard' and is 'soft'"):
        again(Rule(), Rule=Rule(kind="soft"))


def test_an_object_does_not_put_what_it_has_learned_into_the_file():
    rule = Rule()
    rule.samples_ = np.arange(5.0)
    _, writer = written(rule)
    assert not writer.tensors


def test_functions_of_one_name_are_told_apart_or_refused():
    two = [by(2), by(3), by(2)]
    found = again(two, scaled=by(2), scaled_2=by(3))
    assert [function(1) for function in found] == [2, 3, 2]
    with pytest.raises(ValueError, match=r"scaled#2'\] differs: its captured was .*3.* and is"):
        again(two, scaled=by(2), scaled_2=by(2))
    with pytest.raises(
        TypeError, match=r"value\.1 and value\.0 are different functions .*<lambda>"
    ):
        written([lambda x: x + 1, lambda x: x + 2])
    parts = [functools.partial(by(1), x=1), functools.partial(by(1), x=2)]
    assert [part() for part in again(parts, partial=parts[0], partial_2=parts[1])] == [1, 2]


def test_a_function_may_be_mended():
    def mended(x, scale=2):
        """Say more."""
        return scale * x + 0

    def function(x, scale=2):
        return scale * x

    assert again(function, function=mended) is mended


def test_layers_that_torch_does_not_find_are_refused():
    class Hidden(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(2, 2)
            self.order = [self.first]

    assert isinstance(again(Hidden(), Hidden=Hidden()), Hidden)
    module = Hidden()
    module.order.append(nn.Linear(2, 2))
    with pytest.raises(TypeError, match=r"value has layers .* in order that torch .* ModuleList"):
        written(module)


@pytest.mark.parametrize("key", ["forward", "__class__", "_modules", "mode", "weight"])
def test_a_file_cannot_replace_what_is_not_a_number(key):
    module = Scale()
    module.register_buffer("weight", torch.ones(2))
    found, writer = written(module)
    found["numbers"][""][key] = 5.0
    with pytest.raises(ValueError, match=r"an attribute|is a number or None"):
        Reader(classes(), writer.tensors, {own_name(module): module}).read(found)
    found["numbers"] = {"": {"factor": "text"}}
    with pytest.raises(ValueError, match="an attribute 'factor'"):
        Reader(classes(), writer.tensors, {own_name(module): module}).read(found)
