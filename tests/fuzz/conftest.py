from collections import Counter


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
