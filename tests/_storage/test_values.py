"""What is written is read back as it was."""

import json
import math

import numpy as np
import pytest
import torch
from torch import nn

from skcontrast._files._classes import classes
from skcontrast._storage._user_objects import own_name
from skcontrast._storage._values import Reader, Writer
from skcontrast.losses import PositiveDebiased, Ring


def again(value, own=None):
    """Return a value after it was written as JSON and read."""
    writer = Writer(classes())
    text = json.dumps(writer.write(value, "value"), allow_nan=False)
    return Reader(classes(), writer.tensors, own or {}).read(json.loads(text))


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        3,
        0.1,
        -math.inf,
        "α",
        [1, [2.5]],
        (1, (2, "a")),
        {"a": {"b": 1}},
        {1: "a", (2, 3): "b"},
        {"$float": 1},
        [],
        {},
    ],
    ids=repr,
)
def test_plain_values_come_back(value):
    found = again(value)
    assert found == value and type(found) is type(value)


def test_a_range_comes_back_as_a_tuple():
    assert again(range(2, 4)) == (2, 3)


def test_not_a_number_comes_back():
    assert math.isnan(again(math.nan))


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.uint8, bool])
def test_arrays_and_tensors_come_back(dtype):
    array = np.arange(6).reshape(2, 3).astype(dtype)
    found = again(array)
    assert found.dtype == array.dtype and np.array_equal(found, array)
    tensor = torch.from_numpy(array).T
    assert torch.equal(again(tensor), tensor) and again(tensor).stride() == tensor.stride()


def test_scalars_of_numpy_are_numbers():
    assert again(np.float64(0.5)) == 0.5 and type(again(np.int64(3))) is int


def test_strings_come_back_and_other_objects_are_refused():
    assert again(np.array(["a", "b"], dtype=object)).tolist() == ["a", "b"]
    with pytest.raises(TypeError, match="value is an array of objects"):
        again(np.array([1, "b"], dtype=object))


def test_nested_parameter_objects_come_back():
    loss = PositiveDebiased(negatives=Ring(0.9, 0.1))
    assert repr(again(loss)) == repr(loss)


def test_what_is_shared_stays_shared_and_what_is_frozen_frozen():
    relu, linear = nn.ReLU(), nn.Linear(2, 2)
    linear.bias.requires_grad_(False)
    tied = nn.Linear(2, 2)
    tied.weight = linear.weight
    found = again(nn.Sequential(linear, relu, tied, relu))
    assert found[1] is found[3] and found[0].weight is found[2].weight
    assert found[0].weight.requires_grad and not found[0].bias.requires_grad
    assert not found.training


def test_buffers_that_are_not_in_the_state_dict_stay_out_of_it():
    module = nn.Linear(2, 2)
    module.register_buffer("cache", torch.ones(2), persistent=False)
    assert torch.equal(again(module).cache, torch.ones(2))
    assert again(module).state_dict().keys() == nn.Linear(2, 2).state_dict().keys()


def test_functions_are_passed():
    assert again(math.sqrt, {"math.sqrt": math.sqrt}) is math.sqrt


@pytest.mark.parametrize("register", ["register_forward_hook", "register_forward_pre_hook"])
def test_a_hook_is_refused_with_the_name_of_its_module(register):
    module = nn.Sequential(nn.Linear(2, 2))
    handle = getattr(module[0], register)(lambda *args: None)
    with pytest.raises(TypeError, match=r"value\.0 is a Linear with a hook"):
        again(module)
    handle.remove()
    again(module)
    module[0].forward = lambda x: x
    with pytest.raises(TypeError, match=r"value\.0 is a Linear with a new forward"):
        again(module)


def test_a_parametrization_is_refused_with_the_name_of_its_module():
    module = nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(2, 2)))
    with pytest.raises(TypeError, match=r"value\.0 is a ParametrizedLinear, .*weight_norm"):
        again(module)


@pytest.mark.parametrize("lazy", [lambda: nn.LazyLinear(3), lambda: nn.LazyBatchNorm1d()])
def test_a_lazy_layer_is_refused_until_it_has_seen_a_sample(lazy):
    module, x = nn.Sequential(lazy()), torch.ones(4, 5)
    with pytest.raises(TypeError, match=r"value has a lazy layer, .*call the module once"):
        again(module)
    module.eval()(x)
    assert torch.equal(again(module)(x), module(x))


class Remembers(nn.Module):
    """A module whose extra state is a new tensor at every call."""

    def __init__(self, value=0.0):
        super().__init__()
        self.value = value

    def get_extra_state(self):
        return torch.full((1000,), float(self.value))

    def set_extra_state(self, state):
        self.value = float(state[0])


def test_tensors_that_are_made_while_writing_are_not_mistaken_for_each_other():
    name = own_name(Remembers)
    own = {place: Remembers() for place in (name, f"{name}#2", f"{name}#3")}
    found = again(nn.Sequential(Remembers(2), Remembers(3), Remembers(5)), own)
    assert [module.value for module in found] == [2, 3, 5]
