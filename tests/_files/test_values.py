"""What is written is read back as it was."""

import json
import math

import numpy as np
import pytest
import torch
from torch import nn

from skcontrast._files._save import classes  # private: the names that files store
from skcontrast._files._values import Reader, Writer  # private: files that no fit writes
from skcontrast.losses import DCL


def again(value, custom=None):
    """Return a value after it was written as JSON and read."""
    writer = Writer(classes())
    text = json.dumps(writer.write(value, "value"), allow_nan=False)
    return Reader(classes(), writer.tensors, custom or {}).read(json.loads(text))


@pytest.mark.parametrize(
    "value",
    [
        None, True, 3, 0.1, -math.inf, "α", [1, [2.5]], (1, (2, "a")), {"a": {"b": 1}},
        {1: "a", (2, 3): "b"}, {"$float": 1}, [], {},
    ],
    ids=repr,
)  # fmt: skip
def test_plain_values_come_back(value):
    read = again(value)
    assert read == value and type(read) is type(value)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.uint8, bool])
def test_arrays_and_tensors_come_back(dtype):
    array = np.arange(6).reshape(2, 3).astype(dtype)
    for read in (again(array), again(torch.from_numpy(array).T).numpy().T):
        assert read.dtype == array.dtype and np.array_equal(read, array)


def test_filters_keep_their_layout_in_memory():
    for shape in ((4, 3, 2, 2), (4, 3, 1, 1)):
        filters = torch.randn(shape).to(memory_format=torch.channels_last)
        read = again(filters)
        assert torch.equal(read, filters) and read.stride() == filters.stride()


def test_a_range_is_a_tuple_and_scalars_of_numpy_are_numbers():
    assert again({"rows": range(3)}) == {"rows": (0, 1, 2)}
    assert again(np.float64(0.5)) == 0.5 and type(again(np.int64(3))) is int


def test_strings_come_back_and_other_objects_are_refused():
    assert again(np.array(["a", "b"], dtype=object)).tolist() == ["a", "b"]
    with pytest.raises(TypeError, match="value is an array of dtype object"):
        again(np.array([1, "b"], dtype=object))


def test_a_parameter_that_a_file_lacks_has_its_default():
    written = Writer(classes()).write(DCL(tau_plus=0.3), "loss")
    assert written["state"].pop("tau_plus") == 0.3
    assert Reader(classes(), {}, {}).read(written).tau_plus == DCL().tau_plus


def test_shared_weights_stay_shared_and_frozen_ones_frozen():
    linear, tied = nn.Linear(2, 2), nn.Linear(2, 2)
    linear.bias.requires_grad_(False)
    tied.weight = linear.weight
    read = again(nn.Sequential(linear, nn.ReLU(), tied))
    assert read[0].weight is read[2].weight
    assert read[0].weight.requires_grad and not read[0].bias.requires_grad
    assert not read.training


def test_buffers_that_are_not_in_the_state_dict_stay_out_of_it():
    module = nn.Linear(2, 2)
    module.register_buffer("cache", torch.ones(2), persistent=False)
    assert torch.equal(again(module).cache, torch.ones(2))
    assert again(module).state_dict().keys() == nn.Linear(2, 2).state_dict().keys()
