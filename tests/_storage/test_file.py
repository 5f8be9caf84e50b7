"""A file is whole at every moment, and says whose it is."""

import json
import os
import signal
from pathlib import Path

import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import save

from skcontrast._storage._file import (
    file_path,
    pack,
    remove_parts,
    replace_file,
    unpack,
)

TENSORS = {
    "a": torch.arange(6.0).view(2, 3),
    "empty": torch.empty(0, 4),
    "n": torch.tensor(7),
    "yes": torch.tensor([True, False]),
    "half": torch.ones(3, dtype=torch.bfloat16),
}


def packed(more=None, key="mine", **fields):
    """Return the bytes of a file with one field."""
    return pack({"format": 1, "more": more, **fields}, TENSORS, key)


def unpacked(data):
    """Return what is in the bytes of a file."""
    return unpack(data, "mine", 1, {"format", "more"})


def test_what_was_packed_is_unpacked():
    content, tensors = unpacked(packed(["ä", 1, None]))
    assert content["more"] == ["ä", 1, None] and tensors.keys() == TENSORS.keys()
    for name, tensor in TENSORS.items():
        assert torch.equal(tensors[name], tensor) and tensors[name].dtype == tensor.dtype


def test_the_same_content_gives_the_same_bytes():
    assert len({packed("ä") for _ in range(20)}) == 1


def test_files_of_others_are_refused():
    for data in (save(TENSORS), packed(key="theirs")):
        with pytest.raises(ValueError, match="it was not written as a file of mine"):
            unpacked(data)


def test_every_flipped_bit_is_refused():
    whole = packed()
    for place in range(8 * len(whole)):
        damaged = bytearray(whole)
        damaged[place // 8] ^= 1 << place % 8
        with pytest.raises((SafetensorError, ValueError)):
            unpacked(bytes(damaged))


def test_a_file_without_a_checksum_is_refused():
    with pytest.raises(ValueError, match="its checksum is missing"):
        unpacked(save(TENSORS, {"mine": "[1]"}))


def test_a_header_far_longer_than_that_of_a_model_is_neither_read_nor_written():
    history = [{"epoch": k, "train_loss": 0.1234567890123456} for k in range(50_000)]
    assert unpacked(packed(history))[0]["more"] == history
    with pytest.raises(ValueError, match=r"header has 17.* bytes, more than the 16777216"):
        packed("a" * 17_000_000)
    data = save(TENSORS, {"mine": json.dumps("a" * 17_000_000)})
    with pytest.raises(ValueError, match=r"header has 17.* bytes, more than the 16777216"):
        unpacked(data)


@pytest.mark.parametrize("path", ["", ".", "/", "a\0b", Path("")], ids=repr)
def test_a_path_without_a_name_is_refused(path):
    with pytest.raises(ValueError, match="The 'path' parameter of save must be a file, got"):
        file_path(path, "save")
    assert file_path("a/b", "save") == file_path(Path("a/b"), "save") == Path("a/b")


@pytest.mark.parametrize("value", [0, -1, True, 1.0, "1", None])
def test_formats_are_counted_from_one(value):
    with pytest.raises(ValueError, match="its header is none of skcontrast's"):
        unpacked(packed(format=value))


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


def test_what_killed_writers_leave_is_removed(tmp_path):
    for name in (".a.123.part", ".b.123.part", "a"):
        (tmp_path / name).touch()
    remove_parts(tmp_path / "a")
    assert sorted(os.listdir(tmp_path)) == [".b.123.part", "a"]
