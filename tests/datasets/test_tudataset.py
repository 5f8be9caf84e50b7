"""fetch_tudataset: its parameters, its folder, and the sets themselves."""

from __future__ import annotations

import io
import shutil
import socket
import zipfile
from urllib import request

import pytest

from skcontrast.datasets import _tudataset, fetch_tudataset
from tests.datasets.common import ALL, TEXTS, fetch, send, write_zip, zipped


def test_the_folder_is_that_of_scikit_learn(tmp_path, monkeypatch):
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))
    (tmp_path / "tudataset").mkdir()
    write_zip(tmp_path / "tudataset", TEXTS)
    assert len(fetch(None).data) == 3
    monkeypatch.setenv("HOME", str(tmp_path))
    assert len(fetch("~/tudataset").data) == 3
    assert len(fetch(str(tmp_path / "tudataset")).data) == 3


@pytest.mark.parametrize(
    "name", ["", "../SET", "a/b", "a\\b", ".hidden", "a b", "ä", 3, None, "SET\n"]
)
def test_names_are_names(name, home):
    with pytest.raises(ValueError, match=r"name.* must be "):
        fetch_tudataset(name, data_home=home)


# Downloads


def test_a_set_is_downloaded_once(site, home):
    first = fetch_tudataset("SET", data_home=home)
    assert [file.name for file in home.iterdir()] == ["SET.zip"]
    assert (home / "SET.zip").read_bytes() == site.files["SET.zip"]
    del site.files["SET.zip"]
    second = fetch_tudataset("SET", data_home=home)
    assert second.DESCR == first.DESCR and len(second.data) == 3
    assert site.asked == ["SET.zip"]


def test_the_official_site_is_asked(home, monkeypatch):
    asked = []

    def urlopen(url, timeout):
        asked.append((url, timeout))
        raise KeyboardInterrupt

    monkeypatch.setattr(request, "urlopen", urlopen)
    with pytest.raises(KeyboardInterrupt):
        fetch_tudataset("SET", data_home=home)
    assert asked == [("https://www.chrsmrrs.com/graphkerneldatasets/SET.zip", 60.0)]


@pytest.mark.parametrize("fault", ["cut", "stall", "missing"])
def test_a_server_that_fails_is_an_os_error(site, home, fault, monkeypatch):
    monkeypatch.setattr(_tudataset, "_TIMEOUT", 0.2)
    content = site.files.pop("SET.zip")
    if fault == "cut":
        site.files["SET.zip"] = lambda handler: send(handler, content[:99], len(content))
    if fault == "stall":
        site.files["SET.zip"] = site.stall
    with pytest.raises(OSError, match=r"SET.zip cannot be downloaded: .* store it as .*SET.zip"):
        fetch_tudataset("SET", data_home=home)
    assert not list(home.iterdir())


def test_a_refused_connection_is_an_os_error(home, monkeypatch):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        monkeypatch.setattr(_tudataset, "_SITE", f"http://127.0.0.1:{unused.getsockname()[1]}")
        with pytest.raises(OSError, match=r"cannot be downloaded: .*refused"):
            fetch_tudataset("SET", data_home=home)
    assert not list(home.iterdir())


def test_an_interrupted_download_leaves_nothing(site, home, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(shutil, "copyfileobj", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fetch_tudataset("SET", data_home=home)
    assert not list(home.iterdir())


def test_a_download_that_is_not_an_archive_is_not_kept(site, home):
    site.files["SET.zip"] = b"<html>We are moving.</html>"
    with pytest.raises(OSError, match=r"SET.zip is not a zip archive that can be read"):
        fetch_tudataset("SET", data_home=home)
    assert not list(home.iterdir())


def test_a_damaged_set_is_not_kept(site, home):
    content = bytearray(site.files["SET.zip"])
    start = content.index(b"SET_A.txt") + len(b"SET_A.txt")
    content[start + 2 : start + 6] = bytes(255 - byte for byte in content[start + 2 : start + 6])
    site.files["SET.zip"] = bytes(content)
    assert zipfile.is_zipfile(io.BytesIO(content))
    with pytest.raises(OSError, match=r"SET.zip is (damaged|not a zip archive)"):
        fetch_tudataset("SET", data_home=home)
    assert not list(home.iterdir())
    site.files["SET.zip"] = zipped(ALL)
    assert len(fetch_tudataset("SET", data_home=home).data) == 3


def test_a_file_in_the_archive_with_a_wrong_checksum_is_named(site, home):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("SET/SET_graph_labels.txt", "3\n-1\n3\n")
    site.files["SET.zip"] = content.getvalue().replace(b"3\n-1\n3", b"3\n-1\n4")
    with pytest.raises(OSError, match=r"SET.zip is damaged: the checksum of SET/SET_graph_labels"):
        fetch_tudataset("SET", data_home=home)
    assert not list(home.iterdir())


def test_nothing_is_downloaded_unasked(site, home):
    with pytest.raises(OSError, match=r"SET.zip not found, nor a folder SET"):
        fetch(home)
    assert not home.exists() and not site.asked
