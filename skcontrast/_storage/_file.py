"""One file: JSON in the header, tensors behind it, put in place at once."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Mapping, Set
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import safetensors.torch
from torch import Tensor

from .._version import __version__

# JSON takes about seven times its bytes in memory. A fitted ResNet-50 has a header of 0.12 MB, and
# each 1,000 epochs of history add 0.17 MB.
_LONGEST_HEADER = 2**24
# Reading very many small tensors takes far longer than their bytes suggest.
_MOST_TENSORS = 50_000
# The field of the header for the checksum of the whole file, and what it holds meanwhile.
_CHECKSUM = "sha256"
_BLANK = "0" * 64


def pack(content: Any, tensors: Mapping[str, Tensor], key: str) -> bytes:
    """Return the bytes of a safetensors file with a checksum.

    Parameters
    ----------
    content : object
        An object that JSON can hold, without NaN and infinity.
    tensors : dict of str to Tensor
        Contiguous, on the CPU.
    key : str
        Says whose file it is: the content has this key in the header.

    Raises
    ------
    ValueError
        If the content is longer than `unpack` allows.
    """
    start, rest = _split(safetensors.torch.save(dict(tensors)))
    # safetensors would write these two in any order: equal models would be unequal files.
    own = {_CHECKSUM: _BLANK, key: json.dumps(content, allow_nan=False)}
    header = {"__metadata__": own, **json.loads(start[8:])}
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    start = len(text).to_bytes(8, "little") + text
    if problem := _too_long(len(start)):
        raise ValueError(f"The file cannot be written: {problem}.")
    return start.replace(_field(_BLANK), _field(_checksum(start, rest))) + rest


def unpack(data: bytes, key: str) -> tuple[Any, dict[str, Tensor]]:
    """Return the content and the tensors of `pack`; nothing in the bytes is executed.

    The content of a file of someone else is None.

    Raises
    ------
    safetensors.SafetensorError
        If the bytes are not a whole safetensors file.
    ValueError
        If the content is not JSON, the checksum is wrong or missing, or the header
        is far longer than that of any model.
    """
    start, rest = _split(data)
    if problem := _too_long(len(start)):
        raise ValueError(problem)
    header = json.loads(start[8:]) if len(start) > 8 else {}
    if not isinstance(header, dict):
        raise ValueError("its header is not a JSON object")
    if len(header) > _MOST_TENSORS:
        raise ValueError(f"it has {len(header)} tensors, more than any network")
    tensors = safetensors.torch.load(data)
    metadata = header.get("__metadata__") or {}
    if key not in metadata:
        return None, tensors
    found = str(metadata.get(_CHECKSUM))
    if _checksum(start.replace(_field(found), _field(_BLANK)), rest) != found:
        raise ValueError("its checksum is missing or not that of its content")
    return json.loads(metadata[key]), tensors


def check_content(content: Any, newest: int, names: Set[str]) -> None:
    """Raise ValueError unless the content of a file is one that this version can read.

    Parameters
    ----------
    content : object
        As `unpack` returns it, with the number of its format as "format".
    newest : int
        The highest format that this version reads.
    names : set of str
        The fields of the content.
    """
    found = content.get("format") if isinstance(content, dict) else None
    if not isinstance(found, int) or isinstance(found, bool) or found < 1:
        raise ValueError("its header is none of skcontrast's")
    if found > newest:
        raise ValueError(
            f"it has format {found} of skcontrast, and this version ({__version__}) "
            f"reads up to {newest}; upgrade skcontrast"
        )
    if wrong := ", ".join(sorted(content.keys() ^ names)):
        raise ValueError(f"its header lacks or has unknown fields: {wrong}")


def problem_in(error: BaseException) -> str:
    """Return the message of an error about a file, without its last full stop."""
    if isinstance(error, KeyError):
        return f"it lacks {error}"
    return str(error).rstrip(".") or type(error).__name__


def without_batches(history: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of a history as a file has them."""
    return [{k: v for k, v in row.items() if k != "batches"} for row in history]


def _split(data: bytes) -> tuple[bytes, memoryview]:
    """Return the start of a file up to the end of its header, if it is that long, and the rest."""
    end = 8 + int.from_bytes(data[:8], "little")
    return (data[:end] if end <= len(data) else b""), memoryview(data)[end:]


def _too_long(length: int) -> str:
    """Return what is wrong with the length of a header, "" if nothing is."""
    if length <= _LONGEST_HEADER:
        return ""
    return f"its header has {length} bytes, more than the {_LONGEST_HEADER} that are allowed"


def _field(checksum: str) -> bytes:
    """Return the field of the checksum; in content, the quotes of the header are escaped."""
    return f'"{_CHECKSUM}":"{checksum}"'.encode()


def _checksum(start: bytes, rest: memoryview) -> str:
    """Return the checksum of a file whose field for it is blank."""
    digest = hashlib.sha256(start)
    digest.update(rest)
    return digest.hexdigest()


def file_path(path: str | os.PathLike, owner: str) -> Path:
    """Return an argument called `path` as a path, or raise ValueError if no file can have it.

    Parameters
    ----------
    path : str or path-like
        The argument of the user.
    owner : str
        The function that was called.
    """
    text = os.fsdecode(path)
    if "\0" in text or not Path(text).name:
        problem = "it has a NUL character" if "\0" in text else "it does not name a file"
        raise ValueError(
            f"The 'path' parameter of {owner} must be a file, got {text!r}: {problem}."
        )
    return Path(text)


def read_file(path: Path) -> bytes:
    """Return the bytes of a file for `unpack`; of one whose header cannot be whole, the first 8.

    Raises
    ------
    OSError
        If it cannot be read.
    ValueError
        If it is not a regular file, such as a folder or a pipe, or its header is too long.
    """
    size = path.stat().st_size
    if not path.is_file():
        raise ValueError("it is not a regular file")
    with path.open("rb") as file:
        start = file.read(8)
        length = int.from_bytes(start, "little")
        if not 0 < length <= size - 8:
            return start
        if problem := _too_long(8 + length):
            raise ValueError(problem)
        return start + file.read()


def replace_file(path: Path, data: bytes) -> None:
    """Write a file next to its place and move it there, so that it is whole at every moment.

    The new file has the mode of the old one. Of a link, the target is replaced.

    Raises
    ------
    OSError
        With the path, if it cannot be written. A file that was there stays as it was.
    """
    target = Path(os.path.realpath(path))
    part = target.with_name(f".{target.name}.{uuid4().hex}.part")
    try:
        with part.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, part)
        part.replace(target)
        _sync_folder(target.parent)
    except OSError as error:
        raise type(error)(error.errno, error.strerror, str(path)) from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def remove_parts(path: Path) -> None:
    """Remove the temporary files of processes that were killed while they wrote a file."""
    for part in path.parent.glob(f".{path.name}.*.part"):
        part.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """Make sure that a new name in a folder survives a power failure, where that is possible."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
