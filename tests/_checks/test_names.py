"""Arguments that do not exist name the ones that were meant."""

import inspect

import pytest
import torch
from sklearn.base import clone

from skcontrast import contrastive_loss

# private: what every signature is wrapped in
from skcontrast._checks._names import names_checked
from skcontrast.augmentation import GaussianNoise
from skcontrast.callbacks import Evaluation
from skcontrast.losses import BCL, DCL, InfoNCE, Loss
from skcontrast.metrics import make_view_scorer
from skcontrast.optimizers import Optimizer
from skcontrast.similarity import Cosine
from tests.common import small


@pytest.mark.parametrize(
    ("construct", "given", "answer"),
    [
        (DCL, "tauplus", "'tau_plus'"),
        (Evaluation, "patient", "'patience'"),
        (make_view_scorer, "augmentations", "'augmentation'"),
        (InfoNCE, "zzz", "it has no parameters"),
        (DCL, "zzz", "its parameters are tau_plus"),
    ],
)
def test_an_unknown_argument_names_the_one_that_is_meant(construct, given, answer):
    message = rf"^{construct.__name__}\(\) got an unexpected keyword argument '{given}'.*{answer}"
    with pytest.raises(TypeError, match=message):
        construct(**{given: 1})


def test_constructors_of_other_classes_in_the_mro_are_still_called():
    class Noise(GaussianNoise, torch.nn.Module):
        def __init__(self, scale=0.1):
            torch.nn.Module.__init__(self)
            self.scale = scale

    assert clone(Noise(0.2)).training and Noise(0.2).get_params() == {"scale": 0.2}
    with pytest.raises(TypeError, match=r"Noise\(\) got .* 'scal'\. Did you mean 'scale'"):
        Noise(scal=0.1)


def test_the_author_of_a_loss_is_not_sent_to_another_loss():
    custom = type("Custom", (Loss,), {"hardness": lambda self: 1.0})
    with pytest.raises(TypeError, match=r"Custom\(\) got .* 'beta': it has no parameters"):
        custom(beta=1.0)


def test_signatures_are_those_of_the_constructors_and_python_names_what_else_is_wrong():
    assert list(inspect.signature(Cosine).parameters) == ["temperature"]
    assert list(inspect.signature(InfoNCE).parameters) == []
    assert list(inspect.signature(contrastive_loss).parameters)[:2] == ["views", "loss"]
    with pytest.raises(TypeError, match="2 positional arguments but 3 were given"):
        Cosine(0.1, 0.2)
    with pytest.raises(TypeError, match=r"multiple values for argument .temperature."):
        Cosine(0.1, temperature=0.2)


def test_losses_take_their_parameters_by_name():
    with pytest.raises(TypeError, match="takes 1 positional argument but 3 were given"):
        BCL(0.9, 0.1)


def test_a_function_that_takes_any_argument_is_left_alone():
    assert names_checked(lambda **given: given)(epochs=1) == {"epochs": 1}
    assert Optimizer("adam", foreach=True).foreach


def test_a_parameter_that_the_default_lacks_names_the_objects_that_have_it():
    with pytest.raises(ValueError, match=r"is None, that is InfoNCE\(\).*'tau_plus'.*DCL\(\)"):
        (refused := small()).set_params(loss__tau_plus=0.1)
    assert refused.loss is None
    with pytest.raises(ValueError, match=r"SimCLR\(\), which has no parameter.*MoCo\(\)"):
        small().set_params(framework__queue_size=64)
    with pytest.raises(ValueError, match=r"\. Did you mean 'temperature'\?$"):
        small().set_params(similarity__temprature=0.2)
    with pytest.raises(ValueError, match=r"no parameter 'zzz': it has no parameters\.$"):
        small().set_params(loss__zzz=0.2)
    assert small().set_params(similarity__temperature=0.2).similarity.temperature == 0.2
