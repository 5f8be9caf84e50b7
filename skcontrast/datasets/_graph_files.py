"""From the files of a set of TUDataset to arrays."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._fetch import verify

# A set of graphs compresses to a tenth. An archive that unpacks to more bytes than this, and to
# more than this many times its own size, was made to exhaust memory.
_UNPACKED = 2**24
_LARGEST_RATIO = 100
# Raised for an archive that is cut or altered.
_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError)
_OF_EDGES = ("edge_labels", "edge_attributes")


def find_dataset(folder: Path, name: str) -> Path | None:
    """Return the archive or the folder that holds the set, None if there is none."""
    archive, unpacked = folder / f"{name}.zip", folder / name
    return archive if archive.is_file() else unpacked if unpacked.is_dir() else None


def check_archive(path: Path, sha256: str | None) -> None:
    """Raise OSError unless a file is a zip archive of a sensible size, with right checksums."""
    verify(path, sha256)
    try:
        damaged = _opened(path).testzip()
    except (*_DAMAGED, ValueError) as error:
        raise OSError(f"{path.name} is not a zip archive that can be read: {error}") from error
    if damaged:
        raise OSError(f"{path.name} is damaged: the checksum of {damaged} in it is wrong.")


def _opened(path: Path) -> zipfile.ZipFile:
    """Return an archive that has been read to memory, or raise ValueError if it is a bomb."""
    content = path.read_bytes()
    archive = zipfile.ZipFile(io.BytesIO(content))
    unpacked, size = sum(member.file_size for member in archive.infolist()), len(content)
    if unpacked > max(_UNPACKED, _LARGEST_RATIO * size):
        raise ValueError(
            f"it would unpack to {unpacked / 1e6:.0f} MB, {unpacked / size:.0f} times its size."
        )
    return archive


def read_dataset(path: Path, name: str, sha256: str | None, drop_empty: bool) -> dict[str, Any]:
    """Return the arrays of a set by name.

    They are ``edge_index``, ``node_ptr``, ``target``, ``target_names``, ``kept``, the number of
    graphs in the file, ``n_graphs``, and ``readme``; and ``node_labels``, ``node_attributes``,
    ``edge_labels``, ``edge_attributes`` and ``graph_attributes``, which are None, like ``target``,
    where the set has none.

    Raises
    ------
    OSError
        If the file has a different SHA-256 than the expected one.
    ValueError
        If it does not hold these arrays, or has graphs without nodes and `drop_empty` is False.
    """
    try:
        dataset = _from_texts(_files(path, name, sha256), name)
    except _DAMAGED as error:
        raise ValueError(f"it is damaged: {error}. Remove it to download it again") from error
    _leave_out_repeats(dataset)
    return _without_empty(dataset, drop_empty)


def _files(path: Path, name: str, sha256: str | None) -> dict[str, Callable[[], bytes]]:
    """Return functions that read the files of the set, by name."""
    if path.is_dir():
        if sha256 is not None:
            raise ValueError("the 'sha256' parameter is for an archive, but this is a folder.")
        return {file.name: file.read_bytes for file in path.iterdir() if file.is_file()}
    verify(path, sha256)
    archive = _opened(path)
    members = {member: PurePosixPath(member) for member in archive.namelist()}
    return {
        inside.name: partial(archive.read, member)
        for member, inside in members.items()
        if str(inside.parent) in (".", name)
    }


def _from_texts(files: Mapping[str, Callable[[], bytes]], name: str) -> dict[str, Any]:
    """Return the arrays of a set of text files, in which nodes and graphs count from 1."""

    def rows(content: str, dtype: type, n_columns: int | None = None) -> Any:
        file = f"{name}_{content}.txt"
        if file not in files:
            if n_columns is None:
                return None
            raise ValueError(f"{file} is missing.")
        found = _numbers(files[file](), file, dtype, n_columns or 1)
        if n_columns is not None and found.shape[1] != n_columns:
            raise ValueError(f"{file} must have {n_columns} column(s), got {found.shape[1]}.")
        return found

    edges = rows("A", np.int64, 2)
    indicator = rows("graph_indicator", np.int64, 1)[:, 0]
    attributes = rows("graph_attributes", np.float64)
    target, target_names = _target(rows("graph_labels", np.float64), attributes, name)
    counted = [len(values) for values in (target, attributes) if values is not None]
    n_graphs = counted[0] if counted else int(indicator.max(initial=0))
    return {
        "edge_index": edges.T - 1,
        "node_ptr": _starts(indicator, n_graphs),
        "target": target,
        "target_names": target_names,
        "graph_attributes": attributes,
        "node_labels": rows("node_labels", np.int64),
        "node_attributes": rows("node_attributes", np.float32),
        "edge_labels": rows("edge_labels", np.int64),
        "edge_attributes": rows("edge_attributes", np.float32),
        "readme": files.get("README.txt", bytes)().decode("utf-8", "replace"),
    }


def _target(
    labels: NDArray | None, attributes: NDArray | None, name: str
) -> tuple[NDArray | None, Any]:
    """Return the target of each graph, and the names of the classes.

    Labels in one column are classes. Each of several columns is a task with classes of its own,
    NaN where a class is unknown. Without labels, the attributes of the graphs are the target.
    """
    if labels is None:
        if attributes is not None and attributes.shape[1] == 1:
            attributes = attributes[:, 0]
        return attributes, np.empty(0)
    if not ((labels == np.round(labels)) | np.isnan(labels)).all():
        raise ValueError(f"{name}_graph_labels.txt must hold integers.")
    tasks = [_classes(column) for column in labels.T]
    if len(tasks) > 1:
        return np.column_stack([codes for codes, _ in tasks]), [names for _, names in tasks]
    if (tasks[0][0] < 0).any():
        raise ValueError(f"{name}_graph_labels.txt must hold integers, got NaN.")
    return tasks[0]


def _classes(column: NDArray) -> tuple[NDArray, NDArray]:
    """Return the classes of a column as 0, 1, … and −1 where it is NaN, and their names."""
    known = ~np.isnan(column)
    names, codes = np.unique(column[known].astype(np.int64), return_inverse=True)
    target = np.full(len(column), -1)
    target[known] = codes
    return target, names


def _numbers(content: bytes, file: str, dtype: type, n_columns: int = 1) -> NDArray:
    """Return the numbers of a text, separated by commas; `n_columns` is the width if empty."""
    if not content.strip():
        return np.empty((0, n_columns), dtype=dtype)
    try:
        return np.loadtxt(io.BytesIO(content), dtype=dtype, delimiter=",", comments=None, ndmin=2)
    except ValueError as error:
        kind = "integers" if dtype == np.int64 else "numbers"
        raise ValueError(f"{file} must hold {kind}: {error}") from error


def _starts(indicator: NDArray, n_graphs: int) -> NDArray:
    """Return the first node of each graph and, last, the number of nodes."""
    ascending = len(indicator) and (np.diff(indicator) >= 0).all()
    if not (ascending and indicator[0] >= 1 and indicator[-1] <= n_graphs):
        raise ValueError(f"the graph indicator must ascend, from 1 to {n_graphs} at most.")
    return np.searchsorted(indicator, np.arange(1, n_graphs + 2))


def _without_empty(dataset: dict[str, Any], drop_empty: bool) -> dict[str, Any]:
    """Leave out graphs without nodes with their classes, or raise ValueError if there are any."""
    starts, n_graphs = dataset["node_ptr"], len(dataset["node_ptr"]) - 1
    sizes = np.diff(starts)
    kept, empty = np.flatnonzero(sizes), np.flatnonzero(sizes == 0)
    dataset["n_graphs"], dataset["kept"] = n_graphs, kept
    if not len(empty):
        return dataset
    if not drop_empty:
        shown = ", ".join(map(str, empty[:5])) + (", …" if len(empty) > 5 else "")
        raise ValueError(
            f"{len(empty)} of its {n_graphs} graphs have no nodes, and so no embedding: graphs "
            f"{shown}, counted from 0. Pass drop_empty=True to leave them out with their classes."
        )
    dataset["node_ptr"] = starts[np.append(kept, n_graphs)]
    for name in ("target", "graph_attributes"):
        if dataset[name] is not None:
            dataset[name] = dataset[name][kept]
    if len(dataset["target_names"]) and dataset["target"].ndim == 1:
        # The classes that are left of a single task are numbered again.
        classes, dataset["target"] = np.unique(dataset["target"], return_inverse=True)
        dataset["target_names"] = dataset["target_names"][classes]
    return dataset


def _leave_out_repeats(dataset: dict[str, Any]) -> None:
    """Keep each edge once, with its first labels and attributes, in order of the sources."""
    edges, n_nodes = dataset["edge_index"], int(dataset["node_ptr"][-1])
    described = [name for name in _OF_EDGES if dataset[name] is not None]
    for name in described:
        if len(dataset[name]) != edges.shape[1]:
            raise ValueError(f"{name} has {len(dataset[name])} rows for {edges.shape[1]} edges.")
    if edges.min(initial=0) < 0 or edges.max(initial=0) >= n_nodes:
        raise ValueError(f"edges must be pairs of numbers of nodes, 1 to {n_nodes}.")
    keys, first = np.unique(edges[0] * n_nodes + edges[1], return_index=True)
    dataset["edge_index"] = np.stack(divmod(keys, n_nodes))
    dataset.update({name: dataset[name][first] for name in described})
