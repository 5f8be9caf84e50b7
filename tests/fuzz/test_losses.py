"""`contrastive_loss` agrees with the definitions, value and gradient, in random calls.

A failing case is repeated by its number: ``pytest 'tests/fuzz/test_losses.py' -k '[417]'``.
"""

import pytest

from tests.fuzz.loss_cases import difference, make_case

N_DEFAULT, N_ALL = 200, 4000
CASES = [*range(N_DEFAULT)]
CASES += [pytest.param(k, marks=pytest.mark.slow) for k in range(N_DEFAULT, N_ALL)]


@pytest.mark.parametrize("number", CASES)
def test_the_loss_is_the_one_that_the_papers_define(number):
    case = make_case(number)
    assert difference(case) is None, f"{case.loss!r}, {case.similarity!r}, {case.form}"
