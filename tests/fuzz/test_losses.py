"""`contrastive_loss` agrees with the definitions, value and gradient, in random calls.

A failing case is repeated by its number: ``pytest 'tests/fuzz/test_losses.py' -k '[417]'``.
"""

from tests.fuzz.loss_cases import difference, make_case

N_RANDOM = 4000


def test_the_loss_is_the_one_that_the_papers_define(number):
    case = make_case(number)
    assert difference(case) is None, f"{case.loss!r}, {case.similarity!r}, {case.form}"
