"""From the files of a set of TUDataset to arrays."""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._fetch import DAMAGED, check_members, member_path, read_member, verify

# More nodes than any set has: numbers beyond are refused before memory is asked for.
_MOST_NODES = 2**28
# More columns than the numbers of any set have, in a text or an array.
_MOST_COLUMNS = 2**14
# Arrays of the numpy form: dtype kinds and numbers of dimensions; None is checked elsewhere.
_ARRAYS: dict[str, tuple[str, tuple[int, ...]] | None] = {
    "edge_index": None,
    "node_ptr": None,
    "y": ("biu", (1, 2)),
    "y_original": None,
    "node_labels": ("biu", (1, 2)),
    "node_attributes": ("biuf", (1, 2)),
    "edge_labels": ("biu", (1, 2)),
    "edge_attributes": ("biuf", (1, 2)),
    "graph_attributes": ("biuf", (1, 2)),
}
_REQUIRED = {"edge_index", "node_ptr"}
_OF_EDGES = ("edge_labels", "edge_attributes")


def find_dataset(folder: Path, name: str) -> Path | None:
    """Return the file or folder that holds the set, None if there is none."""
    forms = (f"{name}.zip", name, f"{name}.npz", f"tu_{name}.npz")
    paths = [folder / form for form in forms]
    return next((path for path in paths if path.is_file() or path.is_dir()), None)


def read_dataset(path: Path, name: str, sha256: str | None, drop_empty: bool) -> dict[str, Any]:
    """Return the arrays of a set by name.

    They are ``edge_index``, ``node_ptr``, ``target``, ``target_names``, ``kept``, the number of
    graphs in the file, ``n_graphs``, and, if the set has them, ``node_labels``,
    ``node_attributes``, ``edge_labels``, ``edge_attributes``, ``graph_attributes`` and ``readme``.
    The last three, and ``target``, are None where the set has none.

    Raises
    ------
    OSError
        If the file has a different SHA-256 than the expected one.
    ValueError
        If it does not hold these arrays, or has graphs without nodes and `drop_empty` is False.
    """
    try:
        dataset = _read(path, name, sha256)
    except DAMAGED as error:
        raise ValueError(f"it is damaged: {error}. Remove it to download it again") from error
    if dataset["node_ptr"].size and dataset["node_ptr"].max() > _MOST_NODES:
        raise ValueError(f"it claims to have more than {_MOST_NODES} nodes")
    _leave_out_repeats(dataset)
    return _without_empty(dataset, drop_empty)


def _read(path: Path, name: str, sha256: str | None) -> dict[str, Any]:
    if path.is_dir():
        if sha256 is not None:
            raise ValueError("the 'sha256' parameter is for an archive, but this is a folder.")
        files = {file.name: file.read_bytes for file in path.iterdir() if file.is_file()}
        return _from_texts(files, name)
    verify(path, sha256)
    content = path.read_bytes()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        check_members(archive, len(content))
        if path.suffix != ".npz":
            return _from_texts(_members(archive, name), name)
        return _from_arrays(archive)


def _members(archive: zipfile.ZipFile, name: str) -> dict[str, Callable[[], bytes]]:
    """Return functions that read the files of the set, by name."""
    files: dict[str, Callable[[], bytes]] = {}
    for member in archive.namelist():
        path = member_path(member)
        if str(path.parent) in (".", name):
            files[path.name] = partial(read_member, archive, member)
    return files


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
        return _only_column(attributes), np.empty(0)
    if not ((labels == np.round(labels)) | np.isnan(labels)).all():
        raise ValueError(f"{name}_graph_labels.txt must hold integers.")
    tasks = [_classes(column) for column in labels.T]
    if len(tasks) > 1:
        return np.column_stack([codes for codes, _ in tasks]), [names for _, names in tasks]
    if (tasks[0][0] < 0).any():
        raise ValueError(f"{name}_graph_labels.txt must hold integers, got NaN.")
    return tasks[0]


def _only_column(attributes: NDArray | None) -> NDArray | None:
    """Return attributes of one column without its axis, others unchanged."""
    if attributes is None or attributes.shape[1:] != (1,):
        return attributes
    return attributes[:, 0]


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
    if content.partition(b"\n")[0].count(b",") >= _MOST_COLUMNS:
        raise ValueError(f"{file} has more than {_MOST_COLUMNS} columns.")
    try:
        return np.loadtxt(io.BytesIO(content), dtype=dtype, delimiter=",", comments=None, ndmin=2)
    except ValueError as error:
        kind = "integers" if dtype == np.int64 else "numbers"
        raise ValueError(f"{file} must hold {kind}: {error}") from error


def _starts(indicator: NDArray, n_graphs: int) -> NDArray:
    """Return the first node of each graph and, last, the number of nodes."""
    ascending = len(indicator) and (np.diff(indicator) >= 0).all()
    if not (ascending and indicator[0] >= 1 and indicator[-1] <= n_graphs):
        raise ValueError(
            "the graph indicator must ascend, and be between 1 and the number of graph labels, "
            f"{n_graphs}."
        )
    return np.searchsorted(indicator, np.arange(1, n_graphs + 2))


