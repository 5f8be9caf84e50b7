"""Downloads: once, compared with a checksum, complete or not at all."""

from __future__ import annotations

import hashlib
import io
import socket
import zipfile
from functools import partial
from urllib import request

import pytest

from skcontrast.datasets import _fetch, fetch_tudataset
from skcontrast.datasets._fetch import download, verify
from tests.datasets.common import ALL, cut, fetch, status, unannounced, zipped

CONTENT = bytes(range(256)) * 1000  # four blocks, the last one shorter
DIGEST = hashlib.sha256(CONTENT).hexdigest()


def get(server, home, *, url=None, n_retries=0, timeout=5.0, sha256=DIGEST):
    """Download file.bin of the server, and return where it is."""
    options = {"n_retries": n_retries, "delay": 0.0, "timeout": timeout}
    url = url or f"{server.url}/file.bin"
    download(url, home / "file.bin", partial(verify, sha256=sha256), **options)
    return home / "file.bin"


# What arrives


@pytest.mark.parametrize("reply", [CONTENT, unannounced(CONTENT)])
def test_a_file_arrives_whole_and_alone(server, home, reply):
    server.files["file.bin"] = reply
    assert get(server, home).read_bytes() == CONTENT
    assert [file.name for file in home.iterdir()] == ["file.bin"]
    verify(home / "file.bin", DIGEST)


# What fails


def test_a_cut_connection_is_tried_again(server, home):
    server.files["file.bin"] = [cut(CONTENT), CONTENT]
    with pytest.warns(UserWarning, match=r"Retry .* cut after 128000 of 256000 bytes") as record:
        assert get(server, home, n_retries=3).read_bytes() == CONTENT
    assert len(server.asked) == 2 and record[0].filename == __file__


@pytest.mark.parametrize("code", [500, 503, 408, 429])
def test_a_server_that_is_busy_is_asked_again(server, home, code):
    server.files["file.bin"] = [status(code), status(code), CONTENT]
    with pytest.warns(UserWarning, match=f"Retry .* {code}"):
        assert get(server, home, n_retries=2).read_bytes() == CONTENT


@pytest.mark.parametrize("fault", ["cut", "hang", "stall", "busy"])
def test_a_server_that_keeps_failing_is_an_os_error(server, home, fault):
    faults = {"cut": cut(CONTENT), "busy": status(500)}
    server.files["file.bin"] = faults[fault] if fault in faults else getattr(server, fault)
    with (
        pytest.warns(UserWarning, match="Retry") as record,
        pytest.raises(OSError, match=r"file.bin cannot be downloaded: .* store it as .*file.bin"),
    ):
        get(server, home, n_retries=1, timeout=0.2)
    assert len(record) == 1 and len(server.asked) == 2 and not list(home.iterdir())


def test_a_refused_connection_is_an_os_error(home):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/file.bin"
        with pytest.raises(OSError, match=r"cannot be downloaded: .*refused"):
            get(None, home, url=url)
    assert not list(home.iterdir())


def test_what_does_not_exist_is_asked_for_once(server, home):
    with pytest.raises(OSError, match=r"cannot be downloaded: HTTP Error 404"):
        get(server, home, n_retries=3)
    assert len(server.asked) == 1 and not list(home.iterdir())


def test_a_wrong_checksum_is_said_and_the_file_not_kept(server, home):
    server.files["file.bin"] = CONTENT[:-1] + b"x"
    with pytest.raises(OSError, match=f"has the SHA-256 .*, not the expected {DIGEST}"):
        get(server, home, n_retries=3)
    assert len(server.asked) == 1 and not list(home.iterdir())


def test_an_interrupted_download_leaves_nothing(server, home, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    server.files["file.bin"] = CONTENT
    monkeypatch.setattr(_fetch.shutil, "copyfileobj", interrupted)
    with pytest.raises(KeyboardInterrupt):
        get(server, home)
    assert not list(home.iterdir())


# The same through fetch_tudataset


def test_a_set_is_downloaded_once(site, home):
    first = fetch_tudataset("SET", data_home=home)
    assert [file.name for file in home.iterdir()] == ["SET.zip"]
    assert (home / "SET.zip").read_bytes() == site.files["SET.zip"]
    digest = hashlib.sha256(site.files.pop("SET.zip")).hexdigest()
    second = fetch_tudataset("SET", data_home=home)
    assert second.DESCR == first.DESCR and len(second.data) == 3
    assert fetch_tudataset("SET", data_home=home, sha256=digest.upper()).DESCR == first.DESCR
    assert site.asked == ["SET.zip"]


def test_the_official_site_is_asked(home, monkeypatch):
    asked = []

    def urlopen(url, timeout):
        asked.append((url, timeout))
        raise KeyboardInterrupt

    monkeypatch.setattr(request, "urlopen", urlopen)
    with pytest.raises(KeyboardInterrupt):
        fetch_tudataset("SET", data_home=home, timeout=7.0)
    assert asked == [("https://www.chrsmrrs.com/graphkerneldatasets/SET.zip", 7.0)]


def test_a_set_with_a_wrong_checksum_is_not_kept(site, home):
    with pytest.raises(OSError, match=r"SET.zip .* not the expected 0000"):
        fetch_tudataset("SET", data_home=home, sha256="0" * 64)
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
