"""Archives, unpacked within bounds: known files only, none larger than it can be."""

from __future__ import annotations

import os
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import NamedTuple

from ._fetch import Connection, RemoteFile, download, verify

# A set of graphs compresses to a tenth. What unpacks to more than this many bytes, and to more
# than so many times its own size, was made to exhaust memory.
_LARGE = 2**24
_LARGEST_RATIO = 100
# How the files in it may be packed: other methods cannot be unpacked piece by piece.
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# Files of an archive that are not read, such as a README, and their bytes together.
_MOST_MEMBERS = 100
_OTHERS = 2**24

# What is raised for an archive that is cut or altered.
DAMAGED = (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, RuntimeError)


class RemoteTar(NamedTuple):
    """A set in a gzipped tar archive, and the folder that the archive unpacks to.

    Attributes
    ----------
    remote : RemoteFile
        The archive.
    folder : str
        The folder in it.
    members : mapping from str to int
        The largest size of each file that is read, in bytes.
    """

    remote: RemoteFile
    folder: str
    members: Mapping[str, int]


def provide_tar(
    archive: RemoteTar,
    home: Path,
    needed: Sequence[str],
    connection: Connection,
    download_if_missing: bool,
) -> Path:
    """Return the folder with the files of a set, unpacked or downloaded if they are missing.

    A downloaded archive is not kept; one that the user stored in `home` stays.

    Raises
    ------
    OSError
        If files are missing and must not or cannot be downloaded.
    """
    folder, local = home / archive.folder, home / archive.remote.name
    missing = [name for name in needed if not (folder / name).is_file()]
    if missing and local.exists():
        verify(local, archive.remote.sha256)
        _unpack(local, archive, folder)
    elif missing:
        if not download_if_missing:
            raise OSError(
                f"{folder / missing[0]} not found, nor {local}, and download_if_missing is False."
            )
        download(archive.remote, local, connection)
        _unpack(local, archive, folder)
        local.unlink()
    return folder


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
    """Raise ValueError if an archive of `size` bytes says that it holds what no data set does."""
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
    """Return a file of an archive; no more is unpacked than the archive has said."""
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


def _unpack(path: Path, archive: RemoteTar, folder: Path) -> None:
    """Unpack the files of a set; each appears under its name when it is complete."""
    with TemporaryDirectory(prefix=f"{archive.folder}.part_", dir=path.parent) as part:
        try:
            _extract(path, archive, Path(part))
        except (*DAMAGED, ValueError) as error:
            raise OSError(
                f"{path} cannot be unpacked: {error}. Remove it to download it again."
            ) from error
        folder.mkdir(exist_ok=True)
        for name in archive.members:
            os.replace(Path(part, name), folder / name)


def _extract(path: Path, archive: RemoteTar, folder: Path) -> None:
    """Write the files of a set to a folder, within their bounds."""
    others, missing = 0, dict(archive.members)
    with tarfile.open(path, "r|gz") as tar:
        for n_members, member in enumerate(tar):
            name = member_path(member.name)
            largest = missing.pop(name.name, None) if str(name.parent) == archive.folder else None
            others += member.size if largest is None else 0
            if n_members > _MOST_MEMBERS or others > _OTHERS:
                raise ValueError("it has more files than the set")
            if largest is None:
                continue
            content = tar.extractfile(member) if member.isreg() else None
            if content is None or member.size > largest:
                raise ValueError(f"{name} in it is no file of at most {largest} bytes")
            with content, (folder / name.name).open("wb") as file:
                shutil.copyfileobj(content, file)
    if missing:
        raise ValueError(f"it lacks {', '.join(missing)}")
