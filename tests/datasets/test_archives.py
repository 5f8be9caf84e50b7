"""Archives: known files only, within bounds, and complete."""

from __future__ import annotations

import hashlib
import io
import tarfile

import pytest

from skcontrast.datasets._archives import RemoteTar, provide_tar
from skcontrast.datasets._fetch import Connection, RemoteFile

CONNECTION = Connection(0, 0.0, 5.0, verbose=False)
MEMBERS = {"a.bin": 100, "b.bin": 10}
FILES = {"set/a.bin": b"a" * 100, "set/b.bin": b"b"}


def tarred(files, **kinds):
    """Return a gzipped tar archive; `kinds` are members that are no files, by name."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as tar:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
        for name, kind in kinds.items():
            member = tarfile.TarInfo(f"set/{name}.bin")
            member.type, member.linkname = kind, "/etc/hostname"
            tar.addfile(member)
    return content.getvalue()


def provide(home, content, needed=("a.bin",), url="http://127.0.0.1:9/set.tar.gz", **kwargs):
    """Provide a set whose archive has this content."""
    sha256 = hashlib.sha256(content).hexdigest()
    remote = RemoteFile("set.tar.gz", [url], sha256, len(content))
    archive = RemoteTar(remote, "set", MEMBERS)
    kwargs = {"download_if_missing": False} | kwargs
    return provide_tar(archive, home, needed, CONNECTION, **kwargs)


def stored(home, content):
    home.mkdir()
    (home / "set.tar.gz").write_bytes(content)
    return content


def test_a_downloaded_archive_is_unpacked_and_not_kept(server, home):
    content = server.files["set.tar.gz"] = tarred(FILES)
    url = f"{server.url}/set.tar.gz"
    folder = provide(home, content, url=url, download_if_missing=True)
    assert [file.name for file in home.iterdir()] == ["set"]
    assert {f"set/{file.name}": file.read_bytes() for file in folder.iterdir()} == FILES
    assert provide(home, content, url=url) == folder
    assert server.asked == ["set.tar.gz"]


def test_an_archive_of_the_user_is_unpacked_and_kept(home):
    folder = provide(home, stored(home, tarred(FILES)))
    assert {file.name for file in home.iterdir()} == {"set", "set.tar.gz"}
    assert (folder / "a.bin").read_bytes() == b"a" * 100


def test_files_that_are_missing_are_unpacked_again(home):
    content = stored(home, tarred(FILES))
    folder = provide(home, content)
    (folder / "b.bin").unlink()
    provide(home, content)
    assert not (folder / "b.bin").exists()
    provide(home, content, needed=["b.bin"])
    assert (folder / "b.bin").read_bytes() == b"b"


def test_an_archive_with_a_different_checksum_is_refused(home):
    content = stored(home, tarred(FILES))
    (home / "set.tar.gz").write_bytes(content + b"x")
    with pytest.raises(OSError, match=r"set.tar.gz has the SHA-256 .* Remove it"):
        provide(home, content)
    assert not (home / "set").exists()


def test_nothing_is_downloaded_unasked(home):
    message = r"set/a.bin not found, nor .*set.tar.gz, and download_if_missing is False"
    with pytest.raises(OSError, match=message):
        provide(home, tarred(FILES))
    assert not home.exists()


@pytest.mark.parametrize("member", ["../out.bin", "/etc/out.bin", "set/../../x", "..\\x", "C:\\x"])
def test_archives_that_reach_out_of_their_folder_are_refused(home, member):
    content = stored(home, tarred({member: b""} | FILES))
    with pytest.raises(OSError, match=r"set.tar.gz cannot be unpacked: .* outside its folder"):
        provide(home, content)
    assert [file.name for file in home.iterdir()] == ["set.tar.gz"]


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE]
)
def test_links_and_devices_in_place_of_files_are_refused(home, kind):
    content = stored(home, tarred({"set/a.bin": b"a"}, b=kind))
    with pytest.raises(OSError, match=r"set/b.bin in it is no file of at most 10 bytes"):
        provide(home, content)
    assert not (home / "set").exists()


def test_a_file_larger_than_it_can_be_is_refused(home):
    content = stored(home, tarred(FILES | {"set/a.bin": b"a" * 101}))
    with pytest.raises(OSError, match=r"set/a.bin in it is no file of at most 100 bytes"):
        provide(home, content)


@pytest.mark.parametrize(
    "others", [{"set/bomb.txt": bytes(2**24 + 1)}, {f"set/{k}.txt": b"" for k in range(101)}]
)
def test_archives_of_much_else_are_refused(home, others):
    content = stored(home, tarred(others | FILES))
    with pytest.raises(OSError, match="it has more files than the set"):
        provide(home, content)


def test_other_files_and_folders_of_other_names_are_left_out(home):
    others = {"README": b"x", "set/README": b"x", "other/a.bin": b"x", "set/old/a.bin": b"x"}
    folder = provide(home, stored(home, tarred(others | FILES)))
    assert {file.name for file in folder.iterdir()} == {"a.bin", "b.bin"}
    assert (folder / "a.bin").read_bytes() == b"a" * 100


def test_an_incomplete_archive_is_refused(home):
    content = stored(home, tarred({"set/a.bin": b"a"}))
    with pytest.raises(OSError, match=r"it lacks b.bin. Remove it"):
        provide(home, content)
    assert not (home / "set").exists()


@pytest.mark.parametrize("damage", ["cut", "flipped", "text"])
def test_damaged_archives_are_refused(home, damage):
    content = bytearray(tarred({"set/a.bin": bytes(range(100)), "set/b.bin": b"b"}))
    if damage == "cut":
        del content[len(content) // 2 :]
    elif damage == "flipped":
        content[60:80] = bytes(255 - byte for byte in content[60:80])
    else:
        content = b"no archive"
    stored(home, content := bytes(content))
    with pytest.raises(OSError, match=r"set.tar.gz cannot be unpacked: .* Remove it"):
        provide(home, content)
    assert [file.name for file in home.iterdir()] == ["set.tar.gz"]
