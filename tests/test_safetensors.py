"""A file is whole at every moment, and says whose it is."""

import os
import platform
import signal
import subprocess
from pathlib import Path

import pytest
import torch
from safetensors.torch import save

# private: the bytes of the format
from skcontrast._safetensors import pack, read_file, remove_parts, replace_file

TENSORS = {
    "a": torch.arange(6.0).view(2, 3),
    "empty": torch.empty(0, 4),
    "n": torch.tensor(7),
    "yes": torch.tensor([True, False]),
    "half": torch.ones(3, dtype=torch.bfloat16),
}
CONTENT = {"more": ["ä", 1, None]}


@pytest.fixture
def path(tmp_path):
    """A file."""
    path = tmp_path / "a"
    path.write_bytes(pack(CONTENT, TENSORS, "mine"))
    return path


def test_what_was_packed_is_read(path):
    content, tensors = read_file(path, "mine")
    assert content == CONTENT and tensors.keys() == TENSORS.keys()
    for name, tensor in TENSORS.items():
        assert torch.equal(tensors[name], tensor) and tensors[name].dtype == tensor.dtype


def test_equal_tensors_are_stored_once_and_read_apart(path):
    ones = torch.ones(1000)
    tensors = {"a": ones, "b": ones.clone(), "ints": ones.int(), "row": ones[None].clone()}
    path.write_bytes(pack(CONTENT, tensors, "mine"))
    assert path.stat().st_size < 3 * ones.nbytes + 1000  # another dtype or shape is another tensor
    content, found = read_file(path, "mine")
    assert content == CONTENT and all(torch.equal(found[name], tensors[name]) for name in tensors)
    found["a"].zero_()
    assert torch.equal(found["b"], ones)


def test_the_same_content_gives_the_same_bytes():
    assert len({pack(CONTENT, TENSORS, "mine") for _ in range(20)}) == 1


def test_files_of_others_are_refused(path):
    for data in (save(TENSORS), pack(CONTENT, TENSORS, "theirs")):
        path.write_bytes(data)
        with pytest.raises(ValueError, match="it was not written as a file of mine"):
            read_file(path, "mine")


def test_every_flipped_bit_is_refused(path):
    whole = path.read_bytes()
    for place in range(len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(damaged)
        with pytest.raises(ValueError):
            read_file(path, "mine")


def test_every_truncated_file_is_refused(path):
    whole = path.read_bytes()
    for length in range(0, len(whole), 5):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match="it is not a complete safetensors file"):
            read_file(path, "mine")


def test_a_file_without_a_checksum_is_refused(path):
    path.write_bytes(save(TENSORS, {"mine": "[1]"}))
    with pytest.raises(ValueError, match="its checksum is missing"):
        read_file(path, "mine")


def test_a_large_file_of_zeros_takes_no_memory(path):
    tracemalloc = pytest.importorskip("tracemalloc")
    with path.open("wb") as file:
        file.truncate(2**28)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="not a complete safetensors file"):
            read_file(path, "mine")
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


def test_a_file_is_replaced_and_nothing_is_left_beside_it(tmp_path):
    path = tmp_path / "a"
    for data in (b"one", b"two"):
        replace_file(path, data)
        assert path.read_bytes() == data and os.listdir(tmp_path) == ["a"]


@pytest.mark.skipif(os.name != "posix", reason="needs modes and links")
def test_the_mode_of_a_file_is_kept_and_the_target_of_a_link_replaced(tmp_path):
    path, link = tmp_path / "a", tmp_path / "link"
    replace_file(path, b"one")
    path.chmod(0o640)
    link.symlink_to(path)
    for place, data in ((path, b"two"), (link, b"three")):
        replace_file(place, data)
        assert path.read_bytes() == data and path.stat().st_mode & 0o777 == 0o640
    assert link.is_symlink() and not path.is_symlink()
    path.unlink()
    replace_file(link, b"four")
    assert path.read_bytes() == b"four"
    assert sorted(os.listdir(tmp_path)) == ["a", "link"]


def test_an_error_names_the_path_of_the_user(tmp_path, monkeypatch):
    def refuse(self, missing_ok=False):
        raise OSError(30, "Read-only file system", str(self))

    monkeypatch.setattr(Path, "unlink", refuse)
    for path in (tmp_path / ("a" * 250), tmp_path / "no folder" / "a"):
        with pytest.raises(OSError) as info:
            replace_file(path, b"one")
        assert info.value.filename == str(path)


def test_without_room_the_old_file_stays_and_the_error_names_it(tmp_path):
    resource = pytest.importorskip("resource")
    path = tmp_path / "a"
    replace_file(path, b"old")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(OSError, match=f"{path}") as info:
            replace_file(path, b"new" * 1000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert info.value.errno and path.read_bytes() == b"old" and os.listdir(tmp_path) == ["a"]


def test_parts_that_killed_writers_have_left_are_removed_and_no_others(tmp_path):
    ended = subprocess.Popen(["true"])
    ended.wait()
    host, gone = platform.node(), ended.pid
    names = {
        f".a.{host}.{gone}.1234.part": False,
        f".a.{host}.{os.getpid()}.1234.part": True,
        f".a.elsewhere.{gone}.1234.part": True,
        f".b.{host}.{gone}.1234.part": True,
    }
    for name in names:
        (tmp_path / name).touch()
    remove_parts(tmp_path / "a")
    assert {name: (tmp_path / name).exists() for name in names} == names
