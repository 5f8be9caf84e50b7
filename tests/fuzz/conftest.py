from collections import Counter

import pytest

N_DEFAULT = 60


def pytest_generate_tests(metafunc):
    """Number the cases of a test. All but the first are slow, and made only if these are run."""
    if "number" not in metafunc.fixturenames or not hasattr(metafunc.module, "N_RANDOM"):
        return
    is_default = metafunc.config.option.markexpr == "not slow"
    n_all = N_DEFAULT if is_default else metafunc.module.N_RANDOM
    slow = [pytest.param(k, marks=pytest.mark.slow) for k in range(N_DEFAULT, n_all)]
    metafunc.parametrize("number", [*range(N_DEFAULT), *slow])


def pytest_terminal_summary(terminalreporter):
    """Say how many random fits were fitted and how many refused."""
    reports = [r for some in ("passed", "failed") for r in terminalreporter.stats.get(some, [])]
    fits = [r for r in reports if "fuzz/test_fits.py" in r.nodeid and "[" in r.nodeid]
    outcomes = Counter(value for r in fits for name, value in r.user_properties)
    if outcomes:
        failed = sum(r.failed for r in fits)
        terminalreporter.write_line(
            f"random fits: {outcomes['fitted']} fitted, {outcomes['refused']} refused, "
            f"{failed} failed"
        )
