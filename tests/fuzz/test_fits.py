"""The laws of `fit_laws` hold in random fits.

A failing case is repeated by its number: ``pytest tests/fuzz/test_fits.py -k '[417]' -m ''``. All
cases, with a summary: ``pytest tests/fuzz -m '' -q``.
"""

import numpy as np
import pytest

from tests.fuzz.fit_cases import make_case, unusual
from tests.fuzz.fit_laws import Broken, is_clear, names_something, reduced, run

N_RANDOM = 10_000


def test_a_fit_is_finite_or_refused_by_name_and_changes_nothing_else(number, record_property):
    case = make_case(number)
    try:
        record_property("outcome", run(case))
    except Broken as broken:
        pytest.fail(f"{broken}\nwith {unusual(case)}\nor only {unusual(reduced(case))}")


def raised(function):
    try:
        function()
    except Exception as error:
        return error


def test_an_error_from_the_depths_of_numpy_is_not_clear():
    assert not is_clear(raised(lambda: np.zeros(2) @ np.zeros(3)))
    assert not is_clear(raised(lambda: [][0]))


@pytest.mark.parametrize(
    "message, is_named",
    [
        ("The 'lr' parameter must be positive.", True),
        ("pass warm_start=False.", True),
        ("parameters.encoder has a lazy layer.", True),
        ("expected 'int'", False),
        ("got unsupported dtype=float16", False),
    ],
)
def test_a_clear_message_names_a_parameter_or_an_array(message, is_named):
    assert names_something(message) == is_named
