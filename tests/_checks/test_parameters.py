"""Parameters that are declared in the body of a class."""

import copy
import inspect
import pickle
from dataclasses import dataclass
from numbers import Integral

import joblib
import pytest
import torch
from sklearn.base import clone
from torch import nn

from skcontrast import ContrastiveEmbedder

# private: the constraints that every class declares with
from skcontrast._checks import (
    POSITIVE_INT,
    InvalidParameterError,
    Options,
    ParameterObject,
    learned,
    parameter,
    validate_parameters,
)
from skcontrast.encoders import Pretrained


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
    assert list(parameters) == ["name", "size", "extra"]
    assert parameters["size"].default == 3 and parameters["extra"].default is None
    assert parameters["extra"].kind is inspect.Parameter.KEYWORD_ONLY
    assert parameters["name"].default is inspect.Parameter.empty


def test_objects_are_those_of_a_constructor_that_is_written_out():
    for piece in (Piece("one", 2, extra=[]), Derived(name="one", size=2, extra=[])):
        assert vars(piece) == {"name": "one", "size": 2, "extra": []} == piece.get_params()
        assert vars(clone(piece)) == vars(piece) == vars(pickle.loads(pickle.dumps(piece)))
    assert Written().get_params() == {"size": 5} and Written(7).name == "one"


class Wider(Piece):
    depth: int = parameter(POSITIVE_INT, default=1)
    size: int = parameter(POSITIVE_INT, default=4)


def test_parameters_of_bases_come_first_as_in_a_dataclass():
    assert list(inspect.signature(Wider).parameters) == ["name", "size", "depth", "extra"]
    piece = Wider("one", depth=2)
    assert piece.get_params() == {"name": "one", "size": 4, "depth": 2, "extra": None}
    assert vars(clone(piece)) == vars(piece) == vars(pickle.loads(pickle.dumps(piece)))
    with pytest.raises(InvalidParameterError, match="'name' parameter of Wider"):
        validate_parameters(Wider("three"))


def test_a_dataclass_and_a_property_may_be_called_as_a_parameter():
    @dataclass
    class Plain(ParameterObject):
        size: int = 3

    @dataclass
    class Larger(Plain):
        size: int = 5

    class Rounded(Piece):
        size = property(lambda self: self._n, lambda self, n: setattr(self, "_n", 2 * n))

    assert Larger().size == 5 and Rounded("one", 2).size == 4


def test_declarations_that_all_objects_would_share_are_refused():
    with pytest.raises(ValueError, match="mutable default <class 'list'> for field"):

        class Shares(ParameterObject):
            size: list = parameter(default=[1])


def test_what_is_learned_is_no_parameter_and_missing_until_then():
    assert not hasattr(Piece("one"), "found_") and not hasattr(Piece, "size")


class Sized(ParameterObject):
    _parameter_constraints = {"depth": [Options(Integral, {18, 50})]}

    def __init__(self, depth=18):
        self.depth = depth


def test_parameters_inside_parameters_are_checked_and_combinations_too():
    class Outer(ParameterObject):
        def __init__(self, inner):
            self.inner = inner

        def validate(self):
            if self.inner.depth == 50:
                raise ValueError("not both")

    validate_parameters(Outer(Sized()))
    with pytest.raises(ValueError, match="'depth' parameter of Sized"):
        validate_parameters(Outer(Sized(depth=3)))
    with pytest.raises(ValueError, match="not both"):
        validate_parameters(Outer(Sized(depth=50)))


def test_equal_modules_in_parameters_are_pickled_equally_and_copied_as_before():
    tied = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.LSTM(3, 2))
    tied.append(tied[0])
    tied[0].bias.requires_grad_(False)
    for made in (
        ContrastiveEmbedder(tied),
        ContrastiveEmbedder([tied, None]),
        Pretrained(tied.to(torch.bfloat16), mean=0.5, std=0.5),
    ):
        assert joblib.hash(made) == joblib.hash(clone(made)) == joblib.hash(copy.deepcopy(made))
        name = "network" if isinstance(made, Pretrained) else "encoder"
        original = getattr(made, name)
        shallow = getattr(copy.copy(made), name)
        assert shallow is original or shallow == original
        for copied in (pickle.loads(pickle.dumps(made)), copy.deepcopy(made)):
            values = getattr(copied, name), original
            module, first = (m[0] if isinstance(m, list) else m for m in values)
            expected = first.state_dict()
            for key, value in module.state_dict().items():
                assert torch.equal(value, expected[key]), key
            assert module[3] is module[0] and not module[0].bias.requires_grad
            assert module[0].weight.requires_grad and isinstance(module[0].weight, nn.Parameter)


def test_a_pickle_of_a_module_is_no_larger():
    layer = nn.Linear(300, 300)
    assert len(pickle.dumps(ContrastiveEmbedder(layer))) < 1.02 * len(pickle.dumps(layer)) + 4000


def test_modules_with_tensors_of_other_layouts_are_pickled_as_they_are():
    module = nn.Linear(2, 2)
    module.register_buffer("empty", torch.empty(0, 3))
    module.register_buffer("sparse", torch.eye(3).to_sparse())
    module.register_buffer("wide", torch.zeros(1).expand(200_000))
    data = pickle.dumps(ContrastiveEmbedder(module))
    found = pickle.loads(data).encoder
    assert found.empty.shape == (0, 3) and torch.equal(found.sparse.to_dense(), torch.eye(3))
    assert len(data) < 20_000