def _without_empty(dataset: dict[str, Any], drop_empty: bool) -> dict[str, Any]:
    """Leave out graphs without nodes with their classes, or raise ValueError if there are any."""
    starts, target = dataset["node_ptr"], dataset["target"]
    n_graphs = max(0, len(starts) - 1) if target is None else len(target)
    dataset["n_graphs"], dataset["kept"] = n_graphs, np.arange(n_graphs)
    if starts.dtype.kind not in "iu" or starts.shape != (n_graphs + 1,):
        return dataset
    sizes = np.diff(starts.astype(np.int64))
    empty = np.flatnonzero(sizes == 0)
    if not len(empty) or not len(starts) or (sizes < 0).any():
        return dataset
    if not drop_empty:
        shown = ", ".join(map(str, empty[:5])) + (", …" if len(empty) > 5 else "")
        raise ValueError(
            f"{len(empty)} of its {n_graphs} graphs have no nodes, and so no embedding: graphs "
            f"{shown}, counted from 0. Pass drop_empty=True to leave them out with their classes."
        )
    kept = np.flatnonzero(sizes)
    dataset["node_ptr"], dataset["kept"] = starts[np.append(kept, n_graphs)], kept
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
    edges = dataset["edge_index"]
    if edges.ndim != 2 or len(edges) != 2 or edges.dtype.kind not in "iu":
        return
    if not edges.size or edges.min() < 0 or edges.max() >= _MOST_NODES:
        return
    described = [name for name in _OF_EDGES if dataset.get(name) is not None]
    for name in described:
        if len(dataset[name]) != edges.shape[1]:
            raise ValueError(
                f"there are {len(dataset[name])} rows of {name}, but {edges.shape[1]} edges."
            )
    n_nodes = int(edges.max()) + 1
    keys = edges[0].astype(np.int64) * n_nodes + edges[1].astype(np.int64)
    if described:
        keys, first = np.unique(keys, return_index=True)
        dataset.update({name: dataset[name][first] for name in described})
    else:
        keys = np.sort(keys)
        keys = keys[np.diff(keys, prepend=-1) > 0]
    dataset["edge_index"] = np.stack(divmod(keys, n_nodes))


def _from_arrays(archive: zipfile.ZipFile) -> dict[str, Any]:
    """Return the arrays of a set in the form of numpy."""
    stored = {member.removesuffix(".npy") for member in archive.namelist()}
    missing = sorted(_REQUIRED - stored)
    if missing:
        raise ValueError(f"the array {missing[0]!r} is missing.")
    dataset: dict[str, Any] = {key: _array(archive, key) for key in _ARRAYS if key in stored}
    for key, value in dataset.items():
        kinds, n_dims = _ARRAYS[key] or (value.dtype.kind, (value.ndim,))
        if value.dtype.kind not in kinds or value.ndim not in n_dims:
            raise ValueError(
                f"{key!r} must have {' or '.join(map(str, n_dims))} dimension(s) and hold "
                f"{'numbers' if 'f' in kinds else 'integers'}, got {value.dtype} of shape "
                f"{value.shape}."
            )
    dataset["graph_attributes"] = attributes = dataset.get("graph_attributes")
    if dataset.get("y", np.empty(0)).ndim == 2:
        dataset["target"] = dataset["y"].astype(np.int64)
        dataset["target_names"] = [np.unique(column[column >= 0]) for column in dataset["y"].T]
        return dataset
    if "y" not in dataset:
        dataset["target"], dataset["target_names"] = _only_column(attributes), np.empty(0)
        return dataset
    target_names, target = np.unique(dataset["y"], return_inverse=True)
    dataset["target"] = target.astype(np.int64)
    dataset["target_names"] = dataset.get("y_original", target_names)
    if dataset["target_names"].shape != target_names.shape:
        raise ValueError(f"'y_original' must name the {len(target_names)} classes in 'y'.")
    return dataset


def _array(archive: zipfile.ZipFile, key: str) -> NDArray:
    """Return an array of a file of numpy, whose header must say how long it is."""
    content = io.BytesIO(read_member(archive, f"{key}.npy"))
    version = np.lib.format.read_magic(content)
    if version != (1, 0):
        raise ValueError(f"{key!r} has version {version} of the format of numpy.")
    shape, _, dtype = np.lib.format.read_array_header_1_0(content)
    n_bytes = len(content.getvalue()) - content.tell()
    if not dtype.hasobject and math.prod(shape) * dtype.itemsize != n_bytes:
        raise ValueError(f"{key!r} has {n_bytes} bytes, but says that its shape is {shape}.")
    if math.prod(shape[1:]) > _MOST_COLUMNS and key not in ("edge_index", "y_original"):
        raise ValueError(f"{key!r} has more than {_MOST_COLUMNS} columns.")
    content.seek(0)
    return np.lib.format.read_array(content, allow_pickle=False)
