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
import torch
from safetensors import SafetensorError
from torch import Tensor

from .._version import __version__

# JSON takes about seven times its bytes in memory. A fitted ResNet-50 has a header of 0.12 MB, and
# each 1,000 epochs of history add 0.17 MB.
_LONGEST_HEADER = 2**24
# Reading very many small tensors takes far longer than their bytes suggest.
_MOST_TENSORS = 50_000
_DIGITS = 64
# What reading a file raises that is damaged, or holds values of wrong types and sizes.
MALFORMED = (
    ArithmeticError, AttributeError, LookupError, MemoryError, RuntimeError, TypeError, ValueError,
    SafetensorError,
)  # fmt: skip


def pack(content: Any, tensors: Mapping[str, Tensor], key: str) -> bytes:
    """Return the bytes of a safetensors file with a checksum.

    Parameters
    ----------
    content : object
        An object that JSON can hold, without NaN and infinity.
    tensors : dict of str to Tensor
        Contiguous, on the CPU.
    key : str
        Says whose file it is: the header has the checksum and the content under this key.

    Raises
    ------
    ValueError
        If the content is longer than `unpack` allows.
    """
    text = json.dumps(content, allow_nan=False)
    data = safetensors.torch.save(dict(tensors), {key: _checksum(text, tensors) + text})
    try:
        _header(data)
    except ValueError as error:
        raise ValueError(f"The file cannot be written: {error}.") from error
    return data


def unpack(
    data: bytes, key: str, newest: int, names: Set[str]
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return the content and the tensors of `pack`; nothing in the bytes is executed.

    Parameters
    ----------
    data : bytes
        The whole file.
    key : str
        As in `pack`.
    newest : int
        The highest "format" of a content that this version reads.
    names : set of str
        The fields of the content.

    Raises
    ------
    safetensors.SafetensorError
        If the bytes are not a whole safetensors file.
    ValueError
        If it is someone else's file, the checksum is wrong or missing, the header is far longer
        than that of any model, or the content is not one that this version can read.
    """
    header = _header(data)
    tensors = safetensors.torch.load(data)
    text = (json.loads(header).get("__metadata__") or {}).get(key)
    if text is None:
        raise ValueError(f"it was not written as a file of {key}")
    # Before the content is parsed: a file that was changed is called so, whatever that broke.
    if text[:_DIGITS] != _checksum(text[_DIGITS:], tensors):
        raise ValueError("its checksum is missing or not that of its content")
    content = json.loads(text[_DIGITS:])
    found = content.get("format") if isinstance(content, dict) else None
    if type(found) is not int or found < 1:
        raise ValueError("its header is none of skcontrast's")
    if found > newest:
        raise ValueError(
            f"it has format {found} of skcontrast, and this version ({__version__}) "
            f"reads up to {newest}; upgrade skcontrast"
        )
    if wrong := ", ".join(sorted(content.keys() ^ names)):
        raise ValueError(f"its header lacks or has unknown fields: {wrong}")
    return content, tensors


def _header(data: bytes) -> bytes:
    """Return the header of a file, or raise ValueError if it is too large."""
    header = data[8 : 8 + int.from_bytes(data[:8], "little")]
    _check_length(len(header))
    if header.count(b'"dtype"') > _MOST_TENSORS:
        raise ValueError(f"it has more than {_MOST_TENSORS} tensors")
    return header


def _check_length(length: int) -> None:
    """Raise ValueError for the length of a header that no model has."""
    if length > _LONGEST_HEADER:
        raise ValueError(
            f"its header has {length} bytes, more than the {_LONGEST_HEADER} that are allowed"
        )


def _checksum(text: str, tensors: Mapping[str, Tensor]) -> str:
    """Return the checksum of all that is read of a file."""
    digest = hashlib.sha256(text.encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def problem_in(error: BaseException) -> str:
    """Return the message of an error about a file, without its last full stop."""
    if isinstance(error, KeyError):
        return f"it lacks {error}"
    return str(error).rstrip(".") or type(error).__name__


def without_batches(history: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of a history as a file has them."""
    return [{k: v for k, v in row.items() if k != "batches"} for row in history]


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
    """Return the bytes of a file for `unpack`.

    Raises
    ------
    OSError
        If it cannot be read.
    ValueError
        If it is not a regular file, such as a folder or a pipe, or has no whole header.
    """
    size = path.stat().st_size
    if not path.is_file():
        raise ValueError("it is not a regular file")
    with path.open("rb") as file:
        start = file.read(8)
        length = int.from_bytes(start, "little")
        if not 0 < length <= size - 8:
            raise ValueError(
                "it has no whole header of safetensors. If it is a pickle, which runs code, and "
                "you trust it, read it with joblib.load or torch.load"
            )
        _check_length(length)
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
        # On the disk, and only then in place: a machine that stops meanwhile leaves the old file.
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
