"""A net prints what it is asked to, and leaves a history of plain numbers."""

from skorch.callbacks import EarlyStopping, PrintLog

from tests.common import X_DIGITS, small


def test_print_log_prints_when_it_is_given_and_nothing_else_does(capfd):
    small(callbacks=[PrintLog()]).fit(X_DIGITS)
    out, err = capfd.readouterr()
    header, _, first, second = out.splitlines()
    assert header.split() == ["epoch", "lr", "train_loss", "dur"] and not err
    assert first.split()[0] == "1" and second.split()[0] == "2"
    stop = EarlyStopping(monitor="train_loss", patience=1, threshold=10.0)
    small(callbacks=[stop]).fit(X_DIGITS)
    assert capfd.readouterr().out == ""


def test_the_history_holds_plain_numbers_and_no_batches():
    embedder = small(warm_start=True).fit(X_DIGITS).fit(X_DIGITS).partial_fit(X_DIGITS)
    assert len(embedder.history_) == embedder.n_epochs_ == 5
    for row in embedder.history_:
        assert "batches" not in row
        assert all(type(value) in (int, float, bool) for value in row.values())
