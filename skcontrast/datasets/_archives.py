"""Zip archives, unpacked within bounds."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path, PurePosixPath

# A set of graphs compresses to a tenth. An archive that unpacks to more bytes than this, and to
# more than this many times its own size, was made to exhaust memory.
_LARGE = 2**24
_LARGEST_RATIO = 100
# Compression methods that can be unpacked piece by piece.
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_MOST_MEMBERS = 100

# Raised for an archive that is cut or altered.
DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError)


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
    if unpacked > max(_LARGE, _LARGEST_RATIO * size):
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
