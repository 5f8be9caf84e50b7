"""From the files of a set of TUDataset to arrays."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._warnings import warn

# Raised for an archive that is cut or altered.
_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError)
_OF_EDGES = ("edge_labels", "edge_attributes")
_README = "README.txt"
_LONGEST_README = 2**20
# Up to here, all integers are float64 numbers.
_LARGEST_LABEL = 2.0**53


def find_dataset(folder: Path, name: str) -> Path | None:
    """Return the archive or the folder that holds the set, None if there is none."""
    archive, unpacked = folder / f"{name}.zip", folder / name
    return archive if archive.is_file() else unpacked if unpacked.is_dir() else None


def check_archive(path: Path) -> None:
    """Raise OSError unless a file is a zip archive with right checksums."""
    try:
        with _opened(path) as archive:
            damaged = archive.testzip()
    except _DAMAGED as error:
        raise OSError(f"{path.name} is not a zip archive that can be read: {error}") from error
    if damaged:
        raise OSError(f"{path.name} is damaged: the checksum of {damaged} in it is wrong")


def _opened(path: Path) -> zipfile.ZipFile:
    """Return an archive; refuse methods whose decoders raise errors of their own where damaged."""
    archive = zipfile.ZipFile(path)
    usual = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
    if any(member.compress_type not in usual for member in archive.infolist()):
        archive.close()
        raise zipfile.BadZipFile("its files must be stored or deflated")
    return archive


def read_dataset(path: Path, name: str) -> dict[str, Any]:
    """Return the arrays of a set by name.

    Parameters
    ----------
    path : Path
        The archive, or the folder.
    name : str
        Name of the set.

    Returns
    -------
    dataset : dict
        "edge_index" (2, n_edges), each edge once, "node_ptr" (n_graphs + 1,), "kept", the
        positions of the graphs in the set; "target" and "graph_attributes" with a row for each
        graph, "node_labels" (n_nodes, k), "node_attributes" (n_nodes, d) and "edge_labels" and
        "edge_attributes" with a row for each edge, or None; "target_names", the classes, and
        "readme".
    """
    try:
        dataset = _from_texts(_files(path, name), name)
    except _DAMAGED as error:
        raise ValueError(f"it is damaged: {error}. Remove it to download it again") from error
    _leave_out_repeats(dataset)
    _leave_out_empty(dataset, name)
    return dataset


def _files(path: Path, name: str) -> dict[str, bytes]:
    """Return the contents of the files of the set, by name."""

    def is_wanted(file: str) -> bool:
        return file.startswith(f"{name}_") or file == _README

    if path.is_dir():
        files = {file.name: file for file in path.iterdir() if file.is_file()}
        return {name: file.read_bytes() for name, file in files.items() if is_wanted(name)}
    found = {}
    with _opened(path) as archive:
        for member in archive.namelist():
            inside = PurePosixPath(member)
            if str(inside.parent) in (".", name) and is_wanted(inside.name):
                with archive.open(member) as file:
                    most = _LONGEST_README if inside.name == _README else -1
                    found[inside.name] = file.read(most)
    return found


def _from_texts(files: Mapping[str, bytes], name: str) -> dict[str, Any]:
    """Return the arrays of a set of text files, in which nodes and graphs count from 1."""

    def rows(content: str, dtype: type, n_columns: int | None = None) -> Any:
        file = f"{name}_{content}.txt"
        if file not in files:
            if n_columns is None:
                return None
            raise ValueError(f"{file} is missing.")
        found = _numbers(files[file], file, dtype, n_columns or 1)
        if n_columns is not None and found.shape[1] != n_columns:
            raise ValueError(f"{file} must have {n_columns} column(s), got {found.shape[1]}.")
        return found

    edges = rows("A", np.int64, 2)
    indicator = rows("graph_indicator", np.int64, 1)[:, 0]
    attributes = rows("graph_attributes", np.float64)
    target, target_names = _target(rows("graph_labels", np.float64), attributes, name)
    counted = [len(values) for values in (target, attributes) if values is not None]
    n_graphs = counted[0] if counted else min(int(indicator.max(initial=0)), len(indicator))
    if attributes is not None and len(attributes) != n_graphs:
        raise ValueError(f"graph_attributes has {len(attributes)} rows for {n_graphs} graphs.")
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
        "readme": files.get(_README, b"").decode("utf-8", "replace"),
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
    are_integers = (labels == np.round(labels)) & (np.abs(labels) < _LARGEST_LABEL)
    if not (are_integers | np.isnan(labels)).all():
        raise ValueError(f"{name}_graph_labels.txt must hold integers below 2**53.")
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


def _leave_out_empty(dataset: dict[str, Any], name: str) -> None:
    """Leave out graphs without nodes with their classes: they have no embedding."""
    starts, n_graphs = dataset["node_ptr"], len(dataset["node_ptr"]) - 1
    dataset["kept"] = kept = np.flatnonzero(np.diff(starts))
    if len(kept) == n_graphs:
        return
    warn(f"{n_graphs - len(kept)} of the {n_graphs} graphs of {name} have no nodes: left out.")
    dataset["node_ptr"] = starts[np.append(kept, n_graphs)]
    for name in ("target", "graph_attributes"):
        if dataset[name] is not None:
            dataset[name] = dataset[name][kept]
    if len(dataset["target_names"]) and dataset["target"].ndim == 1:
        # The classes that are left of a single task are numbered again.
        classes, dataset["target"] = np.unique(dataset["target"], return_inverse=True)
        dataset["target_names"] = dataset["target_names"][classes]


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
