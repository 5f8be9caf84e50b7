"""Files from the web: fetched once, kept whole or not at all, and verified at each reading."""

from __future__ import annotations

import hashlib
import os
import shutil
import time
import warnings
import zipfile
from pathlib import Path
from tempfile import NamedTemporaryFile
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

_TIMEOUT = 60


def download_zip(url, path, *, sha256=None, n_retries=3, delay=1.0):
    """Download a zip archive, and write its SHA-256 beside it.

    The archive appears under its name when it is complete and verified; until then it is a
    temporary file in the same folder.

    Parameters
    ----------
    url : str
        Where it is.
    path : Path
        Where it goes. Folders that do not exist are made.
    sha256 : str, default=None
        The expected SHA-256, hexadecimal.
    n_retries : int, default=3
        How often a failed connection is tried again.
    delay : float, default=1.0
        Seconds between tries.

    Raises
    ------
    OSError
        If it cannot be had, is no zip archive, or has another SHA-256.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with NamedTemporaryFile(prefix=f"{path.name}.part_", dir=path.parent, delete=False) as file:
        part = Path(file.name)
    try:
        _retrieve(url, part, n_retries, delay, path)
        if not zipfile.is_zipfile(part):
            raise OSError(f"{url} is not a zip archive.")
        found = _sha256(part.read_bytes())
        _check(found, sha256, path.name, "the 'sha256' parameter")
        _record(path).write_text(f"{found}  {path.name}\n")
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def read_verified(path, sha256=None):
    """Return the bytes of a file after comparing its SHA-256.

    Parameters
    ----------
    path : Path
        The file.
    sha256 : str, default=None
        The expected SHA-256, hexadecimal; None compares with what was written down at the
        download, if anything was.

    Raises
    ------
    OSError
        If the file has changed.
    """
    content = path.read_bytes()
    if sha256 is not None:
        _check(_sha256(content), sha256, path, "the 'sha256' parameter")
    elif _record(path).exists():
        expected = _record(path).read_text().split()
        source = f"{_record(path).name}, written at the download"
        _check(_sha256(content), expected[0] if expected else "", path, source)
    return content


def _retrieve(url, part, n_retries, delay, path):
    """Copy what is at a URL to a file, trying again where that may help."""
    for remaining in range(n_retries, -1, -1):
        try:
            with urlopen(url, timeout=_TIMEOUT) as response, open(part, "wb") as file:
                shutil.copyfileobj(response, file)
            return
        except (URLError, TimeoutError, ConnectionError) as error:
            hopeless = isinstance(error, HTTPError) and 400 <= error.code < 500
            if hopeless or not remaining:
                raise OSError(
                    f"{url} cannot be downloaded: {error}. If it can be elsewhere, put it here as "
                    f"{path}."
                ) from error
            warnings.warn(f"Retry downloading from url: {url}", stacklevel=2)
            time.sleep(delay)


def _record(path):
    return path.with_name(f"{path.name}.sha256")


def _sha256(content):
    return hashlib.sha256(content).hexdigest()


def _check(found, expected, path, source):
    if expected is not None and found != expected.lower():
        raise OSError(
            f"{path} has the SHA-256 {found}, but {source} says {expected}: it is damaged or "
            "another version. Remove it to download it again."
        )
