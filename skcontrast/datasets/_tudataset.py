"""From the files of a set of TUDataset to arrays."""

from __future__ import annotations

import io
import zipfile
import zlib
from pathlib import PurePosixPath

import numpy as np

from ._downloads import read_verified


def find_dataset(folder, name):
    """Return the file or folder that holds the set, None if none does."""
    forms = (f"{name}.zip", name, f"{name}.npz", f"tu_{name}.npz")
    return next((folder / form for form in forms if (folder / form).exists()), None)


def read_dataset(path, name, sha256):
    """Return the arrays of a set by name.

    They are ``edge_index``, ``node_ptr``, ``target``, ``target_names`` and, where the set has
    them, ``node_labels``, ``node_attributes`` and ``readme``.

    Raises
    ------
    OSError
        If the file has another SHA-256 than it must have.
    ValueError
        If it holds no such arrays.
    """
    try:
        return _read(path, name, sha256)
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:
        raise ValueError(f"it is damaged: {error}") from error


def _read(path, name, sha256):
    if path.is_dir():
        if sha256 is not None:
            raise ValueError("the 'sha256' parameter is that of an archive, but this is a folder.")
        files = {file.name: file.read_bytes for file in path.iterdir() if file.is_file()}
        return _from_texts(files, name)
    content = io.BytesIO(read_verified(path, sha256))
    if path.suffix == ".npz":
        return _from_arrays(content)
    with zipfile.ZipFile(content) as archive:
        return _from_texts(_members(archive, name), name)


def _members(archive, name):
    """Return functions that read the files of the set, by name."""
    files = {}
    for member in archive.namelist():
        path = PurePosixPath(member.replace("\\", "/"))
        if path.is_absolute() or ".." in path.parts or ":" in member:
            raise ValueError(f"the archive has a file outside of its folder, {member!r}.")
        if str(path.parent) in (".", name):
            files[path.name] = lambda member=member: archive.read(member)
    return files


def _from_texts(files, name):
    """Return the arrays of a set that is text files, nodes and graphs numbered from 1."""

    def numbers(content, *, dtype=np.int64, n_columns=None):
        file = f"{name}_{content}.txt"
        if file in files:
            return _numbers(files[file](), file, dtype, n_columns)
        if n_columns is not None:
            raise ValueError(f"{file} is missing.")
        return None

    edges = numbers("A", n_columns=2)
    target_names, target = np.unique(numbers("graph_labels", n_columns=1), return_inverse=True)
    return {
        "edge_index": _without_repeats(edges.T - 1),
        "node_ptr": _starts(numbers("graph_indicator", n_columns=1)[:, 0], len(target)),
        "target": target.reshape(-1).astype(np.int64),
        "target_names": target_names,
        "node_labels": numbers("node_labels"),
        "node_attributes": numbers("node_attributes", dtype=np.float32),
        "readme": files.get("README.txt", bytes)().decode("utf-8", "replace"),
    }


def _numbers(content, file, dtype, n_columns):
    """Return the numbers of a text, separated by commas, shape (n_lines, n_columns)."""
    if not content.strip():
        return np.empty((0, n_columns or 1), dtype=dtype)
    try:
        rows = np.loadtxt(io.BytesIO(content), dtype=dtype, delimiter=",", comments=None, ndmin=2)
    except ValueError as error:
        kind = "integers" if dtype == np.int64 else "numbers"
        raise ValueError(f"{file} must hold {kind}: {error}") from error
    if n_columns is not None and rows.shape[1] != n_columns:
        raise ValueError(f"{file} must have {n_columns} column(s), got {rows.shape[1]}.")
    return rows


def _starts(indicator, n_graphs):
    """Return the first node of each graph and, last, how many nodes there are."""
    ascending = len(indicator) and (np.diff(indicator) >= 0).all()
    if not (ascending and indicator[0] == 1 and indicator[-1] == n_graphs):
        raise ValueError(
            f"the graph indicator must ascend from 1 to {n_graphs}, the number of graph labels."
        )
    return np.searchsorted(indicator, np.arange(1, n_graphs + 2))


def _without_repeats(edges):
    """Return edges (2, m) in order of their sources, each once; what are no edges, as it is."""
    if edges.ndim != 2 or len(edges) != 2 or edges.dtype.kind not in "iu":
        return edges
    if not edges.size or edges.min() < 0:
        return edges
    n_nodes = int(edges.max()) + 1
    keys = np.sort(edges[0].astype(np.int64) * n_nodes + edges[1])
    return np.stack(divmod(keys[np.diff(keys, prepend=-1) > 0], n_nodes))


def _from_arrays(content):
    """Return the arrays of a set in the form of numpy."""
    with np.load(content, allow_pickle=False) as arrays:
        missing = sorted({"edge_index", "node_ptr", "y"} - set(arrays))
        if missing:
            raise ValueError(f"the array {missing[0]!r} is missing.")
        dataset = {key: arrays[key] for key in arrays}
    target_names, target = np.unique(dataset["y"], return_inverse=True)
    dataset["edge_index"] = _without_repeats(dataset["edge_index"])
    dataset["target"] = target.astype(np.int64)
    dataset["target_names"] = dataset.get("y_original", target_names)
    if dataset["target_names"].shape != target_names.shape:
        raise ValueError(f"'y_original' must name the {len(target_names)} classes in 'y'.")
    return dataset
