"""Custom objects are told apart, and get the weights or parameters of a file and nothing else."""

import copy
import functools

import pytest
import torch
from sklearn.base import BaseEstimator
from torch import nn

from skcontrast._files._save import classes  # private: the names that files store

# private: files that no fit writes
from skcontrast._files._values import Reader, Writer, qualified_name


def written(value):
    """Return a value as JSON, and its writer."""
    writer = Writer(classes())
    return writer.write(value, "value"), writer


def again(value, **passed):
    """Return a value after it was written and read; `passed` has the last parts of names."""
    found, writer = written(value)
    custom = {name: passed[name.rpartition(".")[2].replace("#", "_")] for name in writer.custom}
    return Reader(classes(), writer.tensors, custom).read(found)


class Block(nn.Module):
    """A module whose weights have any shape, with a number that is not a weight."""

    def __init__(self, n_in=2, n_out=3, slope=0.5):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(n_in, n_out), nn.LeakyReLU(slope))

    def forward(self, x):
        return self.layers(x)


class Counted(nn.Linear):
    """A module with a buffer and a state that is not a tensor."""

    def __init__(self, count=0):
        super().__init__(2, 2)
        self.register_buffer("seen", torch.tensor(float(count)))
        self.count = count

    def get_extra_state(self):
        return {"count": self.count}

    def set_extra_state(self, state):
        self.count = state["count"]


class Rule(BaseEstimator):
    """An object with parameters, which has learned something."""

    def __init__(self, rate=0.1, kind="hard", step=None):
        self.rate, self.kind, self.step = rate, kind, step


class Shift:
    """A callable object without parameters."""

    def __init__(self, by):
        self.by = by

    def __call__(self, x):
        return x + self.by


class Holds:
    """An object of which a file would have nothing."""

    def __init__(self, by):
        self.by = by


def test_a_custom_object_has_the_name_that_python_gives_its_class():
    assert qualified_name(Block()) == qualified_name(Block) == f"{__name__}.Block"
    assert qualified_name(qualified_name) == "skcontrast._files._values.qualified_name"


def test_modules_get_their_weights_strictly_and_keep_everything_else():
    module, given = Counted(3), Counted(5)
    found = again(module, Counted=given)
    assert torch.equal(found.weight, module.weight) and found.seen == found.count == 3
    assert given.count == 5 and not torch.equal(given.weight, module.weight)
    assert again(Block(slope=0.5), Block=Block(slope=0.1)).layers[1].negative_slope == 0.1
    other = nn.Sequential(Counted())
    with pytest.raises(ValueError, match=r"(?s)Counted'\] differs: .*Missing key.*0\.weight"):
        again(module, Counted=other)
    assert again(module, Counted=Counted().double()).weight.dtype == torch.float32
    with pytest.raises(ValueError, match=r"Counted'\] must be a module, got 'Counted'"):
        again(module, Counted="Counted")


def test_a_layer_of_torch_with_a_hook_or_a_parametrization_is_passed():
    hooked, normed = nn.Linear(2, 2), nn.utils.parametrizations.weight_norm(nn.Linear(2, 2))
    hooked.register_forward_hook(lambda module, args, output: 2 * output)
    passed = {"Linear": copy.deepcopy(hooked), "ParametrizedLinear": copy.deepcopy(normed)}
    both, x = nn.Sequential(hooked, normed), torch.ones(1, 2)
    for parameter in passed["ParametrizedLinear"].parameters():
        nn.init.zeros_(parameter)
    with pytest.raises(KeyError, match="Linear"):
        again(both)
    assert torch.equal(again(both, **passed)(x), both(x))


def test_objects_get_their_parameters():
    rule, given = Rule(0.3, "soft", Rule(kind="inner")), Rule()
    found = again(rule, Rule=given, Rule_2=given)
    assert (found.rate, found.kind, found.step.kind) == (0.3, "soft", "inner")
    assert given is not found and given.rate == 0.1
    for wrong in ("Rule", Rule):
        with pytest.raises(ValueError, match=r"Rule'\] must have parameters, got"):
            again(Rule(), Rule=wrong)


def test_a_class_is_passed():
    assert again(Block, Block=Block) is Block


def test_a_file_cannot_set_what_is_not_a_parameter():
    reader = Reader(classes(), {}, {qualified_name(Rule): Rule()})
    with pytest.raises(ValueError, match="Invalid parameter 'learned_'"):
        reader.read({"$custom": qualified_name(Rule), "params": {"learned_": 1}})


def test_an_object_does_not_put_what_it_has_learned_into_the_file():
    rule = Rule()
    rule.samples_ = torch.arange(5.0)
    found, writer = written(rule)
    assert not writer.tensors and found["params"].keys() == {"rate", "kind", "step"}


def test_functions_and_callable_objects_are_passed_as_they_are():
    two = [lambda x: x + 1, lambda x: x + 2]
    others = functools.partial(max, 1), Shift(2)
    given = {"<lambda>": two[0], "<lambda>_2": two[1], "partial": others[0], "Shift": others[1]}
    found = again([*two, *others, two[0]], **given)
    assert all(one is other for one, other in zip(found, [*two, *others, two[0]], strict=True))


def test_an_object_whose_attributes_would_be_lost_is_refused():
    with pytest.raises(TypeError, match=r"value\.0 is a Holds, whose attributes .* torch"):
        written([Holds(3)])
