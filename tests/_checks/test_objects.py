"""Parameter objects: constraints, schedules in them, what may be estimated."""

from numbers import Integral

import numpy as np
import pytest
import torch

from skcontrast._checks import (
    Options,
    ParameterObject,
    check_component,
    validate_parameters,
)
from skcontrast.losses import BCL, DCL, HCL, Loss
from skcontrast.schedules import (
    Auto,
    Linear,
    Steps,
    at_progress,
    check_numbers,
    estimable_parameters,
    is_auto,
)
from tests.common import X_DIGITS, small


def test_at_progress_resolves_every_schedule_and_leaves_the_original():
    loss = HCL(tau_plus=Linear(0, 0.2), beta=Steps([2, 1], [0.5]))
    now = at_progress(loss, 0.5)
    assert now.get_params() == {"tau_plus": 0.1, "beta": 1.0, "detach_weights": False}
    assert isinstance(loss.tau_plus, Linear)


def test_a_schedule_that_leaves_the_range_is_refused_by_name():
    with pytest.raises(ValueError, match=r"'tau_plus' parameter of DCL must be"):
        at_progress(DCL(tau_plus=Linear(0, 2)), 1.0)


def test_nested_parameters_of_a_schedule_can_be_set():
    loss = DCL(tau_plus=Linear(0, 0.1)).set_params(tau_plus__stop=0.3)
    assert loss.tau_plus.stop == 0.3


def test_an_option_of_the_name_auto_is_no_estimate():
    assert set(estimable_parameters(BCL())) == {"alpha", "tau_plus"}
    check_numbers(BCL())


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


def test_only_auto_by_name_or_object_is_an_estimate():
    assert is_auto("auto") and is_auto(Auto(every=3))
    assert not any(map(is_auto, ("Auto", 0.1, None, Linear(0, 1), np.array(["auto"]))))


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
        with pytest.raises(ValueError, match=r"'cuda:N' or 'mps' and be available .* got 0"):
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
