"""A description of a parameter is the same in every process, and flattens to names and texts."""

import numpy as np
import pytest
from torch import nn

from skcontrast._comparison._description import describe, flattened
from skcontrast.losses import DCL


class PrintsItsAddress(nn.Module):
    def extra_repr(self):
        return f"<function f at {id(self):#x}>"


@pytest.mark.parametrize(
    "value, expected",
    [
        (np.array([[1, 2]]), [[1, 2]]),
        ({1: DCL, "a": [None, 0.5]}, {"1": "skcontrast.losses._dcl.DCL", "a": ["None", "0.5"]}),
        (object(), "builtins.object"),
        (DCL(0.2), ("skcontrast.losses._dcl.DCL", {"tau_plus": "0.2"})),
        (
            nn.Linear(2, 1),
            (
                "torch.nn.modules.linear.Linear",
                {
                    "weight": (1, 2),
                    "bias": (1,),
                    "layers": [
                        "torch.nn.modules.linear.Linear(in_features=2, out_features=1, bias=True)"
                    ],
                },
            ),
        ),
        (
            PrintsItsAddress(),
            (
                "tests._comparison.test_description.PrintsItsAddress",
                {"layers": ["tests._comparison.test_description.PrintsItsAddress(<function f>)"]},
            ),
        ),
    ],
    ids=["array", "dictionary", "object", "parameter object", "module", "a module's address"],
)
def test_a_description_of_a_parameter_has_no_address(value, expected):
    assert describe(value) == expected


def test_a_description_is_flattened_and_long_texts_are_shortened():
    value = ("A", {"b": "1", "c": [("D", {"e": "2"}), "f"], "g": [1, 2], "h": "x" * 200})
    flat = dict(flattened("a", value))
    assert list(flat) == ["a", "a__b", "a__c", "a__c[0]", "a__c[0]__e", "a__c[1]", "a__g", "a__h"]
    assert flat["a__c"] == "a list of 2"
    assert flat["a__g"] == "[1, 2]" and flat["a__c[0]__e"] == "2"
    assert flat["a__h"].startswith("x" * 100 + "... (checksum ")
    assert dict(flattened("a", "x" * 201))["a"] != flat["a__h"]
    assert dict(flattened("a", {"b": {}})) == {
        "a": "a dictionary of 1",
        "a['b']": "a dictionary of 0",
    }
    assert dict(flattened("a", ["'b'", "1"])) == {"a": "['b', 1]"}
