"""VonMisesFisher: golden values, gradients, the output of a network as a distribution."""

import pytest
import torch

from skcontrast import contrastive_loss

# private: the value of a contrast that no public call forms
from skcontrast._objective._mean_loss import objective_value
from skcontrast.frameworks import Contrast
from skcontrast.losses import InfoNCE
from skcontrast.schedules import Linear
from skcontrast.similarity import Cosine, VonMisesFisher
from tests.common import BY_DIRECTIONS, LOSSES, evaluate, golden_cases, golden_input, random_views
from tests.similarity.common import KAPPA, MU, VMF, some

KAPPAS = {
    "kA=20+10*sin(1.3*i), kB=15+5*cos(0.7*i)": (20, 10, 15, 5),
    "kA=200+100*sin(1.3*i), kB=150+50*cos(0.7*i)": (200, 100, 150, 50),
    "kA=kB=0.5": (0.5, 0, 0.5, 0),
}


def golden_id(case):
    return f"{case['d']}-{case['settings']['mode']}-{case['settings']['kappa']}"


@pytest.mark.parametrize(
    "case", [c for c in golden_cases() if c["loss"] == "prob_mls_infonce"], ids=golden_id
)
def test_agrees_with_the_golden_values(case):
    for dtype in [torch.float64, torch.float32]:
        i = torch.arange(case["B"], dtype=torch.float64)
        mean_a, sway_a, mean_b, sway_b = KAPPAS[case["settings"]["kappa"]]
        kappa_a, kappa_b = mean_a + sway_a * (1.3 * i).sin(), mean_b + sway_b * (0.7 * i).cos()
        mu_a, mu_b = (golden_input(v, case["B"], case["d"]) for v in "AB")
        leaves = [t.to(dtype).requires_grad_() for t in (mu_a, kappa_a, mu_b, kappa_b)]
        similarity, first, second = VonMisesFisher(1.0, kappa_max=301.0), leaves[:2], leaves[2:]
        if case["settings"]["mode"] == "simclr":
            value = contrastive_loss(tuple(first), tuple(second), similarity=similarity)
        else:  # the anchors are the second view, their candidates the first
            u, v = similarity.embed(tuple(second)), similarity.embed(tuple(first))
            own = torch.arange(len(u))[:, None]
            contrast = Contrast(
                anchors=u, candidates=v, positives=similarity.pairs(u, v), excluded=own
            )
            value = objective_value(contrast, InfoNCE(), similarity)
        exact = dtype == torch.float64
        # Values down to 1e-26: e^s of differences of scores of tens, to relative rounding.
        tolerance = 1e-8 if case["value"] > 1e-20 else 1e-5
        assert value.item() == pytest.approx(
            case["value"], rel=tolerance if exact else 1e-4, abs=0
        )
        grads = torch.autograd.grad(value, leaves)
        for grad, name in ((grads[1], "A"), (grads[3], "B")):
            reference = torch.tensor(case[f"grad_kappa_{name}"], dtype=torch.float64)
            assert (grad - reference).norm() < (1e-6 if exact else 1e-4) * reference.norm()
        if case["value"] > 1e-10:  # else the gradient along the sphere is lost in that across it
            for grad, mu, name in ((grads[0], mu_a, "A"), (grads[2], mu_b, "B")):
                reference = torch.tensor(case[f"grad_{name}_row0"], dtype=torch.float64)
                reference -= (reference @ mu[0]) * mu[0]
                assert (grad[0] - reference).norm() < (1e-6 if exact else 1e-4) * reference.norm()


@pytest.mark.parametrize(
    "loss", [s for s in LOSSES if not (s.hardness() and s.detach_weights)], ids=repr
)
@BY_DIRECTIONS
def test_gradcheck_of_every_loss(fast_mode, loss):
    views = [z.requires_grad_() for z in random_views(5, 5, seed=1)]
    similarity = VonMisesFisher(2.0, 20.0)
    assert torch.autograd.gradcheck(
        lambda *z: evaluate(*z, loss=loss, similarity=similarity), views, fast_mode=fast_mode
    )


def test_gradcheck_of_directions_concentrations_and_queue():
    (mu, kappa), (nu, rho), queue = (some(4, 3, 20.0, seed=s) for s in range(3))
    leaves = [t.requires_grad_() for t in (mu, kappa, nu, rho, *queue)]

    def value(mu, kappa, nu, rho, *queue):
        similarity = VonMisesFisher(1.0)
        return contrastive_loss((mu, kappa), (nu, rho), similarity=similarity, queue=queue)

    assert torch.autograd.gradcheck(value, leaves)


def test_networks_output_is_a_direction_and_a_number_of_the_concentration():
    similarity = VonMisesFisher(1.0, kappa_max=100.0)
    x = torch.tensor([-200.0, -3.0, 0.0, 3.0, 200.0])
    z = torch.cat([torch.full((5, 4), 3.0), x[:, None]], 1)
    mu, kappa = similarity.distribution(z)
    torch.testing.assert_close(similarity.directions(z), mu)
    torch.testing.assert_close(mu.norm(dim=1), torch.ones(5))
    assert (kappa.diff() > 0).all() and kappa[0] >= 0 and kappa[-1] <= 100
    expected = similarity.embed((torch.full((5, 4), 0.5), kappa))
    torch.testing.assert_close(similarity.embed(z), expected)


def test_a_bank_remembers_directions_of_length_one_and_the_number_as_it_is():
    z = torch.tensor([[3.0, 4.0, -7.0]])
    torch.testing.assert_close(
        VonMisesFisher(1.0).bank_vectors(z), torch.tensor([[0.6, 0.8, -7.0]])
    )
    torch.testing.assert_close(Cosine().bank_vectors(z[:, :2]), torch.tensor([[0.6, 0.8]]))


@pytest.mark.parametrize("temperature", [0, 1e-45, Linear(1, 2)])
def test_a_call_refuses_a_bad_temperature(temperature):
    with pytest.raises(ValueError, match="'temperature' parameter of VonMisesFisher"):
        VonMisesFisher(temperature)((MU, KAPPA), (MU, KAPPA))


def test_a_call_with_two_dtypes_is_computed_in_the_finer():
    exact = VMF((MU.double(), KAPPA.double()), (MU.double(), KAPPA.double()))
    torch.testing.assert_close(VMF((MU.double(), KAPPA), (MU, KAPPA)), exact)


def test_parameter_objects_have_no_methods_of_metadata_requests():
    """scikit-learn adds them where a method is called like one of its own, such as split."""
    names = dir(VonMisesFisher)
    assert not [name for name in names if name.startswith("set_") and name != "set_params"]
