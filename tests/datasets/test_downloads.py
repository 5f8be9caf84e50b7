"""Downloads: once, compared with a checksum, complete or not at all."""

from __future__ import annotations

import hashlib
import io
import zipfile
from email.message import Message
from http.client import IncompleteRead
from urllib import request
from urllib.error import HTTPError, URLError
from urllib.response import addinfourl

import pytest

from skcontrast.datasets import fetch_tudataset
from tests.datasets.common import ALL, TEXTS, fetch, zipped


def response(content, length=None):
    """Return what urlopen returns, with the length that the server promises."""
    headers = Message()
    headers["Content-Length"] = str(len(content) if length is None else length)
    return addinfourl(io.BytesIO(content), headers, "")


def test_a_set_is_downloaded_once(site, home):
    first = fetch_tudataset("SET", data_home=home)
    files = {"SET.zip", "SET.zip.sha256"}
    assert {file.name for file in home.iterdir()} == files
    assert (home / "SET.zip").read_bytes() == (site / "SET.zip").read_bytes()
    digest = hashlib.sha256((site / "SET.zip").read_bytes()).hexdigest()
    assert (home / "SET.zip.sha256").read_text() == f"{digest}  SET.zip\n"
    (site / "SET.zip").unlink()
    second = fetch_tudataset("SET", data_home=home)
    assert second.DESCR == first.DESCR and len(second.data) == 3
    assert fetch_tudataset("SET", data_home=home, sha256=digest.upper()).DESCR == first.DESCR


def test_the_official_site_is_asked(home, monkeypatch):
    asked = []

    def urlopen(url, data=None):
        asked.append(url)
        return response(zipped(TEXTS))

    monkeypatch.setattr(request, "urlopen", urlopen)
    assert len(fetch_tudataset("SET", data_home=home).data) == 3
    assert asked == ["https://www.chrsmrrs.com/graphkerneldatasets/SET.zip"]


def test_a_changed_archive_is_refused(site, home):
    fetch_tudataset("SET", data_home=home)
    other = zipped(TEXTS | {"SET_graph_labels.txt": "3\n3\n-1\n"})
    (home / "SET.zip").write_bytes(other)
    with pytest.raises(OSError, match=r"SET.zip has the SHA-256 .* SET.zip.sha256.* Remove it"):
        fetch_tudataset("SET", data_home=home)
    digest = hashlib.sha256(other).hexdigest()
    assert fetch_tudataset("SET", data_home=home, sha256=digest).target.tolist() == [1, 1, 0]


def test_a_download_with_a_wrong_checksum_is_not_kept(site, home):
    with pytest.raises(OSError, match=r"SET.zip .* differs from expected .0000"):
        fetch_tudataset("SET", data_home=home, sha256="0" * 64)
    assert not list(home.iterdir())


def test_a_download_that_is_not_an_archive_is_not_kept(site, home):
    (site / "SET.zip").write_text("<html>We are moving.</html>")
    with pytest.raises(OSError, match=r"SET.zip is not a zip archive that can be read"):
        fetch_tudataset("SET", data_home=home)
    assert not list(home.iterdir())


def test_an_interrupted_download_leaves_nothing(home, monkeypatch):
    class Interrupted(io.BytesIO):
        def read(self, *args):
            raise KeyboardInterrupt

    def urlopen(url, data=None):
        return addinfourl(Interrupted(), Message(), url)

    monkeypatch.setattr(request, "urlopen", urlopen)
    with pytest.raises(KeyboardInterrupt):
        fetch_tudataset("SET", data_home=home)
    assert not list(home.iterdir())


def test_a_damaged_download_is_not_kept(site, home):
    content = bytearray((site / "SET.zip").read_bytes())
    start = content.index(b"SET_A.txt") + len(b"SET_A.txt")
    content[start + 2 : start + 6] = bytes(255 - byte for byte in content[start + 2 : start + 6])
    (site / "SET.zip").write_bytes(content)
    assert zipfile.is_zipfile(site / "SET.zip")
    with pytest.raises(OSError, match=r"SET.zip is (damaged|not a zip archive)"):
        fetch_tudataset("SET", data_home=home)
    assert not list(home.iterdir())
    (site / "SET.zip").write_bytes(zipped(ALL))
    assert len(fetch_tudataset("SET", data_home=home).data) == 3


class Broken(io.BytesIO):
    """A response in which the connection breaks."""

    def __init__(self, error):
        super().__init__()
        self.error = error

    def read(self, *args):
        raise self.error


FAILURES = {
    "no connection": URLError("down"),
    "timeout": TimeoutError("slow"),
    "server error": HTTPError("", 503, "Unavailable", Message(), None),
    "reset": ConnectionResetError("reset"),
    "broken chunk": IncompleteRead(b"PK"),
}


WHILE_READING = ["reset while reading", "chunk while reading", "cut"]


@pytest.mark.parametrize("failure", [*FAILURES, *WHILE_READING])
def test_a_failed_connection_is_tried_again(site, home, monkeypatch, failure):
    urlopen, calls = request.urlopen, []

    def unreliable(url, data=None):
        calls.append(url)
        if len(calls) > 1:
            return urlopen(url)
        if failure == "cut":  # the server promises more than arrives
            return response(zipped(ALL)[:200], length=len(zipped(ALL)))
        if "reading" in failure:
            key = "reset" if "reset" in failure else "broken chunk"
            return addinfourl(Broken(FAILURES[key]), Message(), url)
        raise FAILURES[failure]

    monkeypatch.setattr(request, "urlopen", unreliable)
    with pytest.warns(UserWarning, match="Retry downloading") as record:
        assert len(fetch_tudataset("SET", data_home=home, delay=0.0).data) == 3
    assert len(calls) == 2 and record[0].filename == __file__


@pytest.mark.parametrize("failure", FAILURES)
def test_a_connection_that_keeps_failing_is_an_os_error(home, monkeypatch, failure):
    def broken(url, data=None):
        raise FAILURES[failure]

    monkeypatch.setattr(request, "urlopen", broken)
    with pytest.warns(UserWarning) as record, pytest.raises(OSError, match="cannot be downloaded"):
        fetch_tudataset("SET", data_home=home, n_retries=2, delay=0.0)
    assert len(record) == 2 and not list(home.iterdir())


def test_a_download_that_fails_says_what_to_do(site, home, monkeypatch):
    (site / "SET.zip").unlink()
    with pytest.raises(OSError, match=r"cannot be downloaded: .* store it as .*home/SET\.zip"):
        fetch_tudataset("SET", data_home=home, n_retries=0)
    calls = []

    def missing(url, data=None):
        calls.append(url)
        raise HTTPError(url, 404, "Not Found", Message(), None)

    monkeypatch.setattr(request, "urlopen", missing)
    with pytest.raises(OSError, match="404"):
        fetch_tudataset("SET", data_home=home)
    assert len(calls) == 1 and not list(home.iterdir())


def test_nothing_is_downloaded_unasked(site, home):
    with pytest.raises(OSError, match=r"SET.zip not found, nor the folder SET or SET.npz"):
        fetch(home)
    assert not home.exists()


def test_a_file_in_the_archive_with_a_wrong_checksum_is_named(site, home):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("SET/SET_graph_labels.txt", "3\n-1\n3\n")
    (site / "SET.zip").write_bytes(content.getvalue().replace(b"3\n-1\n3", b"3\n-1\n4"))
    with pytest.raises(OSError, match=r"SET.zip is damaged: the checksum of SET/SET_graph_labels"):
        fetch_tudataset("SET", data_home=home)
    assert not list(home.iterdir())
