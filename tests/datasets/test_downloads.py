"""Downloads: once, compared with a checksum, complete or not at all."""

from __future__ import annotations

import hashlib
import io
from urllib.error import HTTPError, URLError

import pytest

from skcontrast import datasets
from skcontrast.datasets import _downloads, fetch_tudataset
from tests.datasets.common import ALL, TEXTS, fetch, zipped


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A folder that serves as the site."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.setattr(datasets, "_SITE", folder.as_uri())
    (folder / "SET.zip").write_bytes(zipped(ALL))
    return folder


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

    def urlopen(url, timeout):
        asked.append(url)
        return io.BytesIO(zipped(TEXTS))

    monkeypatch.setattr(_downloads, "urlopen", urlopen)
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
    with pytest.raises(OSError, match="the 'sha256' parameter says 0000"):
        fetch_tudataset("SET", data_home=home, sha256="0" * 64)
    assert not list(home.iterdir())


def test_a_download_that_is_not_an_archive_is_not_kept(site, home):
    (site / "SET.zip").write_text("<html>We are moving.</html>")
    with pytest.raises(OSError, match=r"SET.zip is not a zip archive"):
        fetch_tudataset("SET", data_home=home)
    assert not list(home.iterdir())


def test_an_interrupted_download_leaves_nothing(home, monkeypatch):
    class Interrupted(io.BytesIO):
        def read(self, *args):
            raise KeyboardInterrupt

    monkeypatch.setattr(_downloads, "urlopen", lambda url, timeout: Interrupted())
    with pytest.raises(KeyboardInterrupt):
        fetch_tudataset("SET", data_home=home)
    assert not list(home.iterdir())


def test_a_failed_connection_is_tried_again(site, home, monkeypatch):
    failures, urlopen = [URLError("down"), TimeoutError("slow")], _downloads.urlopen

    def unreliable(url, timeout):
        if failures:
            raise failures.pop()
        return urlopen(url, timeout=timeout)

    monkeypatch.setattr(_downloads, "urlopen", unreliable)
    with pytest.warns(UserWarning, match="Retry downloading"):
        assert len(fetch_tudataset("SET", data_home=home, delay=0.0).data) == 3
    assert not failures


def test_a_download_that_fails_says_what_to_do(site, home, monkeypatch):
    (site / "SET.zip").unlink()
    with pytest.raises(OSError, match=r"cannot be downloaded: .* put it here as .*home/SET\.zip"):
        fetch_tudataset("SET", data_home=home, n_retries=0)
    calls = []

    def missing(url, timeout):
        calls.append(url)
        raise HTTPError(url, 404, "Not Found", None, None)

    monkeypatch.setattr(_downloads, "urlopen", missing)
    with pytest.raises(OSError, match="404"):
        fetch_tudataset("SET", data_home=home)
    assert len(calls) == 1 and not list(home.iterdir())


def test_nothing_is_downloaded_unasked(site, home):
    with pytest.raises(OSError, match=r"SET.zip not found, nor the folder SET or SET.npz"):
        fetch(home)
    assert not home.exists()
