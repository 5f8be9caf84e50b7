"""Parameter objects, and what is passed as a parameter."""

from numbers import Integral

import pytest
import torch

from skcontrast._checks import (
    Options,
    ParameterObject,
    check_component,
    validate_parameters,
)
from skcontrast.losses import DCL, Loss
from tests.common import X_DIGITS, small


class Sized(ParameterObject):
    _parameter_constraints = {"depth": [Options(Integral, {18, 50})]}

    def __init__(self, depth=18):
        self.depth = depth


def test_one_of_few_ints_is_checked():
    validate_parameters(Sized(50))
    for bad in (34, 18.5, "18"):
        with pytest.raises(ValueError, match="'depth' parameter of Sized"):
            validate_parameters(Sized(depth=bad))


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


def test_a_component_is_an_instance_or_the_default():
    names = {"owner": "Embedder", "parameter": "loss"}
    loss = DCL()
    assert check_component(loss, Loss, **names) is loss
    assert isinstance(check_component(None, Loss, **names, default=DCL), DCL)
    with pytest.raises(TypeError, match=r"'loss' parameter of Embedder .* Write loss=DCL\(\)"):
        check_component(DCL, Loss, **names)
    for bad in (None, 3, int):
        with pytest.raises(TypeError, match="'loss' parameter of Embedder must be an instance of"):
            check_component(bad, Loss, **names)


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ({"optimizer": "Adam"}, "Did you mean 'adam'"),
        ({"precision": "BF16"}, "Did you mean 'bf16'"),
        ({"lr_schedule": "Cosine"}, "Did you mean 'cosine'"),
        ({"loss": "hcl"}, r"Write loss=HCL\(\) instead"),
        ({"framework": "moco"}, r"Write framework=MoCo\(\) instead"),
        ({"similarity": "dot_product"}, r"Write similarity=DotProduct\(\) instead"),
        ({"encoder": "resnet"}, r"Write encoder=ResNet\(\) instead"),
        ({"augmentation": "random_flip"}, r"Write augmentation=RandomFlip\(\) instead"),
        ({"loss": "magic"}, r"Choose from BCL\(\), DCL\(\),"),
    ],
)
def test_a_misspelled_string_is_answered_with_the_right_spelling(given, meant):
    with pytest.raises((TypeError, ValueError), match=meant):
        small(**given).fit(X_DIGITS)


def test_a_device_may_be_a_number_or_in_capitals():
    assert small(device="CPU").fit(X_DIGITS).transform(X_DIGITS).shape[0] == len(X_DIGITS)
    if not torch.accelerator.is_available():
        with pytest.raises(
            ValueError, match=r"'cuda:N' or 'mps' and be available .* got (cuda:)?0"
        ):
            small(device=0).fit(X_DIGITS)


def test_a_parameter_that_the_default_lacks_names_the_objects_that_have_it():
    with pytest.raises(ValueError, match=r"is None, that is InfoNCE\(\).*'tau_plus'.*DCL\(\)"):
        small().set_params(loss__tau_plus=0.1)
    with pytest.raises(ValueError, match=r"SimCLR\(\), which has no parameter.*MoCo\(\)"):
        small().set_params(framework__queue_size=64)
    with pytest.raises(ValueError, match=r"\. Did you mean 'temperature'\?$"):
        small().set_params(similarity__temprature=0.2)
    with pytest.raises(ValueError, match=r"no parameter 'zzz': it has no parameters\.$"):
        small().set_params(loss__zzz=0.2)
    assert small().set_params(similarity__temperature=0.2).similarity.temperature == 0.2
