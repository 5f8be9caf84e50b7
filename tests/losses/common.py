import torch

from tests.common import evaluate


def value_and_grads(views, dtype=torch.float64, **kwargs):
    leaves = [v.detach().to(dtype).requires_grad_() for v in views]
    value = evaluate(*leaves, **kwargs)
    return value, torch.autograd.grad(value, leaves)


def assert_same(first, second, rtol=1e-12):
    torch.testing.assert_close(first, second, rtol=rtol, atol=1e-12)


NEGATIVES = "'negatives' parameter of PositiveDebiased"
