"""Downloads, complete and verified or not at all."""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Callable
from http.client import HTTPException
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib import request
from urllib.error import HTTPError, URLError

from .._warnings import warn

# Client errors of HTTP that may pass: time-out, too early, too many requests.
_PASSING = (408, 425, 429)


def download(
    url: str,
    path: Path,
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
    check : callable
        ``check(part)`` raises OSError if the file is not usable.
    n_retries : int
        How often to try again after a failure that may pass.
    delay : float
        Seconds between attempts.
    timeout : float
        Seconds within which the server has to answer.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=f"{path.name}.part_", dir=path.parent) as folder:
        part = Path(folder, path.name)
        for attempt in count():
            try:
                _stream(url, part, timeout)
                break
            except (URLError, TimeoutError, ConnectionError, HTTPException) as error:
                code = error.code if isinstance(error, HTTPError) else 0
                is_final = 400 <= code < 500 and code not in _PASSING
                if attempt == n_retries or is_final:
                    raise OSError(
                        f"{url} cannot be downloaded: {error}. If you can get the file in a "
                        f"different way, store it as {path}."
                    ) from error
                warn(f"Retry downloading {url}: {error}.")
                time.sleep(delay)
        check(part)
        os.replace(part, path)


def _stream(url: str, part: Path, timeout: float) -> None:
    """Write the server's answer to a file."""
    with request.urlopen(url, timeout=timeout) as response, part.open("wb") as file:
        shutil.copyfileobj(response, file)
        n_bytes, promised = file.tell(), response.headers["Content-Length"]
    if promised is not None and n_bytes < int(promised):
        raise ConnectionError(f"the connection was cut after {n_bytes} of {promised} bytes")


def verify(path: Path, sha256: str | None) -> None:
    """Raise OSError unless a file has the expected SHA-256, if one is expected."""
    if sha256 is None:
        return
    with path.open("rb") as content:
        found = hashlib.file_digest(content, "sha256").hexdigest()
    if found != sha256.lower():
        raise OSError(f"{path} has the SHA-256 {found}, not the expected {sha256}.")
