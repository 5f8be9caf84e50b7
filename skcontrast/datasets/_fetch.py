"""Files from the web: fetched once, kept whole or not at all, and verified at each reading."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from http.client import HTTPException
from numbers import Integral, Real
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from urllib import request
from urllib.error import HTTPError, URLError

from sklearn.datasets import get_data_home
from tqdm.auto import tqdm

from .._parameters import Interval
from .._sklearn_compat import validate_parameter_constraints
from .._warnings import warn

# Bytes that a server has to send within the time limit.
_BLOCK = 2**16
# More bytes than any file has whose size is not known beforehand.
_LARGEST = 2**32
# Client errors of HTTP that may pass: time-out, too early, too many requests.
_PASSING = (408, 425, 429)

_CONSTRAINTS: dict[str, list] = {
    "n_retries": [Interval(Integral, 0, None, closed="left")],
    "delay": [Interval(Real, 0, None, closed="left")],
    "timeout": [Interval(Real, 0, None, closed="neither")],
    "verbose": ["verbose"],
}


# What the arguments of the loaders must be, besides those of the connection.
LOADER = {
    "name": [str],
    "data_home": [str, os.PathLike, None],
    "sha256": [str, None],
    **{
        flag: ["boolean"]
        for flag in (
            "download_if_missing",
            "return_X_y",
            "as_memmap",
            "as_packed",
            "drop_empty",
        )
    },
}


class RemoteFile(NamedTuple):
    """A file on the web.

    Attributes
    ----------
    name : str
        The name that it gets in the folder of the set.
    urls : sequence of str
        Where it is, the official site first.
    sha256 : str or None
        The SHA-256 that it must have, in small hexadecimal digits.
    size : int or None
        Its size in bytes.
    """

    name: str
    urls: Sequence[str]
    sha256: str | None = None
    size: int | None = None


class Connection(NamedTuple):
    """How a file is downloaded: the parameters of all loaders, see `fetch_cifar10`."""

    n_retries: int
    delay: float
    timeout: float
    verbose: bool | int


class _Refused(OSError):
    """An answer that will not change: trying again is of no use."""


def check_connection(
    owner: str, n_retries: int, delay: float, timeout: float, verbose: bool | int
) -> Connection:
    """Return the parameters of a loader as one, or raise ``InvalidParameterError``."""
    connection = Connection(n_retries, delay, timeout, verbose)
    validate_parameter_constraints(_CONSTRAINTS, connection._asdict(), caller_name=owner)
    return connection


def choose_subset(owner: str, subset: str, subsets: Mapping[str, Any]) -> Any:
    """Return what a subset consists of, or raise ValueError if there is no such subset."""
    if not isinstance(subset, str) or subset not in subsets:
        raise ValueError(
            f"The 'subset' parameter of {owner} must be one of {', '.join(map(repr, subsets))}, "
            f"got {subset!r}."
        )
    return subsets[subset]


def folder_of(data_home: str | os.PathLike | None, name: str) -> Path:
    """Return the folder of a set in the folder of all data, without creating it."""
    home = get_data_home() if data_home is None else data_home
    return Path(home).expanduser() / name


def download(
    remote: RemoteFile,
    path: Path,
    connection: Connection,
    check: Callable[[Path], None] | None = None,
) -> None:
    """Download a file, and write its SHA-256 next to it if that was not known, or raise OSError.

    The file appears under its name when it is complete and verified; until then it is in a
    temporary folder next to it.

    Parameters
    ----------
    remote : RemoteFile
        What to download.
    path : Path
        Where it is needed.
    connection : Connection
        How often to try, and how long to wait.
    check : callable, default=None
        ``check(part)`` raises OSError if the file is not usable.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=f"{path.name}.part_", dir=path.parent) as folder:
        part = Path(folder, path.name)
        found = _retrieve(remote, part, path, connection)
        if check is not None:
            check(part)
        if remote.sha256 is None:
            record = part.with_name("sha256")
            record.write_text(f"{found}  {path.name}\n")
            os.replace(record, _record(path))
        os.replace(part, path)


