"""One file: JSON in the header, tensors behind it, put in place at once."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import safetensors.torch
from torch import Tensor

# Reading very many small tensors takes far longer than their bytes suggest.
_MOST_TENSORS = 50_000


def pack(content: Any, tensors: Mapping[str, Tensor], key: str) -> bytes:
    """Return the bytes of a safetensors file.

    Parameters
    ----------
    content : object
        What can be written as JSON without NaN and infinity.
    tensors : dict of str to Tensor
        Contiguous, on the CPU.
    key : str
        Says whose file it is: the content stands under this key of the header.
    """
    header = {key: json.dumps(content, allow_nan=False)}
    return safetensors.torch.save(dict(tensors), header)


def unpack(data: bytes, key: str) -> tuple[Any, dict[str, Tensor]]:
    """Return the content and the tensors of `pack`; nothing in the bytes is executed.

    The content of a file of someone else is None.

    Raises
    ------
    safetensors.SafetensorError
        If the bytes are not a whole safetensors file.
    ValueError
        If what stands under the key is not JSON.
    """
    end = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:end]) if end <= len(data) else {}
    if len(header) > _MOST_TENSORS:
        raise ValueError(f"it has {len(header)} tensors, more than any network")
    tensors = safetensors.torch.load(data)
    metadata = header.get("__metadata__") or {}
    return (json.loads(metadata[key]) if key in metadata else None), tensors


def replace_file(path: Path, data: bytes) -> None:
    """Write a file beside its place and move it there, so that it is whole at every moment.

    Raises
    ------
    OSError
        With the path, if it cannot be written. A file that was there stays as it was.
    """
    part = path.with_name(f".{path.name}.{uuid4().hex}.part")
    try:
        with part.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
        _sync_folder(path.parent)
    except OSError as error:
        raise type(error)(error.errno, error.strerror, str(path)) from error
    finally:
        part.unlink(missing_ok=True)


def remove_parts(path: Path) -> None:
    """Remove what processes that were killed while they wrote a file have left beside it."""
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
