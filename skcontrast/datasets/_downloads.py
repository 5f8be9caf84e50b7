"""Files from the web: fetched once, kept whole or not at all, and verified at each reading."""

from __future__ import annotations

import hashlib
import os
import time
import zipfile
import zlib
from http.client import HTTPException
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.error import HTTPError, URLError

from sklearn.datasets import fetch_file

from .._warnings import warn

# A set of graphs compresses to a tenth. What unpacks to more than this many bytes, and to more
# than so many times its own size, was made to exhaust memory.
_LARGE = 2**27
_LARGEST_RATIO = 100


def download_zip(
    url: str, path: Path, *, sha256: str | None, n_retries: int, delay: float
) -> None:
    """Download a zip archive and write its SHA-256 next to it, or raise OSError.

    The archive appears under its name when it is complete and verified; until then it is in a
    temporary folder next to it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=f"{path.name}.part_", dir=path.parent) as folder:
        part = _retrieve(url, folder, path, sha256, n_retries, delay)
        try:
            with zipfile.ZipFile(part) as archive:
                check_unpacked_size(archive, part.stat().st_size)
                damaged = archive.testzip()
        except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError) as error:
            raise OSError(f"{url} is not a zip archive that can be read: {error}") from error
        if damaged:
            raise OSError(f"{url} is damaged: the checksum of {damaged} in it is wrong.")
        record = part.with_name("sha256")
        record.write_text(f"{_sha256(part.read_bytes())}  {path.name}\n")
        os.replace(record, _record(path))
        os.replace(part, path)


def read_verified(path: Path, sha256: str | None) -> bytes:
    """Return the bytes of a file, or raise OSError if its SHA-256 is not the expected one.

    With None, it is compared with the one that was written at the download, if there is one.
    """
    content, source = path.read_bytes(), "the 'sha256' parameter"
    if sha256 is None and _record(path).exists():
        sha256 = (_record(path).read_text().split() or [""])[0]
        source = f"{_record(path).name}, written at the download,"
    found = _sha256(content)
    if sha256 is not None and found != sha256.lower():
        raise OSError(
            f"{path} has the SHA-256 {found}, but {source} says {sha256}: it is damaged or a "
            "different version. Remove it to download it again."
        )
    return content


def check_unpacked_size(archive: zipfile.ZipFile, size: int) -> None:
    """Raise ValueError if an archive of `size` bytes unpacks to far more than a data set does."""
    unpacked = sum(member.file_size for member in archive.infolist())
    if unpacked > max(_LARGE, _LARGEST_RATIO * size):
        raise ValueError(
            f"it would unpack to {unpacked / 1e6:.0f} MB, {unpacked / size:.0f} times its size."
        )


def _retrieve(
    url: str, folder: str, path: Path, sha256: str | None, n_retries: int, delay: float
) -> Path:
    """Download a file to a folder, trying again where that may help, and return its path."""
    sha256 = None if sha256 is None else sha256.lower()
    while True:
        try:
            return fetch_file(url, folder, path.name, sha256=sha256, n_retries=0)
        except (URLError, TimeoutError, ConnectionError, HTTPException) as error:
            hopeless = isinstance(error, HTTPError) and 400 <= error.code < 500
            if hopeless or not n_retries:
                raise OSError(
                    f"{url} cannot be downloaded: {error}. If you can get it in a different way, "
                    f"store it as {path}."
                ) from error
            warn(f"Retry downloading from url: {url}")
        n_retries -= 1
        time.sleep(delay)


def _record(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
