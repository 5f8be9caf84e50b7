"""A safetensors file with JSON in its header and a checksum, replaced atomically."""

import glob
import hashlib
import json
import os
import platform
import shutil
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import psutil
import safetensors.torch
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

_DIGITS = 64
# Errors from reading a file that is damaged or holds values of wrong types or sizes.
MALFORMED = (
    ArithmeticError, AttributeError, LookupError, MemoryError, RuntimeError, TypeError, ValueError,
    SafetensorError,
)  # fmt: skip


def pack(content: dict[str, Any], tensors: Mapping[str, Tensor], key: str) -> bytes:
    """Return the bytes of a safetensors file with a checksum. Equal tensors are stored once.

    Parameters
    ----------
    content : dict
        A dictionary that JSON can hold, without NaN and infinity.
    tensors : dict of str to Tensor
        Contiguous, on the CPU.
    key : str
        The key of the header under which the checksum and the content are stored.
    """
    names: dict[Any, str] = {}
    same = {
        name: names.setdefault((t.dtype, t.shape, hashlib.sha256(_bytes(t)).digest()), name)
        for name, t in tensors.items()
    }
    stored = {name: tensors[name] for name in names.values()}
    text = json.dumps(content | {"$names": same}, allow_nan=False)
    return safetensors.torch.save(stored, {key: _checksum(text, stored) + text})


def read_file(path: Path, key: str) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return the content and the tensors of a file; nothing in it is executed.

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        If the file is not complete, or was not written by `pack` with this key.
    """
    try:
        with safe_open(path, framework="pt") as file:
            text = (file.metadata() or {}).get(key)
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise ValueError(
            f"it is not a complete safetensors file ({error}). If it is a pickle, which runs "
            "code, and you trust it, read it with joblib.load or torch.load"
        ) from error
    if text is None:
        raise ValueError(f"it was not written as a file of {key}")
    # Checked before the content is parsed, so that the error names the damage.
    if text[:_DIGITS] != _checksum(text[_DIGITS:], tensors):
        raise ValueError("its checksum is missing or does not match its content")
    content = json.loads(text[_DIGITS:])
    names = content.pop("$names", {name: name for name in tensors})  # older files have none
    # Tensors are copied, because Windows cannot replace a file that is mapped.
    return content, {name: tensors[first].clone() for name, first in names.items()}


def _checksum(text: str, tensors: Mapping[str, Tensor]) -> str:
    """Return the checksum of everything that is read from a file."""
    digest = hashlib.sha256(text.encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(_bytes(tensor))
    return digest.hexdigest()


def _bytes(tensor: Tensor) -> memoryview:
    return tensor.reshape(-1).view(torch.uint8).numpy().data


def problem_in(error: BaseException) -> str:
    """Return the message of an error about a file, without its last full stop."""
    if isinstance(error, KeyError):
        return f"it lacks {error}"
    return str(error).rstrip(".") or type(error).__name__


def replace_file(path: Path, data: bytes) -> None:
    """Write a temporary file and move it to its path, so that the file is always complete.

    The new file has the mode of the old one. If it is a link, its target is replaced.

    Raises
    ------
    OSError
        If the file cannot be written, with its path. An existing file is kept.
    """
    target = Path(os.path.realpath(path))
    writer = f"{platform.node()}.{os.getpid()}"
    temporary = target.with_name(f".{target.name}.{writer}.{uuid4().hex[:8]}.part")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, temporary)
        temporary.replace(target)
    except OSError as error:
        raise type(error)(error.errno, error.strerror, str(path)) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def remove_parts(path: Path) -> None:
    """Remove the temporary files of `replace_file` whose writers on this machine were killed."""
    start = f".{path.name}.{platform.node()}."
    for part in path.parent.glob(f"{glob.escape(start)}*.part"):
        pid = part.name.removeprefix(start).partition(".")[0]
        if pid.isdigit() and not psutil.pid_exists(int(pid)):
            part.unlink(missing_ok=True)


def without_batches(history: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of a history without their batches."""
    return [{k: v for k, v in row.items() if k != "batches"} for row in history]
