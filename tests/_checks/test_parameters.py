"""Parameters that are declared in the body of a class."""

import inspect
import pickle

import pytest
from sklearn.base import clone

from skcontrast._checks import (
    POSITIVE_INT,
    InvalidParameterError,
    ParameterObject,
    learned,
    parameter,
    validate_parameters,
)


class Piece(ParameterObject):
    name: str = parameter({"one", "two", None})
    size: int = parameter(POSITIVE_INT, default=3)
    extra: object = parameter(default=None, kw_only=True)
    found_: int = learned()


class Derived(Piece):
    def build(self):
        return self.size


class Written(Piece):
    def __init__(self, size: int = 5):
        super().__init__("one", size)


def test_the_signature_is_what_is_declared():
    parameters = inspect.signature(Piece).parameters
    assert [str(p) for p in parameters.values()] == ["name", "size=3", "extra=None"]
    assert parameters["extra"].kind is inspect.Parameter.KEYWORD_ONLY
    assert parameters["name"].default is inspect.Parameter.empty


def test_objects_are_those_of_a_constructor_that_is_written_out():
    for piece in (Piece("one", 2, extra=[]), Derived(name="one", size=2, extra=[])):
        assert vars(piece) == {"name": "one", "size": 2, "extra": []} == piece.get_params()
        assert vars(clone(piece)) == vars(piece) == vars(pickle.loads(pickle.dumps(piece)))
    assert Written().get_params() == {"size": 5} and Written(7).name == "one"


def test_what_is_learned_is_no_parameter_and_missing_until_then():
    assert not hasattr(Piece("one"), "found_") and not hasattr(Piece, "size")


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((), {}, r"Piece\(\) missing a required argument: 'name'"),
        (("one", 2, 3), {}, r"Piece\(\) too many positional arguments"),
        (("one",), {"name": "two"}, r"Piece\(\) multiple values for argument 'name'"),
        (("one",), {"sizes": 2}, r"Piece\(\) got an unexpected .*'sizes'\. Did you mean 'size'"),
    ],
)
def test_wrong_arguments_are_named(args, kwargs, message):
    with pytest.raises(TypeError, match=message):
        Piece(*args, **kwargs)


def test_a_set_is_a_choice_of_strings():
    validate_parameters(Piece(None))
    with pytest.raises(InvalidParameterError, match="'name' parameter of Piece"):
        validate_parameters(Piece("three"))
