"""The normaliser of the von Mises–Fisher distribution, against 50 digits."""

import mpmath
import pytest
import torch

# private: golden values of the partition function
from skcontrast.similarity._mutual_likelihood import log_partition, log_partition_of_square
from tests.common import golden_vmf


def mean_resultant(kappa, d):
    """Return A(κ) = h′(κ), the mean cosine between a draw and the mean direction."""
    y = kappa.square().requires_grad_()
    (slope,) = torch.autograd.grad(log_partition_of_square(y, d).sum(), y)
    return 2 * kappa * slope


DIMENSIONS = [2, 3, 16, 33, 64, 128, 512, 2048]
KAPPAS = [0.0, 1e-4, 0.03, 1.0, 5.0, 20.0, 110.0, 900.0, 1e4, 1e6]


def exact(kappa, d):
    """Return h and A to 50 digits, by their definitions."""
    with mpmath.workdps(50):
        v, kappa = mpmath.mpf(d) / 2 - 1, mpmath.mpf(kappa)
        if kappa < 1000:  # the power series
            lower = mpmath.hyp0f1(v + 1, kappa**2 / 4)
            return mpmath.log(lower), kappa / d * mpmath.hyp0f1(v + 2, kappa**2 / 4) / lower
        lower, upper = mpmath.besseli(v, kappa), mpmath.besseli(v + 1, kappa)
        constant = v * mpmath.log(2) + mpmath.loggamma(v + 1)
        return mpmath.log(lower) - v * mpmath.log(kappa) + constant, upper / lower


@pytest.mark.parametrize("d", DIMENSIONS)
def test_equals_the_definition_at_50_digits(d):
    for dtype, tolerance in [(torch.float64, 1e-10), (torch.float32, 1e-6)]:
        kappa = torch.tensor(KAPPAS, dtype=dtype)
        h, a = log_partition(kappa, d).tolist(), mean_resultant(kappa, d).tolist()
        for k, value, slope in zip(kappa.tolist(), h, a, strict=True):
            expected, expected_slope = exact(k, d)
            assert abs(value - expected) <= tolerance * max(1, expected)
            assert abs(slope - expected_slope) <= tolerance * 10 * expected_slope


def test_agrees_with_the_reference_table():
    for row in golden_vmf()["table"]:
        kappa = torch.tensor(row["kappa"], dtype=torch.float64)
        assert mean_resultant(kappa, row["d"]).item() == pytest.approx(row["A_ratio"], rel=1e-9)
        # log I_v from h
        v = row["d"] / 2 - 1
        log_i = (
            log_partition(kappa, row["d"])
            + v * (kappa / 2).log()
            - torch.lgamma(torch.tensor(v + 1, dtype=torch.float64))
        )
        assert log_i.item() == pytest.approx(row["log_I"], rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("d", [2, 3, 16, 128])
def test_derivatives(d):
    kappa = torch.tensor([0.0, 1e-3, 0.5, 3.0, 40.0, 300.0], dtype=torch.float64)
    kappa.requires_grad_()
    assert torch.autograd.gradcheck(lambda k: log_partition(k, d), kappa)


@pytest.mark.parametrize("d", DIMENSIONS)
def test_small_concentrations(d):
    y = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    h = log_partition_of_square(y, d)
    (slope,) = torch.autograd.grad(h, y)
    assert h.item() == pytest.approx(0, abs=1e-12)
    assert slope.item() == pytest.approx(1 / (2 * d), rel=1e-9)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_keeps_dtype_and_shape(dtype):
    kappa = torch.ones(2, 3, dtype=dtype)
    assert log_partition(kappa, 7).dtype == dtype and log_partition(kappa, 7).shape == (2, 3)
