"""Download of a file: complete and verified, or not at all."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from http.client import HTTPException
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib import request
from urllib.error import HTTPError, URLError

from .._warnings import warn

# Bytes that a server has to send within the time limit.
_BLOCK = 2**16
# More bytes than any set has.
_LARGEST = 2**32
# Client errors of HTTP that may pass: time-out, too early, too many requests.
_PASSING = (408, 425, 429)


class _Refused(OSError):
    """An answer that will not change if the server is asked again."""


def download(
    url: str,
    path: Path,
    sha256: str | None,
    check: Callable[[Path], None],
    *,
    n_retries: int,
    delay: float,
    timeout: float,
) -> None:
    """Download a file, or raise OSError and leave nothing behind.

    The file appears under its name once it is complete and verified; until then it is in a
    temporary folder next to it.

    Parameters
    ----------
    url : str
        Where the file is.
    path : Path
        Where to write it.
    sha256 : str or None
        The SHA-256 that it must have, in hexadecimal digits. If None, the SHA-256 of the download
        is written to a file next to it.
    check : callable
        ``check(part)`` raises OSError if the file is not usable.
    n_retries : int
        How often to try again after a failure that may pass.
    delay : float
        Seconds between attempts.
    timeout : float
        Seconds within which the server has to answer, and to send each further 64 kB.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=f"{path.name}.part_", dir=path.parent) as folder:
        part = Path(folder, path.name)
        for attempt in count():
            try:
                found = _stream(url, part, sha256, timeout)
                break
            except (URLError, TimeoutError, ConnectionError, HTTPException, _Refused) as error:
                reason = _reason(error, timeout)
                if attempt == n_retries or _is_final(error):
                    raise OSError(
                        f"{url} cannot be downloaded: {reason}. If you can get the file in a "
                        f"different way, store it as {path}."
                    ) from error
            warn(f"Retry downloading {url}: {reason}.")
            time.sleep(delay)
        check(part)
        if sha256 is None:
            record = part.with_name("sha256")
            record.write_text(f"{found}  {path.name}\n")
            os.replace(record, _record(path))
        os.replace(part, path)


def verify(path: Path, sha256: str | None) -> None:
    """Raise OSError unless this is a file with the expected SHA-256.

    If `sha256` is None, the one written at the download is expected, if there is one.
    """
    has_record = sha256 is None and _record(path).exists()
    for file in (path, _record(path)) if has_record else (path,):
        if not file.is_file():  # opening a FIFO would block
            raise OSError(f"{file} is not a file.")
    source = "the expected one is"
    if has_record:
        sha256 = (_record(path).read_text().split() or [""])[0]
        source = f"{_record(path).name}, written at the download, says"
    if sha256 is None:
        return
    with path.open("rb") as content:
        found = hashlib.file_digest(content, "sha256").hexdigest()
    if found != sha256.lower():
        raise OSError(
            f"{path} has the SHA-256 {found}, but {source} {sha256}: it is damaged or a "
            "different version. Remove it to download it again."
        )


def _stream(url: str, part: Path, sha256: str | None, timeout: float) -> str:
    """Write the server's answer to a file, and return its SHA-256."""
    digest, n_bytes = hashlib.sha256(), 0
    with request.urlopen(url, timeout=timeout) as response, part.open("wb") as file:
        header = response.headers.get("Content-Length") or ""
        promised = int(header) if header.isascii() and header.isdigit() else None
        if (promised or 0) > _LARGEST:
            raise _Refused(f"the server offers {promised} bytes, more than any set has")
        while block := _read_block(response, timeout):
            n_bytes += len(block)
            if n_bytes > (_LARGEST if promised is None else promised):
                raise _Refused("the server sends more than it should")
            digest.update(block)
            file.write(block)
    if promised is not None and n_bytes < promised:
        raise ConnectionError(f"the connection was cut after {n_bytes} of {promised} bytes")
    found = digest.hexdigest()
    if sha256 is not None and found != sha256.lower():
        raise _Refused(f"it has the SHA-256 {found}, not the expected {sha256}")
    return found


def _read_block(response: Any, timeout: float) -> bytes:
    """Return the next block, shorter only at the end; raise TimeoutError if it takes too long."""
    deadline, block = time.monotonic() + timeout, b""
    while len(block) < _BLOCK:
        received = response.read1(_BLOCK - len(block))
        if not received:
            break
        block += received
        if time.monotonic() > deadline and len(block) < _BLOCK:
            raise TimeoutError
    return block


def _is_final(error: Exception) -> bool:
    """Return whether another attempt would fail in the same way."""
    if isinstance(error, HTTPError):
        return 400 <= error.code < 500 and error.code not in _PASSING
    return isinstance(error, _Refused)


def _reason(error: Exception, timeout: float) -> str:
    """Describe a failure."""
    cause = error.reason if isinstance(error, URLError) else error
    if isinstance(cause, TimeoutError):
        return f"the server did not answer, or sent less than {_BLOCK} bytes, in {timeout:g} s"
    return str(error) or type(error).__name__


def _record(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")