def verify(path: Path, sha256: str | None) -> None:
    """Raise OSError if this is not a file, or its SHA-256 is not the expected one.

    With None, it is compared with the one that was written at the download, if there is one.
    """
    has_record = sha256 is None and _record(path).exists()
    for place in (path, _record(path)) if has_record else (path,):
        if not place.is_file():  # opening a FIFO would wait for ever
            raise OSError(f"{place} is not a file.")
    source = "the expected one is"
    if has_record:
        sha256 = (_record(path).read_text().split() or [""])[0]
        source = f"{_record(path).name}, written at the download, says"
    if sha256 is None:
        return
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != sha256.lower():
        raise OSError(
            f"{path} has the SHA-256 {found}, but {source} {sha256}: it is damaged or a "
            "different version. Remove it to download it again."
        )


def _retrieve(remote: RemoteFile, part: Path, path: Path, connection: Connection) -> str:
    """Download a file, trying again where that may help, and return its SHA-256."""
    urls, failures = list(remote.urls), dict[str, str]()
    for attempt in range(connection.n_retries + 1):
        if attempt:
            warn(f"Retry downloading {' or '.join(urls)}: {failures[urls[-1]]}.")
            time.sleep(connection.delay)
        for url in tuple(urls):
            try:
                return _stream(url, remote, part, connection)
            except (URLError, TimeoutError, ConnectionError, HTTPException, _Refused) as error:
                failures[url] = _reason(error, connection.timeout)
                if _is_final(error):
                    urls.remove(url)
        if not urls:
            break
    reasons = "; ".join(f"{url} cannot be downloaded: {why}" for url, why in failures.items())
    raise OSError(f"{reasons}. If you can get the file in a different way, store it as {path}.")


def _stream(url: str, remote: RemoteFile, part: Path, connection: Connection) -> str:
    """Write what a server sends to a file, and return its SHA-256."""
    digest, n_bytes = hashlib.sha256(), 0
    with request.urlopen(url, timeout=connection.timeout) as response, part.open("wb") as file:
        promised = _promised_size(response, remote)
        with _progress_bar(remote.name, promised, connection.verbose) as bar:
            while block := _read_block(response, connection.timeout):
                n_bytes += len(block)
                if n_bytes > (_LARGEST if promised is None else promised):
                    raise _Refused("the server sends more than it should")
                digest.update(block)
                file.write(block)
                bar.update(len(block))
    if promised is not None and n_bytes < promised:
        raise ConnectionError(f"the connection was cut after {n_bytes} of {promised} bytes")
    found = digest.hexdigest()
    if remote.sha256 is not None and found != remote.sha256.lower():
        raise _Refused(f"it has the SHA-256 {found}, not the expected {remote.sha256}")
    return found


def _promised_size(response: Any, remote: RemoteFile) -> int | None:
    """Return the size of a file, known beforehand or from the server's answer, None if unknown."""
    header = response.headers.get("Content-Length") or ""
    promised = int(header) if header.isascii() and header.isdigit() else None
    expected = remote.size if promised is None else promised
    if remote.size not in (None, expected):
        raise _Refused(f"the server offers {promised} bytes, not the expected {remote.size}")
    if (expected or 0) > max(_LARGEST, remote.size or 0):
        raise _Refused(f"the server offers {promised} bytes, more than any set has")
    return expected


def _progress_bar(name: str, total: int | None, verbose: bool | int) -> tqdm:
    """Return a bar that appears if the download takes more than a second."""
    options = {"unit": "B", "unit_scale": True, "delay": 1, "leave": False}
    return tqdm(total=total, desc=name, disable=not verbose, **options)


def _read_block(response: Any, timeout: float) -> bytes:
    """Return the next block, shorter only at the end; raise TimeoutError if it takes too long."""
    deadline, block = time.monotonic() + timeout, b""
    while len(block) < _BLOCK:
        some = response.read1(_BLOCK - len(block))
        if not some:
            break
        block += some
        if time.monotonic() > deadline and len(block) < _BLOCK:
            raise TimeoutError
    return block


def _is_final(error: Exception) -> bool:
    """Return whether the next try would fail in the same way."""
    if isinstance(error, HTTPError):
        return 400 <= error.code < 500 and error.code not in _PASSING
    return isinstance(error, _Refused)


def _reason(error: Exception, timeout: float) -> str:
    """Return what failed, in words."""
    cause = error.reason if isinstance(error, URLError) else error
    if isinstance(cause, TimeoutError):
        return f"the server did not answer, or sent less than {_BLOCK} bytes, in {timeout:g} s"
    return str(error) or type(error).__name__


def _record(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")
