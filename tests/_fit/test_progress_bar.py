"""Only who asks for it sees a progress bar."""

from tests.common import X_DIGITS, small


def test_silent_unless_asked(capfd):
    small().fit(X_DIGITS)
    out, err = capfd.readouterr()
    assert out == err == ""
    small(verbose=1).fit(X_DIGITS)
    out, err = capfd.readouterr()
    assert "2/2" in err and "loss" in err
