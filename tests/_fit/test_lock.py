"""One fit at a time has a folder to itself, until it ends or its process dies."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from skcontrast._fit._checkpoint import exclusive

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs fcntl")

HOLDS = """
import pathlib, sys
from skcontrast._fit._checkpoint import exclusive
with exclusive(pathlib.Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


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
    command = [sys.executable, "-c", HOLDS, str(tmp_path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as holder:
        assert holder.stdout.readline() == b"held\n"
        with (
            pytest.raises(ValueError, match=f"another fit is using {tmp_path}"),
            exclusive(tmp_path),
        ):
            pass
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    with exclusive(tmp_path):
        pass
