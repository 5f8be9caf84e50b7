"""One fit at a time has a folder to itself, until it ends or its process dies."""

import os
import threading

import pytest

from skcontrast._fit._checkpoint import exclusive
from tests.common import processes

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs fcntl")


def hold(folder, pipe):
    """Keep a folder until the other end is closed."""
    with exclusive(folder):
        pipe.send("held")
        pipe.recv()


def test_a_folder_is_made_and_can_be_taken_again(tmp_path):
    for _ in range(2):
        with exclusive(tmp_path / "a" / "b"):
            assert (tmp_path / "a" / "b").is_dir()


def test_a_second_thread_is_kept_out(tmp_path):
    problems = []

    def take():
        try:
            with exclusive(tmp_path):
                pass
        except ValueError as error:
            problems.append(str(error))

    with exclusive(tmp_path):
        thread = threading.Thread(target=take)
        thread.start()
        thread.join()
    assert f"another fit is using {tmp_path}" in problems[0]


def test_a_folder_in_the_place_of_the_lock_is_refused(tmp_path):
    (tmp_path / ".lock").mkdir()
    with pytest.raises(OSError, match=r"\.lock"), exclusive(tmp_path):
        pass


def test_a_link_in_the_place_of_the_lock_is_refused_and_its_target_kept(tmp_path):
    (tmp_path / "precious").write_text("keep me")
    for target in ("precious", "nowhere"):
        (tmp_path / ".lock").symlink_to(tmp_path / target)
        with pytest.raises(OSError, match=r"\.lock"), exclusive(tmp_path):
            pass
        (tmp_path / ".lock").unlink()
    assert (tmp_path / "precious").read_text() == "keep me"
    assert not (tmp_path / "nowhere").exists()


def test_a_second_process_is_kept_out_until_the_first_is_killed(tmp_path):
    ours, theirs = processes().Pipe()
    holder = processes().Process(target=hold, args=(tmp_path, theirs), daemon=True)
    holder.start()
    try:
        assert ours.recv() == "held"
        with (
            pytest.raises(ValueError, match=f"another fit is using {tmp_path}"),
            exclusive(tmp_path),
        ):
            pass
    finally:
        holder.kill()
        holder.join()
    with exclusive(tmp_path):
        pass
