"""Downloads, complete and verified or not at all, and zip archives, unpacked within bounds."""

from __future__ import annotations

import hashlib
import os
import time
import zipfile
import zlib
from collections.abc import Callable
from http.client import HTTPException
from itertools import count
from pathlib import Path, PurePosixPath
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

# A set of graphs compresses to a tenth. An archive that unpacks to more bytes than this, and to
# more than this many times its own size, was made to exhaust memory.
_UNPACKED = 2**24
_LARGEST_RATIO = 100
# Compression methods that can be unpacked piece by piece.
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_MOST_MEMBERS = 100

# Raised for an archive that is cut or altered.
DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError)


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
                # Of client errors, few may pass.
                code = error.code if isinstance(error, HTTPError) else 0
                is_final = 400 <= code < 500 and code not in _PASSING
                if attempt == n_retries or is_final or isinstance(error, _Refused):
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


def _reason(error: Exception, timeout: float) -> str:
    """Describe a failure."""
    cause = error.reason if isinstance(error, URLError) else error
    if isinstance(cause, TimeoutError):
        return f"the server did not answer, or sent less than {_BLOCK} bytes, in {timeout:g} s"
    return str(error) or type(error).__name__


def _record(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


def check_zip(part: Path) -> None:
    """Raise OSError unless a file is a zip archive of a sensible size, with right checksums."""
    try:
        with zipfile.ZipFile(part) as archive:
            check_members(archive, part.stat().st_size)
            damaged = archive.testzip()
    except (*DAMAGED, ValueError) as error:
        raise OSError(f"{part.name} is not a zip archive that can be read: {error}") from error
    if damaged:
        raise OSError(f"{part.name} is damaged: the checksum of {damaged} in it is wrong.")


def check_members(archive: zipfile.ZipFile, size: int) -> None:
    """Raise ValueError if an archive of `size` bytes claims contents that no data set has."""
    members = archive.infolist()
    if len(members) > _MOST_MEMBERS:
        raise ValueError(f"it has {len(members)} files, more than any set.")
    if any(member.compress_type not in _METHODS for member in members):
        raise ValueError("it is compressed by a different method than 'deflate'.")
    unpacked = sum(member.file_size for member in members)
    if unpacked > max(_UNPACKED, _LARGEST_RATIO * size):
        raise ValueError(
            f"it would unpack to {unpacked / 1e6:.0f} MB, {unpacked / size:.0f} times its size."
        )


def read_member(archive: zipfile.ZipFile, name: str) -> bytes:
    """Return a file of an archive, unpacking at most one byte more than the archive claims."""
    member = archive.getinfo(name)
    with archive.open(member) as file:
        # Without a number, all of it would be unpacked before its size is compared.
        return file.read(member.file_size + 1)


def member_path(name: str) -> PurePosixPath:
    """Return the path of a file in an archive, or raise ValueError if it leads out of it."""
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or ":" in name:
        raise ValueError(f"the archive has a file outside its folder, {name!r}.")
    return path
