"""Ranks that fail, or are lost, are named by all others with the same words."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from skcontrast._distributed import _notes
from skcontrast._distributed._notes import Notes

pytestmark = pytest.mark.skipif(
    not torch.distributed.is_available(), reason="needs torch.distributed"
)
LATE = "did not come within 3 s"


class Silent:
    """A store that does not answer."""

    def set(self, key, value):
        raise RuntimeError("Connection reset by peer")


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    monkeypatch.setattr(_notes, "_GRACE", 0.5)


@pytest.fixture
def notes():
    """Return the notes of four ranks that share a store."""
    store = torch.distributed.HashStore()
    return [Notes(store, rank, 4) for rank in range(4)]


def reasons(notes, troubles):
    """Return by rank what ranks find, at the same time."""
    with ThreadPoolExecutor(len(troubles)) as pool:
        found = {rank: pool.submit(notes[rank].reason, text) for rank, text in troubles.items()}
        return {rank: future.result() for rank, future in found.items()}


def test_notes_of_a_kind_are_found_by_rank_until_they_are_forgotten(notes):
    notes[2].leave("start", {"seed": 1})
    notes[1].leave("start", [1.5, None])
    assert [n.of("start") for n in notes] == [{1: [1.5, None], 2: {"seed": 1}}] * 4
    assert [n.has_left("start") for n in notes] == [False, True, True, False]
    assert notes[0].of("end") == {} and not notes[0].are_complete("start")
    for rank in (0, 3):
        notes[rank].leave("start", 0)
    assert notes[0].are_complete("start")
    notes[2].forget()
    assert notes[0].of("start").keys() == {0, 1, 3}


def test_the_first_rank_that_has_failed_is_the_reason_of_all(notes):
    assert not notes[0].has_failed
    notes[3].tell(ValueError("later"))
    notes[1].tell(OSError("a full disk"))
    assert notes[0].has_failed
    for error, loss in reasons(notes, {0: "", 2: LATE}).values():
        assert str(error) == "fit failed on rank 1: OSError: a full disk" and not loss


def test_an_interrupt_of_one_rank_is_one_of_all(notes):
    notes[1].tell(KeyboardInterrupt())
    error, _ = notes[0].reason("")
    assert isinstance(error, KeyboardInterrupt) and "on rank 1" in str(error)


@pytest.mark.parametrize("text, cause", [(LATE, LATE), ("", "was killed or has lost its conn")])
def test_ranks_that_leave_no_note_are_lost_and_all_others_name_them(notes, text, cause):
    found = reasons(notes, {0: "Connection reset", 2: text})
    losses = {loss for _, loss in found.values()}
    assert len(losses) == 1
    for error, loss in found.values():
        assert loss.startswith(f"rank 1 and rank 3 {cause}")
        assert str(error) == f"fit failed: {loss}. Start all processes again."


def test_a_rank_that_comes_late_hears_the_verdict_of_the_others(notes):
    (_, verdict), *_ = reasons(notes, {0: "", 1: LATE, 2: ""}).values()
    assert notes[3].reason("")[1] == verdict == f"rank 3 {LATE}"


@pytest.mark.parametrize("is_interrupted", [False, True])
def test_ranks_that_have_ended_their_training_early_are_the_reason(notes, is_interrupted):
    notes[2].leave("end", {"interrupted": is_interrupted})
    for error, loss in reasons(notes, dict.fromkeys(range(4), "")).values():
        assert not loss and "rank 2" in str(error)
        assert isinstance(error, KeyboardInterrupt) == is_interrupted


def test_a_store_that_does_not_answer_is_the_loss_of_rank_0():
    error, loss = Notes(Silent(), 1, 2).reason("")
    assert "store of the process group does not answer" in loss and "rank 0" in str(error)
